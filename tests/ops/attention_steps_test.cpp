// Steps of attention at every level: random options against the reference, bits that depend on the query alone,
// operands read in place, hidden keys that hold anything.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "conformance.h"
#include "core/walk.h"
#include "levels.h"
#include "node_steps.h"
#include "ops/attention/attention.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
using enum AttentionMask;

struct Sizes {
  Index batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
};

std::vector<Index> shape_of(AttentionLayout layout, Index batch, Index heads, Index positions, Index size) {
  if (layout == AttentionLayout::bhsd) return {batch, heads, positions, size};
  if (layout == AttentionLayout::bshd) return {batch, positions, heads, size};
  return {batch, positions, heads * size};
}

Tensor random_tensor(const std::vector<Index>& shape, unsigned seed, double range, DType type = DType::f32) {
  return fill(CaseInput(type, std::vector<Dim>(shape.begin(), shape.end())).range(-range, range), {}, seed);
}

std::vector<Tensor> operands(const AttentionAttrs& a, const Sizes& s, unsigned seed, double range = 2,
                             DType type = DType::f32) {
  return {random_tensor(shape_of(a.layout, s.batch, s.heads, s.queries, s.size), seed, range, type),
          random_tensor(shape_of(a.layout, s.batch, s.kv_heads, s.keys, s.size), seed + 1, range, type),
          random_tensor(shape_of(a.layout, s.batch, s.kv_heads, s.keys, s.value_size), seed + 2, range, type)};
}

Graph graph_with(const AttentionAttrs& a, const std::vector<Tensor>& in) {
  return graph_of(in, [&](const Values& v) {
    return v.size() == 3 ? attention(v[0], v[1], v[2], a) : attention(v[0], v[1], v[2], v[3], a);
  });
}

Tensor run_step(const AttentionAttrs& a, const std::vector<Tensor>& in) {
  std::string why;
  auto out = run_node(graph_with(a, in), placed(in), {}, 0, false, &why);
  EXPECT_TRUE(out) << why;
  return (*out)[0];
}

void expect_close(const AttentionAttrs& a, const std::vector<Tensor>& in, const Tensor& got, double bound) {
  const Difference d = compare(got, evaluate(graph_with(a, in), in)[0], relative(bound));
  EXPECT_TRUE(d.ok) << d.where;
}

// Draws options of attention.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  Index among(std::initializer_list<Index> values) { return values.begin()[up_to(static_cast<Index>(values.size()))]; }
  Index up_to(Index n) { return static_cast<Index>(random_() % static_cast<std::uint64_t>(n)); }
  bool one_in(Index n) { return up_to(n) == 0; }

  Sizes sizes() {
    Sizes s;
    s.batch = among({1, 1, 2, 3, 0});
    s.kv_heads = among({1, 1, 2, 3});
    s.heads = s.kv_heads * among({1, 1, 2, 5});
    s.queries = among({1, 1, 2, 3, 7, 13, 31, 64, 131, 0});
    s.keys = among({1, 2, 5, 13, 16, 17, 64, 127, 128, 129, 131, 257, 300, 0});
    s.size = among({1, 3, 8, 16, 17, 32, 64});
    s.value_size = one_in(2) ? s.size : among({1, 5, 16, 31, 32, 40, 64, 67});
    return s;
  }
  AttentionAttrs attrs(const Sizes& s) {
    AttentionAttrs a;
    a.layout = static_cast<AttentionLayout>(up_to(3));
    if (a.layout == AttentionLayout::packed) a.heads = s.heads;
    a.mask = static_cast<AttentionMask>(up_to(3));
    if (a.mask == window) a.window = among({1, 2, 5, 16, 100, 128, 1000});
    if (a.mask != none && one_in(3)) a.offset = Dim(among({0, 1, -1, 7, 130, -200}));
    if (one_in(2)) a.scale = one_in(2) ? 1.0 : 0.3;
    if (one_in(3)) a.soft_cap = static_cast<double>(among({1, 5, 50}));
    a.extra = static_cast<AttentionExtra>(up_to(4));
    return a;
  }
  // The fourth operand for `a`, if it has one.
  void add_extra(const AttentionAttrs& a, const Sizes& s, std::vector<Tensor>& in) {
    const auto seed = static_cast<unsigned>(random_());
    const auto maybe = [&](Index n) { return one_in(3) ? 1 : n; };
    if (a.extra == AttentionExtra::keys) {
      constexpr DType kinds[] = {DType::boolean, DType::i8,  DType::u16, DType::i32, DType::i64,
                                 DType::f16,     DType::f32, DType::f64, DType::bf16};
      in.push_back(random_tensor({maybe(s.batch), s.keys}, seed, 1, kinds[up_to(9)]));
    } else if (a.extra != AttentionExtra::none) {
      const bool bias = a.extra == AttentionExtra::bias;
      const std::vector<Index> shape{maybe(s.batch), maybe(s.heads), maybe(s.queries), maybe(s.keys)};
      in.push_back(random_tensor(shape, seed, 2, bias ? in[0].dtype() : DType::boolean));
      std::vector<double> v = load<double>(in[3]);
      for (double& x : v) {
        if (bias && one_in(5)) x = -inf;
      }
      store(in[3], v);
    }
  }

 private:
  std::mt19937_64 random_;
};

