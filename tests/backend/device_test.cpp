// The OpenCL device itself: memory, copies, strided operands, concurrent launches, and kernels that do not build.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "all_ops.h"
#include "conformance.h"
#include "core/error.h"
#include "device/library.h"
#include "gpu_runner.h"
#include "ir/builder.h"
#include "runtime/evaluate.h"

#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "backend/opencl/api.h"
#endif

namespace rlx::test {
namespace {

class OpenclDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    device_ = opencl_device(&why);
    if (!device_) GTEST_SKIP() << "no OpenCL device: " << why;
  }
  std::byte* memory(Index bytes) {
    held_.push_back(device_->allocate(bytes));
    return held_.back();
  }
  std::byte* memory(const Tensor& t) {
    std::byte* const p = memory(static_cast<Index>(t.bytes().size()));
    device_->upload(p, t.bytes());
    return p;
  }
  Tensor back(const std::byte* from, DType type, std::vector<Index> shape) {
    Tensor t(type, std::move(shape));
    device_->download(t.mutable_bytes(), from);
    return t;
  }
  void TearDown() override {
    for (std::byte* p : held_) device_->release(p);
  }

  GpuDevice* device_ = nullptr;
  std::vector<std::byte*> held_;
};

Tensor counted(DType type, std::vector<Index> shape, double step = 1) {
  Tensor t(type, std::move(shape));
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = step * static_cast<double>(i % 101) - 3;
  store(t, v);
  return t;
}

TEST_F(OpenclDeviceTest, CopiesFillsAndCountsItsMemory) {
  EXPECT_EQ(device_->info().name, "opencl");
  EXPECT_FALSE(device_->info().description.empty());
  EXPECT_GT(device_->info().memory, 0);
  EXPECT_GE(device_->info().group_size, 64);
  const Tensor x = counted(DType::f32, {1000});
  std::byte *const a = memory(x), *const b = memory(4096);
  EXPECT_TRUE(a != b);
  device_->fill(b, 4096, std::byte{7});
  device_->copy(b + 4, a + 400, 3600);
  device_->synchronize();
  const Tensor y = back(b, DType::f32, {1024});
  const std::vector<double> got = load<double>(y), want = load<double>(x);
  for (std::size_t i = 0; i < 900; ++i) EXPECT_EQ(got[i + 1], want[i + 100]);
  EXPECT_EQ(y.code(0), 0x07070707U);
  EXPECT_EQ(y.code(901), 0x07070707U);
  std::byte* const none = device_->allocate(0);
  EXPECT_NE(none, nullptr);
  device_->release(none);
  device_->release(nullptr);
}

TEST_F(OpenclDeviceTest, AnAddressOutsideEveryAllocationIsOurFault) {
  std::byte* const a = memory(64);
  std::byte bytes[65]{};
  EXPECT_THROW(device_->upload(a, bytes), InternalError);
  EXPECT_THROW(device_->upload(a + 64, std::span(bytes, 1)), InternalError);
}

TEST_F(OpenclDeviceTest, MemoryThatIsNotThereIsADeviceError) {
  EXPECT_THROW(device_->allocate(Index{1} << 46), DeviceError);
  const Tensor x = counted(DType::f32, {10});
  EXPECT_TRUE(identical(back(memory(x), DType::f32, {10}), x));
}

TEST_F(OpenclDeviceTest, StridedCopiesOfEveryWidth) {
  for (const DType type : {DType::u8, DType::boolean, DType::f16, DType::f32, DType::f64, DType::c64}) {
    SCOPED_TRACE(name(type));
    const Tensor x = counted(type, {5, 7});
    std::byte *const from = memory(x), *const to = memory(static_cast<Index>(x.bytes().size()));
    const Slot transposed{0, {type, {7, 5}}, 0, {1, 7}}, dense{1, {type, {7, 5}}};
    const auto address = [&](BufferId b) { return b == 0 ? from : to; };
    BoundStep(device_->copy_step(transposed, dense), {}, address).run_all();
    const Tensor y = back(to, type, {7, 5});
    for (Index r = 0; r < 7; ++r) {
      for (Index c = 0; c < 5; ++c) EXPECT_EQ(y.code(r * 5 + c), x.code(c * 7 + r));
    }
  }
  const Tensor x = counted(DType::f32, {5, 7});  // to other sizes
  std::byte *const from = memory(x), *const to = memory(140);
  const Step step = device_->copy_step({0, {DType::f32, {7, 5}}, 0, {1, 7}}, {1, {DType::f32, {35}}});
  BoundStep(step, {}, [&](BufferId b) { return b == 0 ? from : to; }).run_all();
  EXPECT_EQ(back(to, DType::f32, {35}).code(6), x.code(8));
  const Slot small{0, {DType::i4, {7, 5}}, 0, {1, 7}};
  EXPECT_THROW(device_->copy_step(small, {1, {DType::i4, {7, 5}}}), Error);
}

