// quantize, dequantize, quantize_rows: rules, definitions as elementwise ops, references.
#include "ops/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "ir/at_most.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

bool is_float_code(DType d) { return is_float(d) && bits(d) < 16 && d != DType::e8m0; }
bool is_code(DType d) { return (is_integer(d) && bits(d) <= 16) || is_float_code(d); }
constexpr const char* code_kinds = "an integer of at most 16 bits or a float of at most 8";

// Whether a scale of this type holds one element for all.
bool is_single(const TensorType& scale) {
  return std::ranges::all_of(scale.dims, [](const Dim& d) { return d == Dim(1); });
}

// Sizes of the scale must suit x.
void check_scale(const QuantizeAttrs& a, InferContext& c) {
  const TensorType &x = c.in[0], &s = c.in[1];
  require(a.block >= 0, "block is {}, expected 0 or more", a.block);
  if (a.block == 0) {
    if (is_single(s) && s.rank() <= 1) return;
    require(s.rank() == 1, "scale is {}, expected one element, or a vector along axis {}", s.text(), a.axis);
    c.equal(s.dim(0), x.dim(x.axis(a.axis)), "size of the scale");
    return;
  }
  require(s.rank() == x.rank(), "scale is {}, expected rank {} for blocks", s.text(), x.rank());
  const Index axis = x.axis(a.axis);
  for (Index i = 0; i < x.rank(); ++i)
    c.equal(s.dim(i), i == axis ? ceildiv(x.dim(i), a.block) : x.dim(i), "size of the scale");
}

void check_operands(InferContext& c, bool coded) {
  require(c.in.size() == 2 || c.in.size() == 3, "{} operands are given, expected 2 or 3", c.in.size());
  for (const TensorType& t : c.in) require(!t.encoding, "an encoded tensor {} is not quantised", t.text());
  require(is_arithmetic_float(c.in[1].dtype) && c.in[1].dtype != DType::f64, "scale is {}, expected f32, f16 or bf16",
          c.in[1].text());
  if (c.in.size() == 2) return;
  const DType want = c.in[coded ? 0 : 2].dtype;
  require(c.in[2].dtype == want && is_code(want), "zero point is {}, expected the type of the codes", c.in[2].text());
  require(c.in[2].dims.size() == c.in[1].dims.size(), "zero point is {}, the scale {}", c.in[2].text(), c.in[1].text());
  for (std::size_t i = 0; i < c.in[1].dims.size(); ++i)
    c.equal(c.in[2].dims[i], c.in[1].dims[i], "sizes of scale and zero point");
}

TensorType quantize_infer(const QuantizeAttrs& a, InferContext& c) {
  check_operands(c, false);
  require(is_arithmetic_float(c.in[0].dtype), "x is {}, expected f64, f32, f16 or bf16", c.in[0].text());
  require(is_code(a.to), "codes of type {} are asked for, expected {}", name(a.to), code_kinds);
  if (c.in.size() == 3)
    require(c.in[2].dtype == a.to, "zero point is {}, the codes are {}", c.in[2].text(), name(a.to));
  check_scale(a, c);
  return c.in[0].with(a.to);
}

TensorType dequantize_infer(const QuantizeAttrs& a, InferContext& c) {
  check_operands(c, true);
  const DType d = c.in[0].dtype;
  require(is_code(d) || d == DType::i32, "x is {}, expected {}, or i32", c.in[0].text(), code_kinds);
  require(is_arithmetic_float(a.to) && a.to != DType::f64,
          "a result of type {} is asked for, expected f32, f16 or bf16", name(a.to));
  check_scale(a, c);
  return c.in[0].with(a.to);
}

}  // namespace

Value spread(const QuantizeAttrs& a, Value x, Value s) {
  if (a.block == 0) {
    if (is_single(s.type())) return reshape(s, {});
    std::vector<Dim> dims(static_cast<std::size_t>(x.rank()), Dim(1));
    dims[static_cast<std::size_t>(x.type().axis(a.axis))] = s.dim(0);
    return reshape(s, dims);
  }
  const Index axis = x.type().axis(a.axis);
  const auto at = static_cast<std::size_t>(axis);
  std::vector<Dim> wide = s.type().dims, joined = wide;
  wide.insert(wide.begin() + axis + 1, Dim(a.block));
  joined[at] = joined[at] * a.block;
  const Value all = reshape(broadcast(unsqueeze(s, {axis + 1}), wide), joined);
  return joined == x.type().dims ? all : slice(all, axis, 0, x.dim(axis));
}

