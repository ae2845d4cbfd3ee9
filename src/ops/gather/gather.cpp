// gather: copies slices by their bits; a table is never converted.
#include "ops/gather/gather.h"

#include "codecs/codec.h"
#include "core/copy_elements.h"
#include "core/error.h"
#include "core/walk.h"
#include "ops/gather/indices.h"
#include "ops/scatter_add/scatter_add.h"

namespace rlx {

namespace {

// Elements of a known vector at known constant positions.
void track_elements(InferContext& c) {
  const std::vector<Dim>*table = c.value(0), *indices = c.value(1);
  if (!table || !indices || c.in[0].rank() != 1 || c.in[1].rank() > 1) return;
  const auto n = static_cast<Index>(table->size());
  std::vector<Dim> elements;
  for (const Dim& i : *indices) {
    if (!i.is_constant() || i.constant() < -n || i.constant() >= n) return;
    const Index at = i.constant();
    elements.push_back((*table)[static_cast<std::size_t>(at < 0 ? at + n : at)]);
  }
  c.track(0, std::move(elements));
}

TensorType gather_infer(const GatherAttrs& a, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &table = c.in[0], &indices = c.in[1];
  require_indices(indices);
  const Index axis = table.axis(a.axis);
  require(!table.encoding || (table.block_axis == table.rank() - 1 && axis != table.block_axis),
          "the table is {}, expected blocks along the last axis, and axis {} to be another", table.text(), axis);
  if (c.value(1)) check_known_indices(*c.value(1), axis, table.dim(axis));
  track_elements(c);
  TensorType t{table.dtype, {}};
  t.dims.insert(t.dims.end(), table.dims.begin(), table.dims.begin() + axis);
  t.dims.insert(t.dims.end(), indices.dims.begin(), indices.dims.end());
  t.dims.insert(t.dims.end(), table.dims.begin() + axis + 1, table.dims.end());
  return t;
}

void gather_reference(const GatherAttrs& a, const RefArgs& r) {
  const Tensor table = r.in[0].type().encoding ? decode(r.in[0]) : r.in[0];
  const Index axis = table.type().axis(a.axis);
  const AxisSplit s = split_at(table.shape(), axis);
  const std::vector<Index> at = positions(r.in[1], axis, s.extent);
  if (r.out[0].count() == 0) return;
  Index to = 0;
  for (Index o = 0; o < s.outer; ++o) {
    for (const Index i : at) {
      copy_elements(table, (o * s.extent + i) * s.inner, r.out[0], to, s.inner);
      to += s.inner;
    }
  }
}

Grads gather_vjp(const GatherAttrs& a, const VjpArgs& v) {
  if (v.in[0].type().encoding) return {std::nullopt, std::nullopt};
  const Index axis = v.in[0].type().axis(a.axis);
  return {scatter_add(v.dout(), v.in[1], axis, v.in[0].dim(axis)), std::nullopt};
}

std::vector<Case<GatherAttrs>> gather_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), v = Dim::symbol("V", 4, 64);
  std::vector<Case<GatherAttrs>> cases;
  const auto add = [&](Index axis, CaseInput table, CaseInput indices, std::vector<double> out) {
    cases.push_back({{axis},
                     {.inputs = {std::move(table), std::move(indices)},
                      .expected = {std::move(out)},
                      .expected_tolerance = exact}});
  };
  const CaseInput six = CaseInput(DType::f32, {3, 2}).filled({1, 2, 3, 4, 5, 6});
  add(0, six, CaseInput(DType::i64, {4}).filled({2, 0, 2, -1}), {5, 6, 1, 2, 5, 6, 5, 6});
  add(1, six, CaseInput(DType::i32, {1, 2}).filled({1, -2}), {2, 1, 4, 3, 6, 5});
  add(-1, six, CaseInput(DType::i64, {}).filled({1}), {2, 4, 6});
  add(0, six, CaseInput(DType::i32, {2, 1}).filled({-3, 1}), {1, 2, 3, 4});
  add(0, six, CaseInput(DType::i64, {0}), {});
  add(0, CaseInput(DType::f32, {5}).filled({1, 2, 3, 4, 5}), CaseInput(DType::i32, {}).filled({-5}), {1});
  add(0, CaseInput(DType::f32, {0, 3}), CaseInput(DType::i32, {0, 2}), {});
  add(0, CaseInput(DType::i64, {3}).filled({788, 5, 1e12}), CaseInput(DType::i64, {2}).filled({2, 0}), {1e12, 788});
  add(0, CaseInput(DType::i32, {2}).filled({16777217, 1}), CaseInput(DType::i64, {1}).filled({0}), {16777217});
  cases.back().common.other_dtypes = false;
  add(0, CaseInput(DType::boolean, {3}).filled({1, 0, 1}), CaseInput(DType::i64, {2}).filled({1, 2}), {0, 1});
  add(0, CaseInput(DType::i4, {3}).filled({-8, 7, 1}), CaseInput(DType::i64, {3}).filled({1, 0, 1}), {7, -8, 7});
  add(1, CaseInput(DType::u4, {2, 3}).filled({1, 2, 3, 4, 5, 15}), CaseInput(DType::i64, {1}).filled({2}), {3, 15});
  add(0, CaseInput(DType::i2, {5}).filled({-2, 1, 0, -1, 1}), CaseInput(DType::i64, {6}).filled({4, 3, 3, 0, 1, 2}),
      {1, -1, -1, -2, 1, 0});
  const auto more = [&](Index axis, CaseInput table, CaseInput indices, DimEnv dims = {}) {
    cases.push_back({{axis}, {.inputs = {std::move(table), std::move(indices)}, .dims = std::move(dims)}});
  };
  more(0, {DType::f32, {v, 5}}, CaseInput(DType::i64, {b, s}).range(-4, 3), {{"B", 2}, {"S", 3}, {"V", 7}});
  more(1, {DType::f32, {b, 4, s}}, CaseInput(DType::i32, {b, 2}).range(-4, 3), {{"B", 3}, {"S", 2}});
  more(-2, {DType::f32, {2, 7, 3}}, CaseInput(DType::i64, {11}).range(-7, 6));
  more(1, {DType::c64, {3, 5}}, CaseInput(DType::i64, {3}).range(-5, 4));
  cases.back().common.gradient = false;
  const auto encoded = [&](Index axis, std::vector<Dim> dims, CaseInput indices) {
    const CaseInput table(TensorType(DType::f32, std::move(dims), *find_codec("a8")->encoding, -1));
    cases.push_back(
        {{axis},
         {.inputs = {table, std::move(indices)}, .tolerance = exact, .gradient = false, .other_dtypes = false}});
  };
  encoded(0, {5, 64}, CaseInput(DType::i32, {7}).range(-5, 4));
  encoded(0, {5, 32}, CaseInput(DType::i64, {b, 2}).range(-5, 4));
  encoded(1, {2, 3, 32}, CaseInput(DType::i64, {4}).range(-3, 2));
  encoded(0, {5, 32}, CaseInput(DType::i64, {0}));
  return cases;
}

}  // namespace

