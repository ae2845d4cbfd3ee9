// pool: reductions of windows; the gradient of a maximum goes to the first element that equals it.
#include "ops/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/num.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter_add_along/scatter_add_along.h"

namespace rlx {

std::span<const std::string_view> enum_names(PoolKind) {
  static constexpr std::string_view names[] = {"max", "sum", "mean"};
  return names;
}

Windows pool_windows(const PoolAttrs& a) {
  return {std::vector<Dim>(a.kernel.begin(), a.kernel.end()), a.strides, a.dilations, a.before, a.sizes};
}

namespace {

std::size_t lead_axes(const PoolAttrs& a, const TensorType& x) { return x.dims.size() - a.kernel.size(); }

std::vector<Dim> result_dims(const PoolAttrs& a, const TensorType& x) {
  std::vector<Dim> dims(x.dims.begin(), x.dims.begin() + static_cast<Index>(lead_axes(a, x)));
  dims.insert(dims.end(), a.sizes.begin(), a.sizes.end());
  return dims;
}

void check_operand(const PoolAttrs& a, const InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  const bool integer = is_integer(x.dtype) && bits(x.dtype) >= 8 && a.kind != PoolKind::mean;
  require(!x.encoding && (is_arithmetic_float(x.dtype) || integer), "{} of windows of {} is not supported, cast first",
          enum_names(a.kind)[static_cast<std::size_t>(a.kind)], x.text());
  require(x.dims.size() >= a.kernel.size(), "x is {}, expected at least the {} windowed axes", x.text(),
          a.kernel.size());
  check_windows(pool_windows(a), a.kernel.size());
  require(a.counted.empty() || (a.kind == PoolKind::mean && a.counted.size() == a.kernel.size()),
          "{} counted paddings are given to {} over {} axes", a.counted.size(),
          enum_names(a.kind)[static_cast<std::size_t>(a.kind)], a.kernel.size());
}

double least_value(DType d) {
  if (is_float(d)) return -std::numeric_limits<double>::infinity();
  return is_signed_integer(d) ? -std::ldexp(1.0, bits(d) - 1) : 0;
}

// How many positions of each window count: [sizes..], in the element type of `x`.
Value counts(const PoolAttrs& a, Value x) {
  const Windows w = pool_windows(a);
  const std::size_t axes = a.kernel.size(), lead = lead_axes(a, x.type());
  std::optional<Value> all;
  for (std::size_t i = 0; i < axes; ++i) {
    // Ones where positions count, in an axis that begins `before` in front of x.
    const Dim& in = x.dim(static_cast<Index>(lead + i));
    const Dim span = a.counted.empty() ? in : w.before[i] + in + a.counted[i];
    const Value ones = broadcast(like(x, 1), {span});
    const Dim front = a.counted.empty() ? w.before[i] : Dim(0);
    Value n = sum(windows(ones, {{w.kernel[i]}, {w.strides[i]}, {w.dilations[i]}, {front}, {w.sizes[i]}}), {0});
    std::vector<Dim> dims(axes, Dim(1));
    dims[i] = a.sizes[i];
    n = reshape(n, std::move(dims));
    all = all ? *all * n : n;
  }
  return *all;
}

Value pool_definition(const PoolAttrs& a, const DefineArgs& d) {
  const Value x = d[0];
  const bool max_kind = a.kind == PoolKind::max;
  const Value columns = windows(x, pool_windows(a), max_kind ? least_value(x.dtype()) : 0);
  std::vector<Index> axes;
  for (std::size_t i = 0; i < a.kernel.size(); ++i) axes.push_back(static_cast<Index>(lead_axes(a, x.type()) + i));
  if (max_kind) return max(columns, axes);
  const Value total = sum(columns, axes);
  return a.kind == PoolKind::sum ? total : total / counts(a, x);
}

// [lead.., windowed..] as [lead, windowed].
Value as_planes(Value v, std::size_t lead) {
  const std::span<const Dim> dims(v.type().dims);
  return reshape(v, {product(dims.first(lead)), product(dims.subspan(lead))});
}

Grads pool_vjp(const PoolAttrs& a, const VjpArgs& v) {
  const Value x = v.in[0];
  if (!is_float(x.dtype())) return {std::nullopt};
  const TensorType& t = x.type();
  const std::size_t lead = lead_axes(a, t);
  const Value u = widen(v.dout());
  const std::vector<Dim> inner(t.dims.begin() + static_cast<Index>(lead), t.dims.end());
  if (a.kind == PoolKind::max) {
    const Value place = as_planes(pool_index(x, a), lead), none = less(place, like(place, 0));
    const Value share = select(none, like(u, 0), as_planes(u, lead));
    const Value back = scatter_add_along(share, maximum(place, like(place, 0)), 1,
                                         {product(std::span(t.dims).first(lead)), product(inner)});
    return {cast(reshape(back, t.dims), x.dtype())};
  }
  const Value share = a.kind == PoolKind::sum ? u : u / counts(a, u.dtype() == x.dtype() ? x : cast(x, u.dtype()));
  std::vector<Dim> one{product(std::span(t.dims).first(lead)), 1}, kernel{1, 1}, full = one;
  one.insert(one.end(), a.sizes.begin(), a.sizes.end());
  full.insert(full.end(), inner.begin(), inner.end());
  kernel.insert(kernel.end(), a.kernel.begin(), a.kernel.end());
  const Value ones = broadcast(like(u, 1), kernel);
  const Value back = conv_transpose(reshape(share, one), ones, ConvAttrs{a.strides, a.dilations, a.before, inner, 1});
  return {cast(reshape(back, t.dims), x.dtype())};
}

template <class T>
T start_of(const PoolAttrs& a, DType d) {
  return a.kind == PoolKind::max ? static_cast<T>(least_value(d)) : T{0};
}

template <class T>
bool beats(T x, T best) {
  return x > best || (x != x && best == best);  // NOLINT(misc-redundant-expression): NaN alone
}

template <class T>
void pool_typed(const PoolAttrs& a, const RefArgs& r) {
  const std::vector<T> x = load<T>(r.in[0]);
  const DType dtype = r.in[0].dtype();
  std::vector<T> y(static_cast<std::size_t>(r.out[0].count()), start_of<T>(a, dtype));
  const std::size_t lead = lead_axes(a, r.in[0].type()), skip = 3 - a.kernel.size();
  const WindowNumbers w = window_numbers(pool_windows(a), std::span(r.in[0].shape()).subspan(lead), r.dims);
  const Index planes = w.out_count() == 0 ? 0 : r.out[0].count() / w.out_count();
  for (Index p = 0; p < planes; ++p) {
    T* to = y.data() + p * w.out_count();
    each_tap(w, [&](Index window, Index, Index at) {
      if (at < 0) return;
      const T v = x[static_cast<std::size_t>(p * w.in_count() + at)];
      if (a.kind != PoolKind::max) {
        to[window] = (Num<T>{to[window]} + Num<T>{v}).v;
      } else if (beats(v, to[window])) {
        to[window] = v;
      }
    });
    if (a.kind != PoolKind::mean) continue;
    for (Index i = 0; i < w.out_count(); ++i) {
      const std::array<Index, 3> at{i / (w.out[1] * w.out[2]), i / w.out[2] % w.out[1], i % w.out[2]};
      Index n = 1;
      for (std::size_t k = 0; k < 3; ++k) {
        PoolCount c{0, w.in[k]};
        if (k >= skip && !a.counted.empty()) c = {-w.before[k], w.in[k] + a.counted[k - skip].evaluate(r.dims)};
        n *= c.of(w, k, at[k]);
      }
      to[i] = static_cast<T>(to[i] / static_cast<T>(n));
    }
  }
  store(r.out[0], y);
}

void pool_reference(const PoolAttrs& a, const RefArgs& r) {
  const DType d = r.in[0].dtype();
  if (is_float(d)) return pool_typed<double>(a, r);
  if (is_signed_integer(d)) return pool_typed<std::int64_t>(a, r);
  if (a.kind == PoolKind::mean) return;
  // Sums of unsigned integers wrap as signed ones do; their order does not.
  const std::vector<std::uint64_t> x = load<std::uint64_t>(r.in[0]);
  std::vector<std::uint64_t> y(static_cast<std::size_t>(r.out[0].count()), 0);
  const WindowNumbers w =
      window_numbers(pool_windows(a), std::span(r.in[0].shape()).subspan(lead_axes(a, r.in[0].type())), r.dims);
  const Index planes = w.out_count() == 0 ? 0 : r.out[0].count() / w.out_count();
  for (Index p = 0; p < planes; ++p) {
    each_tap(w, [&](Index window, Index, Index at) {
      if (at < 0) return;
      std::uint64_t& to = y[static_cast<std::size_t>(p * w.out_count() + window)];
      const std::uint64_t v = x[static_cast<std::size_t>(p * w.in_count() + at)];
      to = a.kind == PoolKind::sum ? to + v : std::max(to, v);
    });
  }
  store(r.out[0], y);
}

template <class T>
void index_typed(const PoolAttrs& a, const RefArgs& r) {
  const std::vector<T> x = load<T>(r.in[0]);
  const WindowNumbers w =
      window_numbers(pool_windows(a), std::span(r.in[0].shape()).subspan(lead_axes(a, r.in[0].type())), r.dims);
  std::vector<std::int64_t> y(static_cast<std::size_t>(r.out[0].count()), -1);
  const Index planes = w.out_count() == 0 ? 0 : r.out[0].count() / w.out_count();
  for (Index p = 0; p < planes; ++p) {
    const T* from = x.data() + p * w.in_count();
    each_tap(w, [&](Index window, Index, Index at) {
      std::int64_t& best = y[static_cast<std::size_t>(p * w.out_count() + window)];
      if (at >= 0 && (best < 0 || beats(from[at], from[best]))) best = at;
    });
  }
  store(r.out[0], y);
}

void pool_index_reference(const PoolAttrs& a, const RefArgs& r) {
  const DType d = r.in[0].dtype();
  if (is_float(d)) return index_typed<double>(a, r);
  if (is_signed_integer(d)) return index_typed<std::int64_t>(a, r);
  index_typed<std::uint64_t>(a, r);
}

std::vector<Case<PoolAttrs>> pool_cases() {
  using enum PoolKind;
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 4, 16);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<Case<PoolAttrs>> cases;
  const CaseInput five = CaseInput(DType::f32, {1, 1, 5}).filled({1, 3, 2, 5, 4});
  const auto known = [&](PoolAttrs a, CaseInput x, std::vector<double> y, bool gradient = true) {
    cases.push_back({std::move(a), {.inputs = {std::move(x)}, .expected = {std::move(y)}, .gradient = gradient}});
  };
  known({max, {2}, {2}, {1}, {0}, {2}}, five, {3, 5});
  known({max, {2}, {2}, {1}, {0}, {3}}, five, {3, 5, 4});
  known({max, {2}, {1}, {2}, {0}, {3}}, five, {2, 5, 4});
  known({sum, {3}, {2}, {1}, {1}, {3}}, five, {4, 10, 9});
  known({mean, {3}, {2}, {1}, {1}, {3}, {}}, five, {2, 10.0 / 3, 4.5});
  known({mean, {3}, {2}, {1}, {1}, {3}, {1}}, five, {4.0 / 3, 10.0 / 3, 3});
  known({mean, {2}, {2}, {1}, {0}, {3}, {0}}, five, {2, 3.5, 4});  // the end overhangs: it never counts
  known({max, {1}, {2}, {1}, {2}, {3}}, five, {-inf, 1, 2}, false);
  known({max, {2}, {1}, {1}, {0}, {3}}, CaseInput(DType::f32, {4}).filled({1, nan, 2, inf}), {nan, nan, inf}, false);
  known({max, {2}, {1}, {1}, {0}, {2}}, CaseInput(DType::f32, {3}).filled({-inf, -inf, -3}), {-inf, -3}, false);
  for (const PoolKind kind : {max, sum, mean}) {
    const auto add = [&](PoolAttrs a, std::vector<Dim> dims, DimEnv env = {}) {
      a.kind = kind;
      CaseInput x(DType::f32, std::move(dims));
      cases.push_back({std::move(a), {.inputs = {x.ties_free()}, .dims = std::move(env)}});
    };
    add({kind, {3, 2}, {2, 1}, {1, 2}, {1, 1}, {3, 5}}, {2, 3, 5, 5});
    add({kind, {2, 3, 2}, {1, 2, 2}, {1, 1, 1}, {1, 1, 0}, {3, 2, 2}}, {1, 2, 3, 4, 4});
    add({kind, {3}, {1}, {1}, {1}, {s}}, {b, s}, {{"S", 5}});
    add({kind, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {floordiv(s, 2), ceildiv(s, 2)}}, {b, 2, s, s}, {{"S", 5}});
    add({kind, {2}, {1}, {1}, {0}, {0}}, {2, 1});
    add({kind, {2}, {1}, {1}, {0}, {2}}, {0, 3});
    if (kind == mean) continue;
    cases.push_back({{kind, {2, 2}, {1, 1}, {1, 1}, {1, 0}, {4, 2}},
                     {.inputs = {CaseInput(DType::i32, {2, 3, 3}).range(0, 20)}, .tolerance = exact}});
  }
  return cases;
}

std::vector<Case<PoolAttrs>> pool_index_cases() {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<Case<PoolAttrs>> cases;
  const auto known = [&](PoolAttrs a, CaseInput x, std::vector<double> y) {
    cases.push_back(
        {std::move(a),
         {.inputs = {std::move(x)}, .expected = {std::move(y)}, .expected_tolerance = exact, .gradient = false}});
  };
  using enum PoolKind;
  known({max, {2, 2}, {1, 1}, {1, 1}, {0, 0}, {1, 2}}, CaseInput(DType::f32, {1, 2, 3}).filled({1, 5, 5, 2, 0, 6}),
        {1, 5});
  known({max, {2}, {1}, {1}, {1}, {4}}, CaseInput(DType::f32, {3}).filled({-inf, nan, nan}), {0, 1, 1, 2});
  known({max, {1}, {2}, {1}, {2}, {2}}, CaseInput(DType::f32, {2, 1}).filled({3, 4}), {-1, 0, -1, 0});
  known({max, {2}, {1}, {1}, {0}, {1}}, CaseInput(DType::i64, {2}).filled({-5, -4}), {1});
  known({max, {2}, {1}, {1}, {0}, {1}}, CaseInput(DType::u64, {2}).filled({9223372036854775808.0, 4}), {0});
  return cases;
}

std::vector<Failure<PoolAttrs>> pool_failures() {
  using enum PoolKind;
  const TensorType x(DType::f32, {2, 3});
  return {
      {{max, {2}, {1}, {1}, {0}, {2}}, {}, "0 operands are given, expected 1"},
      {{max, {2}, {1}, {1}, {0}, {2}}, {{DType::boolean, {3}}}, "max of windows of bool[3] is not supported"},
      {{max, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}, {x}, "expected at least the 3 windowed axes"},
      {{max, {0}, {1}, {1}, {0}, {2}}, {x}, "kernel size 0 of axis 0, expected 1 or more"},
      {{max, {2}, {1}, {1}, {0}, {2}, {0}}, {x}, "1 counted paddings are given to max over 1 axes"},
      {{max, {}, {}, {}, {}, {}}, {x}, "0 windowed axes, expected 1 to 3"},
  };
}

}  // namespace

