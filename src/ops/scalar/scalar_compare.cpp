// Comparisons, bitwise not, and select.
#include "ops/broadcast/broadcast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"
#include "ops/scalar/scalar_parts.h"
#include "ops/scalar/scalar_reference.h"

namespace rlx {

namespace {

// Comparison by index: the same text for every element type.
template <int which, class T>
bool compare(T a, T b) {
  if constexpr (which == 0) return a == b;
  if constexpr (which == 1) return !(a == b);
  if constexpr (which == 2) return a < b;
  if constexpr (which == 3) return a <= b;
  if constexpr (which == 4) return a > b;
  if constexpr (which == 5) return a >= b;
}

constexpr std::string_view compare_names[] = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"};
constexpr std::string_view compare_docs[] = {
    "a = b as bool; false with NaN.", "a differs from b, as bool; true with NaN.",
    "a < b as bool; false with NaN.", "a <= b as bool; false with NaN.",
    "a > b as bool; false with NaN.", "a >= b as bool; false with NaN.",
};

TensorType compare_infer(const NoAttrs&, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &a = c.in[0], &b = c.in[1];
  require(a.dtype == b.dtype, "element types {} and {} differ, cast one", name(a.dtype), name(b.dtype));
  const bool known =
      is_arithmetic_float(a.dtype) || a.dtype == DType::boolean || (is_integer(a.dtype) && bits(a.dtype) >= 8);
  require(!a.encoding && !b.encoding && known, "element type {} is not supported, cast first", a.text());
  return {DType::boolean, c.broadcast(a.dims, b.dims)};
}

template <int which>
void compare_reference(const NoAttrs&, const RefArgs& r) {
  detail::visit_domain<base::reals | base::integers>(r.in[0].dtype(), [&]<class T>() {
    detail::map2<T, std::uint64_t>(r, [](T a, T b) { return std::uint64_t{compare<which>(a, b)}; });
  });
}

template <int which>
std::vector<Case<NoAttrs>> compare_cases() {
  const double nan = std::nan("");
  std::vector<double> expected;
  const double a[] = {1, 2, 2, nan, 1, -0.0}, b[] = {2, 2, 1, 1, nan, 0.0};
  for (int i = 0; i < 6; ++i) expected.push_back(compare<which>(a[i], b[i]));
  std::vector<double> triangle;  // of rows 0, 1, 2 against a column 0, 1, 2
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) triangle.push_back(compare<which>(c, r));
  }
  const Dim s = Dim::symbol("S", 1, 8);
  return {
      {{},
       {.inputs = {CaseInput(DType::f32, {6}).filled({a, a + 6}), CaseInput(DType::f32, {6}).filled({b, b + 6})},
        .expected = {expected},
        .tolerance = exact}},
      {{},
       {.inputs = {CaseInput(DType::i32, {1, 3, 3}).filled({0, 1, 2, 0, 1, 2, 0, 1, 2}),
                   CaseInput(DType::i32, {1, 3, 1}).filled({0, 1, 2})},
        .expected = {triangle},
        .tolerance = exact}},
      {{},
       {.inputs = {CaseInput(DType::i64, {2}).filled({9007199254740992.0, -5}),
                   CaseInput(DType::i64, {2}).filled({9007199254740992.0, -5})},
        .expected = {{double(compare<which>(1, 1)), double(compare<which>(1, 1))}},
        .tolerance = exact}},
      {{}, {.inputs = {CaseInput(DType::f32, {7}), CaseInput(DType::f32, {})}, .tolerance = exact}},
      {{},
       {.inputs = {CaseInput(DType::f32, {2, 1, s, 1}), CaseInput(DType::f32, {1, 2, s, s})},
        .tolerance = exact,
        .dims = {{"S", 3}}}},
      {{},
       {.inputs = {CaseInput(DType::boolean, {4}), CaseInput(DType::boolean, {4})},
        .tolerance = exact,
        .other_dtypes = false}},
  };
}

