// reduce: one op for every kind and any set of axes.
#include "ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/walk.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scalar/scalar_reference.h"
#include "ops/sizes/sizes.h"
#include "ops/transpose/transpose.h"

namespace rlx {

std::span<const std::string_view> enum_names(ReduceKind) {
  static constexpr std::string_view names[] = {"sum", "mean", "max", "min", "prod"};
  return names;
}

namespace {

std::vector<bool> reduced_axes(const ReduceAttrs& a, const TensorType& t) {
  std::vector<bool> reduced(t.dims.size(), false);
  for (const Index axis : a.axes) {
    const auto i = static_cast<std::size_t>(t.axis(axis));
    require(!reduced[i], "axis {} is listed twice", axis);
    reduced[i] = true;
  }
  return reduced;
}

std::vector<Dim> reduced_dims(const TensorType& t, const std::vector<bool>& reduced, bool keep) {
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) dims.push_back(t.dims[i]);
    if (reduced[i] && keep) dims.emplace_back(1);
  }
  return dims;
}

void track_elements(const ReduceAttrs& a, InferContext& c, const std::vector<Dim>& elements) {
  if (a.kind != ReduceKind::prod && a.kind != ReduceKind::sum) return;
  Dim total = a.kind == ReduceKind::prod ? 1 : 0;
  for (const Dim& d : elements) total = a.kind == ReduceKind::prod ? total * d : total + d;
  c.track(0, {total});
}

TensorType reduce_infer(const ReduceAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  const bool real = is_arithmetic_float(x.dtype), integer = is_integer(x.dtype) && bits(x.dtype) >= 8;
  const bool complex = is_complex(x.dtype) && (a.kind == ReduceKind::sum || a.kind == ReduceKind::mean);
  require(!x.encoding && (real || complex || (integer && a.kind != ReduceKind::mean)),
          "{} of element type {} is not supported, cast first", enum_names(a.kind)[static_cast<std::size_t>(a.kind)],
          x.text());
  const std::vector<bool> reduced = reduced_axes(a, x);
  if (c.value(0) && x.rank() == 1 && a.axes.size() == 1) track_elements(a, c, *c.value(0));
  return {x.dtype, reduced_dims(x, reduced, a.keep)};
}

// Sums are accumulated with compensation (Neumaier), so that the reference is exact to one rounding for any length.
struct Sum {
  double total = 0, lost = 0;
  void add(double v) {
    const double t = total + v;
    lost += std::fabs(total) >= std::fabs(v) ? (total - t) + v : (v - t) + total;
    total = t;
  }
  double value() const { return std::isfinite(total) ? total + lost : total; }
};

template <class T>
T identity(ReduceKind kind, DType d) {
  if (kind == ReduceKind::prod) return 1;
  if (kind != ReduceKind::max && kind != ReduceKind::min) return 0;
  if constexpr (std::is_same_v<T, double>) {
    return kind == ReduceKind::max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  } else {  // the least or greatest of the element type
    const bool largest = kind == ReduceKind::min;
    return static_cast<T>(extend_integer(d, encode_integer(d, largest ? 1e300 : -1e300)));
  }
}

template <class T>
void reduce_typed(const ReduceAttrs& a, const RefArgs& r) {
  const Tensor& x = r.in[0];
  const std::vector<bool> reduced = reduced_axes(a, x.type());
  std::vector<Index> kept = x.shape();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (reduced[i]) kept[i] = 1;
  }
  const std::vector<T> in = load<T>(x);
  const auto n = static_cast<std::size_t>(r.out[0].count());
  std::vector<T> out(n, identity<T>(a.kind, x.dtype()));
  std::vector<Sum> sums(std::is_same_v<T, double> ? n : 0);
  std::size_t i = 0;
  walk<1>(x.shape(), {broadcast_strides(kept, x.shape())}, [&](const auto& at) {
    const auto o = static_cast<std::size_t>(at[0]);
    const T v = in[i++];
    switch (a.kind) {
      case ReduceKind::max:
        out[o] = maximum(Num<T>{out[o]}, Num<T>{v}).v;
        break;
      case ReduceKind::min:
        out[o] = minimum(Num<T>{out[o]}, Num<T>{v}).v;
        break;
      case ReduceKind::prod:
        out[o] = (Num<T>{out[o]} * Num<T>{v}).v;
        break;
      default:
        if constexpr (std::is_same_v<T, double>) {
          sums[o].add(v);
        } else {
          out[o] = (Num<T>{out[o]} + Num<T>{v}).v;
        }
    }
  });
  if constexpr (std::is_same_v<T, double>) {
    const double count = n == 0 ? 1 : static_cast<double>(x.count()) / static_cast<double>(n);
    for (std::size_t k = 0; k < n; ++k) {
      if (a.kind == ReduceKind::sum) out[k] = sums[k].value();
      if (a.kind == ReduceKind::mean) out[k] = sums[k].value() / count;
    }
  }
  store(r.out[0], out);
}

