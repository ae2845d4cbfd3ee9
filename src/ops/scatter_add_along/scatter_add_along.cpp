// scatter_add_along: duplicates accumulate in row-major order of the updates.
#include "ops/scatter_add_along/scatter_add_along.h"

#include <utility>

#include "core/error.h"
#include "core/walk.h"
#include "ir/at_most.h"
#include "ops/gather/indices.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar_reference.h"
#include "ops/take_along/take_along.h"

namespace rlx {

namespace {

TensorType scatter_add_along_infer(const ScatterAddAlongAttrs& a, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &updates = c.in[0], &indices = c.in[1];
  const bool numbers = is_arithmetic_float(updates.dtype) || is_complex(updates.dtype) ||
                       (is_integer(updates.dtype) && bits(updates.dtype) >= 8);
  require(numbers && !updates.encoding, "element type {} is not supported, cast first", updates.text());
  require_indices(indices);
  const Index rank = updates.rank();
  require(indices.rank() == rank, "indices of rank {} are given for updates of rank {}", indices.rank(), rank);
  require(std::cmp_equal(a.dims.size(), rank), "{} sizes are given for updates of rank {}", a.dims.size(), rank);
  for (const Dim& d : a.dims) require(d.bounds().hi >= 0, "size {} is negative", d.text());
  const Index axis = updates.axis(a.axis);
  const TensorType result{updates.dtype, a.dims};
  for (Index i = 0; i < rank; ++i) {
    c.equal(updates.dim(i), indices.dim(i), fmt::format("size of the updates along axis {}", i));
    if (i != axis) at_most(c, updates.dim(i), result.dim(i), fmt::format("size of the updates along axis {}", i));
  }
  if (c.value(1)) check_known_indices(*c.value(1), axis, result.dim(axis));
  return result;
}

void scatter_add_along_reference(const ScatterAddAlongAttrs& a, const RefArgs& r) {
  const auto axis = static_cast<std::size_t>(r.out[0].type().axis(a.axis));
  const std::vector<Index> at = positions(r.in[1], static_cast<Index>(axis), r.out[0].shape()[axis]);
  std::vector<Index> strides = row_major_strides(r.out[0].shape());
  const Index stride = std::exchange(strides[axis], 0);
  detail::visit_domain<base::reals | base::integers | base::complexes>(r.in[0].dtype(), [&]<class T>() {
    const std::vector<T> updates = load<T>(r.in[0]);
    std::vector<T> sums(static_cast<std::size_t>(r.out[0].count()), T(0));
    std::size_t i = 0;
    walk<1>(r.in[0].shape(), {strides}, [&](const auto& other) {
      T& sum = sums[static_cast<std::size_t>(other[0] + at[i] * stride)];
      sum = (Num<T>{sum} + Num<T>{updates[i]}).v;
      ++i;
    });
    store(r.out[0], sums);
  });
}

std::vector<Case<ScatterAddAlongAttrs>> scatter_add_along_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), n = Dim::symbol("N", 4, 16);
  std::vector<Case<ScatterAddAlongAttrs>> cases;
  const auto add = [&](ScatterAddAlongAttrs a, CaseInput x, CaseInput indices, std::vector<double> out) {
    cases.push_back(
        {std::move(a),
         {.inputs = {std::move(x), std::move(indices)}, .expected = {std::move(out)}, .expected_tolerance = exact}});
  };
  const CaseInput four = CaseInput(DType::f32, {2, 2}).filled({1, 2, 3, 4});
  add({1, {2, 3}}, four, CaseInput(DType::i64, {2, 2}).filled({2, 0, -1, 2}), {2, 0, 1, 0, 0, 7});
  add({0, {3, 2}}, four, CaseInput(DType::i32, {2, 2}).filled({0, 2, 0, -3}), {4, 4, 0, 0, 0, 2});
  add({-1, {3, 3}}, four, CaseInput(DType::i64, {2, 2}).filled({0, 0, 1, 2}), {3, 0, 0, 0, 3, 4, 0, 0, 0});
  add({0, {2}}, CaseInput(DType::f32, {0}), CaseInput(DType::i64, {0}), {0, 0});
  add({0, {2}}, CaseInput(DType::i64, {3}).filled({16777217, 1e12, 5}), CaseInput(DType::i64, {3}).filled({1, 1, 0}),
      {5, 1000016777217.0});
  add({0, {1}}, CaseInput(DType::u8, {2}).filled({200, 100}), CaseInput(DType::i64, {2}).filled({0, 0}), {44});
  const auto more = [&](ScatterAddAlongAttrs a, CaseInput x, CaseInput indices, DimEnv dims = {}) {
    cases.push_back({std::move(a), {.inputs = {std::move(x), std::move(indices)}, .dims = std::move(dims)}});
  };
  more({1, {b, n, 3}}, {DType::f32, {b, s, 3}}, CaseInput(DType::i64, {b, s, 3}).range(-4, 3), {{"S", 7}, {"N", 5}});
  more({0, {n, b}}, {DType::f32, {5, s}}, CaseInput(DType::i32, {5, s}).range(-4, 3), {{"B", 3}, {"S", 2}});
  more({0, {4}}, {DType::f32, {s}}, CaseInput(DType::i32, {b}).range(-4, 3), {{"B", 5}, {"S", 5}});
  more({-2, {2, 7, 3}}, {DType::f32, {2, 11, 3}}, CaseInput(DType::i64, {2, 11, 3}).range(-7, 6));
  more({0, {3}}, {DType::c64, {5}}, CaseInput(DType::i64, {5}).range(-3, 2));
  cases.back().common.gradient = false;
  return cases;
}

}  // namespace

