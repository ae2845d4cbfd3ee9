// bitcast: only the type of the elements changes.
#include "ops/bitcast/bitcast.h"

#include "core/error.h"

namespace rlx {

namespace {

TensorType bitcast_infer(const BitcastAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  require(!x.encoding, "the bits of an encoded tensor {} are not read as another type", x.text());
  require(bits(x.dtype) == bits(a.to), "elements of {} have {} bits, those of {} {}", name(x.dtype), bits(x.dtype),
          name(a.to), bits(a.to));
  return x.with(a.to);
}

void bitcast_reference(const BitcastAttrs&, const RefArgs& r) {
  for (Index i = 0; i < r.in[0].count(); ++i) r.out[0].set_code(i, r.in[0].code(i));
}

std::vector<Case<BitcastAttrs>> bitcast_cases() {
  std::vector<Case<BitcastAttrs>> cases;
  const auto add = [&](DType from, DType to, std::vector<double> in, std::vector<double> out) {
    const auto n = static_cast<Index>(in.size());
    cases.push_back({{to},
                     {.inputs = {CaseInput(from, {n}).filled(std::move(in))},
                      .expected = {std::move(out)},
                      .tolerance = exact,
                      .gradient = false,
                      .other_dtypes = false}});
  };
  const double inf = std::numeric_limits<double>::infinity();
  add(DType::f32, DType::i32, {1, -0.0, inf}, {1065353216, -2147483648.0, 2139095040});
  add(DType::i32, DType::f32, {1065353216, -1082130432}, {1, -1});
  add(DType::u8, DType::i8, {0, 127, 128, 255}, {0, 127, -128, -1});
  add(DType::i64, DType::f64, {4607182418800017408.0}, {1});
  add(DType::u16, DType::bf16, {0x3F80, 0xC000}, {1, -2});
  add(DType::u16, DType::f16, {0x3C00, 0xC000}, {1, -2});
  add(DType::u8, DType::f8e5m2, {0x7B, 0xFB, 0x3C}, {57344, -57344, 1});
  add(DType::i4, DType::f4e2m1, {1, 7, -1}, {0.5, 6, -6});
  add(DType::u2, DType::i2, {0, 1, 2, 3, 3}, {0, 1, -2, -1, -1});
  add(DType::f32, DType::f32, {2.5}, {2.5});
  const Dim b = Dim::symbol("B", 0, 8);
  cases.push_back({{DType::u32}, {.inputs = {{DType::f32, {b, 5}}}, .gradient = false, .other_dtypes = false}});
  cases.push_back({{DType::u32}, {.inputs = {{DType::f32, {}}}, .gradient = false, .other_dtypes = false}});
  return cases;
}

}  // namespace

constinit const Op<BitcastAttrs> bitcast_op{{
    .name = "bitcast",
    .doc = "The bits of every element read as an element of type `to`, which has the same width. Any element types. "
           "No gradient, but where the type stays.",
    .infer = bitcast_infer,
    .vjp = [](const BitcastAttrs& a, const VjpArgs& v) -> Grads {
      if (v.in[0].dtype() == a.to) return {v.dout()};
      return {std::nullopt};
    },
    .reference = bitcast_reference,
    .cases = bitcast_cases,
    .failures =
        [] {
          return std::vector<Failure<BitcastAttrs>>{
              {{DType::u8}, {{DType::f32, {2}}}, "elements of f32 have 32 bits, those of u8 8"},
              {{DType::u32}, {}, "0 operands are given, expected 1"},
          };
        },
}};

Value bitcast(Value x, DType to) {
  return x.dtype() == to ? x : x.builder->emit_one(bitcast_op, BitcastAttrs{to}, {x});
}

std::span<const OpDef* const> bitcast_ops() {
  static constexpr const OpDef* ops[] = {&bitcast_op};
  return ops;
}

}  // namespace rlx