namespace {

struct Limits {
  double low, high;
};
Limits limits(DType d) {
  const int n = bits(d);
  if (is_unsigned_integer(d)) return {0, std::ldexp(1.0, n) - 1};
  return {-std::ldexp(1.0, n - 1), std::ldexp(1.0, n - 1) - 1};
}

Value quantize_definition(const QuantizeAttrs& a, const DefineArgs& d) {
  const Value x = widen(d[0]), s = spread(a, x, cast(d[1], x.dtype()));
  if (is_float_code(a.to)) {
    const Value q = x / s;
    return cast(d.in.size() == 3 ? q + spread(a, x, cast(d[2], x.dtype())) : q, a.to);
  }
  Value q = round(x / s);
  // Statements: the order of arguments is the compiler's, and nodes are made in that order.
  const Value zero = like(q, 0), is_number = equal(q, q);
  q = select(is_number, q, zero);  // NaN is coded as 0
  if (d.in.size() == 3) q = q + spread(a, x, cast(d[2], x.dtype()));
  const auto [low, high] = limits(a.to);
  const Value top = like(q, high), bottom = like(q, low);
  return cast(minimum(maximum(q, bottom), top), a.to);
}

Value dequantize_definition(const QuantizeAttrs& a, const DefineArgs& d) {
  const bool integer = is_integer(d[0].dtype());
  const DType exact = integer ? DType::i32 : DType::f32;
  Value x = cast(d[0], exact);
  if (d.in.size() == 3) x = x - spread(a, x, cast(d[2], exact));
  return cast(cast(x, DType::f32) * spread(a, x, cast(d[1], DType::f32)), a.to);
}

// Of element i of x, the element of the scale.
class ScaleIndex {
 public:
  ScaleIndex(const QuantizeAttrs& a, const Tensor& x, const Tensor& scale)
      : block_(a.block), single_(scale.count() == 1) {
    if (single_ && a.block == 0) return;
    const Index axis = x.type().axis(a.axis);
    for (Index i = axis + 1; i < x.rank(); ++i) inner_ *= x.shape()[static_cast<std::size_t>(i)];
    extent_ = x.shape()[static_cast<std::size_t>(axis)];
  }
  std::size_t operator()(Index i) const {
    if (block_ == 0) return single_ ? 0 : static_cast<std::size_t>(i / inner_ % extent_);
    const Index blocks = (extent_ + block_ - 1) / block_;
    return static_cast<std::size_t>((i / inner_ / extent_ * blocks + i / inner_ % extent_ / block_) * inner_ +
                                    i % inner_);
  }

 private:
  Index block_, inner_ = 1, extent_ = 1;
  bool single_;
};

void quantize_reference(const QuantizeAttrs& a, const RefArgs& r) {
  const std::vector<double> x = load<double>(r.in[0]), s = load<double>(r.in[1]);
  const std::vector<double> z = r.in.size() == 3 ? load<double>(r.in[2]) : std::vector<double>(s.size(), 0.0);
  const ScaleIndex at(a, r.in[0], r.in[1]);
  const auto [low, high] = is_float_code(a.to) ? Limits{0, 0} : limits(a.to);
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t k = at(static_cast<Index>(i));
    // The quotient is rounded to the type that is computed in; what is then rounded to an integer depends on it.
    const double exact = x[i] / s[k];
    const double q = r.in[0].dtype() == DType::f64 ? exact : static_cast<double>(static_cast<float>(exact));
    if (is_float_code(a.to)) {
      y[i] = r.in[0].dtype() == DType::f64 ? q + z[k] : static_cast<double>(static_cast<float>(q + z[k]));
      continue;
    }
    y[i] = std::isnan(q) ? z[k] : std::clamp(std::nearbyint(q) + z[k], low, high);
  }
  store(r.out[0], y);
}

