// Pitfalls of convolutions and pools, each against loops written out here or numbers by hand; as references, through
// definitions, and as compiled programs at every level.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>

#include "backend/cpu/cpu_device.h"
#include "conformance.h"
#include "levels.h"
#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/matmul/matmul.h"
#include "ops/pool/pool.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/transpose/transpose.h"
#include "pitfalls.h"
#include "runtime/session.h"

namespace rlx::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// Small whole numbers, all products and sums of which are exact in f32.
Tensor whole_numbers(std::vector<Index> shape, int seed, DType type = DType::f32) {
  Tensor t(type, std::move(shape));
  std::vector<double> v;
  unsigned state = static_cast<unsigned>(seed) * 2654435761U + 12345U;
  for (Index i = 0; i < t.count(); ++i) {
    state = state * 1664525U + 1013904223U;
    v.push_back(static_cast<double>(state >> 24) / 16 - 8);
    v.back() = static_cast<double>(static_cast<int>(v.back()));
  }
  store(t, v);
  return t;
}

// Every output by reference, by definition and compiled at every level: equal to `want`.
void expect_everywhere(const Graph& g, const std::vector<Tensor>& in, const std::vector<std::vector<double>>& want) {
  const auto check = [&](const std::vector<Tensor>& got, const char* how) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(reals(got[i]), want[i]) << how << ", output " << i;
  };
  check(evaluate(g, in), "reference");
  check(evaluate(g, in, {.definitions = true, .dims = {}}), "definition");
  NamedTensors named;
  for (std::size_t i = 0; i < in.size(); ++i) named.emplace(g.input_names[i], in[i]);
  at_every_level([&] {
    const Session session = cpu_session({.threads = 2});
    check(session.compile(g, {}, {.poison = true, .check = true}).run(named), "program");
  });
}

struct Geometry {
  std::array<Index, 3> kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, before{}, out{1, 1, 1};
};

double at(const std::vector<double>& v, const std::vector<Index>& shape, const std::array<Index, 5>& i) {
  Index place = 0;
  for (std::size_t k = 0; k < 5; ++k) place = place * shape[k] + i[k];
  return v[static_cast<std::size_t>(place)];
}

// The direct sum over one window; all tensors have three windowed axes.
double conv_sum(const Tensor& x, const Tensor& w, const Geometry& g, Index groups, std::array<Index, 5> o) {
  const std::vector<double> xv = reals(x), wv = reals(w);
  const std::vector<Index>&xs = x.shape(), &ws = w.shape();
  const Index group = o[1] / (ws[0] / groups);
  double sum = 0;
  for (Index c = 0; c < ws[1]; ++c) {
    for (Index a = 0; a < ws[2]; ++a) {
      for (Index b = 0; b < ws[3]; ++b) {
        for (Index k = 0; k < ws[4]; ++k) {
          const std::array<Index, 3> tap{a, b, k};
          std::array<Index, 5> from{o[0], group * ws[1] + c, 0, 0, 0};
          bool inside = true;
          for (std::size_t i = 0; i < 3; ++i) {
            from[i + 2] = o[i + 2] * g.stride[i] - g.before[i] + tap[i] * g.dilation[i];
            inside = inside && from[i + 2] >= 0 && from[i + 2] < xs[i + 2];
          }
          if (inside) sum += at(xv, xs, from) * at(wv, ws, {o[1], c, a, b, k});
        }
      }
    }
  }
  return sum;
}

std::vector<double> conv_loops(const Tensor& x, const Tensor& w, const Geometry& g, Index groups) {
  std::vector<double> y;
  for (Index n = 0; n < x.shape()[0]; ++n) {
    for (Index o = 0; o < w.shape()[0]; ++o) {
      for (Index a = 0; a < g.out[0]; ++a) {
        for (Index b = 0; b < g.out[1]; ++b) {
          for (Index c = 0; c < g.out[2]; ++c) y.push_back(conv_sum(x, w, g, groups, {n, o, a, b, c}));
        }
      }
    }
  }
  return y;
}

