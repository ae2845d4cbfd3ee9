// Control flow as graphs: inference, text, bodies of bodies, calls, gradients.
#include "ir/control.h"

#include <gtest/gtest.h>

#include "autodiff/gradient.h"
#include "conformance.h"
#include "core/error.h"
#include "ir/outline.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

const TensorType flag{DType::boolean, {}}, count{DType::i64, {}};

template <class Make>
GraphPtr body(const std::vector<TensorType>& types, Make make) {
  Builder b;
  Values in;
  for (const TensorType& t : types) in.push_back(b.input("p" + std::to_string(in.size()), t));
  return std::make_shared<const Graph>(b.finish(Values(make(in))));
}

std::string error_of(const std::function<void(Builder&)>& f) {
  Builder b;
  try {
    f(b);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Control, WhatIfRefuses) {
  const TensorType x{DType::f32, {3}}, y{DType::f32, {4}};
  const GraphPtr same = body({x}, [](const Values& v) { return Values{v[0]}; });
  const GraphPtr other = body({y}, [](const Values& v) { return Values{v[0]}; });
  const GraphPtr two = body({x}, [](const Values& v) { return Values{v[0], v[0]}; });
  const GraphPtr longer = body({x}, [](const Values& v) { return Values{sum(v[0], {0})}; });
  const auto built = [&](const TensorType& condition, const GraphPtr& yes, const GraphPtr& no) {
    return error_of([&](Builder& b) {
      const Value c = b.input("c", condition), v = b.input("x", x);
      if_else(c, std::span(&v, 1), yes, no);
    });
  };
  EXPECT_EQ(built(flag, same, same), "no error");
  EXPECT_TRUE(says(built({DType::i32, {}}, same, same), "the condition is i32[], expected bool[]"));
  EXPECT_TRUE(says(built({DType::boolean, {1}}, same, same), "the condition is bool[1], expected bool[]"));
  EXPECT_TRUE(says(built(flag, same, other), "operand 1 is f32[3], input p0 of the second body is f32[4]"));
  EXPECT_TRUE(says(built(flag, same, two), "the bodies have 1 and 2 results"));
  EXPECT_TRUE(says(built(flag, same, longer), "result 0 is f32[3] in the first body and f32[] in the second"));
}

TEST(Control, WhatWhileRefuses) {
  const TensorType x{DType::f32, {3}};
  const auto built = [&](const GraphPtr& trip, std::size_t carried) {
    return error_of([&](Builder& b) {
      const Value c = b.input("c", flag);
      const Values all{b.input("x", x), b.input("y", x)};
      while_loop(c, std::span(all).first(carried), std::span(all).subspan(carried), trip);
    });
  };
  const auto condition = [](const Values& v) {
    return greater(sum(v[0], {0}), constant(*v[0].builder, DType::f32, 0));
  };
  EXPECT_EQ(built(body({x, x}, [&](const Values& v) { return Values{condition(v), v[1]}; }), 1), "no error");
  EXPECT_TRUE(says(built(body({x, x}, [&](const Values& v) { return Values{condition(v), v[1]}; }), 2),
                   "the body has 2 results, expected 3"));
  EXPECT_TRUE(says(built(body({x, x}, [&](const Values& v) { return Values{v[0], v[1]}; }), 1),
                   "the next condition is f32[3], expected bool[]"));
  EXPECT_TRUE(says(built(body({x, x}, [&](const Values& v) { return Values{condition(v), sum(v[1], {0})}; }), 1),
                   "carried value 0 is f32[3] before a trip and f32[] after it"));
  EXPECT_TRUE(
      says(built(body({x, x}, [&](const Values& v) { return Values{condition(v)}; }), 0), "0 values are carried"));
}

TEST(Control, WhatScanRefuses) {
  const TensorType x{DType::f32, {3}}, xs{DType::f32, {5, 3}};
  const GraphPtr trip = body({x, x}, [](const Values& v) { return Values{v[0] + v[1], v[0]}; });
  const auto built = [&](ScanAttrs a, const TensorType& scanned, const GraphPtr& g) {
    return error_of([&](Builder& b) {
      const Values all{b.input("x", x), b.input("xs", scanned)};
      scan(b, std::move(a), all, g);
    });
  };
  EXPECT_EQ(built({.trips = 5, .carried = 1, .scanned = 1}, xs, trip), "no error");
  EXPECT_TRUE(
      says(built({.trips = 4, .carried = 1, .scanned = 1}, xs, trip), "slices of scanned operand 0: 5 is not 4"));
  EXPECT_TRUE(says(built({.trips = -1, .carried = 1, .scanned = 1}, xs, trip), "-1 trips are asked for"));
  EXPECT_TRUE(
      says(built({.trips = 5, .carried = 2, .scanned = 1}, xs, trip), "2 carried and 1 scanned operands, 2 are given"));
  EXPECT_TRUE(says(built({.trips = 5, .carried = 1, .scanned = 1}, {DType::f32, {}}, trip), "expected rank 1 or more"));
  EXPECT_TRUE(says(built({.trips = 5, .carried = 1, .scanned = 1, .backward = {1}}, xs, trip),
                   "scanned operand 1 is not one of 1"));
  EXPECT_TRUE(
      says(built({.trips = 5, .carried = 1, .scanned = 1, .backward_results = {0, 0}}, xs, trip), "or listed twice"));
  const TensorType packed{DType::i4, {5, 3}};
  EXPECT_TRUE(says(built({.trips = 5, .carried = 1, .scanned = 1}, packed, trip), "do not lie at whole bytes"));
}

// x + 1 where the sum is above 0, else a scan of a while, with symbols.
Graph nested() {
  const Dim s = Dim::symbol("S", 0, 9);
  const TensorType x{DType::f32, {s, 2}}, row{DType::f32, {2}};
  const GraphPtr trip = body({row, row}, [&](const Values& v) {
    const Value c = greater(sum(v[0], {0}), constant(*v[0].builder, DType::f32, 4));
    const GraphPtr half = body({row}, [](const Values& w) {
      const Value next = w[0] * like(w[0], 0.5);
      return Values{greater(sum(next, {0}), like(next, 4)), next};
    });
    const Value next = while_loop(c, std::span(&v[0], 1), {}, half)[0] + v[1];
    return Values{next, next};
  });
  Builder b;
  const Value in = b.input("x", x);
  const GraphPtr yes = body({x}, [](const Values& v) { return Values{v[0] + like(v[0], 1)}; });
  const GraphPtr no = body({x}, [&](const Values& v) {
    const Value begin = constant(*v[0].builder, Tensor::of<double>(DType::f32, {2}, {1, 2}));
    const Value operands[] = {begin, v[0]};
    return Values{scan(*v[0].builder, {.trips = s, .carried = 1, .scanned = 1, .backward = {0}}, operands, trip)[1]};
  });
  const Value c = greater(sum(in, {0, 1}), like(in, 0));
  return b.finish({if_else(c, std::span(&in, 1), yes, no)[0]});
}

TEST(Control, TextOfNestedBodies) {
  const Graph g = nested();
  verify(g);
  const std::string text = print(g);
  const Graph again = parse(text);
  EXPECT_TRUE(same(g, again)) << text;
  EXPECT_EQ(print(again), text);
}

TEST(Control, ReferenceOfNestedBodies) {
  const Graph g = nested();
  EXPECT_EQ(load<double>(evaluate(g, std::vector{Tensor::of<double>(DType::f32, {1, 2}, {1, 2})})[0]),
            (std::vector<double>{2, 3}));
  // Last row first: [1,2] + [-9,0] = [-8,2]; [-8,2] + [0,7] = [-8,9]: sums are never above 4.
  EXPECT_EQ(load<double>(evaluate(g, std::vector{Tensor::of<double>(DType::f32, {2, 2}, {0, 7, -9, 0})})[0]),
            (std::vector<double>{-8, 2, -8, 9}));
  // [1,2] + [5,0] = [6,2]; halved once to [3,1]; + [-20,0] = [-17,1].
  EXPECT_EQ(load<double>(evaluate(g, std::vector{Tensor::of<double>(DType::f32, {2, 2}, {-20, 0, 5, 0})})[0]),
            (std::vector<double>{6, 2, -17, 1}));
  EXPECT_EQ(evaluate(g, std::vector{Tensor(DType::f32, {0, 2})})[0].shape(), (std::vector<Index>{0, 2}));
}

TEST(Control, BodiesOfBodiesAreMapped) {
  const Graph g = nested();
  int bodies = 0;
  const Graph mapped = map_bodies(g, [&](const Graph& b) {
    ++bodies;
    return b;
  });
  EXPECT_EQ(bodies, 4);
  EXPECT_TRUE(same(g, mapped));
}

TEST(Control, ACallIsItsBody) {
  Builder b;
  const Value x = b.input("x", {DType::f64, {2}});
  const GraphPtr square = body({x.type()}, [](const Values& v) { return Values{v[0] * v[0]}; });
  const Graph g = b.finish({call(b, "square", std::span(&x, 1), square)[0]});
  EXPECT_TRUE(same(parse(print(g)), g));
  EXPECT_TRUE(same(inline_bodies(g), inline_bodies(*square)) ||
              print(inline_bodies(g)).find("mul") != std::string::npos);
  const Tensor in = Tensor::of<double>(DType::f64, {2}, {3, -4});
  EXPECT_EQ(load<double>(evaluate(g, std::vector{in})[0]), (std::vector<double>{9, 16}));
  const Tensor ones = Tensor::of<double>(DType::f64, {2}, {1, 1});
  EXPECT_EQ(load<double>(evaluate(gradient(g), std::vector{in, ones})[0]), (std::vector<double>{6, -8}));
}

// The gradient of all float inputs against central differences, cotangents 1.
void expect_slopes(const Graph& g, const std::vector<Tensor>& in) {
  const Graph d = gradient(g);
  verify(d);
  std::vector<Tensor> with = in;
  const std::vector<Tensor> out = evaluate(g, in);
  for (const Tensor& t : out) {
    if (!is_float(t.dtype())) continue;
    with.push_back(Tensor(t.dtype(), t.shape()));
    store(with.back(), std::vector<double>(static_cast<std::size_t>(t.count()), 1));
  }
  const std::vector<Tensor> slopes = evaluate(d, with);
  const auto total = [&](const std::vector<Tensor>& at) {
    double s = 0;
    for (const Tensor& t : evaluate(g, at)) {
      if (!is_float(t.dtype())) continue;
      for (const double v : load<double>(t)) s += v;
    }
    return s;
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_float(in[i].dtype())) continue;
    const auto slope = load<double>(slopes[next++]), values = load<double>(in[i]);
    for (std::size_t k = 0; k < values.size(); ++k) {
      std::vector<Tensor> up = in, down = in;
      std::vector<double> v = values;
      constexpr double step = 1e-5;
      v[k] = values[k] + step;
      store(up[i], v);
      v[k] = values[k] - step;
      store(down[i], v);
      EXPECT_NEAR(slope[k], (total(up) - total(down)) / (2 * step), 1e-7) << "input " << i << ", element " << k;
    }
  }
}

