// Cast, CastLike, BitCast.
#include "io/onnx/casts.h"

#include "core/error.h"
#include "ops/bitcast/bitcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

DType element_type(Index type) {
  const auto dtype = type < 0 || type > 1000 ? std::nullopt : dtype_of(static_cast<std::int32_t>(type));
  require(dtype.has_value(), "element type {} is not supported",
          type < 0 || type > 1000 ? std::to_string(type) : element_name(static_cast<std::int32_t>(type)));
  return *dtype;
}

namespace {

bool is_small_float(DType d) { return is_float(d) && bits(d) == 8; }

// A type with arithmetic that holds every value of x, or rounds it only far from the limits of small floats.
Value with_arithmetic(Value x) {
  if (is_arithmetic_float(x.dtype())) return x;
  return cast(x, is_integer(x.dtype()) && bits(x.dtype()) >= 32 ? DType::f64 : DType::f32);
}

Value code(Value like, std::uint64_t bits) { return constant(*like.builder, DType::u8, static_cast<double>(bits)); }

enum class Rounding { up, down, nearest };

// To powers of two. The op rounds up and saturates; the code below is the next smaller power.
Value to_e8m0(Value x, bool saturate, Rounding rounding) {
  x = with_arithmetic(x);
  const Value rounded = cast(x, DType::e8m0);
  if (saturate && rounding == Rounding::up) return rounded;
  const Value wide = cast(x, DType::f64), above = cast(rounded, DType::f64);
  Value codes = bitcast(rounded, DType::u8);
  if (rounding != Rounding::up) {
    const Value edge = rounding == Rounding::down ? above : above * like(above, 0.75);
    const Value lower = bitwise_and(less(wide, edge), less(code(x, 0), codes));
    codes = select(lower, codes - code(x, 1), codes);
  }
  if (!saturate) {
    const Value outside = bitwise_or(less(wide, like(wide, 0x1p-127)), less(like(wide, 0x1p127), wide));
    codes = select(outside, code(x, 255), codes);
  }
  return bitcast(codes, DType::e8m0);
}

// A cast that keeps known elements known, where the types of rlx's own op do not.
Value convert(NodeArgs& n, Value x, DType to, bool saturate, Rounding rounding) {
  if (x.dtype() == to) return x;
  const auto elements = n.importer().known(x);
  const bool from_bool = x.dtype() == DType::boolean && is_integer(to) && bits(to) >= 8;
  if (elements && from_bool) return n.known(to, *elements, x.rank() > 0);
  if (to == DType::e8m0) return to_e8m0(x, saturate, rounding);
  if (is_small_float(to) && !saturate) return cast_unsaturated(x, to);
  // The published results of floats beyond a small integer have its low bits.
  const bool low_bits = is_float(x.dtype()) && is_integer(to) && bits(to) < 8;
  return cast(low_bits ? cast(x, DType::i32) : x, to);
}

Value convert(NodeArgs& n, DType to) {
  const std::string mode = n.string("round_mode", "up");
  require(mode == "up" || mode == "down" || mode == "nearest", "round_mode is {}, expected up, down or nearest",
          in_quotes(mode));
  const Rounding rounding = mode == "up" ? Rounding::up : mode == "down" ? Rounding::down : Rounding::nearest;
  return convert(n, n[0], to, n.integer("saturate", 1) != 0, rounding);
}

Values cast_to(NodeArgs& n) {
  n.expect(1, 1);
  return {convert(n, element_type(n.integer("to")))};
}

Values cast_like(NodeArgs& n) {
  n.expect(2, 2);
  return {convert(n, n[1].dtype())};
}

Values bit_cast(NodeArgs& n) {
  n.expect(1, 1);
  return {bitcast(n[0], element_type(n.integer("to")))};
}

}  // namespace

Value cast_unsaturated(Value x, DType to) {
  x = with_arithmetic(x);
  const FloatFormat& format = info(to).format;
  const double largest = largest_finite(to);
  const std::uint64_t top = encode_float(to, largest);
  // Half a step above the largest value lies what is rounded out of range, and is itself so where that code is odd.
  const double edge = largest + (largest - decode_float(to, top - 1)) / 2;
  const Value size = abs(x), limit = like(x, edge);
  const Value outside = top % 2 != 0 ? less_equal(limit, size) : less(limit, size);
  const bool has_sign = format.special != FloatFormat::Special::nan_for_minus;
  const Value plus = code(x, has_sign ? top + 1 : 0x80), minus = code(x, has_sign ? (top + 1) | 0x80 : 0x80);
  const Value codes = bitcast(cast(x, to), DType::u8);
  return bitcast(select(outside, select(less(x, like(x, 0)), minus, plus), codes), to);
}

OperatorRows cast_rows() {
  static constexpr OperatorRow rows[] = {
      {"Cast", 6, cast_to},
      {"CastLike", 15, cast_like},
      {"BitCast", 26, bit_cast},
  };
  return rows;
}

}  // namespace rlx::onnx