void complex_sums(const ReduceAttrs& a, const RefArgs& r) {
  const Tensor& x = r.in[0];
  const std::vector<bool> reduced = reduced_axes(a, x.type());
  std::vector<Index> kept = x.shape();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (reduced[i]) kept[i] = 1;
  }
  const auto in = load<detail::Complex>(x);
  const auto n = static_cast<std::size_t>(r.out[0].count());
  std::vector<Sum> real(n), imaginary(n);
  std::size_t i = 0;
  walk<1>(x.shape(), {broadcast_strides(kept, x.shape())}, [&](const auto& at) {
    real[static_cast<std::size_t>(at[0])].add(in[i].real());
    imaginary[static_cast<std::size_t>(at[0])].add(in[i++].imag());
  });
  const bool mean = a.kind == ReduceKind::mean;
  const double count = mean && n > 0 ? static_cast<double>(x.count()) / static_cast<double>(n) : 1;
  std::vector<detail::Complex> out(n);
  for (std::size_t k = 0; k < n; ++k) out[k] = {real[k].value() / count, imaginary[k].value() / count};
  store(r.out[0], out);
}

void reduce_reference(const ReduceAttrs& a, const RefArgs& r) {
  if (is_complex(r.in[0].dtype())) return complex_sums(a, r);
  detail::visit_domain<base::reals | base::integers>(r.in[0].dtype(), [&]<class T>() { reduce_typed<T>(a, r); });
}

// For every element the product of the others along the axes, right also where elements are 0: the axes are made one,
// at the end, and each element is left out in turn. Quadratic in the extent.
Value product_of_others(Value x, const std::vector<bool>& reduced) {
  std::vector<Index> order;
  std::vector<Dim> kept, gone;
  for (const bool last : {false, true}) {
    for (std::size_t i = 0; i < reduced.size(); ++i) {
      if (reduced[i] != last) continue;
      order.push_back(static_cast<Index>(i));
      (last ? gone : kept).push_back(x.type().dims[i]);
    }
  }
  const Value moved = transpose(x, order);
  const Dim n = product(gone);
  std::vector<Dim> row = kept, square = kept;
  row.insert(row.end(), {Dim(1), n});
  square.insert(square.end(), {n, n});
  Builder& b = *x.builder;
  const Value diagonal = equal(iota(b, DType::i64, {n, n}, 0), iota(b, DType::i64, {n, n}, 1));
  const Value left_out = select(diagonal, like(x, 1), broadcast(reshape(moved, row), square));
  const Value others = reshape(prod(left_out, {-1}), moved.type().dims);
  std::vector<Index> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[static_cast<std::size_t>(order[i])] = static_cast<Index>(i);
  return transpose(others, back);
}

Grads reduce_vjp(const ReduceAttrs& a, const VjpArgs& v) {
  const DType type = v.in[0].dtype();
  if (!is_float(type) && !is_complex(type)) return {std::nullopt};
  const Value x = widen(v.in[0]);  // halves in f32: counts and shares need its range
  const std::vector<bool> reduced = reduced_axes(a, x.type());
  const std::vector<Dim> full = x.type().dims, kept = reduced_dims(x.type(), reduced, true);
  const Value u = reshape(widen(v.dout()), kept);
  switch (a.kind) {
    case ReduceKind::sum:
      return {cast(broadcast(u, full), type)};
    case ReduceKind::mean:
      return {cast(broadcast(u / extent(x, a.axes), full), type)};
    case ReduceKind::max:
    case ReduceKind::min: {
      const Value hit = select(equal(x, reshape(widen(v.out[0]), kept)), like(x, 1), like(x, 0));
      return {cast(hit * (u / sum(hit, a.axes, true)), type)};
    }
    case ReduceKind::prod:
      return {cast(u * product_of_others(x, reduced), type)};
  }
  return {std::nullopt};
}

