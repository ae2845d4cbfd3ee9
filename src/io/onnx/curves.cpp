// Hyperbolic functions and inverses of angle functions, windows of signals, shrinkage.
#include <numbers>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

// Computed in f64 and rounded once, for the forms below amplify the rounding of their steps.
template <Value (*f)(Value)>
Values curve(NodeArgs& n) {
  n.expect(1, 1);
  require(is_arithmetic_float(n[0].dtype()), "element type {} is not supported", name(n[0].dtype()));
  return {cast(f(cast(n[0], DType::f64)), n[0].dtype())};
}

Value one(Value x) { return like(x, 1); }
// The root of 1 - x^2, accurate at the ends.
Value other_side(Value x) { return sqrt((one(x) - x) * (one(x) + x)); }
Value arc_sine(Value x) { return atan2(x, other_side(x)); }
Value arc_cosine(Value x) { return atan2(other_side(x), x); }

Value with_sign_of(Value x, Value size) { return select(less(x, like(x, 0)), -size, size); }
// Halves of e^|x| are multiplied, since e^|x| alone may overflow where the result does not.
Value hyperbolic_sine(Value x) {
  const Value size = abs(x), e = expm1(size), half = exp(size * like(x, 0.5));
  const Value small = like(x, 0.5) * (e + e / (e + one(x))), large = like(x, 0.5) * half * half;
  const Value y = with_sign_of(x, select(less(size, like(x, 20)), small, large));
  return select(equal(x, like(x, 0)), x, y);
}
Value hyperbolic_cosine(Value x) {
  const Value half = exp(abs(x) * like(x, 0.5));
  return like(x, 0.5) * half * half + like(x, 0.5) / half / half;
}
Value area_sine(Value x) {
  const Value size = abs(x), square = size * size;
  const Value small = log1p(size + square / (one(x) + sqrt(square + one(x))));
  const Value large = log(size) + like(x, std::numbers::ln2);
  const Value y = with_sign_of(x, select(less(size, like(x, 1e9)), small, large));
  return select(equal(x, like(x, 0)), x, y);
}
Value area_cosine(Value x) {
  const Value above = x - one(x), small = log1p(above + sqrt(above * (x + one(x))));
  return select(less(x, like(x, 1e9)), small, log(x) + like(x, std::numbers::ln2));
}
Value area_tangent(Value x) {
  const Value size = abs(x), y = like(x, 0.5) * log1p(like(x, 2) * size / (one(x) - size));
  return select(equal(x, like(x, 0)), x, with_sign_of(x, y));
}

// c0 - c1 cos(2 pi i / n) + c2 cos(4 pi i / n), n being one less where the window is not to be repeated.
Value window(NodeArgs& n, double c0, double c1, double c2) {
  n.expect(1, 1);
  const Index type = n.integer("output_datatype", 1);
  const auto dtype = type < 0 || type > 1000 ? std::nullopt : dtype_of(static_cast<std::int32_t>(type));
  require(dtype.has_value(), "element type {} is not supported", type);
  const std::vector<Dim> size = n.sizes(0);
  require(size.size() == 1, "the size has {} elements, expected 1", size.size());
  const bool periodic = n.integer("periodic", 1) != 0;
  const Value at = iota(n.builder(), DType::f64, {max(size[0], 0)});
  const Value period = cast(n.known(DType::i64, {periodic ? size[0] : size[0] - 1}, false), DType::f64);
  const Value angle = like(at, 2 * std::numbers::pi) * at / period;
  const Value wave = like(at, c0) - like(at, c1) * cos(angle) + like(at, c2) * cos(like(at, 2) * angle);
  return cast(wave, *dtype);
}

Values hann_window(NodeArgs& n) { return {window(n, 0.5, 0.5, 0)}; }
Values hamming_window(NodeArgs& n) { return {window(n, 25.0 / 46, 21.0 / 46, 0)}; }
Values blackman_window(NodeArgs& n) { return {window(n, 0.42, 0.5, 0.08)}; }

Values shrink(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  const double bias = n.real("bias", 0), lambda = n.real("lambd", 0.5);
  const Value low = less(x, like(x, -lambda)), high = less(like(x, lambda), x);
  return {select(low, x + like(x, bias), select(high, x - like(x, bias), like(x, 0)))};
}

}  // namespace

OperatorRows curve_rows() {
  static constexpr OperatorRow rows[] = {
      {"Asin", 7, curve<arc_sine>},
      {"Acos", 7, curve<arc_cosine>},
      {"Sinh", 9, curve<hyperbolic_sine>},
      {"Cosh", 9, curve<hyperbolic_cosine>},
      {"Asinh", 9, curve<area_sine>},
      {"Acosh", 9, curve<area_cosine>},
      {"Atanh", 9, curve<area_tangent>},
      {"HannWindow", 17, hann_window},
      {"HammingWindow", 17, hamming_window},
      {"BlackmanWindow", 17, blackman_window},
      {"Shrink", 9, shrink},
  };
  return rows;
}

}  // namespace rlx::onnx