void dequantize_reference(const QuantizeAttrs& a, const RefArgs& r) {
  const std::vector<double> x = load<double>(r.in[0]), s = load<double>(r.in[1]);
  const std::vector<double> z = r.in.size() == 3 ? load<double>(r.in[2]) : std::vector<double>(s.size(), 0.0);
  const ScaleIndex at(a, r.in[0], r.in[1]);
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t k = at(static_cast<Index>(i));
    y[i] = static_cast<double>(static_cast<float>(x[i] - z[k])) * s[k];
  }
  store(r.out[0], y);
}

// --- rows ---

constexpr double least_row = 0x1p-120;  // of the largest magnitude; below it the inverse of the scale may overflow

std::vector<TensorType> rows_infer(const QuantizeRowsAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  require(!x.encoding && is_arithmetic_float(x.dtype) && x.dtype != DType::f64, "x is {}, expected f32, f16 or bf16",
          x.text());
  require(x.rank() >= 1, "x is {}, expected rank 1 or more", x.text());
  require(x.dim(-1).bounds().hi > 0, "the rows of {} have no elements", x.text());
  at_most(c, 1, x.dim(-1), "size of a row");
  const TensorType scale = x.with(DType::f32).with(-1, 1);
  if (!a.zero_point) return {x.with(DType::i8), scale};
  return {x.with(DType::u8), scale, scale.with(DType::u8)};
}

// Codes 0 to 255 of the numbers between the ends of a row and 0.
Values zero_point_definition(Value x) {
  const Value none = like(x, 0), most = like(x, 255);
  const Value low = minimum(min(x, {-1}, true), none), range = maximum(max(x, {-1}, true), none) - low;
  const Value inverse = select(less(range, like(range, least_row)), none, most / range);
  const Value zero = round((none - low) * inverse), codes = round(x * inverse) + zero;
  return {cast(minimum(maximum(codes, none), most), DType::u8), range / most,
          cast(minimum(maximum(zero, none), most), DType::u8)};
}

Values rows_definition(const QuantizeRowsAttrs& a, const DefineArgs& d) {
  const Value x = widen(d[0]);
  if (a.zero_point) return zero_point_definition(x);
  const Value most = max(abs(x), {-1}, true);
  const Value inverse = select(less(most, like(most, least_row)), like(most, 0), like(most, 127) / most);
  const Value q = round(x * inverse);
  return {cast(minimum(maximum(q, like(q, -127)), like(q, 127)), DType::i8), most / like(most, 127)};
}

void zero_point_reference(const RefArgs& r) {
  const std::vector<double> x = load<double>(r.in[0]);
  const Index columns = r.in[0].shape().back(), rows = r.out[1].count();
  std::vector<double> codes(x.size()), scales, zeros;
  for (Index i = 0; i < rows; ++i) {
    const auto row = std::span(x).subspan(static_cast<std::size_t>(i * columns), static_cast<std::size_t>(columns));
    double low = 0, high = 0;
    for (const double v : row) {
      low = std::isnan(v) || std::isnan(low) ? std::nan("") : std::min(low, v);
      high = std::max(high, v);
    }
    const double range = static_cast<double>(static_cast<float>(high - low));
    const bool usable = range >= least_row && std::isfinite(range);
    const double inverse = usable ? static_cast<double>(static_cast<float>(255 / range)) : 0;
    const auto nearest = [&](double v) { return std::nearbyint(static_cast<double>(static_cast<float>(v * inverse))); };
    const double zero = usable ? std::clamp(nearest(-low), 0.0, 255.0) : 0;
    for (std::size_t j = 0; j < row.size(); ++j)
      codes[static_cast<std::size_t>(i * columns) + j] = usable ? std::clamp(nearest(row[j]) + zero, 0.0, 255.0) : 0;
    scales.push_back(range / 255);
    zeros.push_back(zero);
  }
  store(r.out[0], codes);
  store(r.out[1], scales);
  store(r.out[2], zeros);
}