// Scores are rounded to f32: the error of a weight grows with them.
double bound_of(const AttentionAttrs& a, const Sizes& s) {
  const double root = std::sqrt(static_cast<double>(s.size));
  const double score = a.scale.value_or(1 / root) * root * 6;
  return 3e-6 + score * 0x1p-23;
}

TEST(BulkAttentionSteps, RandomOptionsAgreeWithTheReference) {
  int compared = 0;
  for (unsigned seed = 0; seed < 440; ++seed) {
    Draw draw(seed);
    const Sizes s = draw.sizes();
    const AttentionAttrs a = draw.attrs(s);
    const DType type = draw.one_in(4) ? (draw.one_in(2) ? DType::f16 : DType::bf16) : DType::f32;
    std::vector<Tensor> in = operands(a, s, seed * 10, 2, type);
    draw.add_extra(a, s, in);
    const Graph g = graph_with(a, in);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(g, static_cast<Id>(g.nodes.size() - 1)));
    const Tensor want = evaluate(g, in)[0];
    at_every_level([&] {
      std::string why;
      const auto got = run_node(g, placed(in), {}, 0, false, &why);
      ASSERT_TRUE(got) << why;
      const Difference d = compare((*got)[0], want, relative(bound_of(a, s)));
      EXPECT_TRUE(d.ok) << d.where;
      const auto pieces = run_node(g, placed(in), {}, 1 + static_cast<Index>(seed % 3), true);
      EXPECT_TRUE(identical((*pieces)[0], (*got)[0])) << "bits depend on the pieces";
    });
    compared += want.count() > 0;
  }
  EXPECT_GE(compared, 300);
}

// Elements [begin, begin + count) of axis 0 or 2 of a rank-4 tensor.
Tensor part(const Tensor& t, std::size_t axis, Index begin, Index count) {
  std::vector<Index> shape = t.shape();
  shape[axis] = count;
  const std::vector<Index> strides = row_major_strides(t.shape());
  const std::vector<double> from = load<double>(t);
  std::vector<double> to;
  walk<1>(shape, {strides},
          [&](const auto& at) { to.push_back(from[static_cast<std::size_t>(at[0] + begin * strides[axis])]); });
  return Tensor::of<double>(t.dtype(), shape, to);
}

TEST(AttentionSteps, AQueryAloneHasTheBitsItHasAmong128) {
  at_every_level([] {
    for (const AttentionMask mask : {none, causal, window}) {
      for (const DType type : {DType::f32, DType::bf16}) {
        const AttentionAttrs a{.mask = mask, .window = mask == window ? 70 : 0};
        const std::vector<Tensor> in = operands(a, {1, 4, 2, 128, 300, 33, 21}, 5, 2, type);
        const Tensor all = run_step(a, in);
        for (const Index i : {0, 1, 5, 6, 63, 126, 127}) {
          AttentionAttrs one = a;
          if (mask != none) one.offset = Dim(300 - 128 + i);
          const Tensor alone = run_step(one, {part(in[0], 2, i, 1), in[1], in[2]});
          EXPECT_TRUE(identical(alone, part(all, 2, i, 1))) << "query " << i;
        }
      }
    }
  });
}