ConvAttrs attrs_of(const Geometry& g, Index groups, std::size_t axes = 3) {
  ConvAttrs a;
  a.groups = groups;
  for (std::size_t i = 3 - axes; i < 3; ++i) {
    a.strides.push_back(g.stride[i]);
    a.dilations.push_back(g.dilation[i]);
    a.before.emplace_back(g.before[i]);
    a.sizes.emplace_back(g.out[i]);
  }
  return a;
}

TEST(Pitfalls, P3_BiasOfAConvolutionIsAlongItsChannels) {
  const Tensor x = whole_numbers({2, 3, 1, 4, 4}, 1), w = whole_numbers({4, 3, 1, 3, 3}, 2);
  const Tensor bias = floats({4}, {1, -2, 3, 50});
  const Geometry g{{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 4, 4}};
  const Graph graph = graph_of({x, w, bias}, [&](const Values& v) {
    return relu(conv(v[0], v[1], attrs_of(g, 1)) + reshape(v[2], {1, 4, 1, 1, 1}));
  });
  std::vector<double> want = conv_loops(x, w, g, 1);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = std::max(0.0, want[i] + reals(bias)[i / 16 % 4]);
  expect_everywhere(graph, {x, w, bias}, {want});
}

TEST(Pitfalls, P47_MeansOfAWindowThatOverhangs) {
  const Tensor x = counted({1, 1, 259}, 1, 1);
  const Graph line =
      graph_of({x}, [](const Values& v) { return pool(v[0], {PoolKind::mean, {100}, {100}, {1}, {0}, {3}, {}}); });
  expect_everywhere(line, {x}, {{50.5, 150.5, (201 + 259) / 2.0}});
  // With counted padding the corner of a 2-D mean divides by 9, the overhang behind the padding never counts.
  const Tensor ones = floats({1, 1, 3, 3}, std::vector<double>(9, 9));
  const Graph counts = graph_of({ones}, [](const Values& v) {
    return pool(v[0], {PoolKind::mean, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {2, 2}, {1, 1}});
  });
  expect_everywhere(counts, {ones}, {{4, 4, 4, 4}});
  const Graph inner = graph_of(
      {ones}, [](const Values& v) { return pool(v[0], {PoolKind::mean, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {2, 2}, {}}); });
  expect_everywhere(inner, {ones}, {{9, 9, 9, 9}});
}

// The gradient as a program whose memory holds noise before the run.
TEST(Pitfalls, P48_TiesOfAMaximum) {
  const auto expect = [](const Tensor& x, PoolAttrs a, const Tensor& dy, const std::vector<double>& want) {
    const Graph back = gradient(graph_of({x}, [&](const Values& v) { return pool(v[0], a); }));
    expect_everywhere(back, {x, dy}, {want});
  };
  using enum PoolKind;
  const PoolAttrs square{max, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, {}};
  const Tensor equal = floats({1, 1, 2, 2}, {3, 3, 3, 3}), one = floats({1, 1, 1, 1}, {5});
  expect(equal, square, one, {5, 0, 0, 0});
  expect(floats({1, 1, 2, 2}, {-inf, -inf, -inf, -inf}), square, one, {5, 0, 0, 0});
  expect(floats({1, 1, 2, 2}, {1, NAN, 7, NAN}), square, one, {0, 5, 0, 0});
  // Windows that overlap add up; padding takes nothing.
  const PoolAttrs wide{max, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {1, 3}, {}};
  expect(floats({1, 1, 1, 3}, {-1, -1, -4}), wide, floats({1, 1, 1, 3}, {1, 10, 100}), {11, 100, 0});
  const PoolAttrs lonely{max, {1, 1}, {1, 2}, {1, 1}, {0, 2}, {1, 2}, {}};
  expect(floats({1, 1, 1, 2}, {-1, -4}), lonely, floats({1, 1, 1, 2}, {1, 10}), {10, 0});
}

