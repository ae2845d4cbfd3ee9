// matmul_integer: definition as a matmul of widened operands, reference in i64.
#include "ops/matmul_integer/matmul_integer.h"

#include <algorithm>

#include "core/error.h"
#include "core/walk.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/transpose/transpose.h"

namespace rlx {

namespace {

TensorType matmul_integer_infer(const MatmulAttrs& a, InferContext& c) {
  require(c.in.size() == 2 || c.in.size() == 3, "{} operands are given, expected 2 or 3", c.in.size());
  const TensorType &x = c.in[0], &y = c.in[1];
  for (std::size_t i = 0; i < 2; ++i) {
    const TensorType& t = c.in[i];
    require(!t.encoding && is_integer(t.dtype) && bits(t.dtype) == 8, "operand {} is {}, expected i8 or u8", i,
            t.text());
    require(t.rank() >= 2, "operand {} is {}, expected rank 2 or more: reshape a vector to one row or one column", i,
            t.text());
  }
  c.equal(x.dim(a.transpose_a ? -2 : -1), y.dim(a.transpose_b ? -1 : -2), "inner sizes of a matmul");
  std::vector<Dim> dims =
      c.broadcast(std::span(x.dims).first(x.dims.size() - 2), std::span(y.dims).first(y.dims.size() - 2));
  dims.push_back(x.dim(a.transpose_a ? -1 : -2));
  dims.push_back(y.dim(a.transpose_b ? -2 : -1));
  if (c.in.size() == 3) {
    const TensorType& z = c.in[2];
    require(z.dtype == x.dtype && !z.encoding && z.rank() == static_cast<Index>(dims.size()),
            "zero points are {}, expected {} of rank {}", z.text(), name(x.dtype), dims.size());
    for (std::size_t i = 0; i + 1 < dims.size(); ++i) c.equal(z.dims[i], dims[i], "sizes of the zero points");
    c.equal(z.dims.back(), 1, "last size of the zero points");
  }
  return {DType::i32, std::move(dims)};
}

Value matmul_integer_definition(const MatmulAttrs& a, const DefineArgs& d) {
  const Value x = cast(d[0], DType::i32), y = cast(d[1], DType::i32);
  if (d.in.size() == 2) return matmul(x, y, a);
  const Value rows = a.transpose_a ? transpose_last(x) : x;
  return matmul(rows - cast(d[2], DType::i32), y, {false, a.transpose_b});
}

void matmul_integer_reference(const MatmulAttrs& a, const RefArgs& r) {
  if (r.out[0].count() == 0) return;
  const std::vector<std::int64_t> x = load<std::int64_t>(r.in[0]), y = load<std::int64_t>(r.in[1]);
  const std::vector<std::int64_t> zeros = r.in.size() == 3 ? load<std::int64_t>(r.in[2]) : std::vector<std::int64_t>();
  std::vector<std::int64_t> z(static_cast<std::size_t>(r.out[0].count()));
  const auto &xs = r.in[0].shape(), &ys = r.in[1].shape(), &zs = r.out[0].shape();
  const Index m = zs[zs.size() - 2], n = zs.back(), k = xs[xs.size() - (a.transpose_a ? 2 : 1)];
  const std::vector<Index> batch(zs.begin(), zs.end() - 2);
  const auto strides = [&](const std::vector<Index>& shape) {
    std::vector<Index> s = broadcast_strides(std::vector<Index>(shape.begin(), shape.end() - 2), batch);
    for (Index& stride : s) stride *= shape[shape.size() - 2] * shape.back();
    return s;
  };
  walk<3>(batch, {strides(xs), strides(ys), strides(zs)}, [&](const auto& at) {
    for (Index i = 0; i < m; ++i) {
      const std::int64_t zero = zeros.empty() ? 0 : zeros[static_cast<std::size_t>(at[2] / n + i)];
      for (Index j = 0; j < n; ++j) {
        std::int64_t& sum = z[static_cast<std::size_t>(at[2] + i * n + j)];
        for (Index q = 0; q < k; ++q) {
          const Index p = at[0] + (a.transpose_a ? q * m + i : i * k + q);
          const Index s = at[1] + (a.transpose_b ? j * k + q : q * n + j);
          sum += (x[static_cast<std::size_t>(p)] - zero) * y[static_cast<std::size_t>(s)];
        }
      }
    }
  });
  store(r.out[0], z);
}

std::vector<Case<MatmulAttrs>> matmul_integer_cases() {
  using enum DType;
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), z = Dim::symbol("Z", 0, 8);
  std::vector<Case<MatmulAttrs>> cases;
  const auto given = [](DType d, std::vector<Dim> dims, std::vector<double> v) {
    return CaseInput(d, std::move(dims)).filled(std::move(v));
  };
  const auto add = [&](MatmulAttrs a, CaseInput x, CaseInput y, std::vector<double> out = {}) {
    CaseCommon c{.inputs = {std::move(x), std::move(y)}, .tolerance = exact, .gradient = false, .other_dtypes = false};
    if (!out.empty()) c.expected = {std::move(out)};
    c.expected_tolerance = exact;
    cases.push_back({a, std::move(c)});
  };
  // The extremes: products of 16 bits whose pairs do not fit 16 bits.
  add({}, given(u8, {1, 2}, {255, 255}), given(i8, {2, 1}, {127, 127}), {64770});
  add({}, given(u8, {1, 2}, {255, 255}), given(i8, {2, 1}, {-128, -128}), {-65280});
  add({}, given(i8, {1, 2}, {-128, -128}), given(i8, {2, 1}, {-128, -128}), {32768});
  add({}, given(u8, {1, 2}, {255, 255}), given(u8, {2, 1}, {255, 255}), {130050});
  add({}, given(i8, {1, 2}, {-128, 127}), given(u8, {2, 1}, {255, 1}), {-32513});
  add({}, given(i8, {2, 3}, {1, 2, 3, 4, 5, 6}), given(i8, {3, 2}, {1, 0, 2, 1, 0, -3}), {5, -7, 14, -13});
  for (const DType x : {i8, u8}) {
    for (const DType y : {i8, u8}) {
      const auto in = [](DType d, std::vector<Dim> dims) {
        return CaseInput(d, std::move(dims)).range(d == i8 ? -128 : 0, d == i8 ? 127 : 255);
      };
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          add({ta, tb}, in(x, ta ? std::vector<Dim>{5, 3} : std::vector<Dim>{3, 5}),
              in(y, tb ? std::vector<Dim>{7, 5} : std::vector<Dim>{5, 7}));
        }
      }
      add({}, in(x, {7, 130}), in(y, {130, 70}));
      add({}, in(x, {b, s, 9}), in(y, {9, 3}));
      add({}, in(x, {2, 1, 3, 4}), in(y, {3, 4, 2}));
      add({}, in(x, {3, z}), in(y, {z, 2}));
      for (const bool ta : {false, true}) {
        add({ta, false}, in(x, ta ? std::vector<Dim>{2, 9, s} : std::vector<Dim>{2, s, 9}), in(y, {9, 70}));
        cases.back().common.inputs.push_back(in(x, {2, s, 1}));
      }
      add({}, in(x, {1, 3, 5}), in(y, {4, 5, 6}));
      cases.back().common.inputs.push_back(in(x, {4, 3, 1}));
    }
  }
  return cases;
}

