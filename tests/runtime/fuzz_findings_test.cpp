// What the fuzzer of ONNX models found in the passes and programs behind the importer, each as a graph of its own.
#include <gtest/gtest.h>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "ir/print.h"
#include "runtime/session.h"

namespace rlx::test {
namespace {

std::vector<Tensor> run(const std::string& text, const NamedTensors& in) {
  return cpu_session().compile(parse(text), {}, {.poison = true, .check = true}).run(in);
}

// The definition of quantize has the size 3 of the scale where the node has D, which must be 3 in a run.
TEST(FuzzFindings, ScaleWhoseSizeIsCheckedByTheRun) {
  const std::string text =
      "rlx 1\ngraph(%x: f32[2,D], %s: f32[3])\n  dims(D: 1..8) {\n"
      "  %0 = quantize %x, %s {to=i8, axis=1} : i8[2,D]\n"
      "  check 3 = D \"size of the scale\"\n  return %0\n}\n";
  const Tensor s = Tensor::of<double>(DType::f32, {3}, {1, 2, 4});
  const auto got = run(text, {{"x", Tensor::of<double>(DType::f32, {2, 3}, {1, 4, 8, 3, 2, 4})}, {"s", s}});
  EXPECT_EQ(load<std::int64_t>(got[0]), (std::vector<std::int64_t>{1, 2, 2, 3, 1, 1}));
  EXPECT_THROW(run(text, {{"x", Tensor(DType::f32, {2, 4})}, {"s", s}}), Error);
}

}  // namespace
}  // namespace rlx::test
