// conv_transpose: definition by a matmul whose products are added up where the windows lie.
#include "ops/conv_transpose/conv_transpose.h"

#include "core/error.h"
#include "core/num.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"

namespace rlx {

namespace {

// The windows over the result: there are as many as `x` has positions.
Windows result_windows(const ConvAttrs& a, const TensorType& x, const TensorType& w) {
  Windows n = conv_windows(a, w);
  n.sizes.assign(x.dims.begin() + 2, x.dims.end());
  return n;
}

std::vector<Dim> result_dims(const ConvAttrs& a, const TensorType& x, const TensorType& w) {
  std::vector<Dim> dims{x.dims[0], w.dims[1] * a.groups};
  dims.insert(dims.end(), a.sizes.begin(), a.sizes.end());
  return dims;
}

TensorType conv_transpose_infer(const ConvAttrs& a, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &x = c.in[0], &w = c.in[1];
  const bool numeric = is_arithmetic_float(x.dtype) || (is_integer(x.dtype) && bits(x.dtype) >= 8);
  require(!x.encoding && numeric, "x is {}, expected floats or integers of at least 8 bits", x.text());
  require(!w.encoding && w.dtype == x.dtype, "w is {}, expected element type {} as x", w.text(), name(x.dtype));
  require(x.rank() >= 3 && x.rank() <= 5, "x is {}, expected rank 3 to 5", x.text());
  require(w.rank() == x.rank(), "w is {}, expected the rank {} of x", w.text(), x.rank());
  require(a.groups >= 1, "{} groups, expected 1 or more", a.groups);
  check_windows(conv_windows(a, w), x.dims.size() - 2);
  c.equal(w.dims[0], x.dims[1], "channels of w and of x");
  c.equal(mod(x.dims[1], a.groups), 0, "channels of x modulo groups");
  return {x.dtype, result_dims(a, x, w)};
}

Value conv_transpose_definition(const ConvAttrs& a, const DefineArgs& d) {
  const TensorType &x = d[0].type(), &w = d[1].type();
  const Dim each = floordiv(x.dims[1], a.groups), taps = product(std::span(w.dims).subspan(1));
  const Dim count = product(std::span(x.dims).subspan(2));
  const Value products =
      matmul(reshape(d[1], {a.groups, each, taps}), reshape(d[0], {x.dims[0], a.groups, each, count}), {true, false});
  std::vector<Dim> columns{x.dims[0], w.dims[1] * a.groups};
  columns.insert(columns.end(), w.dims.begin() + 2, w.dims.end());
  columns.insert(columns.end(), x.dims.begin() + 2, x.dims.end());
  return fold(reshape(products, std::move(columns)), result_windows(a, x, w), a.sizes);
}

Grads conv_transpose_vjp(const ConvAttrs& a, const VjpArgs& v) {
  ConvAttrs back = a;
  back.sizes = result_windows(a, v.in[0].type(), v.in[1].type()).sizes;
  return {conv(v.dout(), v.in[1], back), conv_weight_gradient(back, v.dout(), v.in[0], v.in[1].type())};
}

template <class T>
void reference_of(const ConvAttrs& a, const RefArgs& r) {
  const std::vector<T> x = load<T>(r.in[0]), w = load<T>(r.in[1]);
  std::vector<T> y(static_cast<std::size_t>(r.out[0].count()), T{0});
  const std::vector<Index>&xs = r.in[0].shape(), &ws = r.in[1].shape();
  const WindowNumbers n =
      window_numbers(result_windows(a, r.in[0].type(), r.in[1].type()), std::span(r.out[0].shape()).subspan(2), r.dims);
  const Index each = xs[1] / a.groups, results = ws[1];
  for (Index batch = 0; batch < xs[0]; ++batch) {
    for (Index c = 0; c < xs[1]; ++c) {
      for (Index o = 0; o < results; ++o) {
        const T* from = x.data() + (batch * xs[1] + c) * n.out_count();
        const T* by = w.data() + (c * results + o) * n.taps();
        T* to = y.data() + (batch * results * a.groups + c / each * results + o) * n.in_count();
        each_tap(n, [&](Index window, Index tap, Index at) {
          if (at >= 0) to[at] = (Num<T>{to[at]} + Num<T>{by[tap]} * Num<T>{from[window]}).v;
        });
      }
    }
  }
  store(r.out[0], y);
}

void conv_transpose_reference(const ConvAttrs& a, const RefArgs& r) {
  if (is_float(r.in[0].dtype())) return reference_of<double>(a, r);
  reference_of<std::int64_t>(a, r);
}

std::vector<Case<ConvAttrs>> conv_transpose_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 2, 16);
  const auto f = [](std::vector<Dim> dims) { return CaseInput(DType::f32, std::move(dims)); };
  std::vector<Case<ConvAttrs>> cases;
  const auto add = [&](ConvAttrs a, CaseInput x, CaseInput w, std::vector<double> y = {}, DimEnv dims = {}) {
    CaseCommon common{.inputs = {std::move(x), std::move(w)}, .dims = std::move(dims)};
    if (!y.empty()) common.expected = {std::move(y)};
    cases.push_back({std::move(a), std::move(common)});
  };
  add({{2}, {1}, {0}, {5}, 1}, f({1, 1, 2}).filled({1, 2}), f({1, 1, 3}).filled({1, 10, 100}), {1, 10, 102, 20, 200});
  add({{1}, {1}, {1}, {2}, 1}, f({1, 1, 2}).filled({1, 2}), f({1, 1, 3}).filled({1, 10, 100}), {12, 120});
  add({{3}, {2}, {1}, {7}, 1}, f({1, 1, 2}).filled({1, 2}), f({1, 1, 2}).filled({1, 10}), {0, 10, 2, 0, 20, 0, 0});
  add({{1, 1}, {1, 1}, {1, 1}, {4, 5}, 1}, f({2, 3, 4, 5}), f({3, 2, 3, 3}));
  add({{2, 3}, {1, 2}, {1, 0}, {6, 9}, 2}, f({1, 4, 3, 3}), f({4, 3, 2, 2}));
  add({{2, 2}, {1, 1}, {1, 1}, {4, 4}, 3}, f({2, 3, 2, 2}), f({3, 1, 4, 4}));
  add({{2, 1, 1}, {1, 2, 1}, {0, 1, 0}, {4, 3, 4}, 1}, f({1, 2, 2, 3, 3}), f({2, 2, 2, 2, 2}));
  add({{2, 2}, {1, 1}, {0, 0}, {2 * s, 2 * s}, 1}, f({b, 2, s, s}), f({2, 3, 2, 2}), {}, {{"S", 3}});
  add({{1}, {1}, {0}, {3}, 1}, f({0, 2, 2}), f({2, 3, 2}));
  return cases;
}

}  // namespace