TEST(AttentionSteps, ABatchItemHasTheBitsItHasAlone) {
  at_every_level([] {
    const AttentionAttrs a{.mask = causal, .extra = AttentionExtra::keys};
    std::vector<Tensor> in = operands(a, {32, 2, 2, 19, 40, 16, 16}, 5);
    in.push_back(random_tensor({32, 40}, 9, 1, DType::boolean));
    const Tensor all = run_step(a, in);
    for (const Index b : {0, 13, 31}) {
      std::vector<Tensor> one;
      for (std::size_t k = 0; k < 3; ++k) one.push_back(part(in[k], 0, b, 1));
      const std::vector<double> keys = load<double>(in[3]);
      one.push_back(Tensor::of<double>(DType::boolean, {1, 40}, {keys.begin() + b * 40, keys.begin() + (b + 1) * 40}));
      EXPECT_TRUE(identical(run_step(a, one), part(all, 0, b, 1))) << "batch " << b;
    }
  });
}

// Keys behind the visible ones change nothing, whatever they are and however many.
TEST(AttentionSteps, HiddenKeysMayHoldAnything) {
  at_every_level([] {
    for (const DType type : {DType::f32, DType::f16}) {
      for (const AttentionExtra extra : {AttentionExtra::none, AttentionExtra::keys, AttentionExtra::pairs}) {
        for (const double junk : {inf, -inf, std::nan(""), 60000.0}) {
          const bool own = extra == AttentionExtra::none;
          const AttentionAttrs a{
              .mask = own ? causal : none, .extra = extra, .offset = own ? std::optional(Dim(20)) : std::nullopt};
          std::vector<Tensor> in = operands(a, {1, 2, 1, 7, 300, 9, 19}, 5, 2, type);
          if (extra == AttentionExtra::keys) in.push_back(random_tensor({1, 300}, 9, 1, DType::boolean));
          if (extra == AttentionExtra::pairs) in.push_back(random_tensor({1, 1, 1, 300}, 9, 1, DType::boolean));
          const Tensor clean = run_step(a, in);
          const std::vector<double> seen = own ? std::vector<double>() : load<double>(in[3]);
          for (const std::size_t k : {std::size_t{1}, std::size_t{2}}) {
            std::vector<double> v = load<double>(in[k]);
            const std::size_t width = v.size() / 300;
            for (std::size_t j = 0; j < 300; ++j) {
              if (own ? j <= 26 : seen[j] != 0) continue;
              std::fill_n(v.begin() + static_cast<std::ptrdiff_t>(j * width), width, junk);
            }
            store(in[k], v);
          }
          EXPECT_TRUE(identical(run_step(a, in), clean)) << name(type) << " " << junk;
        }
      }
    }
  });
}

TEST(AttentionSteps, VisibleValuesThatAreNotFiniteShow) {
  at_every_level([] {
    for (const bool masked : {false, true}) {
      const AttentionAttrs a{.mask = masked ? causal : none};
      std::vector<Tensor> in = operands(a, {1, 1, 1, 9, 9, 4, 5}, 5);
      std::vector<double> v = load<double>(in[2]);
      v[3 * 5 + 1] = inf;
      v[4 * 5 + 2] = std::nan("");
      store(in[2], v);
      const std::vector<double> y = load<double>(run_step(a, in));
      for (std::size_t i = 0; i < 9; ++i) {
        EXPECT_EQ(std::isinf(y[i * 5 + 1]), !masked || i >= 3) << i;
        EXPECT_EQ(std::isnan(y[i * 5 + 2]), !masked || i >= 4) << i;
        EXPECT_TRUE(std::isfinite(y[i * 5]));
      }
    }
  });
}

TEST(AttentionSteps, P65_R1_R2_ReadsPartsOfOneBufferInPlace) {
  at_every_level([] {
    for (const Index positions : {5, 32, 33, 128}) {
      // [B,S,(H + 2 Hkv) D]: q, k and v side by side, of unequal widths.
      const Index batch = 2, heads = 4, kv_heads = 2, size = 9, row = (heads + 2 * kv_heads) * size;
      const Tensor buffer = random_tensor({batch, positions, row}, 3, 2);
      const std::vector<double> all = load<double>(buffer);
      const auto columns = [&](Index begin, Index width) {
        std::vector<double> v;
        for (Index r = 0; r < batch * positions; ++r) {
          for (Index c = 0; c < width; ++c) v.push_back(all[static_cast<std::size_t>(r * row + begin + c)]);
        }
        return Tensor::of<double>(DType::f32, {batch, positions, width}, v);
      };
      const Index q = heads * size, k = kv_heads * size;
      const std::vector<Tensor> parts{columns(0, q), columns(q, k), columns(q + k, k)};
      for (const AttentionMask mask : {none, causal}) {
        const AttentionAttrs a{.layout = AttentionLayout::packed, .mask = mask, .heads = heads};
        const std::vector<Index> strides{positions * row, row, 1};
        const auto in_place =
            run_node(graph_with(a, parts), {{buffer, 0, strides}, {buffer, q, strides}, {buffer, q + k, strides}}, {});
        ASSERT_TRUE(in_place);
        EXPECT_TRUE(identical((*in_place)[0], run_step(a, parts)));
        expect_close(a, parts, (*in_place)[0], 3e-6);
      }
    }
  });
}

