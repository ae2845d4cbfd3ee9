// Known traps of fusion: that fused kernels really run, and what they must not change.
#include <gmock/gmock.h>

#include "all_ops.h"
#include "compiled.h"

namespace rlx::test {
namespace {

using Shape = std::vector<Index>;

// A pattern, its operands, and the kernel that it must become.
struct Pattern {
  std::string kernel;
  std::vector<Tensor> in;
  Graph graph;
  double bound;
};

template <class Make>
Pattern pattern(std::string kernel, std::vector<Tensor> in, double bound, Make make) {
  Graph g = graph_of(in, make);
  return {std::move(kernel), std::move(in), std::move(g), bound};
}

Value written_softmax(Value x) {
  const Value e = exp(x - max(x, {-1}, true));
  return e / sum(e, {-1}, true);
}

// Scaled scores of q [B,H,S,D] with k, hidden above the diagonal where `causal`, times v.
Value written_attention(Value q, Value k, Value v, bool causal, double scale) {
  Value scores = matmul(q, transpose(k, {0, 1, 3, 2})) * like(q, scale);
  if (causal) {
    Builder& b = *q.builder;
    const Dim& n = q.dim(2);
    const Value row = iota(b, DType::i64, {n, 1}), column = iota(b, DType::i64, {1, n}, 1);
    scores = select(less_equal(column, row), scores, like(scores, -std::numeric_limits<double>::infinity()));
  }
  return matmul(written_softmax(scores), v);
}

std::vector<Pattern> patterns() {
  std::vector<Pattern> all;
  all.push_back(pattern("region", {mixed({3, 37}), mixed({37}, 4)}, 1e-6,
                        [](const Values& v) { return relu(v[0] * v[1]) + tanh(v[0]); }));
  all.push_back(pattern("matmul_fused", {mixed({5, 19}), mixed({19, 23}, 2), mixed({23}, 5)}, 1e-6,
                        [](const Values& v) { return gelu(matmul(v[0], v[1]) + v[2]); }));
  all.push_back(pattern("matmul_fused", {mixed({2, 5, 19}), mixed({19, 23}, 2), mixed({2, 5, 23}, 5)}, 1e-6,
                        [](const Values& v) { return v[2] + matmul(v[0], v[1]); }));
  all.push_back(pattern("add_layer_norm", {mixed({5, 19}), mixed({5, 19}, 2), mixed({19}, 5), mixed({19}, 7)}, 1e-5,
                        [](const Values& v) { return layer_norm(v[0] + v[1], v[2], v[3]); }));
  all.push_back(pattern("add_rms_norm", {mixed({5, 19}), mixed({5, 19}, 2), mixed({19}, 5)}, 1e-5, [](const Values& v) {
    const Value s = v[0] + v[1];
    return Values{rms_norm(s, v[2]), s};
  }));
  all.push_back(pattern("softmax_rows", {mixed({7, 13})}, 1e-6, [](const Values& v) { return written_softmax(v[0]); }));
  for (const bool causal : {false, true}) {
    for (const double scale : {0.5, 1.0}) {  // 1 / sqrt(4), and another
      all.push_back(pattern("attention", {mixed({2, 3, 5, 4}), mixed({2, 3, 5, 4}, 2), mixed({2, 3, 5, 4}, 5)}, 1e-5,
                            [&](const Values& v) { return written_attention(v[0], v[1], v[2], causal, scale); }));
    }
  }
  return all;
}

TEST(Pitfalls, P71_R25_TheFusedKernelRunsAndTheUnfusedProgramHasNone) {
  const Session session = cpu_session({.threads = 1});
  for (const Pattern& p : patterns()) {
    SCOPED_TRACE(p.kernel);
    EXPECT_EQ(steps_of(session.compile(p.graph, {}, careful), p.kernel), 1);
    EXPECT_EQ(steps_of(session.compile(p.graph, unfused(), careful), p.kernel), 0);
    check_compiled(p.graph, p.in, p.bound);
  }
}

TEST(Pitfalls, P54_R2_LaterTokensDoNotReachAnEarlierQueryInAFusedBlock) {
  const std::vector<Tensor> in{mixed({1, 2, 6, 4}), mixed({1, 2, 6, 4}, 2), mixed({1, 2, 6, 4}, 5)};
  std::vector<Tensor> changed = in;
  for (std::size_t k = 1; k < 3; ++k) {
    std::vector<double> v = reals(changed[k]);
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (i / 4 % 6 > 0) v[i] += 3;
    }
    store(changed[k], v);
  }
  for (const bool causal : {false, true}) {
    const Graph g = graph_of(in, [&](const Values& v) { return written_attention(v[0], v[1], v[2], causal, 0.5); });
    at_every_level([&] {
      const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
      ASSERT_EQ(steps_of(exe, "attention"), 1);
      const std::vector<double> a = reals(exe.run(named(g, in))[0]), b = reals(exe.run(named(g, changed))[0]);
      for (std::size_t head = 0; head < 2; ++head) {
        for (std::size_t i = head * 24; i < head * 24 + 4; ++i) EXPECT_EQ(a[i] == b[i], causal) << i;
      }
    });
  }
}

TEST(Pitfalls, P12_P20_AHalfOperandAndAMiddleOneInsideARegion) {
  const std::vector<Tensor> in{mixed({2, 4, 3}), mixed({2, 1, 3}, 3), mixed({4, 1}, 5, DType::f16),
                               ints(DType::i32, {2, 4, 3}, std::vector<Index>(24, 3))};
  const Graph g = graph_of(in, [](const Values& v) {
    const Value h = cast(v[2], DType::f32), y = (v[0] + v[1]) * h;
    return Values{maximum(y, v[1]) - h, y + cast(v[3], DType::f32)};
  });
  EXPECT_GE(steps_of(cpu_session({.threads = 1}).compile(g), "region"), 1);
  check_compiled(g, in, 1e-6);
}

TEST(Pitfalls, P33_P66_WhatAFusedChainComputesInBetweenIsStillThere) {
  const std::vector<Tensor> in{mixed({5, 19}), mixed({19, 23}, 2), mixed({23}, 5), mixed({5, 23}, 6)};
  for (int kept = 0; kept < 4; ++kept) {  // the value of the chain that has other readers
    check(
        in,
        [&](const Values& v) {
          const Value chain[] = {matmul(v[0], v[1]), matmul(v[0], v[1]) + v[2], relu(matmul(v[0], v[1]) + v[2]),
                                 relu(matmul(v[0], v[1]) + v[2]) * v[3]};
          return Values{chain[3], chain[kept], softmax(chain[kept]), sum(chain[kept], {0}), cumsum(chain[kept], 1)};
        },
        1e-5);
  }
}

// The block of an attention layer: projections of other widths, rope where asked for, heads, and a last projection.
Graph block(const std::vector<Tensor>& in, bool rotate, const RopeAttrs& turn, AttentionMask mask) {
  return graph_of(in, [&](const Values& v) {
    Value q = matmul(v[0], v[1]), k = matmul(v[0], v[2]);
    const Value c = matmul(v[0], v[3]) + v[5];
    if (rotate) q = rope(q, v[6], v[7], turn), k = rope(k, v[6], v[7], turn);
    const Value y = attention(
        q, k, c,
        {.layout = AttentionLayout::packed, .mask = mask, .heads = 2, .window = mask == AttentionMask::window ? 2 : 0});
    return matmul(y, v[4]);
  });
}

TEST(Pitfalls, P54_P60_P61_P69_CompiledBlocksKeepPairingWidthAndMask) {
  for (const Index in_width : {6, 17}) {  // heads * size is 8 (or 12), the result has 5 columns
    for (const Index size : {4, 6}) {
      const Index inner = 2 * size;
      const std::vector<Tensor> in{mixed({2, 7, in_width}),
                                   mixed({in_width, inner}, 1),
                                   mixed({in_width, inner}, 2),
                                   mixed({in_width, inner}, 3),
                                   mixed({inner, 5}, 4),
                                   mixed({inner}, 5),
                                   mixed({7, 2}, 6),
                                   mixed({7, 2}, 7)};
      for (const bool rotate : {false, true}) {
        for (const auto pairing : {RopePairing::neox, RopePairing::gptj}) {
          for (const auto mask : {AttentionMask::none, AttentionMask::causal, AttentionMask::window}) {
            const Graph g = block(in, rotate, {.pairing = pairing, .head_size = size, .rotary = 4}, mask);
            ASSERT_EQ(evaluate(g, in)[0].shape(), (Shape{2, 7, 5}));
            check_compiled(g, in, 1e-4);
          }
        }
      }
    }
  }
}

TEST(Pitfalls, P72_R19_HalvesOfASwigluInCompiledGraphs) {
  const std::vector<Tensor> in{floats({1, 4}, {1, 2, 3, 4})};
  const auto s = [](double x) { return x / (1 + std::exp(-x)); };
  for (const bool written : {false, true}) {
    const auto swish = [&](Value x) { return written ? x * sigmoid(x) : silu(x); };
    const Graph last =
        graph_of(in, [&](const Values& v) { return slice(v[0], 1, 0, 2) * swish(slice(v[0], 1, 2, 4)); });
    const Graph first =
        graph_of(in, [&](const Values& v) { return swish(slice(v[0], 1, 0, 2)) * slice(v[0], 1, 2, 4); });
    expect_compiled(last, in, {floats({1, 2}, {s(3), 2 * s(4)})}, 1e-6);
    expect_compiled(first, in, {floats({1, 2}, {s(1) * 3, s(2) * 4})}, 1e-6);
  }
  const std::vector<Tensor> layer{mixed({5, 19}), mixed({19, 23}, 2), mixed({19, 23}, 5), mixed({23, 3}, 6)};
  for (const bool first : {false, true}) {
    check(
        layer,
        [&](const Values& v) {
          Builder& b = *v[0].builder;
          const Value gate = matmul(v[0], constant(b, layer[1])), up = matmul(v[0], constant(b, layer[2]));
          return matmul(first ? silu(gate) * up : gate * silu(up), v[3]);
        },
        1e-5);
  }
}

}  // namespace
}  // namespace rlx::test
