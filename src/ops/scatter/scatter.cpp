// scatter: what meets is taken in row-major order of the updates.
#include "ops/scatter/scatter.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/walk.h"
#include "ir/at_most.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/indices.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scalar/scalar_reference.h"
#include "ops/sizes/sizes.h"
#include "ops/slice/slice.h"
#include "ops/take_along/take_along.h"

namespace rlx {

std::span<const std::string_view> enum_names(ScatterKind) {
  static constexpr std::array<std::string_view, 5> names{"none", "add", "mul", "max", "min"};
  return names;
}

namespace {

TensorType scatter_infer(const ScatterAttrs& a, InferContext& c) {
  require(c.in.size() == 3, "{} operands are given, expected 3", c.in.size());
  const TensorType &x = c.in[0], &updates = c.in[1], &indices = c.in[2];
  const bool numbers = is_arithmetic_float(x.dtype) || (is_integer(x.dtype) && bits(x.dtype) >= 8);
  require(!x.encoding && (numbers || a.kind == ScatterKind::none), "element type {} is not supported, cast first",
          x.text());
  require(updates.dtype == x.dtype && !updates.encoding, "updates are {} for elements {}", updates.text(),
          name(x.dtype));
  require_indices(indices);
  require(updates.rank() == x.rank() && indices.rank() == x.rank(),
          "updates of rank {} and indices of rank {} are given for rank {}", updates.rank(), indices.rank(), x.rank());
  const Index axis = x.axis(a.axis);
  for (Index i = 0; i < x.rank(); ++i) {
    c.equal(updates.dim(i), indices.dim(i), fmt::format("size of the updates along axis {}", i));
    if (i != axis) at_most(c, updates.dim(i), x.dim(i), fmt::format("size of the updates along axis {}", i));
  }
  if (c.value(2)) check_known_indices(*c.value(2), axis, x.dim(axis));
  return x;
}

template <class T>
T joined(ScatterKind kind, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool extreme = kind == ScatterKind::max || kind == ScatterKind::min;
    if (extreme && (std::isnan(a) || std::isnan(b))) return std::numeric_limits<T>::quiet_NaN();
  }
  switch (kind) {
    case ScatterKind::add:
      return (Num<T>{a} + Num<T>{b}).v;
    case ScatterKind::mul:
      return (Num<T>{a} * Num<T>{b}).v;
    case ScatterKind::max:
      return b > a ? b : a;
    case ScatterKind::min:
      return b < a ? b : a;
    case ScatterKind::none:
      break;
  }
  return b;
}

void scatter_reference(const ScatterAttrs& a, const RefArgs& r) {
  const auto axis = static_cast<std::size_t>(r.out[0].type().axis(a.axis));
  const std::vector<Index> at = positions(r.in[2], static_cast<Index>(axis), r.out[0].shape()[axis]);
  std::vector<Index> strides = row_major_strides(r.out[0].shape());
  const Index stride = std::exchange(strides[axis], 0);
  std::size_t i = 0;
  if (a.kind == ScatterKind::none) {
    for (Index k = 0; k < r.out[0].count(); ++k) r.out[0].set_code(k, r.in[0].code(k));
    walk<1>(r.in[1].shape(), {strides}, [&](const auto& other) {
      r.out[0].set_code(other[0] + at[i] * stride, r.in[1].code(static_cast<Index>(i)));
      ++i;
    });
    return;
  }
  detail::visit_domain<base::reals | base::integers>(r.in[0].dtype(), [&]<class T>() {
    const std::vector<T> updates = load<T>(r.in[1]);
    std::vector<T> y = load<T>(r.in[0]);
    walk<1>(r.in[1].shape(), {strides}, [&](const auto& other) {
      T& to = y[static_cast<std::size_t>(other[0] + at[i] * stride)];
      to = joined(a.kind, to, updates[i]);
      ++i;
    });
    store(r.out[0], y);
  });
}

Grads scatter_vjp(const ScatterAttrs& a, const VjpArgs& v) {
  require(a.kind == ScatterKind::none || a.kind == ScatterKind::add, "scatter of kind {} has no gradient",
          enum_names(a.kind)[static_cast<std::size_t>(a.kind)]);
  const Value u = v.dout(), taken = take_along(u, v.in[2], a.axis);
  if (a.kind == ScatterKind::add) return {u, taken, std::nullopt};
  return {scatter(u, broadcast(like(u, 0), v.in[1].type().dims), v.in[2], a.axis), taken, std::nullopt};
}

using Kind = ScatterKind;

std::vector<Case<ScatterAttrs>> scatter_cases() {
  const double nan = std::nan("");
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), n = Dim::symbol("N", 4, 16);
  std::vector<Case<ScatterAttrs>> cases;
  const auto add = [&](Kind kind, Index axis, CaseInput x, CaseInput updates, CaseInput indices,
                       std::vector<double> out) {
    cases.push_back({{kind, axis},
                     {.inputs = {std::move(x), std::move(updates), std::move(indices)},
                      .expected = {std::move(out)},
                      .expected_tolerance = exact,
                      .gradient = kind == Kind::add}});
  };
  const CaseInput five = CaseInput(DType::f32, {1, 5}).filled({1, 2, 3, 4, 5});
  const CaseInput two = CaseInput(DType::f32, {1, 2}).filled({1.5, 2.5}),
                  same = CaseInput(DType::i64, {1, 2}).filled({1, -4});
  add(Kind::none, 1, five, two, CaseInput(DType::i64, {1, 2}).filled({1, 3}), {1, 1.5, 3, 2.5, 5});
  add(Kind::none, 1, five, two, same, {1, 2.5, 3, 4, 5});
  add(Kind::add, 1, five, two, same, {1, 6, 3, 4, 5});
  add(Kind::mul, 1, five, two, same, {1, 7.5, 3, 4, 5});
  add(Kind::max, -1, five, two, same, {1, 2.5, 3, 4, 5});
  add(Kind::min, -1, five, two, same, {1, 1.5, 3, 4, 5});
  const CaseInput three = CaseInput(DType::f32, {3}).filled({nan, 1, 2});
  add(Kind::max, 0, three, CaseInput(DType::f32, {2}).filled({5, nan}), CaseInput(DType::i32, {2}).filled({0, 1}),
      {nan, nan, 2});
  add(Kind::none, 0, three, CaseInput(DType::f32, {1}).filled({5}), CaseInput(DType::i32, {1}).filled({0}), {5, 1, 2});
  add(Kind::none, 0, CaseInput(DType::f32, {3, 2}).filled({1, 2, 3, 4, 5, 6}),
      CaseInput(DType::f32, {1, 1}).filled({9}), CaseInput(DType::i64, {1, 1}).filled({2}), {1, 2, 3, 4, 9, 6});
  add(Kind::none, 0, CaseInput(DType::i4, {3}).filled({1, -2, 3}), CaseInput(DType::i4, {2}).filled({-8, 7}),
      CaseInput(DType::i64, {2}).filled({2, 0}), {7, -2, -8});
  add(Kind::none, 0, CaseInput(DType::boolean, {2}).filled({1, 1}), CaseInput(DType::boolean, {1}).filled({0}),
      CaseInput(DType::i64, {1}).filled({1}), {1, 0});
  add(Kind::add, 0, CaseInput(DType::i64, {1}).filled({16777216}), CaseInput(DType::i64, {2}).filled({1, 1e12}),
      CaseInput(DType::i64, {2}).filled({0, 0}), {1000016777217.0});
  add(Kind::mul, 0, CaseInput(DType::u8, {1}).filled({20}), CaseInput(DType::u8, {1}).filled({20}),
      CaseInput(DType::i64, {1}).filled({0}), {144});
  add(Kind::min, 0, CaseInput(DType::i8, {1}).filled({3}), CaseInput(DType::i8, {1}).filled({-100}),
      CaseInput(DType::i64, {1}).filled({0}), {-100});
  add(Kind::none, 0, CaseInput(DType::f32, {0}), CaseInput(DType::f32, {0}), CaseInput(DType::i64, {0}), {});
  add(Kind::add, 0, CaseInput(DType::f32, {2}).filled({1, 2}), CaseInput(DType::f32, {0}), CaseInput(DType::i64, {0}),
      {1, 2});
  for (const Kind kind : {Kind::none, Kind::add, Kind::mul, Kind::max, Kind::min}) {
    const bool smooth = kind == Kind::add;
    cases.push_back(
        {{kind, 1},
         {.inputs = {{DType::f32, {b, n, 3}}, {DType::f32, {b, s, 2}}, CaseInput(DType::i64, {b, s, 2}).range(-4, 3)},
          .dims = {{"B", 3}, {"S", 7}, {"N", 5}},
          .gradient = smooth}});
    cases.push_back(
        {{kind, 0},
         {.inputs = {{DType::f32, {n, 5}}, {DType::f32, {s, 5}}, CaseInput(DType::i32, {s, 5}).range(-4, 3)},
          .dims = {{"S", 11}, {"N", 4}},
          .gradient = smooth}});
  }
  cases.push_back(
      {{Kind::none, 1},
       {.inputs = {
            {DType::f32, {2, 4}}, {DType::f32, {2, 3}}, CaseInput(DType::i64, {2, 3}).filled({2, 0, -1, 1, -4, 2})}}});
  return cases;
}