template <int which>
constinit const Op<NoAttrs> compare_op{{
    .name = compare_names[which],
    .doc = compare_docs[which],
    .traits = elementwise | (which < 2 ? commutative : 0u),
    .infer = compare_infer,
    .reference = compare_reference<which>,
    .cases = compare_cases<which>,
    .failures =
        [] {
          return std::vector<Failure<NoAttrs>>{
              {{}, {{DType::f32, {2}}, {DType::f64, {2}}}, "element types f32 and f64 differ, cast one"},
              {{}, {{DType::c64, {2}}, {DType::c64, {2}}}, "is not supported, cast first"},
              {{}, {{DType::f32, {3}}, {DType::f32, {2}}}, "do not broadcast: 3 is not 2"},
          };
        },
}};

constinit const Op<NoAttrs> not_op{{
    .name = "bitwise_not",
    .doc = "All bits of an integer flipped; logical not of a bool.",
    .traits = elementwise,
    .infer =
        [](const NoAttrs&, Types in) {
          require(in.size() == 1, "{} operands are given, expected 1", in.size());
          require(in[0].dtype == DType::boolean || (is_integer(in[0].dtype) && bits(in[0].dtype) >= 8),
                  "element type {} is not supported, expected integers or bool", in[0].text());
          return in[0];
        },
    .reference =
        [](const NoAttrs&, const RefArgs& r) {
          const bool logical = r.in[0].dtype() == DType::boolean;
          detail::visit_domain<base::integers>(r.in[0].dtype(), [&]<class T>() {
            detail::map1<T>(r, [&](T x) { return logical ? T(x == 0) : static_cast<T>(~x); });
          });
        },
    .cases =
        [] {
          return std::vector<Case<NoAttrs>>{
              {{},
               {.inputs = {CaseInput(DType::i32, {3}).filled({0, -1, 5})},
                .expected = {{-1, 0, -6}},
                .tolerance = exact,
                .other_dtypes = false}},
              {{},
               {.inputs = {CaseInput(DType::u8, {2}).filled({0, 5})},
                .expected = {{255, 250}},
                .tolerance = exact,
                .other_dtypes = false}},
              {{},
               {.inputs = {CaseInput(DType::boolean, {2}).filled({0, 1})},
                .expected = {{1, 0}},
                .tolerance = exact,
                .other_dtypes = false}},
          };
        },
    .failures = [] { return std::vector<Failure<NoAttrs>>{{{}, {{DType::f32, {2}}}, "expected integers or bool"}}; },
}};

TensorType select_infer(const NoAttrs&, InferContext& c) {
  require(c.in.size() == 3, "{} operands are given, expected 3", c.in.size());
  const TensorType &p = c.in[0], &a = c.in[1], &b = c.in[2];
  require(p.dtype == DType::boolean, "the condition is {}, expected bool", p.text());
  require(a.dtype == b.dtype, "element types {} and {} differ, cast one", name(a.dtype), name(b.dtype));
  require(!a.encoding && !b.encoding && bits(a.dtype) >= 8, "element type {} is not supported, cast first", a.text());
  return {a.dtype, c.broadcast(p.dims, c.broadcast(a.dims, b.dims))};
}

Grads select_vjp(const NoAttrs&, const VjpArgs& v) {
  if (is_integer(v.in[1].dtype()) || v.in[1].dtype() == DType::boolean)
    return {std::nullopt, std::nullopt, std::nullopt};
  const Value zero = like(v.dout(), 0);
  return {std::nullopt, sum_to(select(v.in[0], v.dout(), zero), v.in[1].type().dims),
          sum_to(select(v.in[0], zero, v.dout()), v.in[2].type().dims)};
}

void select_reference(const NoAttrs&, const RefArgs& r) {
  const auto& shape = r.out[0].shape();
  Index i = 0;
  walk<3>(shape,
          {broadcast_strides(r.in[0].shape(), shape), broadcast_strides(r.in[1].shape(), shape),
           broadcast_strides(r.in[2].shape(), shape)},
          [&](const auto& at) {
            r.out[0].set_code(i++, r.in[0].code(at[0]) != 0 ? r.in[1].code(at[1]) : r.in[2].code(at[2]));
          });
}