void rows_reference(const QuantizeRowsAttrs& a, const RefArgs& r) {
  if (a.zero_point) return zero_point_reference(r);
  const std::vector<double> x = load<double>(r.in[0]);
  const Index columns = r.in[0].shape().back(), rows = r.out[1].count();
  std::vector<double> codes(x.size()), scales(static_cast<std::size_t>(rows));
  for (Index i = 0; i < rows; ++i) {
    const auto row = std::span(x).subspan(static_cast<std::size_t>(i * columns), static_cast<std::size_t>(columns));
    double most = 0;
    for (const double v : row) most = std::isnan(v) || std::isnan(most) ? std::nan("") : std::max(most, std::fabs(v));
    const auto inverse = most < least_row ? 0.0F : static_cast<float>(127 / most);
    for (std::size_t j = 0; j < row.size(); ++j) {
      const double q = std::nearbyint(static_cast<float>(row[j] * static_cast<double>(inverse)));
      codes[static_cast<std::size_t>(i * columns) + j] = std::isnan(q) ? 0 : std::clamp(q, -127.0, 127.0);
    }
    scales[static_cast<std::size_t>(i)] = most / 127;
  }
  store(r.out[0], codes);
  store(r.out[1], scales);
}

// --- cases ---

CaseInput given(DType d, std::vector<Dim> dims, std::vector<double> v) {
  return CaseInput(d, std::move(dims)).filled(std::move(v));
}

CaseCommon common(std::vector<CaseInput> in, std::vector<double> out, Tolerance t = exact) {
  CaseCommon c{.inputs = std::move(in), .tolerance = t, .gradient = false, .other_dtypes = false};
  if (!out.empty()) c.expected = {std::move(out)};
  c.expected_tolerance = exact;
  return c;
}

std::vector<Case<QuantizeAttrs>> quantize_cases() {
  using enum DType;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Dim b = Dim::symbol("B", 1, 8);
  const std::vector<double> halves{0.5, 1.5, 2.5, -2.5, -0.5, 3.5};
  std::vector<Case<QuantizeAttrs>> cases;
  // Ties go to even (not away from 0), then the zero point is added, then the range cuts.
  cases.push_back({{i8}, common({given(f32, {6}, halves), given(f32, {}, {1})}, {0, 2, 2, -2, 0, 4})});
  cases.push_back(
      {{u8}, common({given(f32, {6}, halves), given(f32, {1}, {1}), given(u8, {1}, {1})}, {1, 3, 3, 0, 1, 5})});
  cases.push_back(
      {{i8},
       common({given(f32, {7}, {1000, -1000, inf, -inf, nan, 127.5, -128.5}), given(f32, {}, {1}), given(i8, {}, {3})},
              {127, -128, 127, -128, 3, 127, -125})});
  cases.push_back({{u8},
                   common({given(f32, {1, 2, 2}, {-4, 7, 5, 200}), given(f32, {2}, {2, 4}), given(u8, {2}, {3, 250})},
                          {1, 7, 251, 255})});
  cases.push_back({{i16}, common({given(f32, {3}, {1e6, -3, 3.5}), given(f32, {}, {0.5})}, {32767, -6, 7})});
  cases.push_back(
      {{u16}, common({given(f32, {3}, {1e6, -3, 3.5}), given(f32, {}, {0.5}), given(u16, {}, {2})}, {65535, 0, 9})});
  cases.push_back({{i4}, common({given(f32, {4}, {9, -9, 2.5, 3.5}), given(f32, {}, {1})}, {7, -8, 2, 4})});
  cases.push_back(
      {{i8, 1, 2},
       common({given(f32, {2, 3}, {2, 4, 6, 8, 10, 12}), given(f32, {2, 2}, {2, 3, 4, 6})}, {1, 2, 2, 2, 2, 2})});
  cases.push_back({{i8, 0, 2},
                   common({given(f32, {3, 2}, {2, 3, 4, 6, 9, 16}), given(f32, {2, 2}, {2, 3, 3, 4}),
                           given(i8, {2, 2}, {0, 1, -1, 2})},
                          {1, 2, 2, 3, 2, 6})});
  for (const DType d : {f32, f16, bf16}) {
    cases.push_back({{u8, -1},
                     common({CaseInput(d, {b, 3, 5}).range(-9, 9), CaseInput(d, {5}).range(0.1, 1),
                             CaseInput(u8, {5}).range(0, 255)},
                            {})});
    cases.push_back({{i8, -1, 4}, common({CaseInput(d, {2, 3, 8}), CaseInput(d, {2, 3, 2}).range(0.01, 1)}, {})});
  }
  cases.push_back({{i8}, common({CaseInput(f64, {7, 3}).range(-9, 9), given(f32, {}, {0.1})}, {})});
  cases.push_back({{i8}, common({CaseInput(f32, {0, 3}), given(f32, {}, {0.1})}, {})});
  cases.push_back({{i2}, common({given(f32, {5}, {9, -9, 0.5, -1.5, 1}), given(f32, {}, {1})}, {1, -2, 0, -2, 1})});
  cases.push_back(
      {{u2},
       common({given(f32, {5}, {9, -9, 0.5, 2.5, 3}), given(f32, {}, {1}), given(u2, {}, {1})}, {3, 0, 1, 3, 3})});
  // Codes that are floats are rounded once, and saturate.
  cases.push_back({{f8e4m3}, common({given(f32, {4}, {1e6, -34, 0, 1}), given(f32, {}, {2})}, {448, -16, 0, 0.5})});
  cases.push_back({{f8e5m2}, common({given(f16, {3}, {1.1, -60000, inf}), given(f32, {}, {1})}, {1, -57344, 57344})});
  cases.push_back({{f8e4m3fnuz}, common({given(f32, {3}, {-0.0, 250, 3}), given(f32, {}, {1})}, {0, 240, 3})});
  cases.push_back(
      {{f4e2m1, 0},
       common({given(f32, {2, 3}, {0, 2.5, 4.8, 8.6, -30, -20}), given(f32, {2}, {2, 3})}, {0, 1, 2, 3, -6, -6})});
  cases.push_back(
      {{f8e5m2fnuz, -1, 2},
       common({CaseInput(f32, {2, 5}), CaseInput(f32, {2, 3}).range(0.1, 1), CaseInput(f8e5m2fnuz, {2, 3}).range(0, 1)},
              {})});
  return cases;
}

