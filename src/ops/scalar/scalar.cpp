// Unary scalar ops: one table entry a row of rows.h, with rules read from the row.
#include "ops/scalar/scalar.h"

#include <array>
#include <limits>

#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar_parts.h"
#include "ops/scalar/scalar_reference.h"

namespace rlx {

namespace {

struct RowText {
  std::string_view name, formula;
};

// What the documentation says of a row.
constexpr RowText row_texts[] = {
    {"neg", "-x."},
    {"abs", "|x|; derivative sign(x), 0 at 0."},
    {"exp", "e^x."},
    {"expm1", "e^x - 1, accurate near 0."},
    {"log", "Natural logarithm; of a complex number the principal branch."},
    {"log1p", "ln(1 + x), accurate near 0."},
    {"sqrt", "Square root; NaN below 0; derivative infinite at 0. Of a complex number the principal branch."},
    {"sin", "Sine of x in radians."},
    {"cos", "Cosine of x in radians."},
    {"tan", "Tangent of x in radians."},
    {"atan", "Arc tangent in radians, in [-pi/2, pi/2]."},
    {"tanh", "Hyperbolic tangent."},
    {"erf", "Error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x."},
    {"erfc", "1 - erf(x), accurate for large x."},
    {"round", "Nearest integer, ties to even; derivative 0."},
    {"floor", "Largest integer not above x; derivative 0."},
    {"ceil", "Smallest integer not below x; derivative 0."},
    {"trunc", "x without its fraction; derivative 0."},
    {"sign", "-1, 0 or 1; a zero keeps its sign, NaN stays NaN; derivative 0."},
    {"relu", "max(x, 0); NaN stays NaN; derivative 0 at 0 and at NaN."},
    {"relu6", "min(max(x, 0), 6); NaN stays NaN; derivative 0 at 0, 6 and NaN."},
    {"rsqrt", "1 / sqrt(x)."},
    {"reciprocal", "1 / x."},
    {"sigmoid", "Logistic function 1 / (1 + e^-x)."},
    {"silu", "x times its logistic (Elfwing et al. 2017), also called swish."},
    {"gelu", "x times the normal distribution function, 0.5 x (1 + erf(x / sqrt 2)) (Hendrycks and Gimpel 2016)."},
    {"gelu_tanh", "The tanh approximation of gelu, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."},
    {"softplus", "ln(1 + e^x)."},
    {"log_sigmoid", "ln of the logistic, -ln(1 + e^-x)."},
    {"elu", "x above 0, else e^x - 1 (alpha 1)."},
    {"hard_sigmoid", "clamp(x/6 + 1/2, 0, 1); derivative 0 at the ends."},
    {"hard_swish", "x clamp(x + 3, 0, 6) / 6."},
    {"mish", "x tanh(softplus(x)) (Misra 2019)."},
    {"softsign", "x / (1 + |x|)."},
};

constexpr std::string_view row_formula(std::string_view name) {
  for (const RowText& t : row_texts) {
    if (t.name == name) return t.formula;
  }
  throw "a row has no text in row_texts";  // fails the build: evaluated at compile time
}

bool in_domain(unsigned domains, DType d) {
  if (is_arithmetic_float(d)) return (domains & base::reals) != 0;
  if (is_complex(d)) return (domains & base::complexes) != 0;
  return is_integer(d) && bits(d) >= 8 && (domains & base::integers) != 0;
}

template <class Row>
TensorType unary_infer(const NoAttrs&, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  require(!c.in[0].encoding && in_domain(Row::domains, c.in[0].dtype), "element type {} is not supported, cast first",
          c.in[0].text());
  return c.in[0];
}

template <class Row>
Grads unary_vjp(const NoAttrs&, const VjpArgs& v) {
  if constexpr (Row::flat) {
    return {std::nullopt};
  } else {
    const Value x = v.in[0];
    if (!is_float(x.dtype()) && !is_complex(x.dtype())) return {std::nullopt};
    return {cast(widen(v.dout()) * conj(Row::slope(widen(x), widen(v.out[0]))), x.dtype())};  // halves in f32
  }
}

template <class Row>
void unary_reference(const NoAttrs&, const RefArgs& r) {
  detail::visit_domain<Row::domains>(
      r.in[0].dtype(), [&]<class T>() { detail::map1<T>(r, [](T x) { return Row::value(Num<T>{x}).v; }); });
}

template <class Row>
std::vector<Case<NoAttrs>> unary_cases() {
  const double inf = std::numeric_limits<double>::infinity();
  const bool positive = Row::name == std::string_view("log") || Row::name == std::string_view("sqrt") ||
                        Row::name == std::string_view("rsqrt") || Row::name == std::string_view("log1p");
  const bool away_from_zero = Row::name == std::string_view("reciprocal");
  const Dim b = Dim::symbol("B", 1, 8);
  CaseInput small(DType::f32, {b, 5});
  small.range(positive || away_from_zero ? 0.5 : -2.9, 2.9).kinks(0.05);
  if (Row::name == std::string_view("tan")) small.range(-1.2, 1.2);  // away from the poles
  CaseInput wide(DType::f32, {6});
  wide.filled({-90, -40, -6, 6, 40, 90});
  CaseInput special(DType::f32, {12});
  special.filled({0.0, -0.0, 1e-40, -1e-40, 100, -100, inf, -inf, std::nan(""), 0.5, 1.5, 2.5});
  std::vector<Case<NoAttrs>> cases{
      {{}, {.inputs = {small}}},
      {{}, {.inputs = {wide}, .gradient = false}},
      {{}, {.inputs = {special}, .gradient = false}},
      {{}, {.inputs = {{DType::f32, {}}}, .gradient = false}},
      {{}, {.inputs = {{DType::f32, {0, 3}}}}},
  };
  if constexpr ((Row::domains & base::integers) != 0) {
    cases.push_back({{}, {.inputs = {CaseInput(DType::i32, {5}).range(-9, 9)}, .tolerance = exact}});
    cases.push_back(
        {{}, {.inputs = {CaseInput(DType::u8, {5}).range(0, 255)}, .tolerance = exact, .other_dtypes = false}});
  }
  if constexpr ((Row::domains & base::complexes) != 0) {
    cases.push_back({{}, {.inputs = {{DType::c64, {2, 3}}}, .gradient = false, .other_dtypes = false}});
  }
  for (Case<NoAttrs>& c : known_unary_values(Row::name)) cases.push_back(std::move(c));
  return cases;
}

template <class Row>
constexpr OpSpec<NoAttrs> unary_spec() {
  OpSpec<NoAttrs> s{
      .name = Row::name,
      .doc = row_formula(Row::name),
      .traits = elementwise,
      .infer = unary_infer<Row>,
      .vjp = unary_vjp<Row>,
      .reference = unary_reference<Row>,
      .cases = unary_cases<Row>,
      .failures =
          [] {
            return std::vector<Failure<NoAttrs>>{
                {{}, {{DType::boolean, {2}}}, "is not supported, cast first"},
                {{}, {}, "0 operands are given, expected 1"},
            };
          },
  };
  if (!Row::primitive) s.definition = [](const NoAttrs&, const DefineArgs& d) { return Row::value(d[0]); };
  return s;
}

template <class Row>
constinit const Op<NoAttrs> unary_op{unary_spec<Row>()};

constinit const Op<NoAttrs> conj_op{{
    .name = "conj",
    .doc = "Complex conjugate.",
    .traits = elementwise,
    .infer =
        [](const NoAttrs&, Types in) {
          require(in.size() == 1 && is_complex(in[0].dtype), "expected one complex operand");
          return in[0];
        },
    .vjp = [](const NoAttrs&, const VjpArgs& v) -> Grads { return {conj(v.dout())}; },
    .reference = [](const NoAttrs&,
                    const RefArgs& r) { detail::map1<detail::Complex>(r, [](auto z) { return std::conj(z); }); },
    .cases =
        [] {
          return std::vector<Case<NoAttrs>>{
              {{}, {.inputs = {{DType::c64, {2, 3}}}, .tolerance = exact, .gradient = false, .other_dtypes = false}}};
        },
}};

}  // namespace

#define RLX_BUILD_UNARY(Type, function) \
  Value function(Value x) { return x.builder->emit_one(unary_op<base::Type>, NoAttrs{}, {x}); }
RLX_UNARY_ROWS(RLX_BUILD_UNARY)
#undef RLX_BUILD_UNARY

Value conj(Value x) { return is_complex(x.dtype()) ? x.builder->emit_one(conj_op, NoAttrs{}, {x}) : x; }

std::span<const OpDef* const> scalar_ops() {
  static const auto all = [] {
    std::vector<const OpDef*> ops{
#define RLX_LIST_UNARY(Type, function) &unary_op<base::Type>,
        RLX_UNARY_ROWS(RLX_LIST_UNARY)
#undef RLX_LIST_UNARY
        & conj_op};
    for (const OpDef* op : binary_ops()) ops.push_back(op);
    for (const OpDef* op : compare_ops()) ops.push_back(op);
    return ops;
  }();
  return all;
}

}  // namespace rlx
