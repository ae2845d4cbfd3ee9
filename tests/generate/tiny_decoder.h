// A small decoder with random weights, over pages and without a cache.
#pragma once

#include <cmath>
#include <random>

#include "backend/cpu/cpu_device.h"
#include "generate/generator.h"
#include "ops/attention/attention.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/paged_attention/paged_attention.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter/scatter.h"
#include "runtime/evaluate.h"

namespace rlx::test {

using Tokens = std::vector<std::int32_t>;

/// Decoders of equal seeds have equal weights.
struct TinyDecoder {
  Index page = 4, vocabulary = 61, hidden = 32, layers = 2, heads = 4, kv_heads = 2, size = 8, positions = 512;
  unsigned seed = 1;
  DType cache = DType::f32;

  /// With the interface of `decoder`.
  Graph paged() const {
    Builder b;
    const Dim t = Dim::symbol("T", 1, 4096), sequences = Dim::symbol("B", 1, 64), pages = Dim::symbol("P", 1, 4096),
              rows = Dim::symbol("R", 0, 4096), slots = Dim::symbol("S", 1, 1 << 20);
    const Value ids = b.input("ids", {DType::i32, {t}}), at = b.input("positions", {DType::i32, {t}}),
                owner = b.input("sequences", {DType::i32, {t}}), to = b.input("slots", {DType::i32, {t}}),
                tables = b.input("tables", {DType::i32, {sequences, pages}}),
                wanted = b.input("rows", {DType::i32, {rows}});
    const Value y = forward(b, ids, at, [&](Index layer, Value q, Value k, Value v) {
      const auto state = [&](const char* name, Value x) {
        const std::string full = name + std::to_string(layer);
        const Value old = b.input(full, {cache, {slots, kv_heads, size}});
        const Value next = scatter_nd(old, cast(x, cache), reshape(to, {t, 1}));
        b.state(full, old, next);
        return next;
      };
      const Value keys = state("k.", k), values = state("v.", v);
      return paged_attention({q, keys, values, tables, owner, at}, {.page = page});
    });
    const Value logits = matmul(gather(y, wanted), weight(b, 99, {hidden, vocabulary}, 1));
    return b.finish(std::span(&logits, 1), {"logits"});
  }

  /// Logits [T,V] of one whole sequence.
  Graph plain() const {
    Builder b;
    const Dim t = Dim::symbol("T", 1, 4096);
    const Value ids = b.input("ids", {DType::i32, {t}});
    const Value y = forward(b, ids, iota(b, DType::i32, {t}), [&](Index, Value q, Value k, Value v) {
      const auto one = [&](Value x) { return reshape(x, {1, t, x.dim(1), x.dim(2)}); };
      const AttentionAttrs causal{.layout = AttentionLayout::bshd, .mask = AttentionMask::causal};
      return reshape(rlx::attention(one(q), one(k), one(v), causal), {t, heads, size});
    });
    const Value logits = matmul(y, weight(b, 99, {hidden, vocabulary}, 1));
    return b.finish(std::span(&logits, 1), {"logits"});
  }

  /// The most probable tokens that follow, every time from the whole sequence, by the reference evaluator.
  Tokens greedy(Tokens prompt, Index count) const {
    const Graph g = plain();
    const std::size_t begin = prompt.size();
    for (Index i = 0; i < count; ++i) {
      const std::vector<double> last = row(g, prompt, static_cast<Index>(prompt.size()) - 1);
      prompt.push_back(static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
    }
    return {prompt.begin() + static_cast<std::ptrdiff_t>(begin), prompt.end()};
  }

  /// Logits behind token `at` of a sequence.
  std::vector<double> row(const Graph& g, const Tokens& tokens, Index at) const {
    const auto n = static_cast<Index>(tokens.size());
    const std::vector<std::int64_t> ids(tokens.begin(), tokens.end());
    const std::vector<Tensor> in{Tensor::of<std::int64_t>(DType::i32, {n}, ids)};
    const std::vector<double> all = load<double>(evaluate(g, in, {false, {{"T", n}}})[0]);
    return {all.begin() + at * vocabulary, all.begin() + (at + 1) * vocabulary};
  }

 private:
  Value weight(Builder& b, unsigned number, const std::vector<Index>& shape, double range) const {
    std::mt19937_64 random(seed * 1000 + number);
    Index count = 1;
    for (const Index n : shape) count *= n;
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& x : values) x = range * (static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    return constant(b, Tensor::of<double>(DType::f32, shape, values));
  }

  template <class Attend>
  Value forward(Builder& b, Value ids, Value at, Attend attend) const {
    const Dim& t = ids.dim(0);
    unsigned number = 0;
    const auto linear = [&](Value x, Index in, Index out) {
      return matmul(x, weight(b, ++number, {in, out}, 2 / std::sqrt(static_cast<double>(in))));
    };
    const auto norm = [&](Value x) { return x / sqrt(mean(x * x, {1}, true) + like(x, 1e-5)); };
    Value x = gather(weight(b, 100, {vocabulary, hidden}, 1), ids) + gather(weight(b, 101, {positions, hidden}, 1), at);
    for (Index i = 0; i < layers; ++i) {
      const Value h = norm(x);
      const Value q = reshape(linear(h, hidden, heads * size), {t, heads, size});
      const Value k = reshape(linear(h, hidden, kv_heads * size), {t, kv_heads, size});
      const Value v = reshape(linear(h, hidden, kv_heads * size), {t, kv_heads, size});
      x = x + linear(reshape(attend(i, q, k, v), {t, heads * size}), heads * size, hidden);
      x = x + linear(tanh(linear(norm(x), hidden, 2 * hidden)), 2 * hidden, hidden);
    }
    return norm(x);
  }
};

inline Tokens random_tokens(std::size_t count, unsigned seed, Index vocabulary = 61) {
  std::mt19937_64 random(seed);
  Tokens t(count);
  for (std::int32_t& x : t) x = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocabulary));
  return t;
}

inline std::shared_ptr<PagedDecoder> make_decoder(const TinyDecoder& tiny,
                                                  const CacheOptions& options = {.context = 256}, int threads = 1) {
  return std::make_shared<PagedDecoder>(cpu_session({.threads = threads}), tiny.paged(), options);
}

/// What `f` throws says this.
template <class F>
void expect_error(F f, const std::string& message) {
  try {
    f();
    ADD_FAILURE() << "no error: " << message;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what() << "\n  expected: " << message;
  }
}

}  // namespace rlx::test