std::vector<Case<QuantizeAttrs>> dequantize_cases() {
  using enum DType;
  std::vector<Case<QuantizeAttrs>> cases;
  const Dim b = Dim::symbol("B", 1, 8);
  cases.push_back(
      {{f32},
       common({given(u8, {4}, {0, 3, 128, 255}), given(f32, {}, {2}), given(u8, {}, {128})}, {-256, -250, 0, 254})});
  cases.push_back({{f32}, common({given(i8, {2, 2}, {-128, 1, 2, 127}), given(f32, {2}, {0.5, 4})}, {-64, 4, 1, 508})});
  cases.push_back({{f32, 0},
                   common({given(i16, {2, 2}, {-32768, 1, 2, 3}), given(f32, {2}, {0.5, 4}), given(i16, {2}, {-1, 1})},
                          {-16383.5, 1, 4, 8})});
  cases.push_back({{f32}, common({given(i32, {2}, {-7, 9}), given(f32, {1}, {0.5})}, {-3.5, 4.5})});
  cases.push_back(
      {{f32, 1, 2},
       common({given(i8, {1, 3}, {1, 2, 3}), given(f32, {1, 2}, {2, 5}), given(i8, {1, 2}, {0, 1})}, {2, 4, 10})});
  cases.push_back(
      {{f32}, common({given(i2, {4}, {-2, -1, 0, 1}), given(f32, {}, {2}), given(i2, {}, {1})}, {-6, -4, -2, 0})});
  cases.push_back({{f16}, common({given(f4e2m1, {5}, {0, 1, -1, 1.5, -4}), given(f16, {}, {2})}, {0, 2, -2, 3, -8})});
  cases.push_back(
      {{f32, 0},
       common({given(f8e4m3, {2, 2}, {448, -16, 0.5, 2}), given(f32, {2}, {2, 3}), given(f8e4m3, {2}, {0, 1})},
              {896, -32, -1.5, 3})});
  for (const DType d : {f32, f16, bf16}) {
    cases.push_back({{d, -1},
                     common({CaseInput(u8, {b, 3, 5}).range(0, 255), CaseInput(d, {5}).range(0.1, 1),
                             CaseInput(u8, {5}).range(0, 255)},
                            {}, ulp(d == f32 ? 0 : 1, "the product is rounded to f32 first"))});
  }
  return cases;
}