TEST(Pitfalls, P49_PointwiseKernelsThatAreNoPlainProduct) {
  struct Form {
    Geometry g;
    Index groups;
  };
  const Form forms[] = {
      {{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 5, 4}}, 1},  // plain
      {{{1, 1, 1}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 3, 2}}, 1},
      {{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 7, 6}}, 1},
      {{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 5, 4}}, 2},
      {{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 4, 3}}, 1},  // a part of the operand
      {{{1, 1, 1}, {1, 1, 1}, {1, 3, 2}, {0, 0, 0}, {1, 5, 4}}, 1},
      {{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {1, 5, 4}}, 1},
  };
  const Tensor x = whole_numbers({2, 4, 1, 5, 4}, 3);
  for (const Form& f : forms) {
    const Tensor w = whole_numbers({6, 4 / f.groups, 1, 1, 1}, 4);
    const Graph g = graph_of({x, w}, [&](const Values& v) { return conv(v[0], v[1], attrs_of(f.g, f.groups)); });
    expect_everywhere(g, {x, w}, {conv_loops(x, w, f.g, f.groups)});
  }
}

// Windows as columns, [N * windows, C * taps], of a batch that the run shows.
TEST(Pitfalls, P50_ColumnsOfABatchOfTheRun) {
  const Dim n = Dim::symbol("N", 1, 8);
  Builder b;
  const Value x = b.input("x", {DType::f32, {n, 2, 5, 6}}), w = b.input("w", {DType::f32, {3, 2, 3, 2}});
  const Windows shape{{3, 2}, {1, 2}, {1, 2}, {1, 2}, {5, 4}};
  const Value taken = reshape(transpose(windows(x, shape), {0, 4, 5, 1, 2, 3}), {n * 20, 12});
  const Value products = matmul(taken, reshape(w, {3, 12}), {false, true});
  const Value y = conv(x, w, ConvAttrs{{1, 2}, {1, 2}, {1, 2}, {5, 4}, 1});
  const Graph g = b.finish({transpose(reshape(products, {n, 5, 4, 3}), {0, 3, 1, 2}), y, taken});
  const Tensor xs = whole_numbers({3, 2, 5, 6}, 5), ws = whole_numbers({3, 2, 3, 2}, 6);
  const Session session = cpu_session({.threads = 2});
  const std::vector<Tensor> out = session.compile(g).run({{"x", xs}, {"w", ws}});
  const Geometry as{{1, 3, 2}, {1, 1, 2}, {1, 1, 2}, {0, 1, 2}, {1, 5, 4}};
  const std::vector<double> want = conv_loops(Tensor::of<double>(DType::f32, {3, 2, 1, 5, 6}, reals(xs)),
                                              Tensor::of<double>(DType::f32, {3, 2, 1, 3, 2}, reals(ws)), as, 1);
  EXPECT_EQ(out[2].shape(), (std::vector<Index>{60, 12}));
  EXPECT_EQ(reals(out[0]), want);
  EXPECT_EQ(reals(out[1]), want);
}

// Every axis has its own stride, dilation and padding.
const Geometry uneven{{2, 3, 2}, {2, 1, 3}, {1, 2, 1}, {1, 2, 0}, {2, 4, 2}};

TEST(Pitfalls, P51_ConvolutionsOfThreeUnlikeAxes) {
  const Tensor x = whole_numbers({2, 4, 3, 4, 5}, 7), w = whole_numbers({4, 2, 2, 3, 2}, 8);
  const Graph g = graph_of({x, w}, [&](const Values& v) { return conv(v[0], v[1], attrs_of(uneven, 2)); });
  expect_everywhere(g, {x, w}, {conv_loops(x, w, uneven, 2)});
}

TEST(Pitfalls, R7_ConvolutionsOfLines) {
  const Tensor x = whole_numbers({2, 3, 9}, 11), w = whole_numbers({5, 3, 4}, 12);
  const Geometry line{{1, 1, 4}, {1, 1, 2}, {1, 1, 2}, {0, 0, 3}, {1, 1, 4}};
  const Graph g = graph_of({x, w}, [&](const Values& v) { return conv(v[0], v[1], attrs_of(line, 1, 1)); });
  const Tensor xs = Tensor::of<double>(DType::f32, {2, 3, 1, 1, 9}, reals(x));
  const Tensor ws = Tensor::of<double>(DType::f32, {5, 3, 1, 1, 4}, reals(w));
  expect_everywhere(g, {x, w}, {conv_loops(xs, ws, line, 1)});
}

