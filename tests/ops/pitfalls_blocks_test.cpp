// Known traps of attention blocks and of weights in half precision. The oracle of attention is a loop over f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance.h"
#include "ops/attention/attention.h"
#include "ops/cast/cast.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/matmul/matmul.h"
#include "ops/rope/rope.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

using Shape = std::vector<Index>;
using Numbers = std::vector<double>;

Tensor numbers(const Shape& shape, unsigned seed, DType d = DType::f64) {
  return fill(CaseInput(d, {shape.begin(), shape.end()}), {}, seed);
}

// A fused projection [batch, positions, width]: q of `heads`, then k and v of `kv` heads, of `size` elements each.
struct Packed {
  Index batch, positions, heads, kv, size;
  Index q() const { return heads * size; }
  Index k() const { return kv * size; }
  Index width() const { return q() + 2 * k(); }
};

enum class Sees : std::uint8_t { all, causal, window, listed };
constexpr Index window = 2;

bool visible(Sees sees, Index query, Index key) {
  if (sees == Sees::listed) return key % 3 != 1;
  if (sees == Sees::all) return true;
  return key <= query && (sees == Sees::causal || key > query - window);
}

Numbers attended(const Packed& p, const Numbers& x, Sees sees) {
  Numbers out;
  const auto at = [&](Index b, Index s, Index column) {
    return x[static_cast<std::size_t>((b * p.positions + s) * p.width() + column)];
  };
  for (Index b = 0; b < p.batch; ++b) {
    for (Index i = 0; i < p.positions; ++i) {
      for (Index h = 0; h < p.heads; ++h) {
        const Index shared = h * p.kv / p.heads;
        Numbers weight;
        double total = 0;
        for (Index j = 0; j < p.positions; ++j) {
          double score = 0;
          for (Index e = 0; e < p.size; ++e) {
            score += at(b, i, h * p.size + e) * at(b, j, p.q() + shared * p.size + e);
          }
          const double w = visible(sees, i, j) ? std::exp(score / std::sqrt(static_cast<double>(p.size))) : 0;
          weight.push_back(w);
          total += w;
        }
        for (Index e = 0; e < p.size; ++e) {
          double y = 0;
          for (Index j = 0; j < p.positions; ++j) {
            y += weight[static_cast<std::size_t>(j)] * at(b, j, p.q() + p.k() + shared * p.size + e);
          }
          out.push_back(y / total);
        }
      }
    }
  }
  return out;
}

Values parts(const Packed& p, Value x) {
  return {slice(x, 2, 0, p.q()), slice(x, 2, p.q(), p.q() + p.k()), slice(x, 2, p.q() + p.k(), p.width())};
}

Value attend(const Packed& p, Value x, Sees sees, const Values& mask = {}) {
  const Values v = parts(p, x);
  AttentionAttrs a{.layout = AttentionLayout::packed, .heads = p.heads};
  if (sees == Sees::causal) a.mask = AttentionMask::causal;
  if (sees == Sees::window) a.mask = AttentionMask::window, a.window = window;
  if (sees != Sees::listed) return attention(v[0], v[1], v[2], a);
  a.extra = AttentionExtra::keys;
  return attention(v[0], v[1], v[2], mask[0], a);
}

Tensor listed_keys(const Packed& p) {
  Tensor mask(DType::boolean, {p.batch, p.positions});
  for (Index i = 0; i < mask.count(); ++i) mask.set_code(i, visible(Sees::listed, 0, i % p.positions));
  return mask;
}

TEST(Pitfalls, P65_R1_R2_AttentionOfSlicesOfOneProjection) {
  const Packed shapes[] = {{2, 5, 2, 2, 3},  {1, 7, 4, 2, 5},  {4, 17, 3, 3, 4},
                           {2, 33, 4, 1, 2}, {1, 64, 2, 2, 3}, {1, 65, 2, 2, 3}};
  for (const Packed& p : shapes) {  // both sides of 64 rows
    for (const Sees sees : {Sees::all, Sees::causal, Sees::window, Sees::listed}) {
      const Tensor x = numbers({p.batch, p.positions, p.width()}, 3), mask = listed_keys(p);
      const Numbers want = attended(p, reals(x), sees);
      for (const bool returned : {false, true}) {  // the projection is an output too, or not
        const std::vector<Tensor> out = run_all({x, mask}, [&](const Values& v) {
          const Value packed = v[0] + v[0], y = attend(p, packed * like(packed, 0.5), sees, {v[1]});
          return returned ? Values{y, packed} : Values{y};
        });
        EXPECT_EQ(out[0].shape(), (Shape{p.batch, p.positions, p.q()}));
        expect_near(out[0], want, 1e-12);
        if (returned) {
          Numbers twice = reals(x);
          for (double& v : twice) v *= 2;
          EXPECT_EQ(reals(out[1]), twice);
        }
      }
    }
  }
}

