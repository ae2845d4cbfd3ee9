// Binary arithmetic and bit ops, and select.
#include <algorithm>

#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/binary_rows.h"
#include "ops/scalar/scalar.h"
#include "ops/scalar/scalar_integers.h"
#include "ops/scalar/scalar_parts.h"
#include "ops/scalar/scalar_reference.h"

namespace rlx {

namespace {

using base::complexes, base::integers, base::reals;
constexpr unsigned booleans = 8;

bool in_domain(unsigned domains, DType d) {
  if (is_arithmetic_float(d)) return (domains & reals) != 0;
  if (is_complex(d)) return (domains & complexes) != 0;
  if (d == DType::boolean) return (domains & booleans) != 0;
  return is_integer(d) && bits(d) >= 8 && (domains & integers) != 0;
}

// Sizes from sizes: what the op does to known elements of shape tensors, or nothing.
using DimFunction = bool (*)(const Dim& a, const Dim& b, Dim& out);

void track_elements(InferContext& c, DimFunction f) {
  if (!f || !c.value(0) || !c.value(1)) return;
  const std::vector<Dim>&a = *c.value(0), &b = *c.value(1);
  const std::size_t n = std::max(a.size(), b.size());
  if (std::min(a.size(), b.size()) != n && std::min(a.size(), b.size()) != 1) return;
  std::vector<Dim> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!f(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i], out[i])) return;
  }
  c.track(0, std::move(out));
}

template <class Row>
TensorType binary_infer(const NoAttrs&, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &a = c.in[0], &b = c.in[1];
  require(a.dtype == b.dtype, "element types {} and {} differ, cast one", name(a.dtype), name(b.dtype));
  require(!a.encoding && !b.encoding && in_domain(Row::domains, a.dtype),
          "element type {} is not supported, cast first", a.text());
  if (is_integer(a.dtype)) track_elements(c, Row::dims);
  return {a.dtype, c.broadcast(a.dims, b.dims)};
}

template <class Row>
Grads binary_vjp(const NoAttrs&, const VjpArgs& v) {
  Grads g = Row::grads(widen(v.in[0]), widen(v.in[1]), widen(v.out[0]), widen(v.dout()));
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (!g[i]) continue;
    g[i] = cast(sum_to(broadcast(*g[i], v.out[0].type().dims), v.in[i].type().dims), v.in[i].dtype());
  }
  return g;
}

template <class Row>
void binary_reference(const NoAttrs&, const RefArgs& r) {
  detail::visit_domain<Row::domains>(r.in[0].dtype(), [&]<class T>() {
    const int width = bits(r.in[0].dtype());
    detail::map2<T, T>(r, [&](T a, T b) { return Row::apply(Num<T>{a}, Num<T>{b}, width).v; });
  });
}

template <class Row>
std::vector<Case<NoAttrs>> binary_cases() {
  const Dim b = Dim::symbol("B", 1, 8);
  std::vector<Case<NoAttrs>> cases;
  const auto add = [&](DType d, std::vector<Dim> x, std::vector<Dim> y) {
    CaseInput left(d, std::move(x)), right(d, std::move(y));
    if (is_float(d)) {
      left.range(Row::positive ? 0.3 : -2.9, 2.9).kinks(0.05).ties_free();
      right.range(Row::positive ? 0.3 : 0.6, 3.3).kinks(0.05).ties_free();
    } else if (is_integer(d)) {
      left.range(is_signed_integer(d) ? -90 : 0, 90);
      right.range(1, 5);
    }
    CaseCommon common{.inputs = {left, right}, .gradient = is_float(d)};
    if (!is_float(d) && !is_complex(d)) common.tolerance = exact;
    if (d == DType::boolean || is_complex(d)) common.other_dtypes = false;
    cases.push_back({{}, std::move(common)});
  };
  const DType first = (Row::domains & reals) != 0 ? DType::f32 : DType::i32;
  add(first, {2, 3}, {2, 3});
  add(first, {b, 3}, {b, 1});
  add(first, {3, 1}, {1, 2});
  add(first, {2, 1, 3}, {1, 4, 1});
  add(first, {4}, {2, 3, 4});
  add(first, {2, 3, 4}, {2, 1, 4});
  add(first, {}, {5});
  add(first, {0, 2}, {1, 2});
  if ((Row::domains & integers) != 0 && first != DType::i32) add(DType::i32, {2, 3}, {3});
  if ((Row::domains & complexes) != 0) add(DType::c64, {2, 3}, {3});
  if ((Row::domains & booleans) != 0) add(DType::boolean, {2, 3}, {3});
  for (Case<NoAttrs>& c : Row::known()) cases.push_back(std::move(c));
  return cases;
}

