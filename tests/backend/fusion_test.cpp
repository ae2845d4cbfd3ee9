// Fusion bodies as one kernel on the OpenCL device against the reference of the unfused graph, bit by bit: random
// bodies of ops that round once, every cast of every bit pattern, and broadcasting in both directions.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "all_ops.h"
#include "conformance.h"
#include "core/error.h"
#include "gpu_runner.h"
#include "ir/builder.h"
#include "ir/outline.h"
#include "ir/print.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

#define RLX_NEEDS_OPENCL(device)                     \
  std::string why_not;                               \
  GpuDevice* const device = opencl_device(&why_not); \
  if (!device) GTEST_SKIP() << "no OpenCL device: " << why_not

// All nodes but inputs as one fusion.
Graph fused(const Graph& g) {
  std::vector<Id> root(g.nodes.size());
  for (Id i = 0; i < g.nodes.size(); ++i) {
    root[i] = is_input(g.nodes[i]) ? i : static_cast<Id>(g.nodes.size() - 1);
  }
  return outline(g, root);
}

void expect_same(GpuDevice& device, const Graph& g, const std::vector<Tensor>& inputs, const Tolerance& tolerance) {
  const Graph f = fused(g);
  int fusions = 0;
  for (const Node& n : f.nodes) fusions += n.op == &fusion_op();
  ASSERT_EQ(fusions, 1) << print(f);
  const std::vector<Tensor> want = evaluate(g, inputs), got = run_on(device, f, inputs);
  for (std::size_t r = 0; r < want.size(); ++r) {
    const Difference d = compare(got[r], want[r], tolerance);
    EXPECT_TRUE(d.ok) << "result " << r << " " << d.where << "\n" << print(g);
  }
}

constexpr DType types[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32,
                           DType::i64, DType::i8,  DType::u8,   DType::u32, DType::boolean};

// Draws bodies of ops whose f32, f64 and integer results are exact or rounded once.
class Bodies {
 public:
  explicit Bodies(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % n; }

  Graph draw(int nodes) {
    Builder b;
    values_.clear();
    const Dim rows = Dim::symbol("B", 1, 8), cols = Dim::symbol("S", 0, 64);
    full_ = {rows, 3, cols};
    const std::vector<std::vector<Dim>> shapes{full_, {3, 1}, {cols}, {1, 1, cols}, {}, {rows, 1, 1}};
    for (std::size_t i = 0; i < 4; ++i) {
      values_.push_back(
          b.input("x" + std::to_string(i), {types[below(std::size(types))], shapes[below(shapes.size())]}));
    }
    values_.push_back(b.input("whole", {DType::f32, full_}));
    for (int i = 0; i < nodes; ++i) values_.push_back(node(b));
    const Value first = broadcast(values_[values_.size() / 2], full_), last = broadcast(values_.back(), full_);
    // Both results are computed, and the last node is used.
    const Value other = bitwise_not(not_equal(values_.back(), values_.back()));
    return b.finish({first, last, broadcast(other, full_)});
  }

  Tensor fill(const TensorType& t, Index rows, Index cols) {
    CaseInput in(t);
    in.range(is_float(t.dtype) ? -9.0 : is_unsigned_integer(t.dtype) ? 0 : -100, is_float(t.dtype) ? 9 : 100);
    Tensor x = test::fill(in, {{"B", rows}, {"S", cols}}, static_cast<unsigned>(random_()));
    if (is_float(t.dtype) && x.count() > 4) {
      std::vector<double> v = load<double>(x);
      v[0] = std::nan("");
      v[1] = -0.0;
      v[2] = INFINITY;
      v[3] = 1e-40;
      store(x, v);
    }
    return x;
  }

 private:
  Value any() { return values_[below(values_.size())]; }
  Value of(DType t) { return cast(any(), t); }