std::vector<Failure<MatmulAttrs>> matmul_integer_failures() {
  const auto i = [](std::vector<Dim> dims) { return TensorType(DType::i8, std::move(dims)); };
  return {
      {{}, {i({4, 8}), i({9, 16})}, "inner sizes of a matmul: 8 is not 9"},
      {{}, {i({8}), i({8, 16})}, "operand 0 is i8[8], expected rank 2 or more: reshape a vector to one row"},
      {{}, {i({4, 8}), {DType::i16, {8, 2}}}, "operand 1 is i16[8,2], expected i8 or u8"},
      {{}, {{DType::f32, {4, 8}}, i({8, 2})}, "operand 0 is f32[4,8], expected i8 or u8"},
      {{}, {i({2, 2})}, "1 operands are given, expected 2 or 3"},
      {{}, {i({4, 8}), i({8, 2}), {DType::u8, {4, 1}}}, "zero points are u8[4,1], expected i8 of rank 2"},
      {{}, {i({4, 8}), i({8, 2}), i({4})}, "zero points are i8[4], expected i8 of rank 2"},
      {{}, {i({4, 8}), i({8, 2}), i({4, 2})}, "last size of the zero points: 2 is not 1"},
      {{}, {i({4, 8}), i({8, 2}), i({3, 1})}, "sizes of the zero points: 3 is not 4"},
  };
}

