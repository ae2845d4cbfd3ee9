// Host tensors: construction, copy on write, and conversion to and from numbers.
#include "core/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/checked.h"
#include "core/error.h"
#include "core/os_posix.h"
#include "core/round_to_odd.h"
#include "core/strided_copy.h"

namespace rlx {

Bytes Bytes::allocate(Index size) {
  ensure(size >= 0, "byte count is negative");
  const auto n = static_cast<std::size_t>(size);
  // calloc hands out untouched zero pages for large sizes, so that a tensor that is never filled costs nothing. It
  // aligns to 16 bytes; packs that cross lines of the cache take twice the time.
  constexpr std::size_t line = 64;
  auto* const block = n > SIZE_MAX - line ? nullptr : static_cast<std::byte*>(std::calloc(n + line, 1));
  require(block != nullptr, "a tensor of {} bytes does not fit into memory", size);
  const std::shared_ptr<std::byte> owner(block, [](std::byte* q) { std::free(q); });
  std::byte* const p = block + (line - reinterpret_cast<std::uintptr_t>(block) % line) % line;
  prefer_large_pages(p, n);
  return {owner, {p, n}, true};
}

static TensorType type_of(DType dtype, const std::vector<Index>& shape) {
  return {dtype, std::vector<Dim>(shape.begin(), shape.end())};
}

Tensor::Tensor(DType dtype, std::vector<Index> shape) : shape_(std::move(shape)) {
  count_ = checked_product(shape_, "a tensor");
  type_ = type_of(dtype, shape_);
  planes_.push_back(Bytes::allocate(storage_bytes(dtype, count_)));
}

Tensor::Tensor(const TensorType& type, std::vector<Bytes> planes) : type_(type), planes_(std::move(planes)) {
  for (const Dim& d : type.dims) {
    require(d.is_constant(), "a host tensor needs constant sizes, type is {}", type.text());
    shape_.push_back(d.constant());
  }
  count_ = checked_product(shape_, "a tensor");
  require(planes_.size() == type.plane_count(), "{} has {} planes, {} were given", type.text(), type.plane_count(),
          planes_.size());
  for (std::size_t i = 0; i < planes_.size(); ++i) {
    const Index want = type.encoding ? type.plane_bytes(i).constant() : storage_bytes(type.dtype, count_);
    require(static_cast<Index>(planes_[i].data.size()) == want, "{} needs {} bytes, {} were given", type.text(), want,
            planes_[i].data.size());
  }
}

Tensor Tensor::scalar(DType dtype, double value) { return of<double>(dtype, {}, {value}); }

std::span<std::byte> Tensor::mutable_bytes(std::size_t plane) {
  Bytes& p = planes_[plane];
  if (!p.writable || p.owner.use_count() != 1) {
    Bytes copy = Bytes::allocate(static_cast<Index>(p.data.size()));
    // The allocation is ours alone, so that its constness is a formality.
    if (!p.data.empty()) std::memcpy(const_cast<std::byte*>(copy.data.data()), p.data.data(), p.data.size());
    p = std::move(copy);
  }
  return {const_cast<std::byte*>(p.data.data()), p.data.size()};
}

std::uint64_t Tensor::code(Index i) const {
  ensure(!type_.encoding && 0 <= i && i < count_, "element out of range, or an encoded tensor");
  const int width = bits(type_.dtype);
  const auto n = static_cast<std::size_t>(i);
  const std::byte* p = planes_[0].data.data();
  if (width < 8) return packed_at(p, i, width);
  std::uint64_t bits = 0;
  const auto bytes = static_cast<std::size_t>(width / 8);
  std::memcpy(&bits, p + n * bytes, bytes);
  return bits;
}

void Tensor::set_code(Index i, std::uint64_t bits) {
  ensure(!type_.encoding && 0 <= i && i < count_, "element out of range, or an encoded tensor");
  const int width = rlx::bits(type_.dtype);
  const auto n = static_cast<std::size_t>(i);
  std::byte* p = mutable_bytes().data();
  if (width < 8) return set_packed(p, i, static_cast<unsigned>(bits), width);
  const auto bytes = static_cast<std::size_t>(width / 8);
  std::memcpy(p + n * bytes, &bits, bytes);
}

Tensor Tensor::reshaped(std::vector<Index> shape) const {
  ensure(!type_.encoding, "an encoded tensor is not reshaped");
  require(checked_product(shape, "a reshaped tensor") == count_, "shape {} has not the {} elements of {}", text(shape),
          count_, type_.text());
  Tensor t = *this;
  t.shape_ = std::move(shape);
  t.type_ = type_of(type_.dtype, t.shape_);
  return t;
}

namespace {

// Element by element through a small value class; the two common float types have a direct loop.
template <class T>
T decode(DType type, std::uint64_t code) {
  switch (info(type).kind) {
    case DTypeClass::real: {
      if constexpr (std::is_integral_v<T>) {
        fail("a tensor of {} is not read as integers", name(type));
      } else {
        return decode_float(type, code);
      }
    }
    case DTypeClass::complex: {
      if constexpr (std::is_same_v<T, std::complex<double>>) {
        return {std::bit_cast<float>(static_cast<std::uint32_t>(code)),
                std::bit_cast<float>(static_cast<std::uint32_t>(code >> 32))};
      } else {
        fail("a complex tensor is not read as real numbers");
      }
    }
    case DTypeClass::boolean:
      return static_cast<T>(code != 0 ? 1 : 0);
    case DTypeClass::sign:
    case DTypeClass::natural:
      break;
  }
  const std::int64_t n = extend_integer(type, code);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(n);
  } else {
    return is_unsigned_integer(type) ? static_cast<double>(static_cast<std::uint64_t>(n)) : static_cast<double>(n);
  }
}

template <class T>
std::uint64_t encode(DType type, T value) {
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    if (is_complex(type)) {
      return std::bit_cast<std::uint32_t>(static_cast<float>(value.real())) |
             static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value.imag()))) << 32;
    }
    return type == DType::boolean ? value != 0.0 : encode(type, value.real());
  } else {
    switch (info(type).kind) {
      case DTypeClass::real:
        if constexpr (std::is_integral_v<T>) {
          if (type != DType::f64) return encode_float(type, round_to_odd(value));
        }
        return encode_float(type, static_cast<double>(value));
      case DTypeClass::complex:
        return std::bit_cast<std::uint32_t>(static_cast<float>(value));
      case DTypeClass::boolean:
        return value != 0;
      case DTypeClass::sign:
      case DTypeClass::natural:
        break;
    }
    if constexpr (std::is_integral_v<T>) {
      return static_cast<std::uint64_t>(value);
    } else {
      return encode_integer(type, value);
    }
  }
}