TEST(ControlGradient, OfScanWithWeights) {
  for (const bool backward : {false, true}) {
    for (const Index trips : {0, 1, 4}) {
      Builder b;
      const TensorType h{DType::f64, {2}}, m{DType::f64, {2, 2}};
      const Value begin = b.input("h", h), xs = b.input("xs", {DType::f64, {trips, 2}}), w = b.input("w", m),
                  n = constant(b, DType::i64, 3);
      const GraphPtr trip = body({h, n.type(), h, m}, [](const Values& v) {
        const Value next = tanh(matmul(v[0], v[3]) + v[2]);
        return Values{next, v[1] + v[1], next * v[2], v[1]};
      });
      ScanAttrs a{.trips = trips, .carried = 2, .scanned = 1};
      if (backward) a.backward = a.backward_results = {0};
      const Value operands[] = {begin, n, xs, w};
      const Values made = scan(b, a, operands, trip);
      const Graph g = b.finish({made[0], made[2], made[1], made[3]});
      std::vector<double> x(static_cast<std::size_t>(2 * trips));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.3 - 0.17 * static_cast<double>(i % 5);
      expect_slopes(g, {Tensor::of<double>(DType::f64, {2}, {0.4, -0.3}), Tensor::of<double>(DType::f64, {trips, 2}, x),
                        Tensor::of<double>(DType::f64, {2, 2}, {0.5, -0.7, 0.2, 0.9})});
    }
  }
}

