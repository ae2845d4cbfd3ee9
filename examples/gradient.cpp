// Builds a graph, differentiates it and evaluates both: the mean square of x w - y, and its gradient by w.
#include <cstdio>
#include <exception>

#include "rlx/graph.h"

int main() try {
  using namespace rlx;
  Builder b;
  const Dim rows = Dim::symbol("B", 1, 1024);
  const Value x = b.input("x", {DType::f32, {rows, 2}}), y = b.input("y", {DType::f32, {rows, 1}});
  const Value w = b.input("w", {DType::f32, {2, 1}}), miss = matmul(x, w) - y, loss = mean(miss * miss, {0, 1});
  const Grads dw = gradient({&loss, 1}, std::vector<std::optional<Value>>{like(loss, 1)}, {&w, 1});
  const Graph graph = b.finish({loss, *dw[0]});
  std::printf("%s", print(graph).c_str());
  const std::vector<Tensor> results =
      evaluate(graph, {{"x", Tensor::of<double>(DType::f32, {3, 2}, {1, 0, 0, 1, 1, 1})},
                       {"y", Tensor::of<double>(DType::f32, {3, 1}, {1, 2, 3})},
                       {"w", Tensor::of<double>(DType::f32, {2, 1}, {0.5, 2})}});
  const std::vector<double> value = load<double>(results[0]), slope = load<double>(results[1]);
  std::printf("loss = %g, dw = %g %g\n", value[0], slope[0], slope[1]);
} catch (const std::exception& e) {
  std::fprintf(stderr, "gradient: %s\n", e.what());
  return 1;
}
