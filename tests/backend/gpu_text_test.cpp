// GPU kernels as text: two kernels in every language against stored text, and what rendering refuses. A changed text
// is printed whole; after reading the difference, it replaces the file under tests/data/gpu.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "all_ops.h"
#include "core/error.h"
#include "gpu_runner.h"
#include "ir/builder.h"
#include "ir/outline.h"

namespace rlx::test {
namespace {

GpuKernel kernel_of(const Graph& g) {
  Recorder recorder;
  std::string why;
  require(recorder.take(g, &why), "{}", why);
  return recorder.kernels.at(0);
}

GpuKernel softmax_kernel() {
  Builder b;
  return kernel_of(b.finish({softmax(b.input("x", {DType::f32, {Dim::symbol("B", 1, 8), Dim::symbol("S", 1, 512)}}))}));
}

// silu(x * w) as f16, with w broadcast along the rows.
GpuKernel region_kernel() {
  Builder b;
  const Dim rows = Dim::symbol("B", 1, 8), cols = Dim::symbol("S", 1, 512);
  const Value x = b.input("x", {DType::f32, {rows, cols}}), w = b.input("w", {DType::f32, {cols}});
  const Graph g = b.finish({cast(silu(x * w), DType::f16)});
  std::vector<Id> root(g.nodes.size());
  for (Id i = 0; i < g.nodes.size(); ++i) root[i] = is_input(g.nodes[i]) ? i : static_cast<Id>(g.nodes.size() - 1);
  return kernel_of(outline(g, root));
}

void expect_stored(const GpuKernel& kernel, const std::string& name) {
  for (const GpuTarget* target : gpu_targets()) {
    const std::string path = fmt::format("{}/gpu/{}.{}.txt", RLX_TEST_DATA, name, target->name);
    std::ifstream file(path);
    std::stringstream want;
    want << file.rdbuf();
    const std::string got = render(kernel, *target);
    EXPECT_EQ(got, want.str()) << path;
  }
}

TEST(GpuText, SoftmaxInEveryLanguage) { expect_stored(softmax_kernel(), "softmax"); }
TEST(GpuText, RegionInEveryLanguage) { expect_stored(region_kernel(), "region"); }

std::string refusal(const GpuKernel& k, const GpuTarget& target) {
  try {
    render(k, target);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(GpuText, RefusesWordsOfTheLanguages) {
  for (const char* word : {"half", "float4", "local", "device", "group_x", "sync"}) {
    EXPECT_EQ(refusal({"k", {{GpuParam::Kind::in, word, "f32"}}, {}, ""}, cuda_target),
              fmt::format("kernel k: {} is a word of a GPU language", word));
  }
  EXPECT_EQ(refusal({"k", {{GpuParam::Kind::in, "x", "f32"}}, {{"x", "f32", 4}}, ""}, cuda_target),
            "kernel k: the name x is used twice");
  const GpuKernel twice[] = {{"k", {}, {}, ""}, {"k", {}, {}, ""}};
  EXPECT_THROW(render(twice, cuda_target), Error);
}

TEST(GpuText, RefusesWhatALanguageLacks) {
  const GpuKernel wide{"k", {{GpuParam::Kind::in, "x", "f64"}}, {}, ""};
  EXPECT_EQ(refusal(wide, metal_target), "kernel k: metal has no f64");
  EXPECT_EQ(refusal(wide, opencl_target), "no error");
  EXPECT_EQ(refusal({"k", {}, {}, "  f64_bits(1);\n"}, metal_target), "kernel k: metal has no f64");
  EXPECT_EQ(refusal({"k", {}, {}, "  erf(1.0f);\n"}, metal_target), "kernel k: metal has no function erf");
  // softplus_f32 uses log1p.
  EXPECT_EQ(refusal({"k", {}, {}, "  softplus_f32(1.0f);\n"}, metal_target), "kernel k: metal has no function log1p");
}

TEST(GpuText, AddsTheFunctionsThatAreUsedAndWhatTheyUse) {
  const std::string text = render(GpuKernel{"k", {}, {}, "  f8e4m3_code(1.0f);\n"}, cuda_target);
  EXPECT_LT(text.find("small_code(f32 x"), text.find("f8e4m3_code(f32 x"));
  EXPECT_EQ(text.find("f16_code"), std::string::npos);
}

TEST(GpuText, NumbersAreExact) {
  EXPECT_EQ(gpu_number(DType::f32, 0.1), "0.100000001f");
  EXPECT_EQ(gpu_number(DType::f32, 2.0), "2.0f");
  EXPECT_EQ(gpu_number(DType::f32, -0.0), "(-0.0f)");
  EXPECT_EQ(gpu_number(DType::f32, 1e39), "bits_f32(0x7f800000u)");
  EXPECT_EQ(gpu_number(DType::f32, -INFINITY), "(-bits_f32(0x7f800000u))");
  EXPECT_EQ(gpu_number(DType::f64, 0.1), "0.10000000000000001");
  EXPECT_EQ(gpu_number(DType::i64, std::int64_t{-9223372036854775807 - 1}), "((i64)(-9223372036854775807 - 1))");
  EXPECT_EQ(gpu_number(DType::u8, std::int64_t{-1}), "((u8)255u)");
  EXPECT_EQ(gpu_number(DType::boolean, std::int64_t{1}), "true");
}

TEST(GpuText, EqualStructureGivesEqualTextForAnySize) {
  const auto text = [](std::vector<Dim> x, std::vector<Dim> y) {
    Builder b;
    const Value a = b.input("x", {DType::f32, std::move(x)}), c = b.input("y", {DType::f32, std::move(y)});
    return render(kernel_of(b.finish({a + c})), cuda_target);
  };
  EXPECT_EQ(text({2, 3}, {2, 3}), text({70000, 5, 9}, {70000, 5, 9}));
  EXPECT_EQ(text({2, 3}, {3}), text({8, 4, 5}, {4, 5}));
  EXPECT_NE(text({2, 3}, {3}), text({2, 3}, {2, 3}));
}

}  // namespace
}  // namespace rlx::test
