// Steps of softmax, log_softmax, layer_norm and rms_norm at every level: the cases of the ops, all element types, bits
// that do not depend on other rows or on pieces, sums in front of norms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "conformance.h"
#include "core/error.h"
#include "levels.h"
#include "node_steps.h"
#include "ops/attention/attention.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/layer_norm/layer_norm.kernel.h"
#include "ops/rope/rope.h"
#include "ops/scalar/scalar.h"
#include "ops/softmax/softmax.h"
#include "passes/fuse_norm.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

const std::map<DType, DType> element_types[] = {
    {}, {{DType::f32, DType::f64}}, {{DType::f32, DType::f16}}, {{DType::f32, DType::bf16}}};

// Runs every case of an op through its steps; returns how many ran, by element type of the first operand.
std::map<DType, int> run_cases(const OpDef& op, const std::map<DType, DType>& replace) {
  std::map<DType, int> ran;
  unsigned seed = 3;
  std::size_t index = 0;
  for (const AnyCase& c : op.cases()) {
    SCOPED_TRACE("case " + std::to_string(index++) + " {" + c.attrs.print() + "}");
    std::optional<Bound> b;
    try {
      b = bind_case(op, c, replace, seed += 7);
    } catch (const Error&) {
      continue;  // inference refuses the element type
    }
    if (!replace.empty() && (!c.common.other_dtypes || b->inputs[0].dtype() != replace.begin()->second)) continue;
    std::string why;
    const auto got = run_node(b->graph, placed(b->inputs), b->dims, 0, false, &why);
    if (!got) {
      EXPECT_EQ(b->inputs[0].dtype(), DType::f64) << why;
      continue;
    }
    const std::vector<Tensor> want = evaluate(b->graph, b->inputs, {false, b->dims});
    const Difference d = compare((*got)[0], want[0], c.common.tolerance);
    EXPECT_TRUE(d.ok) << d.where;
    for (const Index piece : {1, 3}) {
      const auto again = run_node(b->graph, placed(b->inputs), b->dims, piece, true);
      EXPECT_TRUE(identical((*again)[0], (*got)[0])) << "in pieces of " << piece;
    }
    ++ran[b->inputs[0].dtype()];
  }
  return ran;
}

TEST(NormKernels, StreamedRowsHaveTheSameBits) {
  at_every_level([] {
    for (const Index cols : {Index{1}, Index{16}, Index{33}, Index{1024}, Index{1040}}) {
      const auto count = static_cast<std::size_t>(3 * cols);
      std::vector<float> x(count), gamma(static_cast<std::size_t>(cols), 1.5f), plain(count);
      for (std::size_t i = 0; i < count; ++i) x[i] = std::sin(static_cast<float>(i)) + 3;
      const Bytes room = Bytes::allocate(3 * cols * 4 + 64);  // aligned to packs
      float* streamed = reinterpret_cast<float*>(const_cast<std::byte*>(room.data.data()));
      for (const int shift : {0, 1}) {  // a result off the boundary of a pack is written as ever
        for (const auto kernel : {norm_kernels().layer_norm[1], norm_kernels().rms_norm[1]}) {
          NormRows n{.gamma = gamma.data(), .y = plain.data(), .cols = cols, .epsilon = 1e-5};
          n.terms[0] = {x.data(), cols};
          kernel(n, 0, 3);
          n.y = streamed + shift;
          n.stream = true;
          kernel(n, 0, 3);
          for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(plain[i], streamed[i + static_cast<std::size_t>(shift)]);
        }
      }
    }
  });
}

TEST(NormSteps, RunTheCasesOfTheirOps) {
  at_every_level([] {
    for (const OpDef* op : {(const OpDef*)&softmax_op, (const OpDef*)&log_softmax_op, (const OpDef*)&layer_norm_op,
                            (const OpDef*)&rms_norm_op, (const OpDef*)&rope_op}) {
      SCOPED_TRACE(op->name());
      for (const auto& replace : element_types) {
        std::map<DType, int> ran = run_cases(*op, replace);
        EXPECT_GE(ran[replace.empty() ? DType::f32 : replace.begin()->second], 12);
      }
    }
  });
}

