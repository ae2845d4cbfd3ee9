// Elements of ONNX tensors: raw, typed, external.
#include "io/onnx/tensors.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"
#include "core/error.h"
#include "core/quote.h"

namespace rlx::onnx {

namespace {

constexpr std::size_t most_files = 1000;
constexpr Index spare = Index{64} << 20;

// The typed lists of a tensor by field number, in the order of the bits of TensorProto::typed.
enum List : unsigned { floats = 0, ints32 = 1, strings = 2, ints64 = 3, doubles = 6, uints64 = 7 };

constexpr const char* list_names[] = {"float_data", "int32_data", "string_data", "int64_data",
                                      "",           "",           "double_data", "uint64_data"};

List list_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::c64:
      return floats;
    case DType::f64:
      return doubles;
    case DType::i64:
      return ints64;
    case DType::u32:
    case DType::u64:
      return uints64;
    default:
      return ints32;
  }
}

std::size_t alignment(DType type) {
  return type == DType::c64 ? 4 : static_cast<std::size_t>(std::max(8, bits(type))) / 8;
}

// A decimal number of external data.
Index decimal(const TensorProto& t, std::string_view text, const char* what) {
  Checked value(0);
  for (const char c : text) {
    require(c >= '0' && c <= '9', "tensor {}: {} of external data is {}, expected a decimal number", quote(t.name),
            what, quote(text, 40));
    value = value * 10 + Checked(c - '0');
    require(!value.overflowed(), "tensor {}: {} of external data is {}, which overflows 63 bits", quote(t.name), what,
            quote(text, 40));
  }
  return value.value(what);
}

}  // namespace

std::optional<DType> dtype_of(std::int32_t type) {
  struct Pair {
    ElementType theirs;
    DType ours;
  };
  using E = ElementType;
  using D = DType;
  static constexpr Pair pairs[] = {
      {E::f32, D::f32},
      {E::u8, D::u8},
      {E::i8, D::i8},
      {E::u16, D::u16},
      {E::i16, D::i16},
      {E::i32, D::i32},
      {E::i64, D::i64},
      {E::boolean, D::boolean},
      {E::f16, D::f16},
      {E::f64, D::f64},
      {E::u32, D::u32},
      {E::u64, D::u64},
      {E::c64, D::c64},
      {E::bf16, D::bf16},
      {E::f8e4m3fn, D::f8e4m3},
      {E::f8e5m2, D::f8e5m2},
      {E::f8e4m3fnuz, D::f8e4m3fnuz},
      {E::f8e5m2fnuz, D::f8e5m2fnuz},
      {E::f4e2m1, D::f4e2m1},
      {E::f8e8m0, D::e8m0},
      {E::u4, D::u4},
      {E::i4, D::i4},
      {E::u2, D::u2},
      {E::i2, D::i2},
  };
  for (const Pair& p : pairs) {
    if (static_cast<std::int32_t>(p.theirs) == type) return p.ours;
  }
  return std::nullopt;
}

TensorLoader::TensorLoader(const ModelProto& model, FileMode mode, bool has_folder)
    : model_(&model),
      mode_(mode),
      has_folder_(has_folder),
      convertible_(static_cast<Index>(model.bytes.data.size()) + spare) {}

const Tensor& TensorLoader::load(const TensorProto& t) {
  const auto known = loaded_.find(&t);
  return known != loaded_.end() ? known->second : loaded_.emplace(&t, read(t)).first->second;
}

Tensor TensorLoader::read(const TensorProto& t) {
  const auto dtype = dtype_of(t.type);
  require(dtype.has_value(), "tensor {} has element type {}, which rlx does not have", quote(t.name),
          element_name(t.type));
  require(!t.has_segment, "tensor {} is a segment of another tensor, which ONNX has given up", quote(t.name));
  const std::string what = fmt::format("tensor {}", quote(t.name));
  const Index count = checked_product(t.dims, what);
  const Index bytes = storage_bytes(*dtype, count);
  const TensorType type(*dtype, std::vector<Dim>(t.dims.begin(), t.dims.end()));
  require(!t.has_raw || (t.typed == 0 && !t.external), "tensor {} has raw_data and elements of another kind",
          quote(t.name));
  if (t.external) {
    require(t.typed == 0, "tensor {} has external data and elements of another kind", quote(t.name));
    return external(t, type, bytes);
  }
  if (!t.has_raw) return typed(t, type, count);
  require(static_cast<Index>(t.raw.size()) == bytes, "tensor {} of type {} needs {} bytes, its raw_data holds {}",
          quote(t.name), type.text(), bytes, t.raw.size());
  return in_place(t, type, slice(model_->bytes, t.raw.data() - model_->file.bytes.data(), bytes));
}

Tensor TensorLoader::in_place(const TensorProto&, const TensorType& type, Bytes bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data.data());
  if (bytes.data.empty()) return {type, {Bytes::allocate(0)}};
  if (address % alignment(type.dtype) == 0) return {type, {std::move(bytes)}};
  Bytes copy = allocate_large(static_cast<Index>(bytes.data.size()));
  std::memcpy(const_cast<std::byte*>(copy.data.data()), bytes.data.data(), bytes.data.size());
  ++copies_;
  return {type, {std::move(copy)}};
}

const Bytes& TensorLoader::open(const TensorProto& t) {
  require(!t.location.empty(), "tensor {} has external data without a location", quote(t.name));
  require(has_folder_, "tensor {} has external data, which a model that was read from bytes cannot have",
          quote(t.name));
  const auto known = files_.find(t.location);
  if (known != files_.end()) return known->second;
  require(files_.size() < most_files, "the model names more than {} external files", most_files);
  const MappedFile file(sibling_path(model_->file.name, t.location), mode_);
  return files_.emplace(t.location, file.bytes()).first->second;
}