std::vector<Failure<ScatterAttrs>> scatter_failures() {
  const TensorType x{DType::f32, {2, 3}}, i{DType::i64, {2, 3}};
  return {
      {{}, {x, x}, "2 operands are given, expected 3"},
      {{Kind::add, 0},
       {x.with(DType::boolean), x.with(DType::boolean), i},
       "element type bool[2,3] is not supported, cast first"},
      {{}, {x, x.with(DType::f64), i}, "updates are f64[2,3] for elements f32"},
      {{}, {x, x, x}, "indices are f32[2,3], expected i32 or i64"},
      {{}, {x, x, {DType::i64, {2}}}, "updates of rank 2 and indices of rank 1 are given for rank 2"},
      {{Kind::none, 2}, {x, x, i}, "axis 2 is out of range for rank 2"},
      {{}, {x, x, {DType::i64, {2, 1}}}, "size of the updates along axis 1: 3 is not 1"},
      {{}, {{DType::f32, {2, 2}}, x, i}, "size of the updates along axis 1: 3 is more than 2"},
  };
}

}  // namespace

constinit const Op<ScatterAttrs> scatter_op{{
    .name = "scatter",
    .doc = "The first operand, into which each element of the updates goes at its own coordinate, with that along "
           "`axis` replaced by its index. `kind` says what happens there: none replaces the element, add, mul, max and "
           "min join it with the update; of what meets, the later in row-major order comes later. Updates and indices "
           "have equal sizes, along other axes at most those of the operand. Any element type with none, else floats "
           "and integers of at least 8 bits, which wrap; max and min propagate NaN. Indices i32 or i64, a negative one "
           "counts from the end; one outside [-size, size) is an Error before anything is written. Gradient with none "
           "and add: of the updates take_along; the operand's is the cotangent, with none 0 where an update went. The "
           "other kinds have none.",
    .infer = scatter_infer,
    .vjp = scatter_vjp,
    .reference = scatter_reference,
    .cases = scatter_cases,
    .failures = scatter_failures,
}};

