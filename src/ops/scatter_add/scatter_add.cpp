// scatter_add: duplicates accumulate in the order of the indices.
#include "ops/scatter_add/scatter_add.h"

#include "core/error.h"
#include "core/walk.h"
#include "ops/gather/gather.h"
#include "ops/gather/indices.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar_reference.h"

namespace rlx {

namespace {

// The result's axis; its rank is that of the updates with the axes of the indices made one.
Index result_axis(Index axis, Index updates_rank, Index indices_rank) {
  const Index rank = updates_rank - indices_rank + 1;
  require(rank >= 1, "updates of rank {} are given for indices of rank {}", updates_rank, indices_rank);
  require(-rank <= axis && axis < rank, "axis {} is out of range for a result of rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

TensorType scatter_add_infer(const ScatterAddAttrs& a, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &updates = c.in[0], &indices = c.in[1];
  const bool numbers = is_arithmetic_float(updates.dtype) || is_complex(updates.dtype) ||
                       (is_integer(updates.dtype) && bits(updates.dtype) >= 8);
  require(numbers && !updates.encoding, "element type {} is not supported, cast first", updates.text());
  require_indices(indices);
  require(a.dim.bounds().hi >= 0, "size {} is negative", a.dim.text());
  const Index axis = result_axis(a.axis, updates.rank(), indices.rank());
  for (Index i = 0; i < indices.rank(); ++i) {
    c.equal(updates.dim(axis + i), indices.dim(i), fmt::format("size of the updates along axis {}", axis + i));
  }
  if (c.value(1)) check_known_indices(*c.value(1), axis, a.dim);
  TensorType t{updates.dtype, {}};
  t.dims.insert(t.dims.end(), updates.dims.begin(), updates.dims.begin() + axis);
  t.dims.push_back(a.dim);
  t.dims.insert(t.dims.end(), updates.dims.begin() + axis + indices.rank(), updates.dims.end());
  return t;
}

void scatter_add_reference(const ScatterAddAttrs& a, const RefArgs& r) {
  const Index axis = result_axis(a.axis, r.in[0].rank(), r.in[1].rank());
  const AxisSplit s = split_at(r.out[0].shape(), axis);
  const std::vector<Index> at = positions(r.in[1], axis, s.extent);
  if (r.out[0].count() == 0 || r.in[0].count() == 0) return;
  detail::visit_domain<base::reals | base::integers | base::complexes>(r.in[0].dtype(), [&]<class T>() {
    const std::vector<T> updates = load<T>(r.in[0]);
    std::vector<T> sums(static_cast<std::size_t>(r.out[0].count()), T(0));
    std::size_t from = 0;
    for (Index o = 0; o < s.outer; ++o) {
      for (const Index i : at) {
        for (Index k = 0; k < s.inner; ++k) {
          T& sum = sums[static_cast<std::size_t>((o * s.extent + i) * s.inner + k)];
          sum = (Num<T>{sum} + Num<T>{updates[from++]}).v;
        }
      }
    }
    store(r.out[0], sums);
  });
}

Grads scatter_add_vjp(const ScatterAddAttrs& a, const VjpArgs& v) {
  const Index axis = result_axis(a.axis, v.in[0].rank(), v.in[1].rank());
  return {reshape(gather(v.dout(), v.in[1], axis), v.in[0].type().dims), std::nullopt};
}

std::vector<Case<ScatterAddAttrs>> scatter_add_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), v = Dim::symbol("V", 4, 64);
  std::vector<Case<ScatterAddAttrs>> cases;
  const auto add = [&](Index axis, Dim dim, CaseInput updates, CaseInput indices, std::vector<double> out) {
    cases.push_back({{axis, std::move(dim)},
                     {.inputs = {std::move(updates), std::move(indices)},
                      .expected = {std::move(out)},
                      .expected_tolerance = exact}});
  };
  const CaseInput six = CaseInput(DType::f32, {3, 2}).filled({1, 2, 3, 4, 5, 6});
  add(0, 4, six, CaseInput(DType::i64, {3}).filled({2, 0, 2}), {3, 4, 0, 0, 6, 8, 0, 0});
  add(0, 2, six, CaseInput(DType::i32, {3}).filled({-1, 0, -2}), {8, 10, 1, 2});
  add(1, 3, six, CaseInput(DType::i64, {2}).filled({1, 1}), {0, 3, 0, 0, 7, 0, 0, 11, 0});
  add(-1, 2, six, CaseInput(DType::i64, {2}).filled({1, 0}), {2, 1, 4, 3, 6, 5});
  add(0, 2, six, CaseInput(DType::i32, {3, 2}).filled({0, 1, 0, 1, 0, 1}), {9, 12});
  add(1, 2, CaseInput(DType::f32, {2}).filled({5, 7}), CaseInput(DType::i64, {}).filled({1}), {0, 5, 0, 7});
  add(0, 3, CaseInput(DType::f32, {}).filled({5}), CaseInput(DType::i64, {}).filled({-1}), {0, 0, 5});
  add(0, 3, CaseInput(DType::f32, {0, 2}), CaseInput(DType::i64, {0}), {0, 0, 0, 0, 0, 0});
  add(0, 0, CaseInput(DType::f32, {0, 2}), CaseInput(DType::i64, {0}), {});
  add(0, 2, CaseInput(DType::i64, {2}).filled({16777217, 1e12}), CaseInput(DType::i64, {2}).filled({1, 1}),
      {0, 1000016777217.0});
  add(0, 1, CaseInput(DType::u8, {2}).filled({200, 100}), CaseInput(DType::i64, {2}).filled({0, 0}), {44});
  const auto more = [&](ScatterAddAttrs a, CaseInput updates, CaseInput indices, DimEnv dims = {}) {
    cases.push_back({std::move(a), {.inputs = {std::move(updates), std::move(indices)}, .dims = std::move(dims)}});
  };
  more({0, v}, {DType::f32, {b, s, 3}}, CaseInput(DType::i64, {b, s}).range(-4, 3), {{"B", 3}, {"S", 5}, {"V", 7}});
  more({1, 7}, {DType::f32, {2, 5, 3}}, CaseInput(DType::i32, {5}).range(-7, 6));
  more({0, 4}, {DType::f32, {s}}, CaseInput(DType::i32, {b}).range(-4, 3), {{"B", 5}, {"S", 5}});
  more({0, 3}, {DType::c64, {5, 2}}, CaseInput(DType::i64, {5}).range(-3, 2));
  cases.back().common.gradient = false;
  return cases;
}

}  // namespace

constinit const Op<ScatterAddAttrs> scatter_add_op{{
    .name = "scatter_add",
    .doc =
        "Zeros with size `dim` along `axis`, to which the slices of the updates are added at the positions that the "
        "indices name. Updates have sizes result[:axis] ++ indices ++ result[axis+1:], in a float or complex type or "
        "an integer of at least 8 bits, which wraps; indices are i32 or i64. Equal indices accumulate in their "
        "order. A negative index counts from the end; one outside [-dim, dim) is an Error before anything is written. "
        "Gradient of the updates: gather.",
    .infer = scatter_add_infer,
    .vjp = scatter_add_vjp,
    .reference = scatter_add_reference,
    .cases = scatter_add_cases,
    .failures =
        [] {
          return std::vector<Failure<ScatterAddAttrs>>{
              {{0, 4}, {{DType::f32, {3}}}, "1 operands are given, expected 2"},
              {{0, 4}, {{DType::boolean, {3}}, {DType::i64, {3}}}, "element type bool[3] is not supported, cast first"},
              {{0, 4}, {{DType::i4, {3}}, {DType::i64, {3}}}, "element type i4[3] is not supported, cast first"},
              {{0, 4}, {{DType::f32, {3}}, {DType::f32, {3}}}, "indices are f32[3], expected i32 or i64"},
              {{0, -1}, {{DType::f32, {3}}, {DType::i64, {3}}}, "size -1 is negative"},
              {{1, 4}, {{DType::f32, {3}}, {DType::i64, {3}}}, "axis 1 is out of range for a result of rank 1"},
              {{0, 4}, {{DType::f32, {3}}, {DType::i64, {3, 1}}}, "updates of rank 1 are given for indices of rank 2"},
              {{0, 4}, {{DType::f32, {3}}, {DType::i64, {2}}}, "size of the updates along axis 0: 3 is not 2"},
          };
        },
}};

Value scatter_add(Value updates, Value indices, Index axis, Dim dim) {
  return updates.builder->emit_one(scatter_add_op, ScatterAddAttrs{axis, std::move(dim)}, {updates, indices});
}

std::span<const OpDef* const> scatter_add_ops() {
  static constexpr const OpDef* ops[] = {&scatter_add_op};
  return ops;
}

}  // namespace rlx