std::vector<Case<QuantizeRowsAttrs>> rows_cases() {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 40), z = Dim::symbol("Z", 0, 8);
  std::vector<Case<QuantizeRowsAttrs>> cases;
  const auto add = [&](CaseInput x, std::vector<double> codes, std::vector<double> scales) {
    CaseCommon c = common({std::move(x)}, {});
    if (codes.empty()) cases.push_back({{true}, c});
    if (!codes.empty()) c.expected = {std::move(codes), std::move(scales)};
    cases.push_back({{false}, std::move(c)});
  };
  // 127 is the largest code of either sign; halves go to even; a row of zeros has scale 0; what is not a number shows
  // in the scale.
  add(given(DType::f32, {5, 4}, {127, 0.5, 1.5, -2.5, -254, 1, 3, 5, 0, 0, -0.0, 0, nan, 1, 2, 3, inf, 1, -1, 2}),
      {127, 0, 2, -2, -127, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 2, 0, nan, inf});
  // Ends -51 and 204 with scale 1, ties to even before the zero point; 0 is an end of rows of one sign.
  CaseCommon c =
      common({given(DType::f32, {4, 4}, {-51, 204, 0.5, 1.5, 510, 2, 4, 255, -255, -2, -3, 0, nan, 1, 2, 3})}, {});
  c.expected = {{0, 255, 51, 53, 255, 1, 2, 128, 0, 253, 252, 255, 0, 0, 0, 0}, {1, 2, 1, nan}, {51, 0, 255, 0}};
  cases.push_back({{true}, std::move(c)});
  for (const DType d : {DType::f32, DType::f16, DType::bf16}) {
    add(CaseInput(d, {b, s, 7}), {}, {});
    add(CaseInput(d, {3, 300}), {}, {});
  }
  add(CaseInput(DType::f32, {b, s}), {}, {});
  add(CaseInput(DType::f32, {z, 5}), {}, {});
  return cases;
}

std::vector<Failure<QuantizeAttrs>> quantize_failures() {
  using enum DType;
  const TensorType x(f32, {2, 3}), one(f32, {});
  return {
      {{i8}, {{i32, {2}}, one}, "x is i32[2], expected f64, f32, f16 or bf16"},
      {{f32},
       {x, one},
       "codes of type f32 are asked for, expected an integer of at most 16 bits or a float of at most 8"},
      {{i8}, {x, one, {u8, {}}}, "zero point is u8[], the codes are i8"},
      {{i8}, {x, {f32, {2}}}, "size of the scale: 2 is not 3"},
      {{i8}, {x, {f32, {2, 3}}}, "scale is f32[2,3], expected one element, or a vector along axis 1"},
      {{i8, 1, 2}, {x, {f32, {2, 3}}}, "size of the scale: 3 is not 2"},
      {{i8, 1, 2}, {x, {f32, {2}}}, "scale is f32[2], expected rank 2 for blocks"},
      {{i8, 1, -1}, {x, one}, "block is -1, expected 0 or more"},
      {{i8, 2}, {x, {f32, {3}}}, "axis 2 is out of range for rank 2"},
      {{i8}, {x, {i8, {}}}, "scale is i8[], expected f32, f16 or bf16"},
      {{i8}, {x, one, {i8, {1}}}, "zero point is i8[1], the scale f32[]"},
      {{i8}, {x}, "1 operands are given, expected 2 or 3"},
  };
}

std::vector<Failure<QuantizeAttrs>> dequantize_failures() {
  using enum DType;
  const TensorType x(i8, {2, 3}), one(f32, {});
  return {
      {{f32}, {{f32, {2}}, one}, "x is f32[2], expected an integer of at most 16 bits or a float of at most 8, or i32"},
      {{i8}, {x, one}, "a result of type i8 is asked for, expected f32, f16 or bf16"},
      {{f32}, {x, one, {u8, {}}}, "zero point is u8[], expected the type of the codes"},
      {{f32}, {x, {f32, {2}}}, "size of the scale: 2 is not 3"},
  };
}

}  // namespace