constinit const Op<ScatterAddAlongAttrs> scatter_add_along_op{{
    .name = "scatter_add_along",
    .doc =
        "Zeros of sizes `dims`, to which each element of the updates is added at its own coordinate, with that along "
        "`axis` replaced by its index. Updates and indices have equal sizes, along other axes at most those of `dims`. "
        "Updates of a float or complex type or an integer of at least 8 bits, which wraps; indices i32 or i64. What "
        "meets accumulates in row-major order. A negative index counts from the end; one outside [-size, size) is an "
        "Error before anything is written. Gradient of the updates: take_along.",
    .infer = scatter_add_along_infer,
    .vjp = [](const ScatterAddAlongAttrs& a, const VjpArgs& v) -> Grads {
      return {reshape(take_along(v.dout(), v.in[1], a.axis), v.in[0].type().dims), std::nullopt};
    },
    .reference = scatter_add_along_reference,
    .cases = scatter_add_along_cases,
    .failures =
        [] {
          const TensorType x{DType::f32, {2, 3}}, i{DType::i64, {2, 3}};
          return std::vector<Failure<ScatterAddAlongAttrs>>{
              {{0, {2, 3}}, {x}, "1 operands are given, expected 2"},
              {{0, {2, 3}}, {x.with(DType::boolean), i}, "element type bool[2,3] is not supported, cast first"},
              {{0, {2, 3}}, {x, x}, "indices are f32[2,3], expected i32 or i64"},
              {{0, {2, 3}}, {x, {DType::i64, {2}}}, "indices of rank 1 are given for updates of rank 2"},
              {{0, {2}}, {x, i}, "1 sizes are given for updates of rank 2"},
              {{0, {2, -3}}, {x, i}, "size -3 is negative"},
              {{2, {2, 3}}, {x, i}, "axis 2 is out of range for rank 2"},
              {{0, {2, 3}}, {x, {DType::i64, {2, 1}}}, "size of the updates along axis 1: 3 is not 1"},
              {{0, {2, 2}}, {x, i}, "size of the updates along axis 1: 3 is more than 2"},
          };
        },
}};

Value scatter_add_along(Value updates, Value indices, Index axis, std::vector<Dim> dims) {
  return updates.builder->emit_one(scatter_add_along_op, ScatterAddAlongAttrs{axis, std::move(dims)},
                                   {updates, indices});
}

std::span<const OpDef* const> scatter_add_along_ops() {
  static constexpr const OpDef* ops[] = {&scatter_add_along_op};
  return ops;
}

}  // namespace rlx