// The result of one node whose operand is stored transposed, at an offset.
Tensor of_transposed(GpuDevice& device, const Graph& g, const Tensor& stored, const Slot& in, std::byte* from,
                     std::byte* to) {
  const Node& n = g.nodes.back();
  const Slot x[] = {in}, y[] = {{1, n.results[0]}};
  std::string why;
  const std::optional<Step> step = device.makers().make({n, x, y, &why});
  require(step.has_value(), "{} declines strides: {}", n.op->name(), why);
  device.upload(from, stored.bytes());
  BoundStep(*step, {}, [&](BufferId b) { return b == 0 ? from : to; }).run_all();
  std::vector<Index> shape;
  for (const Dim& d : n.results[0].dims) shape.push_back(d.constant());
  Tensor out(n.results[0].dtype, shape);
  device.download(out.mutable_bytes(), to);
  return out;
}

TEST_F(OpenclDeviceTest, KernelsReadStridedOperands) {
  const Tensor stored = counted(DType::f32, {9, 6}, 0.037);
  Tensor x(DType::f32, {4, 9});  // columns 2 to 5 of `stored`, transposed
  for (Index r = 0; r < 4; ++r) {
    for (Index c = 0; c < 9; ++c) x.set_code(r * 9 + c, stored.code(c * 6 + r + 2));
  }
  const Slot in{0, x.type(), 8, {1, 6}};
  std::byte *const from = memory(4096), *const to = memory(4096);
  for (int op = 0; op < 5; ++op) {
    Builder b;
    const Value v = b.input("x", x.type());
    const Graph g = b.finish({op == 0   ? -v
                              : op == 1 ? softmax(v, 0)
                              : op == 2 ? softmax(v, 1)
                              : op == 3 ? sum(v, {0})
                                        : broadcast(v, {3, 4, 9})});
    SCOPED_TRACE(g.nodes.back().op->name());
    const Tensor got = of_transposed(*device_, g, stored, in, from, to);
    const Difference d = compare(got, evaluate(g, std::vector{x})[0], relative(1e-6));
    EXPECT_TRUE(d.ok) << d.where;
  }
}

TEST_F(OpenclDeviceTest, LongSumsAreTreesThatDoNotDependOnOtherRows) {
  const Tensor x = fill(CaseInput(DType::f32, {3, 100003}).range(0, 1), {}, 4);
  const auto sums = [&](const Tensor& t) {
    Builder b;
    const Graph g = b.finish({sum(b.input("x", t.type()), {1})});
    const std::vector<Tensor> got = run_on(*device_, g, std::vector{t});
    const Difference d = compare(got[0], evaluate(g, std::vector{t})[0], relative(1e-6));
    EXPECT_TRUE(d.ok) << d.where;
    return got[0];
  };
  const Tensor all = sums(x);
  EXPECT_TRUE(identical(all, sums(x)));
  Tensor row(DType::f32, {1, 100003});
  for (Index i = 0; i < 100003; ++i) row.set_code(i, x.code(100003 + i));
  EXPECT_EQ(sums(row).code(0), all.code(1));
}

