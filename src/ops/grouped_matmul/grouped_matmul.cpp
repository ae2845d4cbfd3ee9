// grouped_matmul: definition as a gather of matrices and a matmul.
#include "ops/grouped_matmul/grouped_matmul.h"

#include "codecs/codec.h"
#include "core/error.h"
#include "ops/encode/encode.h"
#include "ops/gather/gather.h"
#include "ops/gather/indices.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"

namespace rlx {

namespace {

TensorType grouped_infer(const GroupedMatmulAttrs& a, InferContext& c) {
  require(c.in.size() == 3, "{} operands are given, expected 3", c.in.size());
  const TensorType &x = c.in[0], &bank = c.in[1], &experts = c.in[2];
  require(is_arithmetic_float(x.dtype) && x.dtype == bank.dtype, "x is {} and the bank {}, expected equal float types",
          x.text(), bank.text());
  require(bank.rank() == 3, "the bank is {}, expected rank 3", bank.text());
  require_indices(experts);
  require(x.rank() == experts.rank() + 1, "x is {} beside experts {}, expected one axis more", x.text(),
          experts.text());
  require(!bank.encoding || bank.block_axis == 2, "the bank is {}, expected blocks along the last axis", bank.text());
  require(!x.encoding || (bank.encoding && a.transpose_b && x.block_axis == x.rank() - 1),
          "x is {}, expected blocks along the inner axis of both operands", x.text());
  if (c.value(2)) check_known_indices(*c.value(2), 0, bank.dims[0]);
  c.equal(x.dim(-1), bank.dim(a.transpose_b ? 2 : 1), "inner sizes of a matmul");
  std::vector<Dim> dims = experts.dims;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (x.dims[i] != Dim(1)) c.equal(x.dims[i], dims[i], "rows of x and of the experts");
  }
  dims.push_back(bank.dim(a.transpose_b ? 1 : 2));
  return {x.dtype, std::move(dims)};
}

Value grouped_definition(const GroupedMatmulAttrs& a, const DefineArgs& d) {
  const Value x = d[0].type().encoding ? decode(d[0]) : d[0];
  const Value matrices = gather(d[1], d[2], 0);  // decoded, if encoded
  const Value rows = matmul(unsqueeze(x, {x.rank() - 1}), matrices, {false, a.transpose_b});
  std::vector<Dim> dims = d[2].type().dims;
  dims.push_back(rows.type().dims.back());
  return reshape(rows, std::move(dims));
}

std::vector<Case<GroupedMatmulAttrs>> grouped_cases() {
  const Dim s = Dim::symbol("S", 1, 16);
  std::vector<Case<GroupedMatmulAttrs>> cases;
  const auto f = [](std::vector<Dim> dims) { return CaseInput(DType::f32, std::move(dims)); };
  const auto experts = [](std::vector<Dim> dims) { return CaseInput(DType::i32, std::move(dims)).range(0, 3); };
  // Rows [1,2] and [3,4] times the second and the first of the matrices [1,0;0,1] and [0,1;2,0].
  for (const bool transposed : {false, true}) {
    CaseInput bank = f({2, 2, 2});
    bank.filled(transposed ? std::vector<double>{1, 0, 0, 1, 0, 2, 1, 0} : std::vector<double>{1, 0, 0, 1, 0, 1, 2, 0});
    cases.push_back({{transposed},
                     {.inputs = {f({2, 2}).filled({1, 2, 3, 4}), bank, CaseInput(DType::i32, {2}).filled({1, -2})},
                      .expected = {{4, 1, 3, 4}}}});
  }
  cases.push_back({{}, {.inputs = {f({5, 3}), f({4, 3, 7}), experts({5})}}});
  cases.push_back({{true}, {.inputs = {f({s, 3}), f({4, 70, 3}), experts({s})}}});
  cases.push_back({{true}, {.inputs = {f({s, 1, 3}), f({4, 5, 3}), experts({s, 2})}}});
  cases.push_back({{}, {.inputs = {f({3, 2, 6}), f({4, 6, 5}), experts({3, 2})}}});
  cases.push_back({{}, {.inputs = {f({0, 3}), f({4, 3, 2}), experts({0})}}});
  cases.push_back({{}, {.inputs = {f({2, 0}), f({4, 0, 2}), experts({2})}}});
  const auto encoded = [](std::vector<Dim> dims) {
    return CaseInput(TensorType(DType::f32, std::move(dims), *find_codec("a8")->encoding, -1));
  };
  cases.push_back(
      {{true},
       {.inputs = {f({s, 1, 64}), encoded({4, 5, 64}), experts({s, 2})}, .gradient = false, .other_dtypes = false}});
  cases.push_back(
      {{false}, {.inputs = {f({s, 6}), encoded({4, 6, 64}), experts({s})}, .gradient = false, .other_dtypes = false}});
  return cases;
}

std::vector<Failure<GroupedMatmulAttrs>> grouped_failures() {
  const auto f = [](std::vector<Dim> dims) { return TensorType(DType::f32, std::move(dims)); };
  const auto i = [](std::vector<Dim> dims) { return TensorType(DType::i32, std::move(dims)); };
  return {
      {{}, {f({2, 3}), f({4, 5, 3}), i({2})}, "inner sizes of a matmul: 3 is not 5"},
      {{true}, {f({2, 3}), f({4, 3, 5}), i({2})}, "inner sizes of a matmul: 3 is not 5"},
      {{}, {f({2, 3}), f({3, 5}), i({2})}, "the bank is f32[3,5], expected rank 3"},
      {{}, {f({2, 3}), f({4, 3, 5}), i({3})}, "rows of x and of the experts: 2 is not 3"},
      {{}, {f({2, 3}), f({4, 3, 5}), i({2, 1})}, "x is f32[2,3] beside experts i32[2,1], expected one axis more"},
      {{}, {f({2, 3}), {DType::f16, {4, 3, 5}}, i({2})}, "x is f32[2,3] and the bank f16[4,3,5], expected equal"},
      {{}, {f({2, 3}), f({4, 3, 5}), f({2})}, "indices are f32[2], expected i32 or i64"},
      {{}, {f({2, 3}), f({4, 3, 5})}, "2 operands are given, expected 3"},
  };
}

}  // namespace

constinit const Op<GroupedMatmulAttrs> grouped_matmul_op{{
    .name = "grouped_matmul",
    .doc =
        "Row by row the product with one matrix of a bank: y[i,:] = x[i,:] * bank[experts[i]], for x [..,K], experts "
        "(i32 or i64) of the sizes before, and a bank [E,K,N], or [E,N,K] with `transpose_b`. Axes of x before the "
        "last may be 1 where those of experts are more. A negative index counts from the end; one outside [-E, E) "
        "is an Error. Element types are equal floats. The bank may be encoded with blocks along its last axis, and "
        "then, with `transpose_b`, x too: they stand for what they decode to. Matrices that no row names cost "
        "nothing.",
    .infer = grouped_infer,
    .definition = grouped_definition,
    .cases = grouped_cases,
    .failures = grouped_failures,
}};

Value grouped_matmul(Value x, Value bank, Value experts, GroupedMatmulAttrs attrs) {
  return x.builder->emit_one(grouped_matmul_op, attrs, {x, bank, experts});
}

std::span<const OpDef* const> grouped_matmul_ops() {
  static constexpr const OpDef* ops[] = {&grouped_matmul_op};
  return ops;
}

}  // namespace rlx
