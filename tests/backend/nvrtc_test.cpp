// GPU kernels as CUDA, compiled by NVRTC, which needs no GPU.
#include "backend/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include <map>

#include "all_ops.h"
#include "conformance.h"
#include "core/error.h"
#include "gpu_runner.h"
#include "ir/builder.h"
#include "ir/outline.h"

namespace rlx::test {
namespace {

#define RLX_NEEDS_NVRTC() \
  std::string why_not;    \
  if (!has_nvrtc(&why_not)) GTEST_SKIP() << "no NVRTC: " << why_not

// The kernels of all cases of an op, in the element types that are stated, or in all; equal texts once.
void add_kernels(const OpDef& op, bool all_types, std::map<std::string, GpuKernel>& by_text) {
  for (const AnyCase& c : op.cases()) {
    std::vector<std::map<DType, DType>> variants{{}};
    if (all_types && c.common.other_dtypes) {
      for (const DType d : {DType::f64, DType::f16, DType::bf16}) variants.push_back({{DType::f32, d}});
      for (const DType d : {DType::i64, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16, DType::u8}) {
        variants.push_back({{DType::i32, d}});
      }
    }
    for (const auto& replace : variants) {
      Recorder recorder;
      try {
        recorder.take(bind_case(op, c, replace, 1).graph);
      } catch (const Error&) {
        continue;  // inference refuses the element type
      }
      for (GpuKernel& k : recorder.kernels) by_text.emplace(render(k, cuda_target), std::move(k));
    }
  }
}

// Compiles kernels, many to a program; a program that fails is compiled kernel by kernel to say which.
std::size_t compile_all(const std::map<std::string, GpuKernel>& by_text,
                        std::initializer_list<const char*> architectures) {
  std::vector<GpuKernel> all;
  for (const auto& [text, kernel] : by_text) {
    all.push_back(kernel);
    all.back().name += fmt::format("_{}", all.size());
  }
  constexpr std::size_t at_once = 64;
  for (std::size_t i = 0; i < all.size(); i += at_once) {
    const auto some = std::span(all).subspan(i, std::min(at_once, all.size() - i));
    for (const char* architecture : architectures) {
      try {
        const CudaBinary binary = compile_cuda(render(some, cuda_target), "some", architecture);
        EXPECT_GT(binary.cubin.size(), 100U);
        for (const GpuKernel& k : some) EXPECT_NE(binary.ptx.find(".entry " + k.name + "("), std::string::npos);
      } catch (const DeviceError&) {
        for (const GpuKernel& k : some) EXPECT_NO_THROW(compile_cuda(render(k, cuda_target), k.name, architecture));
      }
    }
  }
  return all.size();
}

TEST(Nvrtc, KernelsOfSomeOpsCompile) {
  RLX_NEEDS_NVRTC();
  std::map<std::string, GpuKernel> kernels;
  for (const OpDef* op : gpu_ops()) {
    const std::string_view name = op->name();
    if (name == "softmax" || name == "gelu" || name == "iota") add_kernels(*op, false, kernels);
  }
  EXPECT_GE(compile_all(kernels, {"sm_80", "sm_90"}), 8U);
}

// Every kernel of every case in every element type.
TEST(BulkNvrtc, KernelsOfEveryCaseCompile) {
  RLX_NEEDS_NVRTC();
  std::map<std::string, GpuKernel> kernels;
  for (const OpDef* op : gpu_ops()) add_kernels(*op, true, kernels);
  const std::size_t count = compile_all(kernels, {"sm_80", "sm_90"});
  EXPECT_GE(count, 300U);
  RecordProperty("kernels", static_cast<int>(count));
  std::printf("%zu kernels\n", count);
}

GpuKernel kernel_of(const Graph& g) {
  Recorder recorder;
  std::string why;
  require(recorder.take(g, &why), "{}", why);
  return recorder.kernels.at(0);
}

TEST(Nvrtc, F32KernelsHaveNoF64AndNoContraction) {
  RLX_NEEDS_NVRTC();
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}}), y = b.input("y", {DType::f32, {4}});
  const Value r = x * y + x;
  std::vector<Id> root{0, 1, 3, 3};
  const Graph g = outline(b.finish({r}), root);
  const std::string ptx = compile_cuda(render(kernel_of(g), cuda_target), "elementwise", "sm_90").ptx;
  EXPECT_NE(ptx.find("mul"), std::string::npos);
  EXPECT_EQ(ptx.find("fma"), std::string::npos) << ptx;
  for (const OpDef* op : gpu_ops()) {
    if (op->name() != "gelu" && op->name() != "mish" && op->name() != "sigmoid") continue;
    Builder one;
    const Values v = one.emit(*op, Attrs(NoAttrs{}), Values{one.input("x", {DType::f32, {4}})});
    const GpuKernel k = kernel_of(one.finish(v));
    EXPECT_EQ(compile_cuda(render(k, cuda_target), k.name, "sm_80").ptx.find(".f64"), std::string::npos) << k.name;
  }
}

TEST(Nvrtc, ATextThatDoesNotBuildIsADeviceErrorWithTheLog) {
  RLX_NEEDS_NVRTC();
  EXPECT_GE(nvrtc_version().size(), 3U);
  try {
    compile_cuda("extern \"C\" __global__ void k() { unknown_name(); }", "k", "sm_80");
    FAIL() << "it builds";
  } catch (const DeviceError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("kernel k does not build for sm_80"), std::string::npos) << text;
    EXPECT_NE(text.find("identifier \"unknown_name\" is undefined"), std::string::npos) << text;
  }
  EXPECT_THROW(compile_cuda("extern \"C\" __global__ void k() {}", "k", "sm_1"), DeviceError);
}

}  // namespace
}  // namespace rlx::test
