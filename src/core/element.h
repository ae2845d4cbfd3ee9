// C++ counterparts of the element types that are computed with, and the numbers they are computed in.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "core/error.h"

namespace rlx {

/// An f16 or bf16 element as it lies in memory.
struct StoredHalf16 {
  std::uint16_t bits;
};
struct StoredBrain16 {
  std::uint16_t bits;
};

/// An element as a number: halves as f32, others themselves. Exact.
template <class T>
T number_of(T x) {
  return x;
}
inline float number_of(StoredBrain16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }
inline float number_of(StoredHalf16 x) {
  const std::uint32_t size = x.bits & 0x7FFFu, sign = std::uint32_t{x.bits} - size;
  // The exponents differ by 112; the product is exact for denormals too.
  std::uint32_t bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size << 13) * 0x1p112f);
  if (size >= 0x7C00u) bits |= 0x7F800000u;
  return std::bit_cast<float>(bits | sign << 16);
}

/// A number as an element: floats are rounded to nearest, ties to even; integers keep their low bits.
template <class T, class N>
T element_of(N x) {
  if constexpr (std::is_same_v<T, StoredHalf16>) {
    return {static_cast<std::uint16_t>(encode_float(DType::f16, static_cast<double>(x)))};
  } else if constexpr (std::is_same_v<T, StoredBrain16>) {
    return {static_cast<std::uint16_t>(encode_float(DType::bf16, static_cast<double>(x)))};
  } else {
    return static_cast<T>(x);
  }
}

/// Calls f.template operator()<T>() with the counterpart of a float of at least 16 bits or an integer of at least 8.
template <class F>
auto with_element(DType type, F f) {
  switch (type) {
    case DType::f64:
      return f.template operator()<double>();
    case DType::f32:
      return f.template operator()<float>();
    case DType::f16:
      return f.template operator()<StoredHalf16>();
    case DType::bf16:
      return f.template operator()<StoredBrain16>();
    case DType::i64:
      return f.template operator()<std::int64_t>();
    case DType::i32:
      return f.template operator()<std::int32_t>();
    case DType::i16:
      return f.template operator()<std::int16_t>();
    case DType::i8:
      return f.template operator()<std::int8_t>();
    case DType::u64:
      return f.template operator()<std::uint64_t>();
    case DType::u32:
      return f.template operator()<std::uint32_t>();
    case DType::u16:
      return f.template operator()<std::uint16_t>();
    default:
      ensure(type == DType::u8, "an element type that is computed with");
      return f.template operator()<std::uint8_t>();
  }
}

/// The number that sums of elements are held in: f64 for f64, f32 for other floats, unsigned integers, which wrap, of
/// the same size for integers.
template <class T>
struct SumOf {
  using type = float;
};
template <>
struct SumOf<double> {
  using type = double;
};
template <class T>
  requires std::is_integral_v<T>
struct SumOf<T> {
  using type = std::make_unsigned_t<T>;
};

}  // namespace rlx