std::vector<Case<NoAttrs>> select_cases() {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const Dim b = Dim::symbol("B", 1, 8);
  return {
      {{},
       {.inputs = {CaseInput(DType::boolean, {4}).filled({1, 0, 1, 0}),
                   CaseInput(DType::f32, {4}).filled({1, nan, 3, inf}),
                   CaseInput(DType::f32, {4}).filled({nan, 6, inf, 8})},
        .expected = {{1, 6, 3, 8}},
        .tolerance = exact,
        .gradient = false}},
      {{}, {.inputs = {{DType::boolean, {b, 3}}, {DType::f32, {b, 3}}, {DType::f32, {b, 3}}}, .tolerance = exact}},
      {{}, {.inputs = {{DType::boolean, {}}, {DType::f32, {5}}, {DType::f32, {}}}, .tolerance = exact}},
      {{}, {.inputs = {{DType::boolean, {5}}, {DType::f32, {}}, {DType::f32, {}}}, .tolerance = exact}},
      {{}, {.inputs = {{DType::boolean, {2, 1}}, {DType::f32, {1, 3}}, {DType::f32, {2, 2, 3}}}, .tolerance = exact}},
      {{}, {.inputs = {{DType::boolean, {3}}, {DType::i32, {3}}, {DType::i32, {3}}}, .tolerance = exact}},
      {{},
       {.inputs = {{DType::boolean, {3}}, {DType::c64, {3}}, {DType::c64, {3}}},
        .tolerance = exact,
        .gradient = false,
        .other_dtypes = false}},
  };
}

constinit const Op<NoAttrs> select_op{{
    .name = "select",
    .doc = "a where the bool condition is true, else b, with broadcasting; any element type. The value not chosen has "
           "no effect. "
           "Gradient: the cotangent goes where the value came from, 0 elsewhere.",
    .traits = elementwise,
    .infer = select_infer,
    .vjp = select_vjp,
    .reference = select_reference,
    .cases = select_cases,
    .failures =
        [] {
          return std::vector<Failure<NoAttrs>>{
              {{}, {{DType::f32, {2}}, {DType::f32, {2}}, {DType::f32, {2}}}, "the condition is f32[2], expected bool"},
              {{}, {{DType::boolean, {2}}, {DType::f32, {2}}, {DType::i32, {2}}}, "element types f32 and i32 differ"},
              {{}, {{DType::boolean, {3}}, {DType::f32, {2}}, {DType::f32, {2}}}, "do not broadcast"},
          };
        },
}};

template <int which>
Value emit_compare(Value a, Value b) {
  return a.builder->emit_one(compare_op<which>, NoAttrs{}, {a, b});
}

}  // namespace

Value equal(Value a, Value b) { return emit_compare<0>(a, b); }
Value not_equal(Value a, Value b) { return emit_compare<1>(a, b); }
Value less(Value a, Value b) { return emit_compare<2>(a, b); }
Value less_equal(Value a, Value b) { return emit_compare<3>(a, b); }
Value greater(Value a, Value b) { return emit_compare<4>(a, b); }
Value greater_equal(Value a, Value b) { return emit_compare<5>(a, b); }
Value bitwise_not(Value x) { return x.builder->emit_one(not_op, NoAttrs{}, {x}); }
Value select(Value condition, Value a, Value b) {
  return condition.builder->emit_one(select_op, NoAttrs{}, {condition, a, b});
}

std::span<const OpDef* const> compare_ops() {
  static constexpr const OpDef* ops[] = {&compare_op<0>, &compare_op<1>, &compare_op<2>, &compare_op<3>,
                                         &compare_op<4>, &compare_op<5>, &not_op,        &select_op};
  return ops;
}

}  // namespace rlx