// The sum over one axis of a matrix of codes, in i32.
Value code_sum(Value x, Index axis) { return sum(cast(x, DType::i32), {axis}, true); }

}  // namespace

constinit const Op<MatmulAttrs> matmul_integer_op{{
    .name = "matmul_integer",
    .doc =
        "Matrix product of 8-bit integers, summed in i32: c[..,i,j] = sum over k of a[..,i,k] * b[..,k,j]. Operands "
        "are i8 or u8, each its own, of rank 2 or more; transposes and batch axes as in matmul. A third operand holds "
        "zero points of rows, of a's type and [..,M,1], which are subtracted from a. Products are exact; sums wrap "
        "modulo 2^32, which takes more than 33,000 of them. K of 0 gives zeros. No gradient.",
    .infer = matmul_integer_infer,
    .definition = matmul_integer_definition,
    .vjp = [](const MatmulAttrs&, const VjpArgs& v) -> Grads { return Grads(v.in.size()); },
    .reference = matmul_integer_reference,
    .cases = matmul_integer_cases,
    .failures = matmul_integer_failures,
}};

Value matmul_integer(Value a, Value b, MatmulAttrs attrs) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  require(a.rank() > 0 && b.rank() > 0, "matmul of {} and {}: a scalar is no matrix", a.type().text(), b.type().text());
  require(!(row && attrs.transpose_a) && !(column && attrs.transpose_b),
          "matmul of {} and {}: a vector is not transposed", a.type().text(), b.type().text());
  Value c =
      a.builder->emit_one(matmul_integer_op, attrs, {row ? unsqueeze(a, {0}) : a, column ? unsqueeze(b, {1}) : b});
  std::vector<Dim> dims = c.type().dims;
  if (row) dims.erase(dims.end() - 2);
  if (column) dims.pop_back();
  return row || column ? reshape(c, dims) : c;
}

Value matmul_integer(Value a, Value b, Value row_zero, MatmulAttrs attrs) {
  return a.builder->emit_one(matmul_integer_op, attrs, {a, b, row_zero});
}

Value matmul_integer(Value a, Value b, std::optional<Value> a_zero, std::optional<Value> b_zero) {
  const auto is_zero = [](const std::optional<Value>& z) {
    if (!z) return true;
    const Node& n = z->builder->graph().nodes[z->at.node];
    if (n.op != &constant_op) return false;
    const std::vector<std::int64_t> all = load<std::int64_t>(n.attrs.as<ConstantAttrs>().data);
    return std::ranges::all_of(all, [](std::int64_t v) { return v == 0; });
  };
  Value c = matmul_integer(a, b);
  if (is_zero(a_zero) && is_zero(b_zero)) return c;
  require(a.rank() >= 2 && b.rank() >= 2, "operands are {} and {}, expected rank 2 or more beside zero points",
          a.type().text(), b.type().text());
  const auto wide = [](Value z) { return cast(z, DType::i32); };
  if (!is_zero(a_zero)) c = c - wide(*a_zero) * code_sum(b, -2);
  if (!is_zero(b_zero)) c = c - code_sum(a, -1) * wide(*b_zero);
  if (!is_zero(a_zero) && !is_zero(b_zero)) {
    const Value inner = extent(wide(a), {-1});
    c = c + inner * wide(*a_zero) * wide(*b_zero);
  }
  return c;
}

std::span<const OpDef* const> matmul_integer_ops() {
  static constexpr const OpDef* ops[] = {&matmul_integer_op};
  return ops;
}

}  // namespace rlx