TEST(AttentionSteps, P54_R2_LaterKeysDoNotReachAnEarlierQuery) {
  at_every_level([] {
    const std::vector<Tensor> in = operands({}, {1, 2, 2, 9, 9, 5, 5}, 3);
    std::vector<Tensor> other = in;
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}}) {
      std::vector<double> v = load<double>(in[k]);
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = i / 5 % 9 > 4 ? 7 - v[i] : v[i];
      store(other[k], v);
    }
    for (const AttentionAttrs& a : {AttentionAttrs{.mask = causal}, AttentionAttrs{.mask = window, .window = 2}}) {
      const Tensor x = run_step(a, in), y = run_step(a, other);
      EXPECT_TRUE(identical(part(x, 2, 0, 5), part(y, 2, 0, 5)));
      EXPECT_FALSE(identical(part(x, 2, 5, 4), part(y, 2, 5, 4)));
    }
    EXPECT_FALSE(identical(part(run_step({}, in), 2, 0, 5), part(run_step({}, other), 2, 0, 5)));
  });
}

// Keys that are all alike: a result is the mean of the values that its query sees.
TEST(AttentionSteps, P62_P63_P64_PositionsHeadsAndWidths) {
  at_every_level([] {
    const auto means = [](const AttentionAttrs& a, Index heads, Index kv_heads, Index queries) {
      std::vector<double> v;  // value 100 h + j, twice that, three times
      for (Index h = 0; h < kv_heads; ++h) {
        for (Index j = 0; j < 5; ++j) {
          for (Index e = 1; e <= 3; ++e) v.push_back(static_cast<double>(e * (100 * h + j)));
        }
      }
      const std::vector<Tensor> in{random_tensor({1, heads, queries, 5}, 1, 2), Tensor(DType::f32, {1, kv_heads, 5, 5}),
                                   floats({1, kv_heads, 5, 3}, v)};
      return run_step(a, in);
    };
    expect_near(means({.mask = causal}, 1, 1, 1), {2, 4, 6}, 1e-5);
    expect_near(means({.mask = causal}, 1, 1, 2), {1.5, 3, 4.5, 2, 4, 6}, 1e-5);
    expect_near(means({.mask = window, .window = 2}, 1, 1, 1), {3.5, 7, 10.5}, 1e-5);
    expect_near(means({}, 4, 2, 1), {2, 4, 6, 2, 4, 6, 102, 204, 306, 102, 204, 306}, 1e-4);
    expect_near(means({}, 2, 1, 1), {2, 4, 6, 2, 4, 6}, 1e-5);
  });
}

TEST(AttentionSteps, P52_R3_LayoutsAgreeBitByBit) {
  at_every_level([] {
    const Index heads = 4, positions = 4, size = 8;
    const AttentionAttrs a{.mask = causal};
    const std::vector<Tensor> in = operands(a, {2, heads, heads, positions, positions, size, size}, 3);
    const Tensor want = run_step(a, in);
    // The same memory as [B,H,S,D] read as [B,S,H,D] with axes 1 and 2 exchanged.
    const AttentionAttrs moved{.layout = AttentionLayout::bshd, .mask = causal};
    const std::vector<Index> strides{heads * positions * size, size, positions * size, 1};
    const auto got =
        run_node(graph_with(moved, in), {{in[0], 0, strides}, {in[1], 0, strides}, {in[2], 0, strides}}, {});
    ASSERT_TRUE(got);
    const std::vector<double> x = load<double>(want), y = load<double>((*got)[0]);
    for (Index b = 0; b < 2; ++b) {
      for (Index h = 0; h < heads; ++h) {
        for (Index s = 0; s < positions; ++s) {
          for (Index e = 0; e < size; ++e) {
            EXPECT_EQ(x[static_cast<std::size_t>(((b * heads + h) * positions + s) * size + e)],
                      y[static_cast<std::size_t>(((b * positions + s) * heads + h) * size + e)]);
          }
        }
      }
    }
    EXPECT_FALSE(identical(run_step(moved, in), want));
  });
}

