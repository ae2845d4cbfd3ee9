// Element types: names, widths, classes, and the number codecs between them and f64 or integers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/index.h"

namespace rlx {

/// Element type of a tensor. Sub-byte types are packed, little end first, as many to a byte as fit.
enum class DType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,  // IEEE 754 binary64, 32, 16; bfloat16
  f8e4m3,
  f8e5m2,  // OCP 8-bit floats (E4M3: no infinity, largest finite 448)
  f8e4m3fnuz,
  f8e5m2fnuz,  // 8-bit floats without infinity and -0, whose code is NaN (largest finite 240 and 57344)
  f4e2m1,      // OCP 4-bit float: no infinity, no NaN, largest 6
  e8m0,        // OCP power-of-two scale, 2^(byte-127), 255 is NaN
  i64,
  i32,
  i16,
  i8,
  i4,
  i2,
  u64,
  u32,
  u16,
  u8,
  u4,
  u2,
  boolean,  // one byte, 0 or 1; any other byte reads as true
  c64,      // two f32: real, imaginary
};
inline constexpr int dtype_count = 24;

enum class DTypeClass : std::uint8_t {
  real,
  sign,
  natural,
  boolean,
  complex
};  // sign: signed integer, natural: unsigned

/// How the bits of a small float are read: a sign, `exponent` bits, `mantissa` bits.
struct FloatFormat {
  enum class Special : std::uint8_t {
    infinity,       // the largest exponent holds infinity and NaN
    one_nan,        // all ones, with either sign, is NaN
    nan_for_minus,  // the code of -0 is NaN
    none,
  };
  int exponent = 0, mantissa = 0, bias = 0;
  Special special = Special::infinity;
  bool saturate = false;  // overflow gives the largest finite value
};

struct DTypeInfo {
  std::string_view name;
  int bits;
  DTypeClass kind;
  FloatFormat format = {};  // of floats of 16, 8 and 4 bits but e8m0
};

const DTypeInfo& info(DType type);
inline std::string_view name(DType type) { return info(type).name; }
inline int bits(DType type) { return info(type).bits; }
inline bool is_float(DType type) { return info(type).kind == DTypeClass::real; }
inline bool is_signed_integer(DType type) { return info(type).kind == DTypeClass::sign; }
inline bool is_unsigned_integer(DType type) { return info(type).kind == DTypeClass::natural; }
inline bool is_integer(DType type) { return is_signed_integer(type) || is_unsigned_integer(type); }
inline bool is_complex(DType type) { return info(type).kind == DTypeClass::complex; }
/// f16, bf16, f32 and f64: the floats that arithmetic is defined on (8-bit floats are storage: cast first).
inline bool is_arithmetic_float(DType type) { return is_float(type) && bits(type) >= 16; }

/// All element types, in declaration order.
std::span<const DType> all_dtypes();

/// The type called `text`; throws Error that lists the known names.
DType parse_dtype(std::string_view text);
/// True and sets `type` when `text` names a type.
bool find_dtype(std::string_view text, DType& type);

/// Bytes of `count` elements, the last byte filled up. Throws Error when count is negative or the size overflows.
Index storage_bytes(DType type, Index count);

/// Value of an element of a float type from its bits. Exact.
double decode_float(DType type, std::uint64_t code);
/// Bits of `value` in a float type: nearest, ties to even, one rounding. f16, bf16 and f32 overflow to infinity; the 8-
/// and 4-bit floats saturate at their largest value, infinities too, as ONNX and CUDA do by default. NaN stays NaN, and
/// is -0 in f4e2m1; -0 is 0 in the fnuz types.
/// e8m0 rounds up to a power of two (OCP MX): 0 and negative give byte 0, above 2^127 and infinity give 254, NaN 255.
std::uint64_t encode_float(DType type, double value);

/// The largest finite value of a float type.
double largest_finite(DType type);

/// Float to integer: truncate toward zero, saturate at the range of `type`, NaN gives 0. The result is the two's
/// complement pattern in the low bits(type) bits.
std::uint64_t encode_integer(DType type, double value);
/// Sign- or zero-extends the low bits(type) bits of an integer or boolean element.
std::int64_t extend_integer(DType type, std::uint64_t code);

}  // namespace rlx