  Value node(Builder& b) {
    const DType t = types[below(std::size(types))];
    const Value x = of(t);
    if (below(6) == 0) return cast(any(), t);
    if (below(12) == 0) return cast(iota(b, DType::i64, full_, static_cast<Index>(below(3))), t);
    if (t == DType::boolean) return boolean(x);
    switch (below(is_float(t) ? 14 : 12)) {
      case 0:
        return x + of(t);
      case 1:
        return x - of(t);
      case 2:
        return x * of(t);
      case 3:
        return maximum(x, of(t));
      case 4:
        return minimum(x, of(t));
      case 5:
        return select(of(DType::boolean), x, of(t));
      case 6:
        return less(x, of(t));
      case 7:
        return equal(x, of(t));
      case 8:
        return is_float(t) ? x / of(t) : x / like(x, 7);
      case 9:
        return is_float(t) ? fmod(x, of(t)) : bitwise_xor(x, of(t));
      case 10:
        return is_float(t) ? sqrt(abs(x)) : shift_right(x, like(x, 3));
      case 11:
        return relu(x);
      case 12:
        return round(x);
      default:
        return x * like(x, 0.3);
    }
  }

  Value boolean(Value x) {
    switch (below(3)) {
      case 0:
        return bitwise_and(x, of(DType::boolean));
      case 1:
        return bitwise_or(x, of(DType::boolean));
      default:
        return bitwise_not(x);
    }
  }

  std::mt19937 random_;
  std::vector<Value> values_;
  std::vector<Dim> full_;
};

void check_random_bodies(GpuDevice& device, unsigned first, unsigned count) {
  for (unsigned seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Bodies bodies(seed);
    const Graph g = bodies.draw(12);
    for (const auto& [rows, cols] : {std::pair<Index, Index>{2, 37}, {1, 1}, {5, 0}}) {
      std::vector<Tensor> inputs;
      for (const Id i : g.inputs) inputs.push_back(bodies.fill(g.nodes[i].results[0], rows, cols));
      try {
        expect_same(device, g, inputs, exact);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what() << "\n" << print(g);
      }
    }
  }
}

TEST(OpenclFusion, RandomBodiesGiveTheBitsOfTheUnfusedGraph) {
  RLX_NEEDS_OPENCL(device);
  check_random_bodies(*device, 1, 2);
}

TEST(BulkOpenclFusion, RandomBodiesGiveTheBitsOfTheUnfusedGraph) {
  RLX_NEEDS_OPENCL(device);
  check_random_bodies(*device, 100, 100);
}

// Every pattern of 16 bits, or for wider types all short ones, edges and random ones.
Tensor patterns(DType type) {
  const int width = bits(type);
  std::vector<std::uint64_t> codes;
  for (std::uint64_t i = 0; i < (width == 8 ? 256U : 65536U); ++i) codes.push_back(i);
  if (type == DType::boolean) codes = {0, 1};
  if (width > 16) {
    std::mt19937_64 random(3);
    for (std::uint64_t& c : codes) {
      c = random();
      if (is_integer(type)) c >>= random() % 64;                               // all magnitudes
      if (random() % 2 == 0) c &= ~((std::uint64_t{1} << random() % 60) - 1);  // ties of shorter types
      if (random() % 4 == 0 && is_integer(type)) c = ~c + 1;
    }
    for (const double v : {0.0, -0.0, 65519.996, 65520.0, 3.39e38, 1e39, 1e-46, 448.0, 465.0, 2147483648.0, 9.3e18,
                           -9.3e18, 1.9e19, 5.9604644775390625e-8, 2.98e-8, 0.5, 127.5, 255.5}) {
      codes.push_back(is_float(type) ? encode_float(type, v) : encode_integer(type, v));
    }
  }
  Tensor t(type, {static_cast<Index>(codes.size())});
  for (std::size_t i = 0; i < codes.size(); ++i) t.set_code(static_cast<Index>(i), codes[i]);
  return t;
}

void check_casts_from(GpuDevice& device, DType from) {
  SCOPED_TRACE(name(from));
  const Tensor x = patterns(from);
  Builder b;
  const Value in = b.input("x", x.type());
  Values out;
  for (const DType to : all_dtypes()) {
    if (bits(to) >= 8 && !is_complex(to) && to != from) out.push_back(cast(in, to));
  }
  expect_same(device, b.finish(out), {x}, exact);
}

TEST(OpenclFusion, CastsFromI64RoundOnce) {
  RLX_NEEDS_OPENCL(device);
  check_casts_from(*device, DType::i64);
}

