// Runs at sizes that were seen before allocate nothing: every operator new of the process is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "all_ops.h"
#include "backend/cpu/cpu_device.h"
#include "ir/control.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RLX_COUNT_BY_HOOK
#endif
#endif

namespace {
std::atomic<long> allocations = 0;
}

#ifdef RLX_COUNT_BY_HOOK

// ThreadSanitizer has its own operator new, and tells of every allocation.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                                         void (*)(const volatile void*));
namespace {
[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { ++allocations; }, [](const volatile void*) {});
}  // namespace

#else

namespace {
void* counted(std::size_t size, std::size_t alignment) {
  ++allocations;
  void* const p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!p) throw std::bad_alloc();
  return p;
}
}  // namespace

void* operator new(std::size_t size) { return counted(size ? size : 1, 16); }
void* operator new(std::size_t size, std::align_val_t a) {
  return counted(size ? size : 1, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

#endif

namespace rlx {
namespace {

// A layer with every kind of step: gather, matmul, attention, norm, elementwise, softmax, reduction.
Graph layer_graph(const Dim& batch, const Dim& length) {
  Builder b;
  const Value ids = b.input("ids", {DType::i64, {batch, length}});
  const auto weight = [&](std::vector<Index> shape) {
    Tensor t(DType::f32, std::move(shape));
    std::vector<double> v(static_cast<std::size_t>(t.count()));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i * 7 % 13) * 0.05 - 0.3;
    store<double>(t, v);
    return constant(b, std::move(t));
  };
  const Value x = gather(weight({50, 32}), ids, 0);
  const Value q = matmul(x, weight({32, 32})), k = matmul(x, weight({32, 32})), v = matmul(x, weight({32, 32}));
  const Value mixed = matmul(softmax(matmul(q, k, {.transpose_b = true})), v);
  const Value normed = layer_norm(x + mixed, weight({32}), weight({32}));
  const Value wide = gelu(matmul(normed, weight({32, 64})) + weight({64}));
  return b.finish({mean(matmul(wide, weight({64, 32})), {1})});
}

long allocations_of(const Executable& exe, std::span<const BoundInput> in, std::span<const BoundOutput> out) {
  const long before = allocations;
  exe.run(in, out);
  return allocations - before;
}

void expect_no_allocations(int threads) {
  const Executable exe =
      cpu_session({.threads = threads}).compile(layer_graph(Dim::symbol("B", 1, 8), Dim::symbol("S", 1, 64)));
  const InputHandle ids = exe.input("ids");
  const OutputHandle y = exe.output(0);
  const std::vector<std::int64_t> values(8 * 64, 3);
  std::vector<float> result(8 * 32);
  const Index sizes[][2] = {{1, 5}, {8, 64}, {3, 17}};
  const auto run = [&](const Index* shape) {
    const Index out_shape[] = {shape[0], 32};
    const BoundInput in[] = {ids.bind({DType::i64, std::span(shape, 2), values.data()})};
    const BoundOutput out[] = {y.bind({DType::f32, out_shape, result.data()})};
    return allocations_of(exe, in, out);
  };
  long first = 0;
  for (const auto& shape : sizes) first += run(shape);
  EXPECT_GT(first, 0) << "the counter does not count";
  for (int round = 0; round < 3; ++round) {
    for (const auto& shape : sizes) EXPECT_EQ(run(shape), 0) << "sizes " << shape[0] << ", " << shape[1];
  }
}

TEST(Allocation, NoneInLoopsAndBranches) {
  Builder b;
  const Dim rows = Dim::symbol("S", 0, 64);
  const TensorType row{DType::f32, {16}};
  const auto body = [](const std::vector<TensorType>& types, auto make) {
    Builder inner;
    Values in;
    for (const TensorType& t : types) in.push_back(inner.input("p" + std::to_string(in.size()), t));
    return std::make_shared<const Graph>(inner.finish(Values(make(in))));
  };
  const Value xs = b.input("xs", {DType::f32, {rows, 16}}), begin = b.input("h", row);
  const GraphPtr trip = body({row, row}, [&](const Values& v) {
    const GraphPtr yes = body({row, row}, [&](const Values& p) { return Values{tanh(p[0] + p[1])}; });
    const GraphPtr no = body({row, row}, [&](const Values& p) {
      const GraphPtr half = body({row}, [](const Values& q) {
        const Value next = q[0] * like(q[0], 0.5);
        return Values{greater(sum(next, {0}), like(next, 1)), next};
      });
      const Value c = greater(sum(p[0], {0}), like(p[0], 1));
      return Values{while_loop(c, std::span(&p[0], 1), {}, half)[0] - p[1]};
    });
    const Value next = if_else(greater(sum(v[1], {0}), like(v[1], 0)), v, yes, no)[0];
    return Values{next, next};
  });
  const Value operands[] = {begin, xs};
  const Values made = scan(b, {.trips = rows, .carried = 1, .scanned = 1}, operands, trip);
  const Executable exe = cpu_session({.threads = 2}).compile(b.finish(made));
  std::vector<float> x(64 * 16), h(16, 1), last(16), all(64 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 37) - 18;
  const auto run = [&](Index count) {
    const Index many[] = {count, 16}, one[] = {16};
    const BoundInput in[] = {exe.input("xs").bind({DType::f32, many, x.data()}),
                             exe.input("h").bind({DType::f32, one, h.data()})};
    const BoundOutput out[] = {exe.output(0).bind({DType::f32, one, last.data()}),
                               exe.output(1).bind({DType::f32, many, all.data()})};
    return allocations_of(exe, in, out);
  };
  for (const Index count : {5, 64, 0}) EXPECT_GT(run(count), 0);
  for (const Index count : {5, 64, 0, 64}) EXPECT_EQ(run(count), 0) << count << " trips";
}

TEST(Allocation, NoneAtSizesSeenBefore) { expect_no_allocations(1); }
TEST(Allocation, NoneOnSeveralThreads) { expect_no_allocations(3); }

}  // namespace
}  // namespace rlx
