// cast: every ordered pair of element types, by one rule a destination.
#include "ops/cast/cast.h"

#include "core/error.h"

namespace rlx {

namespace {

bool differentiable(DType t) { return is_float(t) || is_complex(t); }

void cast_reference(const CastAttrs& a, const RefArgs& r) {
  const Tensor& x = r.in[0];
  Tensor& y = r.out[0];
  if (x.dtype() == a.to) {
    y = x;
  } else if (is_complex(x.dtype())) {
    store(y, load<std::complex<double>>(x));
  } else if (is_float(x.dtype())) {
    store(y, load<double>(x));
  } else if (x.dtype() == DType::u64) {
    store(y, load<std::uint64_t>(x));
  } else {
    store(y, load<std::int64_t>(x));
  }
}

Grads cast_vjp(const CastAttrs&, const VjpArgs& v) {
  if (!differentiable(v.in[0].dtype())) return {std::nullopt};
  return {cast(v.dout(), v.in[0].dtype())};
}

using L = std::vector<double>;

std::vector<Case<CastAttrs>> cast_cases() {
  std::vector<Case<CastAttrs>> cases;
  const auto add = [&](DType from, DType to, L in, L out) {
    const auto n = static_cast<Index>(in.size());
    cases.push_back({{to},
                     {.inputs = {CaseInput(from, {n}).filled(std::move(in))},
                      .expected = {std::move(out)},
                      .expected_tolerance = exact,
                      .gradient = false,
                      .other_dtypes = false}});
  };
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double most = 9223372036854775807.0;
  add(DType::f32, DType::i32, {3e9, -3e9, nan, 2.9, -2.9, inf, -inf},
      {2147483647, -2147483648.0, 0, 2, -2, 2147483647, -2147483648.0});
  add(DType::f32, DType::u8, {-1, 256, 3.7}, {0, 255, 3});
  add(DType::i32, DType::i8, {300, -129}, {44, 127});
  add(DType::f64, DType::i64, {2.9, -2.9, 1e20, -1e20, nan, -0.0}, {2, -2, most, -most - 1, 0, 0});
  add(DType::f64, DType::boolean, {2.9, -2.9, 1e20, -1e20, nan, -0.0, 1e-310}, {1, 1, 1, 1, 1, 0, 1});
  add(DType::i64, DType::i32, {1, 4294967301.0, -1, 1099511627776.0}, {1, 5, -1, 0});
  add(DType::i64, DType::f64, {1, 4294967301.0, -1, 1099511627776.0}, {1, 4294967301.0, -1, 1099511627776.0});
  add(DType::i64, DType::boolean, {1, 0, 8589934592.0}, {1, 0, 1});
  add(DType::boolean, DType::i64, {1, 0, 1}, {1, 0, 1});
  add(DType::i32, DType::i64, {-3, 2147483647}, {-3, 2147483647});
  add(DType::f32, DType::i32, {1.0}, {1});
  add(DType::f64, DType::f32, {1e39, -1e39, 1e-46, nan}, {inf, -inf, 0, nan});
  add(DType::f32, DType::f16, {5.9, 65520, 6e-8, 2049}, {5.8984375, inf, 5.9604644775390625e-8, 2048});
  add(DType::f32, DType::bf16, {1.00390625, 3.39e38, 1e-40}, {1, 3.3895313892515355e38, 9.18354961579912e-41});
  add(DType::f32, DType::f8e4m3, {448, 1000, 0.001953125, 17, -0.0009}, {448, 448, 0.001953125, 16, -0.0});
  add(DType::f32, DType::f8e5m2, {57344, 1e9, 1.1}, {57344, 57344, 1});
  add(DType::f32, DType::e8m0, {0.3, 0.5, 0.51, 0}, {0.5, 0.5, 1, 5.877471754111438e-39});
  add(DType::f32, DType::i4, {-9, 7.9, 8, 3}, {-8, 7, 7, 3});
  add(DType::f32, DType::u4, {-9, 15.9, 16, 3}, {0, 15, 15, 3});
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      cases.push_back({{to},
                       {.inputs = {CaseInput(from, {7}).range(0, 7)},
                        .gradient = from == DType::f64 && to == DType::f64,
                        .other_dtypes = false}});
    }
  }
  return cases;
}

}  // namespace

constinit const Op<CastAttrs> cast_op{{
    .name = "cast",
    .doc = "Elements converted to type `to`. Float to integer truncates toward zero, saturates at the range, NaN gives "
           "0; integer to "
           "integer wraps; to a float rounds once, to nearest even; to bool is 1 where not zero (NaN too); complex to "
           "real takes the "
           "real part. Gradient: the cotangent, cast back; none through integers and bool.",
    .traits = elementwise,
    .infer =
        [](const CastAttrs& a, InferContext& c) {
          require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
          require(!c.in[0].encoding, "an encoded tensor {} is not cast, dequantise it", c.in[0].text());
          const bool whole = is_integer(c.in[0].dtype) && is_integer(a.to) && bits(a.to) >= 32;
          if (whole && c.value(0)) c.track(0, *c.value(0));
          return c.in[0].with(a.to);
        },
    .vjp = cast_vjp,
    .reference = cast_reference,
    .cases = cast_cases,
}};

Value cast(Value x, DType to) { return x.dtype() == to ? x : x.builder->emit_one(cast_op, CastAttrs{to}, {x}); }
Value widen(Value x) { return x.dtype() == DType::f16 || x.dtype() == DType::bf16 ? cast(x, DType::f32) : x; }

std::span<const OpDef* const> cast_ops() {
  static constexpr const OpDef* ops[] = {&cast_op};
  return ops;
}

}  // namespace rlx
