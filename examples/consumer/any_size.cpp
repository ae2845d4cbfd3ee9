// Builds a small classifier, compiles it once and runs it at several sizes in memory of its own.
#include <rlx/session.h>

#include <cstdio>
#include <exception>
#include <vector>

int main() try {
  using namespace rlx;
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("B", 1, 1024), 2}});
  const Value w = constant(b, Tensor::of<double>(DType::f32, {2, 3}, {1, 0, -1, 0, 2, 1}));
  const Session session = cpu_session();
  const Executable classify = session.compile(b.finish({softmax(matmul(x, w))}));

  const InputHandle in = classify.input("x");
  const OutputHandle out = classify.output(0);
  for (const Index rows : {1, 7, 1000}) {  // one program for all sizes within the bounds of B
    const std::vector<Index> x_shape{rows, 2}, y_shape{rows, 3};
    const std::vector<float> points(static_cast<std::size_t>(rows) * 2, 0.5f);
    std::vector<float> y(static_cast<std::size_t>(rows) * 3);
    classify.run({in.bind({DType::f32, x_shape, points.data()})}, {out.bind({DType::f32, y_shape, y.data()})});
    std::printf("%4d rows, the last: %.4f %.4f %.4f\n", static_cast<int>(rows), y[y.size() - 3], y[y.size() - 2],
                y[y.size() - 1]);
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "any_size: %s\n", e.what());
  return 1;
}
