// conv: definition by windows and a matmul, gradients by conv_transpose and a product with the windows.
#include "ops/conv/conv.h"

#include <algorithm>

#include "core/error.h"
#include "core/num.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"

namespace rlx {

namespace {

std::span<const Dim> spatial(const TensorType& t) { return std::span(t.dims).subspan(2); }

std::vector<Dim> joined(std::vector<Dim> head, std::span<const Dim> tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

TensorType conv_infer(const ConvAttrs& a, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &x = c.in[0], &w = c.in[1];
  const bool numeric = is_arithmetic_float(x.dtype) || (is_integer(x.dtype) && bits(x.dtype) >= 8);
  require(!x.encoding && numeric, "x is {}, expected floats or integers of at least 8 bits", x.text());
  require(!w.encoding && w.dtype == x.dtype, "w is {}, expected element type {} as x", w.text(), name(x.dtype));
  require(x.rank() >= 3 && x.rank() <= 5, "x is {}, expected rank 3 to 5", x.text());
  require(w.rank() == x.rank(), "w is {}, expected the rank {} of x", w.text(), x.rank());
  require(a.groups >= 1, "{} groups, expected 1 or more", a.groups);
  check_windows(conv_windows(a, w), x.dims.size() - 2);
  c.equal(w.dims[1] * a.groups, x.dims[1], "channels of w times groups, and of x");
  c.equal(mod(w.dims[0], a.groups), 0, "channels of the result modulo groups");
  return {x.dtype, joined({x.dims[0], w.dims[0]}, a.sizes)};
}

Value conv_definition(const ConvAttrs& a, const DefineArgs& d) {
  const TensorType &x = d[0].type(), &w = d[1].type();
  const Dim inner = product(std::span(w.dims).subspan(1)), windows_count = product(a.sizes);
  const Value columns = windows(d[0], conv_windows(a, w));
  Value y = d[0];
  if (a.groups == 1) {
    y = matmul(reshape(d[1], {w.dims[0], inner}), reshape(columns, {x.dims[0], inner, windows_count}));
  } else {
    y = matmul(reshape(d[1], {a.groups, floordiv(w.dims[0], a.groups), inner}),
               reshape(columns, {x.dims[0], a.groups, inner, windows_count}));
  }
  return reshape(y, joined({x.dims[0], w.dims[0]}, a.sizes));
}

Grads conv_vjp(const ConvAttrs& a, const VjpArgs& v) {
  const TensorType& x = v.in[0].type();
  const std::vector<Dim> sizes(x.dims.begin() + 2, x.dims.end());
  const Value dx = conv_transpose(v.dout(), v.in[1], ConvAttrs{a.strides, a.dilations, a.before, sizes, a.groups});
  return {dx, conv_weight_gradient(a, v.in[0], v.dout(), v.in[1].type())};
}

template <class T>
void reference_of(const ConvAttrs& a, const RefArgs& r) {
  const std::vector<T> x = load<T>(r.in[0]), w = load<T>(r.in[1]);
  std::vector<T> y(static_cast<std::size_t>(r.out[0].count()), T{0});
  const std::vector<Index>&xs = r.in[0].shape(), &ws = r.in[1].shape();
  const WindowNumbers n = window_numbers(conv_windows(a, r.in[1].type()), std::span(xs).subspan(2), r.dims);
  const Index channels = ws[1], results = ws[0], each = results / a.groups;
  for (Index batch = 0; batch < xs[0]; ++batch) {
    for (Index o = 0; o < results; ++o) {
      for (Index c = 0; c < channels; ++c) {
        const T* from = x.data() + (batch * xs[1] + o / each * channels + c) * n.in_count();
        const T* by = w.data() + (o * channels + c) * n.taps();
        T* to = y.data() + (batch * results + o) * n.out_count();
        each_tap(n, [&](Index window, Index tap, Index at) {
          to[window] = (Num<T>{to[window]} + Num<T>{by[tap]} * Num<T>{at < 0 ? T{0} : from[at]}).v;
        });
      }
    }
  }
  store(r.out[0], y);
}

void conv_reference(const ConvAttrs& a, const RefArgs& r) {
  if (is_float(r.in[0].dtype())) return reference_of<double>(a, r);
  reference_of<std::int64_t>(a, r);
}

std::vector<Case<ConvAttrs>> conv_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 4, 16);
  const auto f = [](std::vector<Dim> dims) { return CaseInput(DType::f32, std::move(dims)); };
  std::vector<Case<ConvAttrs>> cases;
  const auto add = [&](ConvAttrs a, CaseInput x, CaseInput w, std::vector<double> y = {}, DimEnv dims = {}) {
    CaseCommon common{.inputs = {std::move(x), std::move(w)}, .dims = std::move(dims)};
    if (!y.empty()) common.expected = {std::move(y)};
    cases.push_back({std::move(a), std::move(common)});
  };
  add({{1}, {1}, {1}, {3}, 1}, f({1, 1, 3}).filled({1, 2, 3}), f({1, 1, 3}).filled({1, 10, 100}), {210, 321, 32});
  add({{2}, {1}, {0}, {2}, 1}, f({1, 1, 5}).filled({1, 2, 3, 4, 5}), f({1, 1, 2}).filled({1, -1}), {-1, -1});
  add({{1}, {2}, {2}, {3}, 1}, f({1, 1, 3}).filled({1, 2, 3}), f({1, 1, 2}).filled({10, 1}), {1, 2, 13});
  add({{1, 1}, {1, 1}, {0, 0}, {1, 2}, 2}, f({1, 2, 1, 2}).filled({1, 2, 3, 4}), f({2, 1, 1, 1}).filled({2, 3}),
      {2, 4, 9, 12});
  add({{1, 1}, {1, 1}, {1, 1}, {5, 4}, 1}, f({2, 3, 5, 4}), f({4, 3, 3, 3}));
  add({{2, 3}, {1, 2}, {1, 0}, {4, 2}, 1}, f({1, 2, 7, 8}), f({3, 2, 3, 2}));
  add({{1, 2}, {2, 1}, {2, 1}, {4, 3}, 2}, f({2, 4, 4, 5}), f({6, 2, 3, 3}));
  add({{1, 1}, {1, 1}, {1, 1}, {4, 4}, 3}, f({2, 3, 4, 4}), f({3, 1, 3, 3}));
  add({{2, 2}, {1, 1}, {0, 1}, {2, 2}, 3}, f({1, 3, 5, 4}), f({6, 1, 3, 3}));
  add({{1, 1}, {1, 1}, {0, 0}, {3, 4}, 1}, f({2, 3, 3, 4}), f({5, 3, 1, 1}));
  add({{2, 1, 1}, {1, 1, 2}, {1, 0, 2}, {2, 2, 3}, 1}, f({1, 2, 3, 3, 3}), f({2, 2, 3, 2, 2}));
  add({{1, 1}, {1, 1}, {1, 1}, {s, s}, 1}, f({b, 2, s, s}), f({2, 2, 3, 3}), {}, {{"S", 5}});
  add({{2}, {1}, {1}, {floordiv(s - 1, 2) + 1}, 1}, f({b, 2, s}), f({3, 2, 3}), {}, {{"S", 7}});
  add({{1}, {1}, {0}, {0}, 1}, f({2, 2, 2}), f({3, 2, 3}));
  add({{1}, {1}, {0}, {2}, 1}, f({0, 2, 2}), f({3, 2, 1}));
  add({{1}, {1}, {0}, {2}, 1}, f({1, 0, 2}), f({2, 0, 1}), {0, 0, 0, 0});
  cases.push_back(
      {{{1}, {1}, {1}, {4}, 1},
       {.inputs = {CaseInput(DType::i32, {1, 2, 4}).range(0, 9), CaseInput(DType::i32, {2, 2, 3}).range(0, 9)},
        .tolerance = exact}});
  return cases;
}

std::vector<Failure<ConvAttrs>> conv_failures() {
  const auto f = [](std::vector<Dim> dims) { return TensorType(DType::f32, std::move(dims)); };
  const ConvAttrs plain{{1}, {1}, {0}, {2}, 1};
  return {
      {plain, {f({1, 2, 3})}, "1 operands are given, expected 2"},
      {plain, {f({2, 3}), f({2, 2, 2})}, "x is f32[2,3], expected rank 3 to 5"},
      {plain, {f({1, 2, 3}), f({2, 2})}, "w is f32[2,2], expected the rank 3 of x"},
      {plain, {f({1, 2, 3}), f({2, 3, 2})}, "channels of w times groups, and of x: 3 is not 2"},
      {{{1}, {1}, {0}, {2}, 2}, {f({1, 2, 3}), f({3, 1, 2})}, "channels of the result modulo groups: 1 is not 0"},
      {{{1}, {1}, {0}, {2}, 0}, {f({1, 2, 3}), f({2, 2, 2})}, "0 groups, expected 1 or more"},
      {{{0}, {1}, {0}, {2}, 1}, {f({1, 2, 3}), f({2, 2, 2})}, "stride 0 of axis 0, expected 1 or more"},
      {{{1}, {0}, {0}, {2}, 1}, {f({1, 2, 3}), f({2, 2, 2})}, "dilation 0 of axis 0, expected 1 or more"},
      {{{1}, {1}, {-1}, {2}, 1}, {f({1, 2, 3}), f({2, 2, 2})}, "padding -1 of axis 0, expected 0 or more"},
      {{{1, 1}, {1}, {0}, {2}, 1}, {f({1, 2, 3}), f({2, 2, 2})}, "2 strides are given for 1 windowed axes"},
      {plain, {f({1, 2, 3}), f({2, 2, 0})}, "kernel size 0 of axis 0, expected 1 or more"},
      {plain, {f({1, 2, 3}), TensorType(DType::f16, {2, 2, 2})}, "w is f16[2,2,2], expected element type f32 as x"},
  };
}

template <class T>
void standard(std::vector<T>& list, std::size_t axes, const T& value, const char* what) {
  if (list.empty()) list.assign(axes, value);
  require(list.size() == axes, "{} {} are given for {} windowed axes", list.size(), what, axes);
}

}  // namespace