template <class Stored, class T>
void load_direct(const Tensor& tensor, std::vector<T>& out) {
  const std::byte* p = tensor.bytes().data();
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored v;
    std::memcpy(&v, p + i * sizeof v, sizeof v);
    out[i] = static_cast<T>(v);
  }
}

template <class Stored, class T>
void store_direct(Tensor& tensor, std::span<const T> values) {
  std::byte* p = tensor.mutable_bytes().data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto v = static_cast<Stored>(values[i]);
    std::memcpy(p + i * sizeof v, &v, sizeof v);
  }
}

}  // namespace

template <class T>
std::vector<T> load(const Tensor& tensor) {
  require(!tensor.type().encoding, "an encoded tensor {} is not read as numbers", tensor.type().text());
  std::vector<T> out(static_cast<std::size_t>(tensor.count()));
  if constexpr (std::is_same_v<T, double>) {
    if (tensor.dtype() == DType::f32) return load_direct<float>(tensor, out), out;
    if (tensor.dtype() == DType::f64) return load_direct<double>(tensor, out), out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = decode<T>(tensor.dtype(), tensor.code(static_cast<Index>(i)));
  }
  return out;
}

template <class T>
void store(Tensor& tensor, std::span<const T> values) {
  require(!tensor.type().encoding, "numbers are not written into an encoded tensor {}", tensor.type().text());
  require(static_cast<Index>(values.size()) == tensor.count(), "{} has {} elements, {} values were given",
          tensor.type().text(), tensor.count(), values.size());
  if constexpr (std::is_same_v<T, double>) {
    if (tensor.dtype() == DType::f32) return store_direct<float>(tensor, values);
    if (tensor.dtype() == DType::f64) return store_direct<double>(tensor, values);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set_code(static_cast<Index>(i), encode<T>(tensor.dtype(), values[i]));
  }
}

template std::vector<double> load(const Tensor&);
template std::vector<std::int64_t> load(const Tensor&);
template std::vector<std::uint64_t> load(const Tensor&);
template std::vector<std::complex<double>> load(const Tensor&);
template void store(Tensor&, std::span<const double>);
template void store(Tensor&, std::span<const std::int64_t>);
template void store(Tensor&, std::span<const std::uint64_t>);
template void store(Tensor&, std::span<const std::complex<double>>);

bool identical(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type()) return false;
  for (std::size_t i = 0; i < a.type().plane_count(); ++i) {
    const auto x = a.bytes(i), y = b.bytes(i);
    if (x.size() != y.size() || (!x.empty() && std::memcmp(x.data(), y.data(), x.size()) != 0)) return false;
  }
  return true;
}

}  // namespace rlx
