// Element types and number codecs. The float formats are rows of one table, so one encoder and one decoder serve all.
#include "core/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "core/checked.h"
#include "core/error.h"

namespace rlx {

namespace {

using enum DTypeClass;

using enum FloatFormat::Special;

constexpr std::array<DTypeInfo, dtype_count> infos{{
    {"f64", 64, real},
    {"f32", 32, real},
    {"f16", 16, real, {5, 10, 15, infinity, false}},
    {"bf16", 16, real, {8, 7, 127, infinity, false}},
    {"f8e4m3", 8, real, {4, 3, 7, one_nan, true}},
    {"f8e5m2", 8, real, {5, 2, 15, infinity, true}},
    {"f8e4m3fnuz", 8, real, {4, 3, 8, nan_for_minus, true}},
    {"f8e5m2fnuz", 8, real, {5, 2, 16, nan_for_minus, true}},
    {"f4e2m1", 4, real, {2, 1, 1, none, true}},
    {"e8m0", 8, real},
    {"i64", 64, sign},
    {"i32", 32, sign},
    {"i16", 16, sign},
    {"i8", 8, sign},
    {"i4", 4, sign},
    {"i2", 2, sign},
    {"u64", 64, natural},
    {"u32", 32, natural},
    {"u16", 16, natural},
    {"u8", 8, natural},
    {"u4", 4, natural},
    {"u2", 2, natural},
    {"bool", 8, boolean},
    {"c64", 64, complex},
}};

const FloatFormat& float_format(DType type) {
  const DTypeInfo& i = info(type);
  require(i.format.exponent > 0, "{} is not a float type", i.name);
  return i.format;
}

std::uint64_t encode_e8m0(double value) {
  if (std::isnan(value)) return 255;
  if (value <= 0) return 0;
  if (std::isinf(value)) return 254;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent, fraction in [0.5, 1)
  const int power = fraction == 0.5 ? exponent - 1 : exponent;
  return static_cast<std::uint64_t>(std::clamp(power + 127, 0, 254));
}

// The codes that mean something of their own, without sign.
struct Codes {
  std::uint64_t sign, top, largest, not_a_number;  // top: exponent all ones, mantissa 0
  explicit Codes(const FloatFormat& f)
      : sign(std::uint64_t{1} << (f.exponent + f.mantissa)), top(sign - (std::uint64_t{1} << f.mantissa)) {
    const std::uint64_t ones = sign - 1;
    largest = f.special == infinity ? top - 1 : f.special == one_nan ? ones - 1 : ones;
    not_a_number = f.special == infinity ? top | (std::uint64_t{1} << (f.mantissa - 1)) : ones;
  }
};

std::uint64_t encode_format(const FloatFormat& f, double value) {
  const Codes codes(f);
  if (std::isnan(value) && (f.special == nan_for_minus || f.special == none)) return codes.sign;
  const std::uint64_t sign = std::signbit(value) ? codes.sign : 0;
  if (std::isnan(value)) return sign | codes.not_a_number;
  const std::uint64_t overflow = f.saturate ? codes.largest : codes.top;
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return sign | overflow;
  const std::uint64_t zero = f.special == nan_for_minus ? 0 : sign;
  if (magnitude == 0) return zero;
  int exponent = std::ilogb(magnitude);
  exponent = std::max(exponent, 1 - f.bias);                                // denormals share the smallest exponent
  const double scaled = std::ldexp(magnitude, f.mantissa - exponent);       // exact: at most 53 bits either way
  const auto rounded = static_cast<std::uint64_t>(std::nearbyint(scaled));  // ties to even
  if (rounded == 0) return zero;
  // A carry out of the mantissa moves into the exponent by itself.
  const std::uint64_t implicit = std::uint64_t{1} << f.mantissa;
  const std::uint64_t code = (static_cast<std::uint64_t>(exponent + f.bias - 1) << f.mantissa) + rounded;
  if (rounded < implicit) return sign | rounded;
  return sign | (code > codes.largest ? overflow : code);
}

double decode_format(const FloatFormat& f, std::uint64_t code) {
  const Codes codes(f);
  const std::uint64_t rest = code & (codes.sign - 1), mantissa = rest & ((std::uint64_t{1} << f.mantissa) - 1);
  const auto exponent = static_cast<int>(rest >> f.mantissa);
  const double sign = (code & codes.sign) != 0 ? -1.0 : 1.0, nan = std::numeric_limits<double>::quiet_NaN();
  if (f.special == nan_for_minus && rest == 0 && sign < 0) return nan;
  if (rest > codes.largest)
    return f.special == infinity && mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                                                  : std::copysign(nan, sign);
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa), 1 - f.bias - f.mantissa);
  return sign *
         std::ldexp(static_cast<double>(mantissa + (std::uint64_t{1} << f.mantissa)), exponent - f.bias - f.mantissa);
}

}  // namespace

const DTypeInfo& info(DType type) {
  const auto i = static_cast<std::size_t>(type);
  ensure(i < infos.size(), "element type out of range");
  return infos[i];
}

std::span<const DType> all_dtypes() {
  static constexpr auto all = [] {
    std::array<DType, dtype_count> r{};
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<DType>(i);
    return r;
  }();
  return all;
}

bool find_dtype(std::string_view text, DType& type) {
  for (const DType t : all_dtypes()) {
    if (name(t) == text) {
      type = t;
      return true;
    }
  }
  return false;
}

DType parse_dtype(std::string_view text) {
  DType type{};
  if (find_dtype(text, type)) return type;
  std::string known;
  for (const DType t : all_dtypes()) known += (known.empty() ? "" : ", ") + std::string(name(t));
  fail("unknown element type \"{}\", expected one of {}", text.substr(0, 40), known);
}

Index storage_bytes(DType type, Index count) {
  require(count >= 0, "element count {} is negative", count);
  return (Checked(count) * bits(type) + 7).value("bytes of a tensor") / 8;
}

double decode_float(DType type, std::uint64_t code) {
  if (type == DType::f64) return std::bit_cast<double>(code);
  if (type == DType::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(code));
  if (type == DType::e8m0) {
    return code == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(code) - 127);
  }
  return decode_format(float_format(type), code);
}

std::uint64_t encode_float(DType type, double value) {
  if (type == DType::f64) return std::bit_cast<std::uint64_t>(value);
  if (type == DType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == DType::e8m0) return encode_e8m0(value);
  return encode_format(float_format(type), value);
}

double largest_finite(DType type) {
  if (type == DType::f64) return std::numeric_limits<double>::max();
  if (type == DType::f32) return static_cast<double>(std::numeric_limits<float>::max());
  if (type == DType::e8m0) return 0x1p127;
  const FloatFormat& f = float_format(type);
  return decode_format(f, Codes(f).largest);
}

std::uint64_t encode_integer(DType type, double value) {
  if (std::isnan(value)) return 0;
  const int width = bits(type);
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  if (is_signed_integer(type)) {
    const double limit = std::ldexp(1.0, width - 1);
    if (value >= limit) return mask >> 1;
    if (value < -limit) return (mask >> 1) + 1;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) & mask;
  }
  ensure(is_unsigned_integer(type), "encode_integer takes integer types");
  if (value >= std::ldexp(1.0, width)) return mask;
  if (value <= 0) return 0;
  return static_cast<std::uint64_t>(value);
}

std::int64_t extend_integer(DType type, std::uint64_t code) {
  const int unused = 64 - bits(type);
  if (is_signed_integer(type)) return static_cast<std::int64_t>(code << unused) >> unused;
  return static_cast<std::int64_t>((code << unused) >> unused);
}

}  // namespace rlx