Case<NoAttrs> known(DType d, std::vector<double> a, std::vector<double> b, std::vector<double> y) {
  const auto n = static_cast<Index>(a.size()), m = static_cast<Index>(b.size());
  return {{},
          {.inputs = {CaseInput(d, {n}).filled(std::move(a)), CaseInput(d, {m}).filled(std::move(b))},
           .expected = {std::move(y)},
           .gradient = false,
           .other_dtypes = false}};
}

template <class Row>
constinit const Op<NoAttrs> binary_op{{
    .name = Row::name,
    .doc = Row::doc,
    .traits = elementwise | (Row::commutes ? commutative : 0u),
    .infer = binary_infer<Row>,
    .vjp = (Row::domains & (reals | complexes)) != 0 ? binary_vjp<Row> : nullptr,
    .reference = binary_reference<Row>,
    .cases = binary_cases<Row>,
    .failures =
        [] {
          const DType d = (Row::domains & reals) != 0 ? DType::f32 : DType::i32;
          return std::vector<Failure<NoAttrs>>{
              {{}, {{d, {2, 3}}, {d, {2, 2}}}, "do not broadcast: 3 is not 2"},
              {{}, {{DType::i32, {2}}, {DType::i64, {2}}}, "element types i32 and i64 differ, cast one"},
              {{}, {{DType::f8e4m3, {2}}, {DType::f8e4m3, {2}}}, "is not supported, cast first"},
          };
        },
}};

struct RowBase {
  static constexpr bool commutes = false, positive = false;
  static constexpr DimFunction dims = nullptr;
  static std::vector<Case<NoAttrs>> known() { return {}; }
  static Grads grads(Value, Value, Value, Value) { return {std::nullopt, std::nullopt}; }
};

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

struct Add : RowBase {
  static constexpr std::string_view name = "add", doc = "a + b; integers wrap.";
  static constexpr unsigned domains = reals | integers | complexes;
  static constexpr bool commutes = true;
  static constexpr DimFunction dims = [](const Dim& a, const Dim& b, Dim& out) { return out = a + b, true; };
  template <class T>
  static T apply(T a, T b, int) {
    return a + b;
  }
  static Grads grads(Value, Value, Value, Value u) { return {u, u}; }
  static std::vector<Case<NoAttrs>> known() {
    return {rlx::known(DType::i32, {16777216, 2147483647}, {1, 1}, {16777217, -2147483648.0})};
  }
};

struct Sub : RowBase {
  static constexpr std::string_view name = "sub", doc = "a - b; integers wrap.";
  static constexpr unsigned domains = reals | integers | complexes;
  static constexpr DimFunction dims = [](const Dim& a, const Dim& b, Dim& out) { return out = a - b, true; };
  template <class T>
  static T apply(T a, T b, int) {
    return a - b;
  }
  static Grads grads(Value, Value, Value, Value u) { return {u, -u}; }
  static std::vector<Case<NoAttrs>> known() { return {rlx::known(DType::u8, {3, 5}, {4}, {255, 1})}; }
};

struct Mul : RowBase {
  static constexpr std::string_view name = "mul", doc = "a * b; integers wrap.";
  static constexpr unsigned domains = reals | integers | complexes;
  static constexpr bool commutes = true;
  static constexpr DimFunction dims = [](const Dim& a, const Dim& b, Dim& out) { return out = a * b, true; };
  template <class T>
  static T apply(T a, T b, int) {
    return a * b;
  }
  static Grads grads(Value a, Value b, Value, Value u) { return {u * conj(b), u * conj(a)}; }
  static std::vector<Case<NoAttrs>> known() { return {rlx::known(DType::f32, {3, -2}, {0.5, -1}, {1.5, 2})}; }
};