std::vector<Case<ReduceAttrs>> reduce_cases() {
  using enum ReduceKind;
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<Case<ReduceAttrs>> cases;
  const CaseInput one_to_six = CaseInput(DType::f32, {2, 3}).filled({1, 2, 3, 4, 5, 6});
  cases.push_back({{sum, {0}, false}, {.inputs = {one_to_six}, .expected = {{5, 7, 9}}}});
  cases.push_back({{mean, {1}, true}, {.inputs = {one_to_six}, .expected = {{2, 5}}}});
  cases.push_back({{prod, {0, 1}, false}, {.inputs = {one_to_six}, .expected = {{720}}}});
  cases.push_back({{max, {-1}, false}, {.inputs = {one_to_six}, .expected = {{3, 6}}}});
  cases.push_back({{min, {0}, false}, {.inputs = {one_to_six}, .expected = {{1, 2, 3}}}});
  for (const ReduceKind kind : {sum, mean, max, min, prod}) {
    const auto add = [&](std::vector<Index> axes, bool keep, std::vector<Dim> dims) {
      CaseInput x(DType::f32, std::move(dims));
      cases.push_back({{kind, std::move(axes), keep}, {.inputs = {x.ties_free()}}});
    };
    add({0, 2}, false, {2, 3, 4});
    add({2, 0, 3}, true, {2, 3, 4, 2});
    add({1, 2}, false, {2, 3, 2, 2});
    add({}, false, {2, 3});
    add({0}, false, {5});
    add({1}, true, {b, s, 3});
    add({-2}, false, {b, s, 3});
    add({0}, false, {1});
    CaseInput special(DType::f32, {4, 3});
    special.filled({1, nan, 2, inf, -inf, 1, inf, inf, inf, 0.0, -3, 0.0});
    cases.push_back({{kind, {1}, false}, {.inputs = {special}, .gradient = false}});
    CaseCommon empty{.inputs = {{DType::f32, {2, 0}}}};
    empty.expected = {kind == sum    ? std::vector<double>{0, 0}
                      : kind == prod ? std::vector<double>{1, 1}
                      : kind == max  ? std::vector<double>{-inf, -inf}
                      : kind == min  ? std::vector<double>{inf, inf}
                                     : std::vector<double>{nan, nan}};
    cases.push_back({{kind, {1}, false}, std::move(empty)});
    if (kind == mean) continue;
    cases.push_back(
        {{kind, {0}, false}, {.inputs = {CaseInput(DType::i32, {3, 2}).range(0, 100)}, .tolerance = exact}});
  }
  cases.push_back({{prod, {0}, false}, {.inputs = {CaseInput(DType::f32, {3}).filled({2, 0, 3})}, .expected = {{0}}}});
  for (const ReduceKind kind : {sum, mean}) {
    cases.push_back(
        {{kind, {0, 2}, false},
         {.inputs = {{DType::c64, {2, 3, 4}}}, .tolerance = exact, .gradient = false, .other_dtypes = false}});
  }
  cases.push_back(
      {{sum, {0}, false},
       {.inputs = {CaseInput(DType::i64, {2}).filled({16777217, 1})}, .expected = {{16777218}}, .tolerance = exact}});
  cases.push_back({{max, {0}, false},
                   {.inputs = {{DType::i8, {0}}}, .expected = {{-128}}, .tolerance = exact, .other_dtypes = false}});
  cases.push_back({{min, {0}, false},
                   {.inputs = {{DType::u8, {0}}}, .expected = {{255}}, .tolerance = exact, .other_dtypes = false}});
  return cases;
}

}  // namespace

constinit const Op<ReduceAttrs> reduce_op{{
    .name = "reduce",
    .doc = "Sum, mean, maximum, minimum or product over `axes`, of floats and (but mean) integers, which wrap; sum and "
           "mean also of c64. With `keep` the reduced axes stay with size 1. Over no elements: 0, NaN, -inf (least "
           "integer), +inf (greatest integer), 1. Max and "
           "min give NaN when "
           "an element is NaN. Gradient of max and min: shared equally by all elements that equal the result.",
    .infer = reduce_infer,
    .vjp = reduce_vjp,
    .reference = reduce_reference,
    .cases = reduce_cases,
    .failures =
        [] {
          return std::vector<Failure<ReduceAttrs>>{
              {{ReduceKind::sum, {2}}, {{DType::f32, {2, 3}}}, "axis 2 is out of range for rank 2"},
              {{ReduceKind::sum, {1, -1}}, {{DType::f32, {2, 3}}}, "axis -1 is listed twice"},
              {{ReduceKind::mean, {0}}, {{DType::i32, {2, 3}}}, "mean of element type i32[2,3] is not supported"},
              {{ReduceKind::prod, {0}}, {{DType::c64, {2, 3}}}, "prod of element type c64[2,3] is not supported"},
              {{ReduceKind::sum, {0}}, {{DType::boolean, {2, 3}}}, "sum of element type bool[2,3] is not supported"},
          };
        },
}};

Value reduce(Value x, ReduceAttrs attrs) { return x.builder->emit_one(reduce_op, std::move(attrs), {x}); }
Value sum(Value x, std::vector<Index> axes, bool keep) { return reduce(x, {ReduceKind::sum, std::move(axes), keep}); }
Value mean(Value x, std::vector<Index> axes, bool keep) { return reduce(x, {ReduceKind::mean, std::move(axes), keep}); }
Value max(Value x, std::vector<Index> axes, bool keep) { return reduce(x, {ReduceKind::max, std::move(axes), keep}); }
Value min(Value x, std::vector<Index> axes, bool keep) { return reduce(x, {ReduceKind::min, std::move(axes), keep}); }
Value prod(Value x, std::vector<Index> axes, bool keep) { return reduce(x, {ReduceKind::prod, std::move(axes), keep}); }

Value extent(Value x, const std::vector<Index>& axes) {
  Dim n = 1;
  for (const Index a : axes) n = n * x.dim(a);
  if (n.is_constant()) return like(x, static_cast<double>(n.constant()));
  return cast(reshape(sizes(*x.builder, {n}), {}), x.dtype());
}

std::span<const OpDef* const> reduce_ops() {
  static constexpr const OpDef* ops[] = {&reduce_op};
  return ops;
}

}  // namespace rlx