// The adjoint, by its definition: <conv(x, w), y> = <x, conv_transpose(y, w)> for unit vectors x.
TEST(Pitfalls, P51_TransposedConvolutionsOfThreeUnlikeAxes) {
  const Tensor w = whole_numbers({4, 2, 2, 3, 2}, 9), y = whole_numbers({1, 4, 2, 4, 2}, 10);
  ConvAttrs a = attrs_of(uneven, 2);
  a.sizes = {3, 4, 6};  // of the result: one more than the windows reach, as output_padding asks
  const Graph g = graph_of({y, w}, [&](const Values& v) { return conv_transpose(v[0], v[1], a); });
  std::vector<double> want;
  for (Index i = 0; i < 4 * 3 * 4 * 6; ++i) {
    std::vector<double> unit(4 * 3 * 4 * 6, 0);
    unit[static_cast<std::size_t>(i)] = 1;
    const std::vector<double> c = conv_loops(Tensor::of<double>(DType::f32, {1, 4, 3, 4, 6}, unit), w, uneven, 2);
    double sum = 0;
    for (std::size_t k = 0; k < c.size(); ++k) sum += c[k] * reals(y)[k];
    want.push_back(sum);
  }
  EXPECT_EQ(want[5], 0);  // never reached
  expect_everywhere(g, {y, w}, {want});
}

// A depth of 1 changes no bit, neither of results nor of gradients.
TEST(Pitfalls, P51_DepthOfOneIsTheSameAsNone) {
  const Tensor x = fill(CaseInput(DType::f32, {2, 4, 5, 6}), {}, 1),
               w = fill(CaseInput(DType::f32, {4, 2, 3, 2}), {}, 2);
  const Geometry g{{1, 3, 2}, {1, 2, 1}, {1, 1, 2}, {0, 1, 2}, {1, 3, 7}};
  const auto both = [&](auto make) {
    const Graph flat = graph_of({x, w}, [&](const Values& v) { return make(v[0], v[1], std::size_t{2}); });
    const Graph deep = graph_of({x, w}, [&](const Values& v) {
      const Value y = make(reshape(v[0], {2, 4, 1, 5, 6}), reshape(v[1], {4, 2, 1, 3, 2}), std::size_t{3});
      std::vector<Dim> dims = y.type().dims;
      dims.erase(dims.begin() + 2);
      return reshape(y, dims);
    });
    const Session session = cpu_session({.threads = 2});
    const auto run = [&](const Graph& f) {
      Tensor dy = fill(CaseInput(f.type(f.outputs[0])), {}, 3);
      std::vector<Tensor> all = session.compile(f).run({{"a0", x}, {"a1", w}});
      const Graph back = gradient(f);
      NamedTensors in{{"a0", x}, {"a1", w}, {back.input_names[2], dy}};
      for (Tensor& t : session.compile(back).run(in)) all.push_back(std::move(t));
      return all;
    };
    const std::vector<Tensor> a = run(flat), b = run(deep);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(identical(a[i], b[i])) << i;
  };
  both([&](Value p, Value q, std::size_t axes) { return conv(p, q, attrs_of(g, 2, axes)); });
  both([&](Value p, Value q, std::size_t axes) {
    Geometry back = g;
    back.out = {1, 11, 8};
    return conv_transpose(p, q, attrs_of(back, 2, axes));
  });
  for (const PoolKind kind : {PoolKind::max, PoolKind::mean}) {
    both([&](Value p, Value q, std::size_t axes) {
      PoolAttrs a{kind, {3, 2}, {2, 1}, {1, 2}, {1, 1}, {3, 6}, {}};
      if (axes == 3) a = {kind, {1, 3, 2}, {1, 2, 1}, {1, 1, 2}, {0, 1, 1}, {1, 3, 6}, {}};
      std::vector<Index> every(q.type().dims.size());
      std::iota(every.begin(), every.end(), Index{0});
      return pool(p, a) * sum(q, every);
    });
  }
}

}  // namespace
}  // namespace rlx::test