constinit const Op<ConvAttrs> conv_transpose_op{{
    .name = "conv_transpose",
    .doc = "The adjoint of conv in its first operand: x [N, C, in..] and w [C, Co/groups, kernel..] give y [N, Co, "
           "sizes..], where each product x[n,c,i..] * w[c,o,k..] is added at the position i*stride - before + "
           "k*dilation of channel g*Co/groups + o; g = c / (C/groups) is the group of c. Products outside of `sizes` "
           "are dropped, positions that none reaches are 0. Floats, and integers of at least 8 bits, which wrap; no "
           "bias. Gradients: conv of the cotangent, and the product of x with its windows.",
    .infer = conv_transpose_infer,
    .definition = conv_transpose_definition,
    .vjp = conv_transpose_vjp,
    .reference = conv_transpose_reference,
    .cases = conv_transpose_cases,
    .failures =
        [] {
          const auto f = [](std::vector<Dim> dims) { return TensorType(DType::f32, std::move(dims)); };
          const ConvAttrs plain{{1}, {1}, {0}, {2}, 1};
          return std::vector<Failure<ConvAttrs>>{
              {plain, {f({1, 2, 3})}, "1 operands are given, expected 2"},
              {plain, {f({1, 2, 3}), f({3, 2, 2})}, "channels of w and of x: 3 is not 2"},
              {{{1}, {1}, {0}, {2}, 2}, {f({1, 3, 3}), f({3, 2, 2})}, "channels of x modulo groups: 1 is not 0"},
              {{{1}, {1}, {-1}, {2}, 1}, {f({1, 2, 3}), f({2, 2, 2})}, "padding -1 of axis 0, expected 0 or more"},
          };
        },
}};

Value conv_transpose(Value x, Value w, ConvAttrs attrs) {
  return x.builder->emit_one(conv_transpose_op, std::move(attrs), {x, w});
}

std::span<const OpDef* const> conv_transpose_ops() {
  static constexpr const OpDef* ops[] = {&conv_transpose_op};
  return ops;
}

}  // namespace rlx