Value scatter(Value x, Value updates, Value indices, Index axis, ScatterKind kind) {
  return x.builder->emit_one(scatter_op, ScatterAttrs{kind, axis}, {x, updates, indices});
}

Value joined_positions(Value indices, std::span<const Dim> dims) {
  Builder& b = *indices.builder;
  const std::vector<Dim> heads(indices.type().dims.begin(), indices.type().dims.end() - 1);
  Value position = broadcast(constant(b, DType::i64, 0), heads);
  std::optional<Value> inside;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto k = static_cast<Index>(i);
    const Value column = cast(reshape(slice(indices, -1, k, k + 1), heads), DType::i64);
    const Value extent = reshape(sizes(b, {dims[i]}), {}), zero = like(column, 0);
    const Value ok = bitwise_and(less(column, extent), less_equal(-extent, column));
    position = position * extent + select(less(column, zero), column + extent, column);
    inside = inside ? bitwise_and(*inside, ok) : ok;
  }
  if (!inside) return position;
  const Value nowhere = constant(b, Tensor::of<std::int64_t>(DType::i64, {}, {Index{1} << 62}));
  return select(*inside, position, nowhere);
}

Value scatter_nd(Value x, Value updates, Value indices, ScatterKind kind) {
  require_indices(indices.type());
  require(indices.rank() >= 1, "indices are {}, expected rank 1 or more", indices.type().text());
  const Dim& depth = indices.dim(-1);
  require(depth.is_constant() && depth.constant() >= 0 && depth.constant() <= x.rank(),
          "the last size of the indices is {}, expected 0 to {}", depth.text(), x.rank());
  const auto k = static_cast<std::size_t>(depth.constant());
  const std::span<const Dim> dims(x.type().dims), heads(indices.type().dims.data(), indices.type().dims.size() - 1);
  std::vector<Dim> expected(heads.begin(), heads.end());
  expected.insert(expected.end(), dims.begin() + static_cast<std::ptrdiff_t>(k), dims.end());
  require(updates.type().dims.size() == expected.size(), "updates are {}, expected rank {}", updates.type().text(),
          expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    x.builder->check(updates.type().dims[i], expected[i], "sizes of the updates");
  }
  const Dim joined = product(dims.first(k)), slice_size = product(dims.subspan(k)), count = product(heads);
  const Value at = reshape(joined_positions(indices, dims.first(k)), {count, 1});
  const Value y = scatter(reshape(x, {joined, slice_size}), reshape(updates, {count, slice_size}),
                          broadcast(at, {count, slice_size}), 0, kind);
  return reshape(y, x.type().dims);
}

std::span<const OpDef* const> scatter_ops() {
  static constexpr const OpDef* ops[] = {&scatter_op};
  return ops;
}

}  // namespace rlx