TEST(AttentionSteps, RunTheCasesOfTheOp) {
  at_every_level([] {
    for (const auto& replace : element_types) {
      const std::map<DType, int> ran = run_cases(attention_op, replace);
      if (!replace.empty() && replace.begin()->second == DType::f64) {
        EXPECT_TRUE(ran.empty());
      } else {
        ASSERT_EQ(ran.size(), 1U);
        EXPECT_GE(ran.begin()->second, 100);
      }
    }
  });
}

Tensor random_tensor(const std::vector<Index>& shape, unsigned seed, double lo, double hi, DType type = DType::f32) {
  return fill(CaseInput(type, std::vector<Dim>(shape.begin(), shape.end())).range(lo, hi), {}, seed);
}

std::vector<Tensor> run_step(const Graph& g, const std::vector<Tensor>& in, std::string* name = nullptr) {
  std::string why;
  auto out = run_node(g, placed(in), {}, 0, false, &why, name);
  EXPECT_TRUE(out) << why;
  return *out;
}

template <class Make>
Tensor step_of(const std::vector<Tensor>& in, Make make) {
  return run_step(graph_of(in, make), in)[0];
}

double worst(const Tensor& got, const Tensor& want) {
  const Difference d = compare(got, want, relative(1e9));
  EXPECT_TRUE(d.ok) << d.where;
  return d.worst;
}