constinit const Op<GatherAttrs> gather_op{{
    .name = "gather",
    .doc =
        "The slices of a table along `axis` that indices name: the result has sizes table[:axis] ++ indices ++ "
        "table[axis+1:]. Table of any element type, indices i32 or i64 of any shape. A negative index counts from the "
        "end; an index outside [-size, size) is an Error that names it, when known at once, else in the run and "
        "before anything is written. The slices of an encoded table, along an axis without blocks, are decoded to f32; "
        "it "
        "has no gradient. Gradient of the table: scatter_add.",
    .infer = gather_infer,
    .vjp = gather_vjp,
    .reference = gather_reference,
    .cases = gather_cases,
    .failures =
        [] {
          return std::vector<Failure<GatherAttrs>>{
              {{0}, {{DType::f32, {3}}}, "1 operands are given, expected 2"},
              {{0}, {{DType::f32, {3}}, {DType::f32, {3}}}, "indices are f32[3], expected i32 or i64"},
              {{0}, {{DType::f32, {3}}, {DType::u8, {3}}}, "indices are u8[3], expected i32 or i64"},
              {{1},
               {TensorType(DType::f32, {3, 32}, *find_codec("a8")->encoding, -1), {DType::i64, {3}}},
               "the table is f32:a8@1[3,32], expected blocks along the last axis, and axis 1 to be another"},
              {{1}, {{DType::f32, {3}}, {DType::i64, {3}}}, "axis 1 is out of range for rank 1"},
              {{0}, {{DType::f32, {}}, {DType::i64, {3}}}, "axis 0 is out of range for rank 0"},
          };
        },
}};

Value gather(Value table, Value indices, Index axis) {
  return table.builder->emit_one(gather_op, GatherAttrs{axis}, {table, indices});
}

std::span<const OpDef* const> gather_ops() {
  static constexpr const OpDef* ops[] = {&gather_op};
  return ops;
}

}  // namespace rlx