TEST(BulkOpenclFusion, CastsOfEveryPatternBetweenAllTypes) {
  RLX_NEEDS_OPENCL(device);
  for (const DType from : all_dtypes()) {
    if (bits(from) >= 8 && !is_complex(from)) check_casts_from(*device, from);
  }
}

TEST(OpenclFusion, HalvesAreRoundedAtEachStep) {
  RLX_NEEDS_OPENCL(device);
  Builder b;
  const Value x = b.input("x", {DType::f16, {3}});
  // 2048 + 1 is 2048 in f16; without the rounding in between the result would be 1.
  const Graph g = b.finish({(x + like(x, 1)) - x});
  expect_same(*device, g, {Tensor::of<double>(DType::f16, {3}, {2048, 4096, 1})}, exact);
  const std::vector<Tensor> y =
      run_on(*device, fused(g), std::vector{Tensor::of<double>(DType::f16, {3}, {2048, 4096, 1})});
  EXPECT_EQ(load<double>(y[0]), (std::vector<double>{0, 0, 1}));
}

TEST(OpenclFusion, ProductsAndSumsAreNotContracted) {
  RLX_NEEDS_OPENCL(device);
  Builder b;
  const Value x = b.input("x", {DType::f32, {1}}), y = b.input("y", {DType::f32, {1}}),
              z = b.input("z", {DType::f32, {1}});
  const Graph g = b.finish({x * y + z});
  const float a = 1 + std::ldexp(1.0f, -12);
  const auto one = [](double v) { return Tensor::of<double>(DType::f32, {1}, {v}); };
  // a * a is 1 + 2^-11 + 2^-24, of which f32 keeps 1 + 2^-11; an fma would keep the rest.
  const std::vector<Tensor> out =
      run_on(*device, fused(g), std::vector{one(a), one(a), one(-1 - std::ldexp(1.0, -11))});
  EXPECT_EQ(load<double>(out[0])[0], 0);
}

TEST(OpenclFusion, ActivationsInAllFloats) {
  RLX_NEEDS_OPENCL(device);
  for (const DType t : {DType::f32, DType::bf16}) {
    SCOPED_TRACE(name(t));
    Builder b;
    const Dim s = Dim::symbol("S", 1, 64);
    const Value x = b.input("x", {t, {s, 5}}), w = b.input("w", {t, {5}});
    const Graph g = b.finish({gelu(x + w), silu(x * w)});
    const std::vector<Tensor> inputs{fill(CaseInput(t, {31, 5}).range(-4, 4), {}, 1), fill(CaseInput(t, {5}), {}, 2)};
    expect_same(*device, g, inputs, relative(2e-6));
  }
}

TEST(OpenclFusion, DeclinesWhatOneLoopCannotDo) {
  const auto why = [&](const Graph& g, bool f64 = true) {
    Recorder recorder({.name = "recorder", .f64 = f64, .group_size = 1024});
    std::string reason;
    EXPECT_FALSE(recorder.take(fused(g), &reason));
    return reason;
  };
  {
    Builder b;
    const Value x = b.input("x", {DType::f32, {2, 3}});
    EXPECT_EQ(why(b.finish({-x, sum(-x, {0})})), "the results differ in size");
  }
  {
    Builder b;
    const Value x = b.input("x", {DType::f32, {2, 3}});
    EXPECT_EQ(why(b.finish({softmax(-x) + x})), "op softmax has no GPU text");
  }
  {
    Builder b;
    const Value x = b.input("x", {DType::i32, {2}}), y = b.input("y", {DType::i32, {2}});
    EXPECT_NE(why(b.finish({(x + y) / y})).find("may have to fail for 0"), std::string::npos);
  }
  {
    Builder b;
    const Value x = b.input("x", {DType::f32, {2}});
    const Value c = constant(b, Tensor::of<double>(DType::f32, {2}, {1, 2}));
    EXPECT_EQ(why(b.finish({x * c + x})), "a constant of different elements inside a region has no text");
  }
  {
    Builder b;
    const Value x = b.input("x", {DType::f32, {2}});
    EXPECT_EQ(why(b.finish({cast(cast(x, DType::f64) * cast(x, DType::f64), DType::f32)}), false),
              "recorder has no f64");
  }
}

}  // namespace
}  // namespace rlx::test