constexpr DType float_types[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

TEST(NormSteps, P32_RowsFarFromZeroKeepTheirDigits) {
  at_every_level([] {
    for (const Index cols : {1, 7, 16, 33, 384, 1000}) {
      for (const double offset : {0.0, 1e4, -3e6}) {
        const std::vector<Tensor> in{random_tensor({5, cols}, 3, offset - 2, offset + 2),
                                     random_tensor({cols}, 4, 0.5, 2), random_tensor({cols}, 5, -1, 1)};
        const Graph g = graph_of(in, [](const Values& v) { return layer_norm(v[0], v[1], v[2]); });
        EXPECT_LE(worst(run_step(g, in)[0], evaluate(g, in)[0]), 1e-6) << cols << " " << offset;
        const std::vector<Tensor> two{in[0], in[1]};
        const Graph r = graph_of(two, [](const Values& v) { return rms_norm(v[0], v[1]); });
        EXPECT_LE(worst(run_step(r, two)[0], evaluate(r, two)[0]), 1e-6) << cols << " " << offset;
      }
    }
    const Tensor far = floats({4}, {10000, 10001, 10002, 10003});
    expect_near(step_of({far}, [](const Values& v) { return layer_norm(v[0]); }),
                {-1.3416353986, -0.4472117995, 0.4472117995, 1.3416353986}, 1e-6);
  });
}

TEST(NormSteps, RowsOfEqualElementsBecomeZeros) {
  at_every_level([] {
    for (const double x : {0.1, 3e30, -1e-30, 12345.678}) {
      const std::vector<double> row(77, x);
      EXPECT_EQ(reals(step_of({floats({77}, row)}, [](const Values& v) { return layer_norm(v[0]); })),
                std::vector<double>(77, 0.0));
    }
  });
}

TEST(NormSteps, LargeElementsDoNotOverflowTheVariance) {
  at_every_level([] {
    const std::vector<Tensor> in{floats({2, 3}, {1e30, -2e30, 3e30, 1e38, 2e38, -1e38})};
    const Graph g = graph_of(in, [](const Values& v) { return Values{layer_norm(v[0]), rms_norm(v[0])}; });
    const std::vector<Tensor> want = evaluate(g, in);
    EXPECT_LE(worst(step_of(in, [](const Values& v) { return layer_norm(v[0]); }), want[0]), 1e-6);
    EXPECT_LE(worst(step_of(in, [](const Values& v) { return rms_norm(v[0]); }), want[1]), 1e-6);
  });
}

// Squares of these leave the range of f32 on either side; long rows are summed in several blocks.
TEST(NormSteps, TinyElementsAndLongRows) {
  at_every_level([] {
    for (const double size : {1e-30, 1e-22, 1.0, 1e15, 1e22}) {
      for (const Index cols : {3, 384, 2500, 4111}) {
        const std::vector<Tensor> in{random_tensor({2, cols}, 6, -size, 2 * size)};
        const NormAttrs exact_scale{.epsilon = 0};
        const auto layer = [&](const Values& v) { return layer_norm(v[0], exact_scale); };
        const auto rms = [&](const Values& v) { return rms_norm(v[0], exact_scale); };
        EXPECT_LE(worst(step_of(in, layer), evaluate(graph_of(in, layer), in)[0]), 2e-6) << size << " " << cols;
        EXPECT_LE(worst(step_of(in, rms), evaluate(graph_of(in, rms), in)[0]), 2e-6) << size << " " << cols;
      }
    }
  });
}

// Every row alone has the bits it has among others.
template <class Make>
void expect_rows_alone(const Tensor& x, Make make) {
  const Tensor all = step_of({x}, make);
  const Index rows = x.shape()[0], cols = x.shape()[1];
  const std::vector<double> from = reals(x), to = reals(all);
  for (Index r = 0; r < rows; ++r) {
    const auto row = [&](const std::vector<double>& v) {
      return std::vector<double>(v.begin() + r * cols, v.begin() + (r + 1) * cols);
    };
    EXPECT_EQ(reals(step_of({floats({1, cols}, row(from), x.dtype())}, make)), row(to)) << "row " << r;
  }
}

TEST(NormSteps, ARowDoesNotDependOnTheOthers) {
  at_every_level([] {
    for (const DType type : float_types) {
      const Tensor x = random_tensor({9, 45}, 3, -5, 5, type);
      expect_rows_alone(x, [](const Values& v) { return layer_norm(v[0]); });
      expect_rows_alone(x, [](const Values& v) { return rms_norm(v[0]); });
      expect_rows_alone(x, [](const Values& v) { return softmax(v[0]); });
      expect_rows_alone(x, [](const Values& v) { return log_softmax(v[0]); });
    }
  });
}

TEST(NormSteps, P37_R21_SoftmaxOverAnyAxis) {
  at_every_level([] {
    for (const DType type : float_types) {
      for (const std::vector<Index>& shape : std::vector<std::vector<Index>>{{3, 5, 7}, {2, 31, 131}, {129, 2, 64}}) {
        const std::vector<Tensor> in{random_tensor(shape, 3, -200, 200, type)};
        for (const Index axis : {0, 1, 2}) {
          for (const bool logarithm : {false, true}) {
            const Graph g = graph_of(
                in, [&](const Values& v) { return logarithm ? log_softmax(v[0], axis) : softmax(v[0], axis); });
            const Difference d = compare(run_step(g, in)[0], evaluate(g, in)[0], relative(2e-6));
            EXPECT_TRUE(d.ok) << d.where;
          }
        }
      }
    }
    const Tensor large = step_of({floats({1, 3, 1}, {200, 0, -200})}, [](const Values& v) { return softmax(v[0], 1); });
    EXPECT_EQ(reals(large), (std::vector<double>{1, 0, 0}));
  });
}

TEST(NormSteps, ColumnsThatHaveNoSoftmaxAreNaNAlone) {
  at_every_level([] {
    const double inf = std::numeric_limits<double>::infinity();
    std::vector<double> x(5 * 70, 1.0);
    for (std::size_t r = 0; r < 5; ++r) x[r * 70 + 40] = -inf;
    x[2 * 70 + 3] = inf;
    x[4 * 70 + 68] = std::nan("");
    x[1 * 70 + 50] = -inf;
    const std::vector<double> y =
        reals(step_of({floats({5, 70}, x)}, [](const Values& v) { return softmax(v[0], 0); }));
    for (std::size_t r = 0; r < 5; ++r) {
      for (const std::size_t c : {3U, 40U, 68U}) EXPECT_TRUE(std::isnan(y[r * 70 + c])) << r << " " << c;
      EXPECT_EQ(y[r * 70 + 50], r == 1 ? 0 : 0.25);
      EXPECT_FLOAT_EQ(static_cast<float>(y[r * 70 + 20]), 0.2f);
    }
  });
}

// a + b in the element type, as the unfused graph computes it.
Tensor added(const Tensor& a, const Tensor& b) {
  const std::vector<Tensor> in{a, b};
  return evaluate(graph_of(in, [](const Values& v) { return v[0] + v[1]; }), in)[0];
}

Graph fused_norm(const Graph& g) {
  const DeviceInfo device;
  const CompileOptions options;
  Report report;
  PassContext context{device, options, report};
  return fuse_norm(g, context);
}

TEST(NormSteps, SumsInFrontOfANormChangeNoBit) {
  at_every_level([] {
    for (const DType type : float_types) {
      for (const bool sum_too : {false, true}) {
        const std::vector<Tensor> in{random_tensor({2, 5, 37}, 1, -3, 3, type),
                                     random_tensor({2, 5, 37}, 2, -3, 3, type), random_tensor({37}, 3, 0.5, 2, type),
                                     random_tensor({37}, 4, -1, 1, type), random_tensor({37}, 5, -1, 1, type)};
        const auto check = [&](const Graph& plain, const Tensor& sum, auto norm) {
          const Graph g = fused_norm(plain);
          ASSERT_EQ(g.nodes.size(), g.inputs.size() + 1) << "not fused";
          std::string name;
          const std::vector<Tensor> out = run_step(g, in, &name);
          EXPECT_TRUE(name.starts_with("add_")) << name;
          const Tensor alone = step_of({sum, in[2], in[3]}, norm);
          EXPECT_TRUE(identical(out.back(), alone)) << rlx::name(type);
          ASSERT_EQ(out.size(), sum_too ? 2U : 1U);
          EXPECT_TRUE(identical(out[0], sum_too ? sum : alone));
        };
        const auto both = [&](Value sum, Value y) { return sum_too ? Values{sum, y} : Values{y}; };
        check(graph_of(in,
                       [&](const Values& v) {
                         const Value s = v[0] + v[1];
                         return both(s, layer_norm(s, v[2], v[3]));
                       }),
              added(in[0], in[1]), [](const Values& v) { return layer_norm(v[0], v[1], v[2]); });
        check(graph_of(in,
                       [&](const Values& v) {
                         const Value s = v[0] + (v[1] + v[4]);
                         return both(s, rms_norm(s, v[2]));
                       }),
              added(added(in[1], in[4]), in[0]), [](const Values& v) { return rms_norm(v[0], v[1]); });
      }
    }
  });
}

TEST(NormSteps, RegionsOfOtherKindsAreDeclined) {
  const std::vector<Tensor> in{random_tensor({2, 4}, 1, -1, 1), random_tensor({2, 4}, 2, -1, 1)};
  std::string why;
  const Graph g = fused(graph_of(in, [](const Values& v) { return layer_norm(v[0] - v[1]); }));
  EXPECT_FALSE(run_node(g, placed(in), {}, 0, false, &why));
  EXPECT_NE(why.find("no sum of up to three operands"), std::string::npos) << why;
}

TEST(RopeSteps, HalvesWithTablesOfF32AndRowsAlone) {
  at_every_level([] {
    for (const DType type : float_types) {
      for (const RopePairing pairing : {RopePairing::neox, RopePairing::gptj}) {
        const std::vector<Tensor> in{random_tensor({2, 3, 120}, 1, -2, 2, type), random_tensor({3, 17}, 2, -1, 1),
                                     random_tensor({3, 17}, 3, -1, 1)};
        const RopeAttrs attrs{pairing, 40, 34};
        const Graph g = graph_of(in, [&](const Values& v) { return rope(v[0], v[1], v[2], attrs); });
        const Difference d = compare(run_step(g, in)[0], evaluate(g, in)[0], relative(1e-6));
        EXPECT_TRUE(d.ok) << d.where;
        EXPECT_TRUE(identical((*run_node(g, placed(in), {}, 1, true))[0], run_step(g, in)[0]));
      }
    }
  });
}

TEST(NormSteps, NoElementsCostNothing) {
  const Index huge = Index{1} << 30;
  for (const Index axis : {0, 1, 2}) {
    std::vector<Index> shape{huge, huge, huge};
    shape[static_cast<std::size_t>(axis)] = 0;
    const std::vector<Tensor> in{Tensor(DType::f32, shape)};
    for (const Index over : {0, 1, 2}) {
      EXPECT_EQ(step_of(in, [&](const Values& v) { return softmax(v[0], over); }).count(), 0);
    }
  }
}

}  // namespace
}  // namespace rlx::test