TEST_F(OpenclDeviceTest, OneStepRunsFromManyThreads) {
  const Dim n = Dim::symbol("N", 1, 5000);
  Builder b;
  const TensorType type(DType::f32, {n});
  const Value x = b.input("x", type);
  const Graph g = b.finish({x + x});
  const Slot slots[] = {{0, type}, {0, type}}, out[] = {{1, type}};
  const std::optional<Step> step = device_->makers().make({g.nodes.back(), slots, out});
  ASSERT_TRUE(step.has_value());
  std::vector<std::jthread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (Index i = 0; i < 50; ++i) {
        const Index count = 17 + 97 * i;
        const Tensor in = counted(DType::f32, {count}, static_cast<double>(t + 1));
        std::byte *const from = device_->allocate(count * 4), *const to = device_->allocate(count * 4);
        device_->upload(from, in.bytes());
        BoundStep(*step, {{"N", count}}, [&](BufferId id) { return id == 0 ? from : to; }).run_all();
        const std::vector<double> y = load<double>(back(to, DType::f32, {count})), v = load<double>(in);
        for (std::size_t k = 0; k < y.size(); ++k) wrong[t] += y[k] != 2 * v[k];
        device_->release(from);
        device_->release(to);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

Launch double_all(const Slot& in, const Slot& out) {
  const Dim count = in.type.count();
  LaunchBuilder b("double_all");
  b.read("x", in);
  b.write("y", out);
  b.size("count", count);
  return b.launch(ceildiv(count, 256), 256, R"(
  const i64 i = group_x * size_x + local_x;
  if (i < count) y[i] = x[i] + x[i];
)");
}

TEST_F(OpenclDeviceTest, AKernelThatDoesNotBuildIsADeviceErrorWithTheLog) {
  try {
    LaunchBuilder b("broken");
    device_->compile(b.launch(1, 64, "  unknown_name = 1;\n"));
    FAIL() << "it builds";
  } catch (const DeviceError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("kernel broken does not build"), std::string::npos) << text;
    EXPECT_NE(text.find("unknown_name"), std::string::npos) << text;
    EXPECT_NE(text.find("error"), std::string::npos) << "the compiler's log is missing: " << text;
  }
  const Tensor x = counted(DType::f32, {10});
  std::byte *const from = memory(x), *const to = memory(40);
  const TensorType type(DType::f32, {10});
  const Step step = device_->compile(double_all({0, type}, {1, type}));
  BoundStep(step, {}, [&](BufferId b) { return b == 0 ? from : to; }).run_all();
  EXPECT_EQ(load<double>(back(to, DType::f32, {10}))[9], 2 * load<double>(x)[9]);
}

TEST_F(OpenclDeviceTest, GroupsThatAreTooLargeAreADeviceError) {
  LaunchBuilder b("wide");
  b.write("y", {0, {DType::f32, {10}}});
  EXPECT_THROW(device_->compile(b.launch(1, Index{1} << 30, "  y[0] = 0;\n")), DeviceError);
}

TEST_F(OpenclDeviceTest, DevicesThatAreNotThereAreADeviceError) {
  EXPECT_THROW(open_opencl(opencl_devices().size()), DeviceError);
}

TEST(Device, LibrariesThatAreNotThereAreADeviceError) {
  EXPECT_THROW(Library({"libthat_is_not_there.so.1"}), DeviceError);
}

#if __has_include(<CL/cl.h>)
// The declarations of the backend against those of the standard's headers.
static_assert(cl::success == CL_SUCCESS && cl::device_not_found == CL_DEVICE_NOT_FOUND);
static_assert(cl::build_program_failure == CL_BUILD_PROGRAM_FAILURE);
static_assert(cl::false_value == CL_FALSE && cl::true_value == CL_TRUE);
static_assert(cl::platform_name == CL_PLATFORM_NAME && cl::platform_version == CL_PLATFORM_VERSION);
static_assert(cl::device_max_group_size == CL_DEVICE_MAX_WORK_GROUP_SIZE);
static_assert(cl::device_single_config == CL_DEVICE_SINGLE_FP_CONFIG);
static_assert(cl::device_double_config == CL_DEVICE_DOUBLE_FP_CONFIG);
static_assert(cl::device_memory == CL_DEVICE_GLOBAL_MEM_SIZE && cl::device_name == CL_DEVICE_NAME);
static_assert(cl::driver_version == CL_DRIVER_VERSION && cl::device_version == CL_DEVICE_VERSION);
static_assert(cl::context_platform == CL_CONTEXT_PLATFORM && cl::build_log == CL_PROGRAM_BUILD_LOG);
static_assert(cl::kernel_group_size == CL_KERNEL_WORK_GROUP_SIZE);
static_assert(cl::device_type_all == CL_DEVICE_TYPE_ALL && cl::mem_read_write == CL_MEM_READ_WRITE);
static_assert(cl::fp_correct_divide_sqrt == CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
#endif

}  // namespace
}  // namespace rlx::test
