// matmul: definition as multiply and sum, gradients as matmuls, and a reference on small tiles of f64.
#include "ops/matmul/matmul.h"

#include <algorithm>
#include <complex>

#include "codecs/codec.h"
#include "core/error.h"
#include "core/num.h"
#include "core/walk.h"
#include "ops/broadcast/broadcast.h"
#include "ops/encode/encode.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/transpose/transpose.h"

namespace rlx {

namespace {

// An encoded matrix on the right, beside f32, dense or encoded along the inner axis.
TensorType encoded_infer(const MatmulAttrs& a, InferContext& c) {
  const TensorType &x = c.in[0], &y = c.in[1];
  require(y.encoding && y.dtype == DType::f32, "operand 1 is {} beside {}, expected an encoded matrix", y.text(),
          x.text());
  require(y.rank() == 2 && y.block_axis == 1, "operand 1 is {}, expected rank 2 and blocks along the last axis",
          y.text());
  require(x.dtype == DType::f32 && x.rank() >= 2 && !a.transpose_a,
          "operand 0 is {}, expected f32 of rank 2 or more, not transposed, beside an encoded one", x.text());
  require(!x.encoding || (x.block_axis == x.rank() - 1 && a.transpose_b),
          "operand 0 is {}, expected blocks along the inner axis of both operands", x.text());
  c.equal(x.dim(-1), y.dim(a.transpose_b ? 1 : 0), "inner sizes of a matmul");
  std::vector<Dim> dims = x.dims;
  dims.back() = y.dim(a.transpose_b ? 0 : 1);
  return {DType::f32, std::move(dims)};
}

TensorType matmul_infer(const MatmulAttrs& a, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &x = c.in[0], &y = c.in[1];
  if (x.encoding || y.encoding) return encoded_infer(a, c);
  for (std::size_t i = 0; i < 2; ++i) {
    const DType d = c.in[i].dtype;
    const bool numeric = is_arithmetic_float(d) || is_complex(d) || (is_integer(d) && bits(d) >= 8);
    require(numeric, "element type {} is not supported, cast first", c.in[i].text());
    require(c.in[i].rank() >= 2, "operand {} is {}, expected rank 2 or more: reshape a vector to one row or one column",
            i, c.in[i].text());
  }
  require(x.dtype == y.dtype, "element types {} and {} differ, cast one", name(x.dtype), name(y.dtype));
  c.equal(x.dim(a.transpose_a ? -2 : -1), y.dim(a.transpose_b ? -1 : -2), "inner sizes of a matmul");
  std::vector<Dim> dims =
      c.broadcast(std::span(x.dims).first(x.dims.size() - 2), std::span(y.dims).first(y.dims.size() - 2));
  dims.push_back(x.dim(a.transpose_a ? -1 : -2));
  dims.push_back(y.dim(a.transpose_b ? -2 : -1));
  return {x.dtype, std::move(dims)};
}

Value matmul_definition(const MatmulAttrs& a, const DefineArgs& d) {
  if (d[0].type().encoding) return matmul(decode(d[0]), d[1], a);
  if (d[1].type().encoding) return matmul(d[0], decode(d[1]), a);
  const Value x = a.transpose_a ? transpose_last(d[0]) : d[0], y = a.transpose_b ? transpose_last(d[1]) : d[1];
  return sum(unsqueeze(x, {x.rank()}) * unsqueeze(y, {y.rank() - 2}), {-2});
}

Grads matmul_vjp(const MatmulAttrs& a, const VjpArgs& v) {
  if (v.in[0].type().encoding) return {std::nullopt, std::nullopt};
  if (v.in[1].type().encoding) return {matmul(v.dout(), v.in[1], {false, !a.transpose_b}), std::nullopt};
  const Value x = conj(v.in[0]), y = conj(v.in[1]), u = v.dout();
  const bool ta = a.transpose_a, tb = a.transpose_b;
  const Value dx = ta ? matmul(y, u, {tb, true}) : matmul(u, y, {false, !tb});
  const Value dy = tb ? matmul(u, x, {true, ta}) : matmul(x, u, {!ta, false});
  return {sum_to(dx, v.in[0].type().dims), sum_to(dy, v.in[1].type().dims)};
}

// --- reference ---

// Sizes of one product, and the element strides of both operands as op(A)[M,K] and op(B)[K,N].
struct Product {
  Index m = 0, n = 0, k = 0;
  Index a_row = 0, a_inner = 0, b_inner = 0, b_column = 0;
};

Product product_of(const MatmulAttrs& a, const RefArgs& r) {
  const auto &x = r.in[0].shape(), &y = r.in[1].shape();
  const Index x0 = x[x.size() - 2], x1 = x.back(), y0 = y[y.size() - 2], y1 = y.back();
  Product p;
  p.m = a.transpose_a ? x1 : x0;
  p.k = a.transpose_a ? x0 : x1;
  p.n = a.transpose_b ? y0 : y1;
  p.a_row = a.transpose_a ? 1 : x1;
  p.a_inner = a.transpose_a ? x1 : 1;
  p.b_inner = a.transpose_b ? 1 : y1;
  p.b_column = a.transpose_b ? y1 : 1;
  return p;
}

// Calls f(a, b, c) with the element offsets of each product of the batch.
template <class F>
void each_product(const RefArgs& r, F f) {
  const auto batch = [](const Tensor& t) { return std::vector<Index>(t.shape().begin(), t.shape().end() - 2); };
  const std::vector<Index> x = batch(r.in[0]), y = batch(r.in[1]), z = batch(r.out[0]);
  const auto strides = [&](const std::vector<Index>& from, const Tensor& t) {
    std::vector<Index> s = broadcast_strides(from, z);
    for (Index& stride : s) stride *= t.shape()[t.shape().size() - 2] * t.shape().back();
    return s;
  };
  walk<3>(z, {strides(x, r.in[0]), strides(y, r.in[1]), strides(z, r.out[0])},
          [&](const auto& at) { f(at[0], at[1], at[2]); });
}

// The plain loop, rows of C in the middle: integers (which wrap) and complex numbers.
template <class T>
void multiply(const Product& p, const T* a, const T* b, T* c) {
  for (Index i = 0; i < p.m; ++i) {
    for (Index k = 0; k < p.k; ++k) {
      const Num<T> x{a[i * p.a_row + k * p.a_inner]};
      for (Index j = 0; j < p.n; ++j) {
        T& sum = c[i * p.n + j];
        sum = (Num<T>{sum} + x * Num<T>{b[k * p.b_inner + j * p.b_column]}).v;
      }
    }
  }
}

template <class T>
void reference_of(const MatmulAttrs& a, const RefArgs& r) {
  const std::vector<T> x = load<T>(r.in[0]), y = load<T>(r.in[1]);
  std::vector<T> z(static_cast<std::size_t>(r.out[0].count()));
  const Product p = product_of(a, r);
  each_product(r, [&](Index i, Index j, Index o) { multiply(p, x.data() + i, y.data() + j, z.data() + o); });
  store(r.out[0], z);
}

// Reals: both operands are packed into panels of four lines, [lines / 4][K][4], filled up with zeros; a tile of four by
// four sums is kept in registers. Each sum runs over k in ascending order.
constexpr Index panel = 4;
using Pair [[gnu::vector_size(16)]] = double;
struct Quad {
  Pair low, high;
};

void pack(std::vector<double>& out, const double* from, Index lines, Index line, Index k, Index inner) {
  out.assign(static_cast<std::size_t>((lines + panel - 1) / panel * panel * k), 0.0);
  if (out.empty()) return;  // no pointer arithmetic on nothing
  for (Index i = 0; i < lines; ++i) {
    double* to = out.data() + i / panel * panel * k + i % panel;
    const double* at = from + i * line;
    for (Index q = 0; q < k; ++q) to[q * panel] = at[q * inner];
  }
}

inline void accumulate(Quad& sum, double x, const Quad& y) {
  sum.low += x * y.low;
  sum.high += x * y.high;
}

inline void write(const Quad& sum, double* to) {
  for (int lane = 0; lane < 2; ++lane) {
    to[lane] = sum.low[lane];
    to[lane + 2] = sum.high[lane];
  }
}

// tile[4][4] = sum over k of a[k][row] * b[k][column].
void multiply_tile(const double* a, const double* b, Index k, double* tile) {
  Quad row0{}, row1{}, row2{}, row3{};
  for (Index q = 0; q < k; ++q, a += panel, b += panel) {
    const Quad y{{b[0], b[1]}, {b[2], b[3]}};
    accumulate(row0, a[0], y);
    accumulate(row1, a[1], y);
    accumulate(row2, a[2], y);
    accumulate(row3, a[3], y);
  }
  write(row0, tile);
  write(row1, tile + panel);
  write(row2, tile + 2 * panel);
  write(row3, tile + 3 * panel);
}

void multiply_packed(const Product& p, const double* a, const double* b, double* c) {
  double tile[panel * panel];
  for (Index j = 0; j < p.n; j += panel) {
    for (Index i = 0; i < p.m; i += panel) {
      multiply_tile(a + i * p.k, b + j * p.k, p.k, tile);
      const Index rows = std::min(panel, p.m - i), columns = std::min(panel, p.n - j);
      for (Index row = 0; row < rows; ++row) {
        std::copy_n(tile + row * panel, columns, c + (i + row) * p.n + j);
      }
    }
  }
}

void real_reference(const MatmulAttrs& a, const RefArgs& r) {
  const std::vector<double> x = load<double>(r.in[0]), y = load<double>(r.in[1]);
  std::vector<double> z(static_cast<std::size_t>(r.out[0].count())), a_panels, b_panels;
  const Product p = product_of(a, r);
  Index packed_a = -1, packed_b = -1;
  each_product(r, [&](Index i, Index j, Index o) {
    if (std::exchange(packed_a, i) != i) pack(a_panels, x.data() + i, p.m, p.a_row, p.k, p.a_inner);
    if (std::exchange(packed_b, j) != j) pack(b_panels, y.data() + j, p.n, p.b_column, p.k, p.b_inner);
    multiply_packed(p, a_panels.data(), b_panels.data(), z.data() + o);
  });
  store(r.out[0], z);
}

void matmul_reference(const MatmulAttrs& a, const RefArgs& r) {
  if (r.out[0].count() == 0) return;
  if (r.in[1].type().encoding) {
    const Tensor dense[] = {r.in[0].type().encoding ? decode(r.in[0]) : r.in[0], decode(r.in[1])};
    return real_reference(a, {dense, r.out, r.dims});
  }
  const DType d = r.in[0].dtype();
  if (is_float(d)) return real_reference(a, r);
  if (is_complex(d)) return reference_of<std::complex<double>>(a, r);
  reference_of<std::int64_t>(a, r);  // wrapped to the element type in store, whatever its sign
}

// --- cases ---

// Encoded right operands, of either block axis.
void encoded_cases(std::vector<Case<MatmulAttrs>>& cases) {
  const Encoding& a8 = *find_codec("a8")->encoding;
  const Dim s = Dim::symbol("S", 1, 16);
  const auto encoded = [&](std::vector<Dim> dims) {
    return CaseInput(TensorType(DType::f32, std::move(dims), a8, -1));
  };
  const auto add = [&](bool transposed, CaseInput x, CaseInput w) {
    // Central differences are taken in f64, which does not go beside an encoded matrix.
    cases.push_back(
        {{false, transposed}, {.inputs = {std::move(x), std::move(w)}, .gradient = false, .other_dtypes = false}});
  };
  add(true, CaseInput(DType::f32, {1, 32}), encoded({3, 32}));
  add(true, CaseInput(DType::f32, {2, s, 64}), encoded({5, 64}));
  add(false, CaseInput(DType::f32, {s, 5}), encoded({5, 64}));
  add(true, CaseInput(DType::f32, {0, 32}), encoded({3, 32}));
  add(true, CaseInput(DType::f32, {2, 0}), encoded({3, 0}));
}

// Integers, complex numbers, infinity and NaN.
void typed_cases(std::vector<Case<MatmulAttrs>>& cases) {
  const auto f = [](std::vector<Dim> dims) { return CaseInput(DType::f32, std::move(dims)); };
  const auto i = [](std::vector<Dim> dims) { return CaseInput(DType::i32, std::move(dims)).range(0, 9); };
  cases.push_back({{}, {.inputs = {i({2, 5, 3}), i({3, 7})}, .tolerance = exact}});
  cases.push_back({{true, true}, {.inputs = {i({3, 5}), i({7, 3})}, .tolerance = exact}});
  cases.push_back(
      {{},
       {.inputs = {CaseInput(DType::i8, {1, 2}).filled({100, 27}), CaseInput(DType::i8, {2, 1}).filled({2, 3})},
        .expected = {{25}},
        .tolerance = exact,
        .other_dtypes = false}});
  cases.push_back({{},
                   {.inputs = {CaseInput(DType::i64, {1, 2}).filled({4294967296.0, 1}),
                               CaseInput(DType::i64, {2, 1}).filled({1048576, 3})},
                    .expected = {{4503599627370499.0}},
                    .tolerance = exact,
                    .other_dtypes = false}});
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  cases.push_back({{},
                   {.inputs = {f({2, 2}).filled({inf, 1, 1, 1}), f({2, 2}).filled({1, 0, 1, 1})},
                    .expected = {{inf, nan, 2, 1}},
                    .gradient = false}});
  for (const bool ta : {false, true}) {
    cases.push_back(
        {{ta, !ta},
         {.inputs = {{DType::c64, {2, 3, 3}}, {DType::c64, {3, 3}}}, .gradient = false, .other_dtypes = false}});
  }
}

std::vector<Case<MatmulAttrs>> matmul_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), k = Dim::symbol("K", 0, 8);
  const auto f = [](std::vector<Dim> dims) { return CaseInput(DType::f32, std::move(dims)); };
  std::vector<Case<MatmulAttrs>> cases;
  // [[1,2,3],[4,5,6]] times [[1,0],[2,1],[0,3]], in all four storage orders.
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      CaseInput x = ta ? f({3, 2}).filled({1, 4, 2, 5, 3, 6}) : f({2, 3}).filled({1, 2, 3, 4, 5, 6});
      CaseInput y = tb ? f({2, 3}).filled({1, 2, 0, 0, 1, 3}) : f({3, 2}).filled({1, 0, 2, 1, 0, 3});
      cases.push_back({{ta, tb}, {.inputs = {x, y}, .expected = {{5, 11, 14, 23}}, .expected_tolerance = exact}});
      const auto stored = [](bool t, std::vector<Dim> dims) {
        if (t) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
        return CaseInput(DType::f32, std::move(dims));
      };
      cases.push_back({{ta, tb}, {.inputs = {stored(ta, {2, 3}), stored(tb, {3, 5})}}});
      cases.push_back({{ta, tb}, {.inputs = {stored(ta, {2, 1, 3, 7}), stored(tb, {3, 7, 2})}}});
      cases.push_back({{ta, tb}, {.inputs = {stored(ta, {b, s, 5}), stored(tb, {5, 3})}, .dims = {{"S", 3}}}});
      cases.push_back({{ta, tb}, {.inputs = {stored(ta, {2, s, k}), stored(tb, {k, s})}, .dims = {{"K", 0}}}});
    }
  }
  const auto add = [&](CaseInput x, CaseInput y) { cases.push_back({{}, {.inputs = {std::move(x), std::move(y)}}}); };
  add(f({1, 1}), f({1, 1}));
  add(f({11, 13}), f({13, 17}));
  add(f({2, 3}), f({4, 3, 2}));
  add(f({3, 2, 2}), f({1, 2, 2}));
  add(f({1, 2, 2}), f({3, 2, 2}));
  add(f({2, 1, 2, 3}), f({1, 3, 3, 2}));
  add(f({b, 2, s, 3}), f({b, 2, 3, s}));
  add(f({s, k}), f({k + 0, 2}));
  add(f({b, 2, 3}), f({s, 3, 2}));  // batches whose equality is left to run time
  add(f({0, 3}), f({3, 2}));
  add(f({2, 3}), f({3, 0}));
  add(f({0, 2, 3}), f({1, 3, 2}));
  cases.push_back({{}, {.inputs = {f({2, 0}), f({0, 3})}, .expected = {{0, 0, 0, 0, 0, 0}}}});
  typed_cases(cases);
  encoded_cases(cases);
  return cases;
}

