// concat: copies runs of elements by their bits.
#include "ops/concat/concat.h"

#include "core/copy_elements.h"
#include "core/error.h"
#include "core/walk.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

constexpr std::size_t most_tracked = 64;

void track_elements(InferContext& c) {
  std::vector<Dim> elements;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    if (!c.value(i) || elements.size() + c.value(i)->size() > most_tracked) return;
    elements.insert(elements.end(), c.value(i)->begin(), c.value(i)->end());
  }
  c.track(0, std::move(elements));
}

TensorType concat_infer(const ConcatAttrs& a, InferContext& c) {
  require(!c.in.empty(), "no operands are given, expected at least 1");
  const TensorType& first = c.in[0];
  const Index axis = first.axis(a.axis);
  Dim total = 0;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    const TensorType& t = c.in[i];
    require(!t.encoding, "an encoded tensor {} is not joined", t.text());
    require(t.dtype == first.dtype, "element types {} and {} differ, cast one", name(first.dtype), name(t.dtype));
    require(t.rank() == first.rank(), "operand {} has rank {}, operand 0 has rank {}", i, t.rank(), first.rank());
    for (Index k = 0; k < t.rank(); ++k) {
      if (k != axis) c.equal(t.dim(k), first.dim(k), fmt::format("size of operand {} along axis {}", i, k));
    }
    total = total + t.dim(axis);
  }
  if (first.rank() == 1) track_elements(c);
  return first.with(axis, total);
}

void concat_reference(const ConcatAttrs& a, const RefArgs& r) {
  if (r.out[0].count() == 0) return;
  const Index axis = r.out[0].type().axis(a.axis);
  const AxisSplit to = split_at(r.out[0].shape(), axis);
  Index column = 0;
  for (const Tensor& part : r.in) {
    const Index run = split_at(part.shape(), axis).extent * to.inner;
    for (Index o = 0; o < to.outer; ++o) {
      copy_elements(part, o * run, r.out[0], o * to.extent * to.inner + column, run);
    }
    column += run;
  }
}

Grads concat_vjp(const ConcatAttrs& a, const VjpArgs& v) {
  const auto axis = static_cast<std::size_t>(v.in[0].type().axis(a.axis));
  std::vector<Dim> starts(v.in[0].type().dims.size(), Dim(0));
  Grads grads;
  for (const Value& part : v.in) {
    grads.emplace_back(slice(v.dout(), {starts, part.type().dims, {}}));
    starts[axis] = starts[axis] + part.type().dims[axis];
  }
  return grads;
}

std::vector<Case<ConcatAttrs>> concat_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 0, 16), t = Dim::symbol("T", 0, 16);
  std::vector<Case<ConcatAttrs>> cases;
  const auto add = [&](Index axis, std::vector<CaseInput> in, std::vector<double> out) {
    cases.push_back({{axis}, {.inputs = std::move(in), .expected = {std::move(out)}, .expected_tolerance = exact}});
  };
  const CaseInput a = CaseInput(DType::f32, {2, 1}).filled({1, 2});
  const CaseInput c = CaseInput(DType::f32, {2, 2}).filled({3, 4, 5, 6});
  add(1, {a, c}, {1, 3, 4, 2, 5, 6});
  add(-1, {c, a}, {3, 4, 1, 5, 6, 2});
  add(0, {c, CaseInput(DType::f32, {1, 2}).filled({7, 8})}, {3, 4, 5, 6, 7, 8});
  add(0, {c}, {3, 4, 5, 6});
  add(0, {CaseInput(DType::f32, {0, 2}), c, CaseInput(DType::f32, {0, 2})}, {3, 4, 5, 6});
  add(0, {CaseInput(DType::i4, {3}).filled({1, -8, 7}), CaseInput(DType::i4, {2}).filled({-1, 3})}, {1, -8, 7, -1, 3});
  add(0, {CaseInput(DType::u4, {1}).filled({15}), CaseInput(DType::u4, {2}).filled({8, 3})}, {15, 8, 3});
  add(0, {CaseInput(DType::boolean, {2}).filled({1, 0}), CaseInput(DType::boolean, {1}).filled({1})}, {1, 0, 1});
  add(0, {CaseInput(DType::i32, {1}).filled({16777217}), CaseInput(DType::i32, {1}).filled({-5})}, {16777217, -5});
  cases.back().common.other_dtypes = false;
  for (const DType d : {DType::i64, DType::u64, DType::f64}) {
    const CaseInput nine = CaseInput(d, {10}).filled({9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
    std::vector<double> out;
    for (int i = 0; i < 30; ++i) out.push_back(9 - i % 10);
    add(0, {nine, nine, nine}, out);
  }
  cases.push_back({{1}, {.inputs = {{DType::f32, {b, s, 3}}, {DType::f32, {b, t, 3}}, {DType::f32, {b, 1, 3}}}}});
  cases.push_back({{0}, {.inputs = {{DType::f32, {2, s}}, {DType::f32, {3, t}}}, .dims = {{"S", 5}, {"T", 5}}}});
  cases.push_back({{1}, {.inputs = {{DType::f32, {2, s}}, {DType::f32, {2, t}}}, .dims = {{"S", 0}, {"T", 7}}}});
  cases.push_back({{-2}, {.inputs = {{DType::f32, {2, 5, 3}}, {DType::f32, {2, 7, 3}}}}});
  cases.push_back({{0}, {.inputs = {{DType::c64, {3, 2}}, {DType::c64, {1, 2}}}, .gradient = false}});
  cases.push_back({{0}, {.inputs = {{DType::f8e4m3, {3}}, {DType::f8e4m3, {2}}}, .gradient = false}});
  return cases;
}

}  // namespace

constinit const Op<ConcatAttrs> concat_op{{
    .name = "concat",
    .doc =
        "The operands, at least one, one behind the other along `axis`. They have one element type, which may be any, "
        "one rank, and equal sizes along the other axes; nothing is broadcast. Gradient: each operand's part of the "
        "cotangent.",
    .infer = concat_infer,
    .vjp = concat_vjp,
    .reference = concat_reference,
    .cases = concat_cases,
    .failures =
        [] {
          return std::vector<Failure<ConcatAttrs>>{
              {{0}, {}, "no operands are given, expected at least 1"},
              {{0}, {{DType::f32, {2}}, {DType::f64, {2}}}, "element types f32 and f64 differ, cast one"},
              {{1}, {{DType::f32, {2, 3}}, {DType::f32, {3, 3}}}, "size of operand 1 along axis 0: 3 is not 2"},
              {{1}, {{DType::f32, {2, 3, 4}}, {DType::f32, {1, 1, 4}}}, "size of operand 1 along axis 0: 1 is not 2"},
              {{0}, {{DType::f32, {2, 3}}, {DType::f32, {3}}}, "operand 1 has rank 1, operand 0 has rank 2"},
              {{2}, {{DType::f32, {2, 3}}}, "axis 2 is out of range for rank 2"},
              {{0}, {{DType::f32, {}}, {DType::f32, {}}}, "axis 0 is out of range for rank 0"},
          };
        },
}};

Value concat(std::span<const Value> parts, Index axis) {
  require(!parts.empty(), "concat of no operands, expected at least 1");
  if (parts.size() > 1) return parts[0].builder->emit(concat_op, Attrs(ConcatAttrs{axis}), parts)[0];
  parts[0].type().axis(axis);
  return parts[0];
}

std::span<const OpDef* const> concat_ops() {
  static constexpr const OpDef* ops[] = {&concat_op};
  return ops;
}

}  // namespace rlx
