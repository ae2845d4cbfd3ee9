// det, cofactors: determinants by elimination.
#include "ops/det/det.h"

#include "core/error.h"
#include "ops/det/elimination.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx {

namespace {

void require_squares(InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  require(is_arithmetic_float(x.dtype) && !x.encoding, "element type {} is not supported, cast first", x.text());
  require(x.rank() >= 2, "operand is {}, expected square matrices", x.text());
  c.equal(x.dim(-2), x.dim(-1), "sizes of a square matrix");
}

TensorType det_infer(const NoAttrs&, InferContext& c) {
  require_squares(c);
  return {c.in[0].dtype, {c.in[0].dims.begin(), c.in[0].dims.end() - 2}};
}

TensorType cofactors_infer(const NoAttrs&, InferContext& c) {
  require_squares(c);
  return c.in[0];
}

// By the first row, and the minors of its elements.
double expanded(const std::vector<double>& a, Index n) {
  if (n == 0) return 1;
  double sum = 0;
  for (Index k = 0; k < n; ++k) {
    std::vector<double> minor;
    for (Index i = 1; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        if (j != k) minor.push_back(a[static_cast<std::size_t>(i * n + j)]);
      }
    }
    sum += (k % 2 == 0 ? 1 : -1) * a[static_cast<std::size_t>(k)] * expanded(minor, n - 1);
  }
  return sum;
}

constexpr Index most_expanded = 7;

void det_reference(const NoAttrs&, const RefArgs& r) {
  const Index n = r.in[0].shape().back();
  const std::vector<double> x = load<double>(r.in[0]);
  std::vector<double> y;
  for (Index m = 0; m < r.out[0].count(); ++m) {
    const std::vector<double> a(x.begin() + m * n * n, x.begin() + (m + 1) * n * n);
    y.push_back(n <= most_expanded ? expanded(a, n) : eliminated(a.data(), n));
  }
  store(r.out[0], y);
}

void cofactors_reference(const NoAttrs&, const RefArgs& r) {
  const Index n = r.in[0].rank() == 0 ? 0 : r.in[0].shape().back();
  const std::vector<double> x = load<double>(r.in[0]);
  std::vector<double> y(x.size());
  for (Index at = 0; at < r.in[0].count(); ++at) {
    const Index row = at / n % n, column = at % n;
    const double* a = x.data() + at / (n * n) * n * n;
    std::vector<double> minor;
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        if (i != row && j != column) minor.push_back(a[i * n + j]);
      }
    }
    const double d = n - 1 <= most_expanded ? expanded(minor, n - 1) : eliminated(minor.data(), n - 1);
    y[static_cast<std::size_t>(at)] = (row + column) % 2 == 0 ? d : -d;
  }
  store(r.out[0], y);
}

std::vector<Case<NoAttrs>> squares(bool whole) {
  const Dim b = Dim::symbol("B", 0, 8), n = Dim::symbol("N", 0, 6);
  std::vector<Case<NoAttrs>> cases;
  const auto add = [&](CaseInput x, std::vector<double> det, std::vector<double> cofactors) {
    cases.push_back({{}, {.inputs = {std::move(x)}, .expected = {whole ? std::move(cofactors) : std::move(det)}}});
    cases.back().common.gradient = !whole;
  };
  add(CaseInput(DType::f32, {2, 2}).filled({1, 2, 3, 4}), {-2}, {4, -3, -2, 1});
  add(CaseInput(DType::f32, {2, 2}).filled({0, 2, 3, 4}), {-6}, {4, -3, -2, 0});
  add(CaseInput(DType::f32, {2, 2}).filled({1, 2, 2, 4}), {0}, {4, -2, -2, 1});
  add(CaseInput(DType::f32, {2, 2}).filled({0, 0, 0, 0}), {0}, {0, -0.0, -0.0, 0});
  add(CaseInput(DType::f32, {3, 3}).filled({2, 0, 1, 1, 3, 2, 0, 1, 1}), {3}, {1, -1, 1, 1, 2, -2, -3, -3, 6});
  add(CaseInput(DType::f32, {2, 1, 1}).filled({5, -3}), {5, -3}, {1, 1});
  add(CaseInput(DType::f32, {0, 0}), {1}, {});
  add(CaseInput(DType::f32, {0, 3, 3}), {}, {});
  cases.push_back({{}, {.inputs = {{DType::f32, {b, 2, n, n}}}, .dims = {{"B", 3}, {"N", 5}}}});
  cases.back().common.gradient = !whole;
  cases.push_back({{}, {.inputs = {{DType::f32, {2, 6, 6}}}}});
  cases.back().common.gradient = !whole;
  return cases;
}

std::vector<Failure<NoAttrs>> failures() {
  return {
      {{}, {}, "0 operands are given, expected 1"},
      {{}, {{DType::i32, {2, 2}}}, "element type i32[2,2] is not supported, cast first"},
      {{}, {{DType::f32, {2}}}, "operand is f32[2], expected square matrices"},
      {{}, {{DType::f32, {2, 3}}}, "sizes of a square matrix: 2 is not 3"},
  };
}

}  // namespace

constinit const Op<NoAttrs> det_op{{
    .name = "det",
    .doc = "Determinants of the square matrices on the last two axes, by elimination with the largest pivots, in f64. "
           "Floats of at least 16 bits; the determinant of an empty matrix is 1. Gradient: u times the cofactors, "
           "which exist for singular matrices too.",
    .infer = det_infer,
    .vjp = [](const NoAttrs&, const VjpArgs& v) -> Grads {
      const Index rank = v.dout().rank();
      return {unsqueeze(v.dout(), {rank, rank + 1}) * cofactors(v.in[0])};
    },
    .reference = det_reference,
    .cases = [] { return squares(false); },
    .failures = failures,
}};

constinit const Op<NoAttrs> cofactors_op{{
    .name = "cofactors",
    .doc = "Matrices of cofactors of the square matrices on the last two axes: at row i and column j the determinant "
           "without that row and column, negative where i + j is odd; the derivative of the determinant. In f64, from "
           "the inverse where the matrix is far from singular. Floats of at least 16 bits. No gradient.",
    .infer = cofactors_infer,
    .reference = cofactors_reference,
    .cases = [] { return squares(true); },
    .failures = failures,
}};

Value det(Value x) { return x.builder->emit_one(det_op, NoAttrs{}, {x}); }
Value cofactors(Value x) { return x.builder->emit_one(cofactors_op, NoAttrs{}, {x}); }

std::span<const OpDef* const> det_ops() {
  static constexpr const OpDef* ops[] = {&det_op, &cofactors_op};
  return ops;
}

}  // namespace rlx