std::vector<Failure<MatmulAttrs>> matmul_failures() {
  const auto f = [](std::vector<Dim> dims) { return TensorType(DType::f32, std::move(dims)); };
  const auto a8 = [](std::vector<Dim> dims) {
    return TensorType(DType::f32, std::move(dims), *find_codec("a8")->encoding, -1);
  };
  return {
      {{}, {f({4, 8}), f({9, 16})}, "inner sizes of a matmul: 8 is not 9"},
      {{true, false}, {f({4, 8}), f({8, 16})}, "inner sizes of a matmul: 4 is not 8"},
      {{false, true}, {f({4, 8}), f({8, 16})}, "inner sizes of a matmul: 8 is not 16"},
      {{}, {f({3}), f({3, 2})}, "operand 0 is f32[3], expected rank 2 or more: reshape a vector to one row"},
      {{}, {f({2, 3}), f({3})}, "operand 1 is f32[3], expected rank 2 or more"},
      {{}, {f({2, 4, 8}), f({3, 8, 4})}, "shapes [2] and [3] do not broadcast: 2 is not 3"},
      {{}, {f({2, 2}), TensorType(DType::f16, {2, 2})}, "element types f32 and f16 differ, cast one"},
      {{}, {TensorType(DType::boolean, {2, 2}), f({2, 2})}, "element type bool[2,2] is not supported, cast first"},
      {{}, {f({2, 2}), TensorType(DType::f8e4m3, {2, 2})}, "element type f8e4m3[2,2] is not supported, cast first"},
      {{}, {f({2, 2})}, "1 operands are given, expected 2"},
      {{false, true}, {f({2, 64}), a8({3, 96})}, "inner sizes of a matmul: 64 is not 96"},
      {{false, true}, {f({2, 64}), a8({2, 3, 64})}, "operand 1 is f32:a8@2[2,3,64], expected rank 2"},
      {{true, true},
       {f({64, 2}), a8({3, 64})},
       "operand 0 is f32[64,2], expected f32 of rank 2 or more, not transposed"},
      {{false, true}, {TensorType(DType::f16, {2, 64}), a8({3, 64})}, "operand 0 is f16[2,64], expected f32 of rank 2"},
      {{false, true}, {a8({2, 64}), f({3, 64})}, "operand 1 is f32[3,64] beside f32:a8@1[2,64], expected an encoded"},
      {{false, false},
       {a8({2, 64}), a8({64, 32})},
       "operand 0 is f32:a8@1[2,64], expected blocks along the inner axis"},
  };
}

}  // namespace

