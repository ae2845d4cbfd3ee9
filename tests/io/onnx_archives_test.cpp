// Archives of small models with the answers of ONNX Runtime, ml_dtypes and the package onnx: by the references, and as
// programs.
#include <gtest/gtest.h>

#include "conformance.h"
#include "io/onnx_archive.h"

namespace rlx::test {
namespace {

// Quantised results may lie on the other side of a tie, where the last bit of a number decides.
std::string difference(const std::string& name, const Tensor& got, const Tensor& want) {
  const std::int64_t slack = name.starts_with("QLinear") || name == "QGemm" ? 1 : 0;
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return got.type().text() + ", not " + want.type().text();
  if (is_float(want.dtype())) {
    const Difference d = compare(got, want, relative(5e-6));
    return d.ok ? "" : d.where;
  }
  const auto a = load<std::int64_t>(got), b = load<std::int64_t>(want);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > slack) return fmt::format("element {} is {}, expected {}", i, a[i], b[i]);
  }
  return "";
}

TEST(OnnxArchives, OperatorsOfMicrosoftAsOnnxRuntime) { expect_answers("microsoft.npz", 77, difference); }
TEST(OnnxArchives, P81_P82_SmallElementTypes) { expect_answers("types.npz", 79, difference); }
TEST(OnnxArchives, AttentionAndItsRelatives) { expect_answers("attention.npz", 90, difference); }

}  // namespace
}  // namespace rlx::test