struct Div : RowBase {
  static constexpr std::string_view name = "div", doc =
                                                      "a / b. Integers truncate toward zero; division of an integer by "
                                                      "0 is an Error when run. Complex division is done in f64.";
  static constexpr unsigned domains = reals | integers | complexes;
  static constexpr DimFunction dims = [](const Dim& a, const Dim& b, Dim& out) {
    if (a.bounds().lo < 0 || b.bounds().lo <= 0) return false;
    return out = floordiv(a, b), true;
  };
  template <class T>
  static Num<T> apply(Num<T> a, Num<T> b, int) {
    if constexpr (std::is_integral_v<T>) {
      return detail::whole_div(a, b);
    } else {
      return a / b;
    }
  }
  static Grads grads(Value, Value b, Value y, Value u) {
    const Value da = u / conj(b);
    return {da, -(da * conj(y))};
  }
  static std::vector<Case<NoAttrs>> known() {
    return {rlx::known(DType::i32, {7, -7, 7, -2147483648.0}, {2, 2, -2, -1}, {3, -3, -3, -2147483648.0}),
            rlx::known(DType::f32, {1, -1, 0}, {0}, {inf, -inf, nan})};
  }
};

// Max and Min: half the cotangent to each operand at a tie, as PyTorch and JAX; with a NaN all of it to both, as
// PyTorch.
Grads extremum_grads(Value a, Value b, Value loses_a, Value loses_b, Value u) {
  const Value zero = like(u, 0), shared = select(equal(a, b), u * like(u, 0.5), u);
  return {select(loses_a, zero, shared), select(loses_b, zero, shared)};
}

struct Maximum : RowBase {
  static constexpr std::string_view
      name = "maximum",
      doc = "The larger of a and b; NaN when either is NaN. At a tie each gets half the cotangent.";
  static constexpr unsigned domains = reals | integers;
  static constexpr bool commutes = true;
  static constexpr DimFunction dims = [](const Dim& a, const Dim& b, Dim& out) { return out = max(a, b), true; };
  template <class T>
  static T apply(T a, T b, int) {
    return maximum(a, b);
  }
  static Grads grads(Value a, Value b, Value, Value u) { return extremum_grads(a, b, less(a, b), less(b, a), u); }
  static std::vector<Case<NoAttrs>> known() {
    return {rlx::known(DType::f32, {1, nan, 2, -inf}, {2, 1, nan, 0}, {2, nan, nan, 0})};
  }
};

struct Minimum : RowBase {
  static constexpr std::string_view
      name = "minimum",
      doc = "The smaller of a and b; NaN when either is NaN. At a tie each gets half the cotangent.";
  static constexpr unsigned domains = reals | integers;
  static constexpr bool commutes = true;
  static constexpr DimFunction dims = [](const Dim& a, const Dim& b, Dim& out) { return out = min(a, b), true; };
  template <class T>
  static T apply(T a, T b, int) {
    return minimum(a, b);
  }
  static Grads grads(Value a, Value b, Value, Value u) { return extremum_grads(a, b, less(b, a), less(a, b), u); }
  static std::vector<Case<NoAttrs>> known() {
    return {rlx::known(DType::f32, {1, nan, 2, -inf}, {2, 1, nan, 0}, {1, nan, nan, -inf})};
  }
};

struct Pow : RowBase {
  static constexpr std::string_view name = "pow",
                                    doc =
                                        "a to the power b, as C pow: real for a negative base with an integral "
                                        "exponent, else NaN. Integers multiply and wrap; a "
                                        "negative exponent gives 0 unless |a| is 1, and is an Error for base 0. "
                                        "Derivatives are 0 where b is 0 and, for b, where a is not positive.";
  static constexpr unsigned domains = reals | integers;
  static constexpr bool positive = true;
  template <class T>
  static Num<T> apply(Num<T> a, Num<T> b, int) {
    if constexpr (std::is_integral_v<T>) {
      return detail::whole_pow(a, b);
    } else {
      return pow(a, b);
    }
  }
  static Grads grads(Value a, Value b, Value y, Value u) {
    const Value zero = like(u, 0), one = like(u, 1);
    const Value da = b * pow(a, select(equal(b, zero), zero, b - one));  // no power of 0 at b = 0
    const Value safe = select(less(zero, a), a, one);
    const Value db = select(less(zero, a), y * log(safe), zero);
    return {u * da, u * db};
  }
  static std::vector<Case<NoAttrs>> known() {
    return {rlx::known(DType::f32, {2, -2, -2, 0, 2}, {3, 3, 0.5, 0, -1}, {8, -8, nan, 1, 0.5}),
            rlx::known(DType::i32, {3, -1, 2}, {4, -3, -1}, {81, -1, 0})};
  }
};