constinit const Op<QuantizeAttrs> quantize_op{{
    .name = "quantize",
    .doc =
        "Codes of numbers, of type `to`. Integers are round(x / scale) + zero, saturated, to nearest, ties to even, as "
        "ONNX QuantizeLinear; NaN gives the zero point, infinities saturate. Floats of 8 and 4 bits are x / scale + "
        "zero, cast. Operands x, scale and, optionally, zero points of type `to`. A scale of one element serves all; a "
        "vector one position of `axis` each; with `block` the scale has the rank of x and one element for `block` "
        "neighbours along `axis`, the last block may be short. The quotient is rounded to f32 (f64 for an f64 x). No "
        "gradient.",
    .infer = quantize_infer,
    .definition = quantize_definition,
    .vjp = [](const QuantizeAttrs&, const VjpArgs& v) -> Grads { return Grads(v.in.size()); },
    .reference = quantize_reference,
    .cases = quantize_cases,
    .failures = quantize_failures,
}};

constinit const Op<QuantizeAttrs> dequantize_op{{
    .name = "dequantize",
    .doc = "Numbers of codes: (x - zero) * scale, in the float type `to`. Operands x, scale and, optionally, zero "
           "points of the type of x; which elements share a scale is as in quantize. The difference is exact (of float "
           "codes rounded to f32), the "
           "product is rounded to f32 and then to `to`. No gradient.",
    .infer = dequantize_infer,
    .definition = dequantize_definition,
    .vjp = [](const QuantizeAttrs&, const VjpArgs& v) -> Grads { return Grads(v.in.size()); },
    .reference = dequantize_reference,
    .cases = dequantize_cases,
    .failures = dequantize_failures,
}};

constinit const Op<QuantizeRowsAttrs> quantize_rows_op{{
    .name = "quantize_rows",
    .doc =
        "Integer codes of every row (the last axis) and their scale, f32[..,1]. Codes i8 by the row's largest "
        "magnitude m: scale = m / 127, code = round(x * (127 / m)), ties to even. With `zero_point` codes u8 between "
        "low = min(x, 0) and high = max(x, 0): scale = r / 255 with r = high - low, zero = round(-low * (255 / r)), "
        "code = round(x * (255 / r)) + zero, cut to 0..255, and the zeros, u8[..,1], are a third result. A row with "
        "m or r below 2^-120 has codes 0; one that holds NaN or an infinity, or whose r overflows, has codes 0 and a "
        "scale that says so, so that products with it are not finite. f32, f16, bf16. No gradient.",
    .infer = rows_infer,
    .definition = rows_definition,
    .vjp = [](const QuantizeRowsAttrs&, const VjpArgs&) -> Grads { return {std::nullopt}; },
    .reference = rows_reference,
    .cases = rows_cases,
    .failures =
        [] {
          return std::vector<Failure<QuantizeRowsAttrs>>{
              {{}, {{DType::i32, {2, 3}}}, "x is i32[2,3], expected f32, f16 or bf16"},
              {{}, {{DType::f32, {}}}, "x is f32[], expected rank 1 or more"},
              {{}, {{DType::f32, {3, 0}}}, "the rows of f32[3,0] have no elements"},
              {{}, {}, "0 operands are given, expected 1"},
          };
        },
}};

static Value emit(const Op<QuantizeAttrs>& op, Value x, Value scale, std::optional<Value> zero, QuantizeAttrs attrs) {
  if (zero) return x.builder->emit_one(op, attrs, {x, scale, *zero});
  return x.builder->emit_one(op, attrs, {x, scale});
}

Value quantize(Value x, Value scale, std::optional<Value> zero, QuantizeAttrs attrs) {
  return emit(quantize_op, x, scale, zero, attrs);
}
Value dequantize(Value x, Value scale, std::optional<Value> zero, QuantizeAttrs attrs) {
  return emit(dequantize_op, x, scale, zero, attrs);
}

QuantizedRows quantize_rows(Value x, bool zero_point) {
  const Values r = x.builder->emit(quantize_rows_op, Attrs(QuantizeRowsAttrs{zero_point}), std::vector<Value>{x});
  QuantizedRows q{r[0], r[1]};
  if (zero_point) q.zero = r[2];
  return q;
}

std::span<const OpDef* const> quantize_ops() {
  static constexpr const OpDef* ops[] = {&quantize_op, &dequantize_op, &quantize_rows_op};
  return ops;
}

}  // namespace rlx