TEST(AttentionSteps, P55_R4_ScaleAndCapAreRead) {
  at_every_level([] {
    const std::vector<Tensor> in = operands({}, {1, 1, 1, 5, 40, 64, 8}, 3);
    const Tensor plain = run_step({}, in);
    for (const AttentionAttrs& a : {AttentionAttrs{.scale = 1.0}, AttentionAttrs{.soft_cap = 50},
                                    AttentionAttrs{.scale = 30.0, .soft_cap = 50}}) {
      const Tensor other = run_step(a, in);
      EXPECT_FALSE(identical(other, plain));
      expect_close(a, in, other, bound_of(a, {.size = 64}));
    }
  });
}

TEST(AttentionSteps, P56_CapComesBeforeTheMask) {
  at_every_level([] {
    const std::vector<Tensor> in{floats({1, 1, 1, 1}, {1}), floats({1, 1, 2, 1}, {-10, 5}),
                                 floats({1, 1, 2, 1}, {1, 100}), ints(DType::boolean, {1, 2}, {1, 0})};
    EXPECT_EQ(reals(run_step({.extra = AttentionExtra::keys, .scale = 1.0, .soft_cap = 1}, in))[0], 1);
  });
}

TEST(AttentionSteps, P68_NothingVisibleGivesZeros) {
  at_every_level([] {
    std::vector<Tensor> in = operands({}, {2, 2, 1, 7, 150, 8, 21}, 3);
    in.push_back(Tensor(DType::boolean, {2, 150}));
    const std::vector<double> zeros(2 * 2 * 7 * 21, 0.0);
    EXPECT_EQ(reals(run_step({.extra = AttentionExtra::keys}, in)), zeros);
    in[3] = Tensor(DType::f32, {1, 1, 1, 150});
    store(in[3], std::vector<double>(150, -inf));
    EXPECT_EQ(reals(run_step({.extra = AttentionExtra::bias}, in)), zeros);
    in.pop_back();
    EXPECT_EQ(reals(run_step({.mask = causal, .offset = Dim(-7)}, in)), zeros);
    EXPECT_EQ(reals(run_step({.mask = window, .window = 3, .offset = Dim(152)}, in)), zeros);
  });
}

TEST(AttentionSteps, NaNOfAVisibleKeyReachesItsQueriesOnly) {
  at_every_level([] {
    std::vector<Tensor> in = operands({}, {1, 1, 1, 20, 20, 8, 5}, 3);
    std::vector<double> k = load<double>(in[1]);
    k[12 * 8 + 3] = std::nan("");
    store(in[1], k);
    const std::vector<double> y = reals(run_step({.mask = causal}, in));
    for (std::size_t i = 0; i < 20; ++i) {
      for (std::size_t e = 0; e < 5; ++e) EXPECT_EQ(std::isnan(y[i * 5 + e]), i >= 12) << i;
    }
  });
}

TEST(AttentionSteps, DeclinesWithAReason) {
  std::string why;
  const std::vector<Tensor> wide = operands({}, {1, 1, 1, 2, 3, 257, 4}, 3);
  EXPECT_FALSE(run_node(graph_with({}, wide), placed(wide), {}, 0, false, &why));
  EXPECT_NE(why.find("heads of up to 256 elements"), std::string::npos) << why;
  const std::vector<Tensor> in = operands({}, {1, 1, 1, 2, 3, 4, 4}, 3);
  EXPECT_FALSE(run_node(graph_with({}, in), {{in[0], 0, {8, 8, 1, 2}}, in[1], in[2]}, {}, 0, false, &why));
  EXPECT_NE(why.find("do not lie side by side"), std::string::npos) << why;
  const std::vector<Tensor> doubles = operands({}, {1, 1, 1, 2, 3, 4, 4}, 3, 2, DType::f64);
  EXPECT_FALSE(run_node(graph_with({}, doubles), placed(doubles), {}, 0, false, &why));
  EXPECT_NE(why.find("f32, f16 and bf16"), std::string::npos) << why;
}

}  // namespace
}  // namespace rlx::test