struct Fmod : RowBase {
  static constexpr std::string_view
      name = "fmod",
      doc = "Remainder of a / b with the sign of a, as C fmod. For integers b = 0 is an Error when run.";
  static constexpr unsigned domains = reals | integers;
  template <class T>
  static Num<T> apply(Num<T> a, Num<T> b, int) {
    if constexpr (std::is_integral_v<T>) {
      return detail::whole_fmod(a, b);
    } else {
      return fmod(a, b);
    }
  }
  static Grads grads(Value a, Value b, Value, Value u) { return {u, -(u * trunc(a / b))}; }
  static std::vector<Case<NoAttrs>> known() {
    return {rlx::known(DType::f32, {5, -5, 5.5}, {3, 3, -2}, {2, -2, 1.5}),
            rlx::known(DType::i32, {5, -5}, {3}, {2, -2})};
  }
};

struct Atan2 : RowBase {
  static constexpr std::string_view name = "atan2",
                                    doc = "Angle in radians of the point with ordinate a and abscissa b, in [-pi, pi].";
  static constexpr unsigned domains = reals;
  template <class T>
  static T apply(T a, T b, int) {
    return atan2(a, b);
  }
  static Grads grads(Value a, Value b, Value, Value u) {
    const Value n = u / (a * a + b * b);
    return {n * b, -(n * a)};
  }
  static std::vector<Case<NoAttrs>> known() {
    return {rlx::known(DType::f32, {1, -1, 0, 0}, {1, -1, -1, 1}, {0.7853981634, -2.356194490, 3.141592654, 0})};
  }
};

#define RLX_BITS(Type, text, documentation, expression)                                        \
  struct Type : RowBase {                                                                      \
    static constexpr std::string_view name = text, doc = documentation;                        \
    static constexpr unsigned domains = integers | booleans;                                   \
    static constexpr bool commutes = true;                                                     \
    template <class T>                                                                         \
    static Num<T> apply(Num<T> a, Num<T> b, int) {                                             \
      return {static_cast<T>(a.v expression b.v)};                                             \
    }                                                                                          \
    static std::vector<Case<NoAttrs>> known() {                                                \
      return {rlx::known(DType::i32, {12, -1}, {10, 7}, {12 expression 10, -1 expression 7})}; \
    }                                                                                          \
  };
RLX_BITS(And, "bitwise_and", "Bitwise and of integers; logical and of bools.", &)
RLX_BITS(Or, "bitwise_or", "Bitwise or of integers; logical or of bools.", |)
RLX_BITS(Xor, "bitwise_xor", "Bitwise exclusive or of integers; of bools whether they differ.", ^)
#undef RLX_BITS

struct ShiftLeft : RowBase {
  static constexpr std::string_view name = "shift_left",
                                    doc = "a times 2^b, wrapping; b is taken modulo the width of the type.";
  static constexpr unsigned domains = integers;
  template <class T>
  static Num<T> apply(Num<T> a, Num<T> b, int width) {
    return {static_cast<T>(static_cast<std::uint64_t>(a.v)
                           << (static_cast<std::uint64_t>(b.v) & static_cast<std::uint64_t>(width - 1)))};
  }
  static std::vector<Case<NoAttrs>> known() { return {rlx::known(DType::i32, {1, -3, 1}, {4, 1, 33}, {16, -6, 2})}; }
};

struct ShiftRight : RowBase {
  static constexpr std::string_view
      name = "shift_right",
      doc = "a shifted right by b bits, b modulo the width of the type; signed integers keep their sign.";
  static constexpr unsigned domains = integers;
  template <class T>
  static Num<T> apply(Num<T> a, Num<T> b, int width) {
    return {static_cast<T>(a.v >> (static_cast<std::uint64_t>(b.v) & static_cast<std::uint64_t>(width - 1)))};
  }
  static std::vector<Case<NoAttrs>> known() { return {rlx::known(DType::i32, {16, -6, -1}, {4, 1, 33}, {1, -3, -1})}; }
};

}  // namespace

#define RLX_BUILD_BINARY(Type, function) \
  Value function(Value a, Value b) { return a.builder->emit_one(binary_op<Type>, NoAttrs{}, {a, b}); }
RLX_BINARY_ROWS(RLX_BUILD_BINARY)
#undef RLX_BUILD_BINARY

std::span<const OpDef* const> binary_ops() {
  static constexpr const OpDef* ops[] = {
#define RLX_LIST_BINARY(Type, function) &binary_op<Type>,
      RLX_BINARY_ROWS(RLX_LIST_BINARY)
#undef RLX_LIST_BINARY
  };
  return ops;
}

}  // namespace rlx