constinit const Op<PoolAttrs> pool_op{{
    .name = "pool",
    .doc =
        "Maximum, sum or mean of windows over the last axes: window i covers the positions i * `strides` - `before` + "
        "k * `dilations`, k < `kernel`; `sizes` counts the windows of each axis. Padding has no part in max and sum; a "
        "window of padding alone gives -inf (least integer) and 0. Max gives NaN when an element is NaN. Mean divides "
        "by the number of elements, or, with `counted`, by the number of positions from `before` in front of the axis "
        "to `counted` behind it. Floats; max and sum also integers of at least 8 bits, which wrap. Gradient of max: "
        "to the first element of the window that is the maximum, the first NaN if there is one.",
    .infer =
        [](const PoolAttrs& a, InferContext& c) {
          check_operand(a, c);
          return TensorType{c.in[0].dtype, result_dims(a, c.in[0])};
        },
    .definition = pool_definition,
    .vjp = pool_vjp,
    .reference = pool_reference,
    .cases = pool_cases,
    .failures =
        [] {
          std::vector<Failure<PoolAttrs>> all = pool_failures();
          all.push_back({{PoolKind::mean, {2}, {1}, {1}, {0}, {2}},
                         {{DType::i32, {3}}},
                         "mean of windows of i32[3] is not supported, cast first"});
          return all;
        },
}};

constinit const Op<PoolAttrs> pool_index_op{{
    .name = "pool_index",
    .doc = "Where the maximum of each window of pool lies: the row-major position over the windowed axes, as i64. The "
           "first of equal elements, also of -inf; the first NaN when there is one; -1 for a window of padding alone. "
           "Floats and integers of at least 8 bits. No gradient.",
    .infer =
        [](const PoolAttrs& a, InferContext& c) {
          require(a.kind == PoolKind::max, "places exist of max only");
          check_operand(a, c);
          return TensorType{DType::i64, result_dims(a, c.in[0])};
        },
    .vjp = [](const PoolAttrs&, const VjpArgs&) -> Grads { return {std::nullopt}; },
    .reference = pool_index_reference,
    .cases = pool_index_cases,
    .failures = pool_failures,
}};

Value pool(Value x, PoolAttrs attrs) { return x.builder->emit_one(pool_op, std::move(attrs), {x}); }
Value pool_index(Value x, PoolAttrs attrs) { return x.builder->emit_one(pool_index_op, std::move(attrs), {x}); }

std::span<const OpDef* const> pool_ops() {
  static constexpr const OpDef* ops[] = {&pool_op, &pool_index_op};
  return ops;
}

}  // namespace rlx