Tensor TensorLoader::external(const TensorProto& t, const TensorType& type, Index bytes) {
  const Index offset = decimal(t, t.offset, "offset");
  const Index length = t.length.empty() ? bytes : decimal(t, t.length, "length");
  require(length == bytes, "tensor {} of type {} needs {} bytes, its external data states {}", quote(t.name),
          type.text(), bytes, length);
  const Bytes& file = open(t);
  const auto size = static_cast<Index>(file.data.size());
  require(offset <= size && bytes <= size - offset,
          "tensor {} has {} bytes of external data at offset {}, the file {} has {}", quote(t.name), bytes, offset,
          quote(t.location), size);
  return in_place(t, type, slice(file, offset, bytes));
}

namespace {

/// Writes elements one by one, and counts.
class ElementWriter {
 public:
  ElementWriter(Tensor& tensor, Index limit) : bytes_(tensor.mutable_bytes()), dtype_(tensor.dtype()), limit_(limit) {}
  Index count() const { return count_; }
  void put(std::uint64_t bits) {
    if (count_++ >= limit_) return;
    const auto i = static_cast<std::size_t>(count_ - 1);
    const auto width = static_cast<std::size_t>(rlx::bits(dtype_) / 8);
    std::memcpy(bytes_.data() + i * width, &bits, width);
  }
  /// A byte of `each` packed elements.
  void put_packed(std::uint64_t bits, Index each) {
    const auto i = static_cast<std::size_t>(count_ / each);
    if (i < bytes_.size()) bytes_[i] = static_cast<std::byte>(bits & 0xff);
    count_ += each;
  }

 private:
  std::span<std::byte> bytes_;
  DType dtype_;
  Index limit_, count_ = 0;
};

// The one packed list of `field`, if the elements are written as one.
std::string_view only_list(const WireFile& file, const TensorProto& t, std::uint32_t field) {
  WireReader in(file, t.body, "tensor");
  std::string_view list;
  for (Field f; in.next(f);) {
    if (f.number != field || (f.wire == Wire::bytes && f.bytes.empty())) continue;
    if (f.wire != Wire::bytes || !list.empty()) return {};
    list = f.bytes;
  }
  return list;
}

// Numbers of the list `field`, packed or not.
void each_element(const WireFile& file, const TensorProto& t, List which,
                  const std::function<void(std::uint64_t)>& put) {
  WireReader in(file, t.body, "tensor");
  const bool fixed32 = which == floats, fixed64 = which == doubles;
  const Wire single = fixed32 ? Wire::fixed32 : fixed64 ? Wire::fixed64 : Wire::varint;
  for (Field f; in.next(f);) {
    if (f.number != 4u + which) continue;
    if (f.wire == single) {
      put(f.value);
    } else if (f.wire != Wire::bytes) {
      in.fail(fmt::format("{} has an element of another wire type", list_names[which]));
    } else if (fixed32) {
      each_fixed<std::uint32_t>(file, f.bytes, put);
    } else if (fixed64) {
      each_fixed<std::uint64_t>(file, f.bytes, put);
    } else {
      each_varint(file, f.bytes, put);
    }
  }
}

}  // namespace

Tensor TensorLoader::typed(const TensorProto& t, const TensorType& type, Index count) {
  const List which = list_of(type.dtype);
  const unsigned others = t.typed & ~(1u << which);
  require(others == 0, "tensor {} of type {} has elements in {}, expected {}", quote(t.name), type.text(),
          list_names[std::countr_zero(others | 0x100u) % 8], list_names[which]);
  const Index bytes = storage_bytes(type.dtype, count);
  if (which == floats || which == doubles) {
    const std::string_view list = only_list(model_->file, t, 4 + which);
    if (!list.empty() && static_cast<Index>(list.size()) == bytes) {
      return in_place(t, type, slice(model_->bytes, list.data() - model_->file.bytes.data(), bytes));
    }
  }
  // The smallest form of an element takes a byte: a message that is shorter cannot hold them.
  const Index per_byte = bits(type.dtype) < 8 ? 8 / bits(type.dtype) : 1;
  const auto room = static_cast<Index>(t.body.size());
  require(count / per_byte <= room, "tensor {} of type {} has {} elements, {} holds fewer", quote(t.name), type.text(),
          count, list_names[which]);
  require(bytes <= convertible_, "the tensors that are written as numbers of variable size take too much memory");
  convertible_ -= bytes;
  Tensor tensor(type, {Bytes::allocate(bytes)});
  ElementWriter writer(tensor, type.dtype == DType::c64 ? 2 * count : count);
  const bool packed = per_byte > 1, parts = type.dtype == DType::c64;
  Tensor as_parts = parts ? Tensor(DType::f32, {2 * count}) : Tensor();
  ElementWriter part_writer(as_parts, 2 * count);
  each_element(model_->file, t, which, [&](std::uint64_t v) {
    packed ? writer.put_packed(v, per_byte) : parts ? part_writer.put(v) : writer.put(v);
  });
  const Index found = parts ? part_writer.count() / 2 : writer.count();
  const bool filled_up = found > count && found - count < per_byte;
  require(found == count || filled_up, "tensor {} of type {} has {} elements, {} holds {}", quote(t.name), type.text(),
          count, list_names[which], found);
  if (parts) std::memcpy(tensor.mutable_bytes().data(), as_parts.bytes().data(), static_cast<std::size_t>(bytes));
  return tensor;
}

}  // namespace rlx::onnx