TEST(Pitfalls, P65_RotatedSlicesOfOneProjection) {
  const Packed p{2, 5, 4, 2, 6};
  Numbers cosines, sines;
  for (Index i = 0; i < p.positions * 3; ++i) {
    const Index row = i / 3, column = i % 3;
    const double angle = static_cast<double>(row + 1) / static_cast<double>(column + 1);
    cosines.push_back(std::cos(angle));
    sines.push_back(std::sin(angle));
  }
  const std::vector<Tensor> in{numbers({p.batch, p.positions, p.width()}, 4), floats({5, 3}, cosines, DType::f64),
                               floats({5, 3}, sines, DType::f64)};
  Numbers turned = reals(in[0]);  // pairs (i, i + 3) of the heads of q and k
  for (Index row = 0; row < p.batch * p.positions; ++row) {
    for (Index head = 0; head < p.heads + p.kv; ++head) {
      for (Index i = 0; i < 3; ++i) {
        const auto at = static_cast<std::size_t>(row * p.width() + head * p.size + i);
        const auto entry = static_cast<std::size_t>(row % p.positions * 3 + i);
        const double a = turned[at], b = turned[at + 3];
        turned[at] = a * cosines[entry] - b * sines[entry];
        turned[at + 3] = a * sines[entry] + b * cosines[entry];
      }
    }
  }
  const Tensor y = run(in, [&](const Values& v) {
    const Values part = parts(p, v[0]);
    const RopeAttrs turn{.head_size = p.size};
    return attention(rope(part[0], v[1], v[2], turn), rope(part[1], v[1], v[2], turn), part[2],
                     {.layout = AttentionLayout::packed, .mask = AttentionMask::causal, .heads = p.heads});
  });
  expect_near(y, attended(p, turned, Sees::causal), 1e-12);
}

TEST(Pitfalls, P66_ASliceWithASecondReaderExists) {
  const Packed p{2, 5, 2, 2, 3};
  const Tensor x = numbers({p.batch, p.positions, p.width()}, 5);
  const std::vector<Tensor> out = run_all({x}, [&](const Values& v) {
    const Values part = parts(p, v[0]);
    return Values{attend(p, v[0], Sees::causal), part[1], exp(part[2])};
  });
  const Numbers all = reals(x);
  expect_near(out[0], attended(p, all, Sees::causal), 1e-13);
  for (std::size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(reals(out[1])[i], all[i / 6 * 18 + 6 + i % 6]);
    EXPECT_DOUBLE_EQ(reals(out[2])[i], std::exp(all[i / 6 * 18 + 12 + i % 6]));
  }
}

TEST(Pitfalls, P57_GradientsOfAttentionWithEveryOption) {
  const Shape sizes[] = {{3, 5}, {5, 3}, {4, 4}};  // queries, keys
  for (const Shape& s : sizes) {
    const std::vector<Tensor> in{numbers({2, 4, s[0], 5}, 1), numbers({2, 2, s[1], 5}, 2), numbers({2, 2, s[1], 3}, 3)};
    std::vector<Tensor> biased = in, listed = in, paired = in;
    biased.push_back(numbers({2, 4, s[0], s[1]}, 4));
    Tensor keys(DType::boolean, {2, s[1]}), pairs(DType::boolean, {1, 1, s[0], s[1]});
    for (Index i = 0; i < keys.count(); ++i) keys.set_code(i, i % 3 != 1);
    for (Index i = 0; i < pairs.count(); ++i) pairs.set_code(i, i % 2 == 0);
    listed.push_back(keys);
    paired.push_back(pairs);
    const auto check = [&](AttentionAttrs a, const std::vector<Tensor>& all) {
      a.scale = 0.3;
      a.soft_cap = 5;
      const Graph g = graph_of(all, [&](const Values& v) {
        return all.size() == 3 ? attention(v[0], v[1], v[2], a) : attention(v[0], v[1], v[2], v[3], a);
      });
      std::string where;
      EXPECT_LE(gradient_error(g, all, {}, where), 1e-8) << where;
    };
    check({}, in);
    check({.mask = AttentionMask::causal}, in);
    check({.mask = AttentionMask::window, .window = 2}, in);
    check({.extra = AttentionExtra::keys}, listed);
    check({.extra = AttentionExtra::pairs}, paired);
    check({.extra = AttentionExtra::bias}, biased);
    check({.mask = AttentionMask::causal, .extra = AttentionExtra::bias}, biased);
  }
}