TEST(ControlGradient, OfBranches) {
  for (const double chosen : {1.0, 0.0}) {
    Builder b;
    const TensorType x{DType::f64, {3}};
    const Value v = b.input("x", x), w = b.input("w", x), c = b.input("c", flag);
    const Value captures[] = {v, w};
    const GraphPtr yes = body({x, x}, [](const Values& p) { return Values{p[0] * p[0], p[1]}; });
    const GraphPtr no = body({x, x}, [](const Values& p) { return Values{tanh(p[0]) * p[1], p[0]}; });
    const Values made = if_else(c, captures, yes, no);
    const Graph g = b.finish({made[0] * made[1]});
    expect_slopes(g, {Tensor::of<double>(DType::f64, {3}, {0.4, -0.3, 1}),
                      Tensor::of<double>(DType::f64, {3}, {2, 3, -1}), Tensor::scalar(DType::boolean, chosen)});
  }
}

TEST(ControlGradient, WhileHasNone) {
  Builder b;
  const TensorType x{DType::f64, {}};
  const Value v = b.input("x", x), c = b.input("c", flag);
  const GraphPtr trip = body({x}, [](const Values& p) { return Values{less(p[0], like(p[0], 9)), p[0] * p[0]}; });
  const Graph g = b.finish({while_loop(c, std::span(&v, 1), {}, trip)[0]});
  EXPECT_TRUE(says(error_of([&](Builder&) { gradient(g); }), "= while(bool[], f64[]) has no gradient"));
}

TEST(Pitfalls, P99_TheTrajectoryGradientHasTheTypeOfTheCarry) {
  for (const DType type : {DType::f32, DType::f64}) {
    Builder b;
    const TensorType c{type, {3}};
    const Value begin = b.input("c", c);
    const GraphPtr trip = body({c}, [](const Values& v) { return Values{v[0], v[0]}; });
    const Graph g = b.finish({scan(b, {.trips = 2, .carried = 1}, std::span(&begin, 1), trip)[1]});
    const Tensor ones = Tensor::of<double>(type, {2, 3}, {1, 1, 1, 1, 1, 1});
    EXPECT_EQ(load<double>(evaluate(gradient(g), std::vector{Tensor(type, {3}), ones})[0]),
              (std::vector<double>{2, 2, 2}));
  }
}

}  // namespace
}  // namespace rlx::test
