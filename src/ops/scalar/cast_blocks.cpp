// Casts between blocks: a kernel of the level where there is one, else through f64, i64, u64 or complex, as the
// reference.
#include <array>
#include <bit>
#include <complex>
#include <cstring>

#include "core/error.h"
#include "core/round_to_odd.h"
#include "ops/scalar/blocks.h"

namespace rlx {

namespace {

using Complex = std::complex<double>;

template <int bytes>
using Code = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<bytes == 2, std::uint16_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;

template <DType d>
constexpr int bytes_of() {
  switch (d) {
    case DType::f64:
    case DType::i64:
    case DType::u64:
    case DType::c64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16:
      return 2;
    default:
      return 1;
  }
}

// The number of an element's bits.
template <DType d, class T>
T decode(std::uint64_t code) {
  if constexpr (std::is_same_v<T, Complex>) {
    return {std::bit_cast<float>(static_cast<std::uint32_t>(code)),
            std::bit_cast<float>(static_cast<std::uint32_t>(code >> 32))};
  } else if constexpr (std::is_same_v<T, double>) {
    return decode_float(d, code);
  } else if constexpr (d == DType::boolean) {
    return code != 0;
  } else {
    return static_cast<T>(extend_integer(d, code));
  }
}

// Types of less than a byte fill one in a block.
template <DType d>
std::uint64_t extended(std::uint64_t code) {
  return static_cast<std::uint64_t>(extend_integer(d, code));
}

template <DType d, class T>
std::uint64_t encode(T v) {
  if constexpr (std::is_same_v<T, Complex>) {
    if constexpr (d == DType::c64) {
      return std::bit_cast<std::uint32_t>(static_cast<float>(v.real())) |
             static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(v.imag()))) << 32;
    } else {
      return d == DType::boolean ? v != 0.0 : encode<d>(v.real());
    }
  } else if constexpr (d == DType::c64) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(v));
  } else if constexpr (d == DType::boolean) {
    return v != 0;
  } else {
    if (is_float(d)) {
      if constexpr (std::is_integral_v<T>) {
        return encode_float(d, d == DType::f64 ? static_cast<double>(v) : round_to_odd(v));
      } else {
        return encode_float(d, v);
      }
    }
    if constexpr (std::is_integral_v<T>) {
      return extended<d>(static_cast<std::uint64_t>(v));
    } else {
      return is_float(d) ? 0 : extended<d>(encode_integer(d, v));
    }
  }
}

template <DType d, class T>
void decode_block(const void* const* in, void* out, long n) {
  const auto* x = static_cast<const Code<bytes_of<d>()>*>(in[0]);
  T* y = static_cast<T*>(out);
  for (Index i = 0; i < n; ++i) y[i] = decode<d, T>(x[i]);
}
template <DType d, class T>
void encode_block(const void* const* in, void* out, long n) {
  const T* x = static_cast<const T*>(in[0]);
  auto* y = static_cast<Code<bytes_of<d>()>*>(out);
  for (Index i = 0; i < n; ++i) y[i] = static_cast<Code<bytes_of<d>()>>(encode<d>(x[i]));
}

// The kernels of every type, in declaration order. A type is read as one kind of number and written from all.
struct Codec {
  BlockKernel decode = nullptr;
  BlockKernel from_f64 = nullptr, from_i64 = nullptr, from_u64 = nullptr, from_complex = nullptr;
};

template <DType d>
Codec codec() {
  Codec c{.from_f64 = encode_block<d, double>,
          .from_i64 = encode_block<d, std::int64_t>,
          .from_u64 = encode_block<d, std::uint64_t>,
          .from_complex = encode_block<d, Complex>};
  if (is_complex(d)) {
    c.decode = decode_block<d, Complex>;
  } else if (is_float(d)) {
    c.decode = decode_block<d, double>;
  } else {
    c.decode = d == DType::u64 ? decode_block<d, std::uint64_t> : decode_block<d, std::int64_t>;
  }
  return c;
}

template <std::size_t... i>
std::array<Codec, sizeof...(i)> codecs(std::index_sequence<i...>) {
  return {codec<static_cast<DType>(i)>()...};
}

CastPart through(DType from, const Codec& to, int bytes) {
  if (is_complex(from)) return {to.from_complex, bytes};
  if (is_float(from)) return {to.from_f64, bytes};
  return {from == DType::u64 ? to.from_u64 : to.from_i64, bytes};
}

// Place in CastKernels::plain, or -1.
int plain_place(DType d) {
  static constexpr DType order[] = {DType::i8,  DType::i16, DType::i32,     DType::i64, DType::u8, DType::u16,
                                    DType::u32, DType::u64, DType::boolean, DType::f32, DType::f64};
  for (int i = 0; i < 11; ++i) {
    if (order[i] == d) return i;
  }
  return -1;
}

bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }
// Every value is one of f32.
bool fits_f32(DType d) {
  return d == DType::boolean || d == DType::f32 || is_half(d) || (is_integer(d) && (bits(d) == 8 || bits(d) == 16));
}

}  // namespace

int block_bytes(DType dtype) { return std::max(1, bits(dtype) / 8); }

std::vector<CastPart> find_cast(DType from, DType to) {
  if (from == to) return {};
  const CastKernels& k = cast_kernels();
  const BlockKernel narrow = to == DType::f16 ? k.f32_f16 : to == DType::bf16 ? k.f32_bf16 : nullptr;
  if (is_half(from) && (narrow || plain_place(to) >= 0)) {
    std::vector<CastPart> parts{{from == DType::f16 ? k.f16_f32 : k.bf16_f32, 4}};
    for (const CastPart& p : find_cast(DType::f32, to)) parts.push_back(p);
    return parts;
  }
  if (narrow && fits_f32(from)) {
    std::vector<CastPart> parts = find_cast(from, DType::f32);
    parts.push_back({narrow, 2});
    return parts;
  }
  if (plain_place(from) >= 0 && plain_place(to) >= 0) {
    return {{k.plain[plain_place(from)][plain_place(to)], block_bytes(to)}};
  }
  static const auto all = codecs(std::make_index_sequence<dtype_count>{});
  const Codec &a = all[static_cast<std::size_t>(from)], &b = all[static_cast<std::size_t>(to)];
  return {{a.decode, is_complex(from) ? 16 : 8}, through(from, b, block_bytes(to))};
}

}  // namespace rlx