TEST(Pitfalls, P7_WeightsInHalfPrecisionAreWidened) {
  for (const DType d : {DType::f16, DType::bf16}) {
    const Tensor x = counted({3, 8}, -1, 0.125), w = counted({8, 5}, -5, 0.25, d);  // exact in eight bits
    const std::vector<Tensor> out = run_all({x, w}, [d](const Values& v) {
      const Value wide = cast(v[1], DType::f32), narrow = cast(cast(v[0] + v[0], d), DType::f32);
      return Values{matmul(v[0], wide), matmul(narrow, wide)};
    });
    for (std::size_t i = 0; i < 15; ++i) {
      const std::size_t row = i / 5, column = i % 5;
      double want = 0;
      for (std::size_t k = 0; k < 8; ++k) {
        want += (-1 + 0.125 * static_cast<double>(row * 8 + k)) * (-5 + 0.25 * static_cast<double>(k * 5 + column));
      }
      EXPECT_EQ(reals(out[0])[i], want);
      EXPECT_EQ(reals(out[1])[i], 2 * want);
    }
  }
}

TEST(Pitfalls, P15_ItemsOfABatchAreIndependent) {
  const Tensor cosine = counted({4, 3}, 0.1, 0.05), sine = counted({4, 3}, 0.9, -0.05);
  for (const DType d : {DType::f32, DType::f16, DType::f64}) {
    const auto as = [d](const Tensor& t) { return floats(t.shape(), reals(t), d); };
    const auto turn = [](const Values& v) { return rope(v[0], v[1], v[2]); };
    const Tensor x = as(numbers({3, 4, 6}, 6));
    const Numbers all = reals(x), whole = reals(run({x, as(cosine), as(sine)}, turn));
    Numbers same;
    for (int i = 0; i < 3; ++i) same.insert(same.end(), all.begin(), all.begin() + 24);
    const Numbers equal = reals(run({floats({3, 4, 6}, same, d), as(cosine), as(sine)}, turn));
    for (std::ptrdiff_t i = 0; i < 3; ++i) {
      const Numbers item(all.begin() + i * 24, all.begin() + (i + 1) * 24);
      EXPECT_EQ(reals(run({floats({1, 4, 6}, item, d), as(cosine), as(sine)}, turn)),
                Numbers(whole.begin() + i * 24, whole.begin() + (i + 1) * 24));
      EXPECT_EQ(Numbers(equal.begin() + i * 24, equal.begin() + (i + 1) * 24),
                Numbers(whole.begin(), whole.begin() + 24));
    }
  }
}

TEST(Pitfalls, R12_AProductThatIsAlsoAnOutput) {
  const Tensor a = floats({3, 2}, {1, 2, 3, 4, 5, 6}), b = floats({2, 5}, {1, 0, 2, 0, 1, 0, 1, 1, 2, 0});
  const Numbers product{1, 2, 4, 4, 1, 3, 4, 10, 8, 3, 5, 6, 16, 12, 5};
  const std::vector<Tensor> out =
      run_all({a, b, floats({1}, {100}), floats({5}, {1, 2, 3, 4, 5})}, [](const Values& v) {
        const Value y = matmul(v[0], v[1]);
        return Values{y, y + v[2], relu(y + v[3])};
      });
  EXPECT_EQ(reals(out[0]), product);
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(reals(out[1])[i], product[i] + 100);
    EXPECT_EQ(reals(out[2])[i], product[i] + static_cast<double>(1 + i % 5));
  }
}

TEST(Pitfalls, R12_AResidualThatStretchesIntoANorm) {
  const Tensor x = numbers({2, 3, 5}, 7), residual = numbers({2, 1, 5}, 8);
  const std::vector<Tensor> out = run_all({x, residual}, [](const Values& v) {
    const Value s = v[0] + v[1];
    return Values{layer_norm(s, {-1, 1e-5}), rms_norm(s, {-1, 1e-5})};
  });
  const Numbers a = reals(x), r = reals(residual);
  for (std::size_t row = 0; row < 6; ++row) {
    Numbers s(5);
    double mean = 0, square = 0, variance = 0;
    for (std::size_t e = 0; e < 5; ++e) {
      s[e] = a[row * 5 + e] + r[row / 3 * 5 + e];
      mean += s[e] / 5;
      square += s[e] * s[e] / 5;
    }
    for (const double v : s) variance += (v - mean) * (v - mean) / 5;
    for (std::size_t e = 0; e < 5; ++e) {
      EXPECT_NEAR(reals(out[0])[row * 5 + e], (s[e] - mean) / std::sqrt(variance + 1e-5), 1e-13);
      EXPECT_NEAR(reals(out[1])[row * 5 + e], s[e] / std::sqrt(square + 1e-5), 1e-13);
    }
  }
}

}  // namespace
}  // namespace rlx::test
