// What tests of known traps share: graphs of a few ops, evaluated one by one and as one fusion body, and gradients.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "autodiff/gradient.h"
#include "ir/outline.h"
#include "runtime/evaluate.h"

namespace rlx::test {

inline Tensor floats(std::vector<Index> shape, const std::vector<double>& values, DType type = DType::f32) {
  return Tensor::of<double>(type, std::move(shape), values);
}
inline Tensor ints(DType type, std::vector<Index> shape, const std::vector<Index>& values) {
  return Tensor::of<std::int64_t>(type, std::move(shape), values);
}
/// first, first + step, … in this shape.
inline Tensor counted(std::vector<Index> shape, double first, double step, DType type = DType::f32) {
  Tensor t(type, std::move(shape));
  std::vector<double> v;
  for (Index i = 0; i < t.count(); ++i) v.push_back(first + step * static_cast<double>(i));
  store(t, v);
  return t;
}

/// The graph that `make` builds from inputs a0, a1, … of these tensors' types; it returns a Value or Values.
template <class Make>
Graph graph_of(const std::vector<Tensor>& in, Make make) {
  Builder b;
  Values v;
  for (const Tensor& t : in) v.push_back(b.input("a" + std::to_string(v.size()), t.type()));
  const auto made = make(std::as_const(v));
  if constexpr (std::is_same_v<std::decay_t<decltype(made)>, Value>) {
    return b.finish({made});
  } else {
    return b.finish(made);
  }
}

/// The same graph with all its nodes in one fusion body.
inline Graph fused(const Graph& g) {
  std::vector<Id> root(g.nodes.size());
  Id first = 0;
  while (first < root.size() && is_input(g.nodes[first])) ++first;
  for (Id i = 0; i < root.size(); ++i) root[i] = is_input(g.nodes[i]) ? i : first;
  return outline(g, root);
}

/// All outputs, node by node; the one fusion body must give the same bits.
inline std::vector<Tensor> run_graph(const Graph& g, const std::vector<Tensor>& in) {
  std::vector<Tensor> out = evaluate(g, in);
  const std::vector<Tensor> body = evaluate(fused(g), in);
  EXPECT_EQ(body.size(), out.size());
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(identical(out[i], body[i])) << "output " << i;
  return out;
}
template <class Make>
std::vector<Tensor> run_all(const std::vector<Tensor>& in, Make make) {
  return run_graph(graph_of(in, make), in);
}
template <class Make>
Tensor run(const std::vector<Tensor>& in, Make make) {
  return run_all(in, make)[0];
}

/// Gradients of all float inputs for these cotangents of the outputs.
inline std::vector<Tensor> pull_back(const Graph& g, std::vector<Tensor> in, const std::vector<Tensor>& cotangents) {
  in.insert(in.end(), cotangents.begin(), cotangents.end());
  return run_graph(gradient(g), in);
}

inline std::vector<double> reals(const Tensor& t) { return load<double>(t); }
inline std::vector<Index> wholes(const Tensor& t) { return load<Index>(t); }

/// |got - want| <= bound for every element; counts must agree.
inline void expect_near(const Tensor& got, const std::vector<double>& want, double bound) {
  const std::vector<double> y = reals(got);
  ASSERT_EQ(y.size(), want.size());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], want[i], bound) << "element " << i;
}

/// Position in a row-major tensor of `shape` of what a broadcast reads for element `i` of a result of shape `full`.
inline std::size_t source(const std::vector<Index>& shape, const std::vector<Index>& full, std::size_t i) {
  std::size_t at = 0, scale = 1;
  for (std::size_t k = 0; k < full.size(); ++k) {
    const auto extent = static_cast<std::size_t>(full[full.size() - 1 - k]), coordinate = i % extent;
    i /= extent;
    if (k >= shape.size()) continue;
    const auto own = static_cast<std::size_t>(shape[shape.size() - 1 - k]);
    at += (own == 1 ? 0 : coordinate) * scale;
    scale *= own;
  }
  return at;
}

}  // namespace rlx::test