constinit const Op<MatmulAttrs> matmul_op{{
    .name = "matmul",
    .doc =
        "Matrix product: c[..,i,j] = sum over k of a[..,i,k] * b[..,k,j], for a [..,M,K] and b [..,K,N], both of "
        "rank 2 or more. With `transpose_a` the first operand is stored [..,K,M], with `transpose_b` the second "
        "[..,N,K]. Batch axes broadcast as NumPy's do; only the constant size 1 stretches. Element types are equal: "
        "f64, f32, f16, bf16 (the sum is kept wider and rounded once), integers of at least 8 bits (they wrap; cast "
        "them first where a sum needs more bits), c64. K of 0 gives zeros. The second operand may be an encoded matrix "
        "with blocks along its last axis, beside a first one in f32, which may be encoded along the inner axis: the "
        "result is the f32 product of what they decode to, and only a dense first operand has a gradient. Gradient: da "
        "= dc * b^H and db = a^H * "
        "dc, summed over the axes along which the operand was stretched.",
    .infer = matmul_infer,
    .definition = matmul_definition,
    .vjp = matmul_vjp,
    .reference = matmul_reference,
    .cases = matmul_cases,
    .failures = matmul_failures,
}};

Value matmul(Value a, Value b, MatmulAttrs attrs) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  require(a.rank() > 0 && b.rank() > 0, "matmul of {} and {}: a scalar is no matrix, use mul", a.type().text(),
          b.type().text());
  require(!(row && attrs.transpose_a) && !(column && attrs.transpose_b),
          "matmul of {} and {}: a vector is not transposed", a.type().text(), b.type().text());
  Value c = a.builder->emit_one(matmul_op, attrs, {row ? unsqueeze(a, {0}) : a, column ? unsqueeze(b, {1}) : b});
  std::vector<Dim> dims = c.type().dims;
  if (row) dims.erase(dims.end() - 2);
  if (column) dims.pop_back();
  return reshape(c, std::move(dims));
}

std::span<const OpDef* const> matmul_ops() {
  static constexpr const OpDef* ops[] = {&matmul_op};
  return ops;
}

}  // namespace rlx