constinit const Op<ConvAttrs> conv_op{{
    .name = "conv",
    .doc =
        "Cross-correlation of x [N, C, in..] with w [Co, C/groups, kernel..] over one to three axes: y[n,o,i..] = sum "
        "over c and k.. of x[n, g*C/groups + c, i*stride - before + k*dilation, ..] * w[o,c,k..], where g = o / "
        "(Co/groups) is the group of o. Positions outside of x read as 0. `sizes` are those of the result, so that "
        "padding behind x is what the windows reach. Floats, and integers of at least 8 bits, which wrap; no bias. "
        "Gradients: conv_transpose of the cotangent, and its product with the windows of x.",
    .infer = conv_infer,
    .definition = conv_definition,
    .vjp = conv_vjp,
    .reference = conv_reference,
    .cases = conv_cases,
    .failures = conv_failures,
}};

Windows conv_windows(const ConvAttrs& a, const TensorType& w) {
  return {std::vector<Dim>(w.dims.begin() + 2, w.dims.end()), a.strides, a.dilations, a.before, a.sizes};
}

Value conv_weight_gradient(const ConvAttrs& a, Value x, Value dy, const TensorType& w) {
  const Dim &n = x.dim(0), inner = product(std::span(w.dims).subspan(1)), count = product(a.sizes);
  const Dim each = floordiv(w.dims[0], a.groups);
  const Value columns = reshape(windows(x, conv_windows(a, w)), {n, a.groups, inner, count});
  const Value products = matmul(reshape(dy, {n, a.groups, each, count}), columns, {false, true});
  return reshape(sum(products, {0}), w.dims);
}

Value conv(Value x, Value w, ConvAttrs attrs) { return x.builder->emit_one(conv_op, std::move(attrs), {x, w}); }

Value conv(Value x, Value w, ConvOptions o) {
  require(x.rank() >= 3 && w.rank() == x.rank(), "conv of {} by {}, expected equal ranks of 3 or more", x.type().text(),
          w.type().text());
  const std::size_t axes = x.type().dims.size() - 2;
  standard<Index>(o.strides, axes, 1, "strides");
  standard<Index>(o.dilations, axes, 1, "dilations");
  standard<Dim>(o.before, axes, 0, "paddings");
  standard<Dim>(o.after, axes, 0, "paddings");
  ConvAttrs a{o.strides, o.dilations, o.before, {}, o.groups};
  for (std::size_t i = 0; i < axes; ++i) {
    a.sizes.push_back(window_count(spatial(x.type())[i], o.before[i], o.after[i], spatial(w.type())[i], o.strides[i],
                                   o.dilations[i]));
  }
  return conv(x, w, std::move(a));
}

std::span<const OpDef* const> conv_ops() {
  static constexpr const OpDef* ops[] = {&conv_op};
  return ops;
}

}  // namespace rlx
