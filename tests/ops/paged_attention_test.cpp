// Steps of paged_attention at every level: random pages, sequences and options against the reference, bits that depend
// on the token alone, hidden slots that hold anything, and what is out of range.
#include "ops/paged_attention/paged_attention.h"

#include <limits>
#include <numeric>
#include <random>

#include "conformance.h"
#include "core/error.h"
#include "levels.h"
#include "node_steps.h"
#include "ops/attention/attention.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

struct Sizes {
  Index heads = 4, kv_heads = 2, size = 16, value_size = 16, page = 16;
};

Tensor random_tensor(const std::vector<Index>& shape, unsigned seed, double range, DType type = DType::f32) {
  return fill(CaseInput(type, std::vector<Dim>(shape.begin(), shape.end())).range(-range, range), {}, seed);
}

Tensor integers(std::vector<Index> shape, const std::vector<Index>& values) {
  return Tensor::of<std::int64_t>(DType::i32, std::move(shape), {values.begin(), values.end()});
}

// Sequences of given lengths in pages that are dealt at random, and some of their tokens.
struct Batch {
  Sizes sizes;
  std::vector<Tensor> in;  // q, keys, values, tables, sequences, positions

  Batch(const Sizes& s, const std::vector<Index>& lengths, const std::vector<std::pair<Index, Index>>& tokens,
        unsigned seed, DType pool = DType::f32)
      : sizes(s) {
    Index longest = 0, pages = 3;
    for (const Index n : lengths) {
      longest = std::max(longest, (n + s.page - 1) / s.page);
      pages += (n + s.page - 1) / s.page;
    }
    std::vector<Index> free(static_cast<std::size_t>(pages));
    std::iota(free.begin(), free.end(), Index{0});
    std::shuffle(free.begin(), free.end(), std::mt19937_64(seed));
    std::vector<Index> table(lengths.size() * static_cast<std::size_t>(longest), 0);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      for (Index p = 0; p * s.page < lengths[i]; ++p) {
        table[i * static_cast<std::size_t>(longest) + static_cast<std::size_t>(p)] = free.back();
        free.pop_back();
      }
    }
    std::vector<Index> sequences, positions;
    for (const auto& [sequence, position] : tokens) {
      sequences.push_back(sequence);
      positions.push_back(position);
    }
    const auto count = static_cast<Index>(tokens.size());
    in = {random_tensor({count, s.heads, s.size}, seed + 1, 2),
          random_tensor({pages * s.page, s.kv_heads, s.size}, seed + 2, 2, pool),
          random_tensor({pages * s.page, s.kv_heads, s.value_size}, seed + 3, 2, pool),
          integers({static_cast<Index>(lengths.size()), longest}, table),
          integers({count}, sequences),
          integers({count}, positions)};
  }
};

Graph graph_with(const PagedAttentionAttrs& a, const std::vector<Tensor>& in) {
  return graph_of(in, [&](const Values& v) { return paged_attention({v[0], v[1], v[2], v[3], v[4], v[5]}, a); });
}

Tensor run_step(const PagedAttentionAttrs& a, const std::vector<Tensor>& in, Index piece = 0, bool backwards = false) {
  std::string why;
  auto out = run_node(graph_with(a, in), placed(in), {}, piece, backwards, &why);
  EXPECT_TRUE(out) << why;
  return (*out)[0];
}

// Rows of axis 0.
Tensor rows_of(const Tensor& t, const std::vector<Index>& rows) {
  std::vector<Index> shape = t.shape();
  const Index width = t.count() / shape[0];
  shape[0] = static_cast<Index>(rows.size());
  Tensor out(t.dtype(), shape);
  Index to = 0;
  for (const Index r : rows) {
    for (Index i = 0; i < width; ++i) out.set_code(to++, t.code(r * width + i));
  }
  return out;
}

std::vector<std::pair<Index, Index>> all_of(Index sequence, Index first, Index end) {
  std::vector<std::pair<Index, Index>> tokens;
  for (Index p = first; p < end; ++p) tokens.emplace_back(sequence, p);
  return tokens;
}

TEST(PagedAttention, Cases) {
  const CaseCount count = check_steps(paged_attention_op, relative(4e-6), true);
  EXPECT_GE(count.ran, 60);
}

TEST(BulkPagedAttention, RandomRunsAgainstTheReference) {
  std::mt19937_64 random(7);
  const auto among = [&](std::initializer_list<Index> values) { return values.begin()[random() % values.size()]; };
  at_every_level([&] {
    for (unsigned round = 0; round < 60; ++round) {
      Sizes s;
      s.kv_heads = among({1, 2, 3});
      s.heads = s.kv_heads * among({1, 2, 3, 8});
      s.size = among({1, 7, 16, 32, 64});
      s.value_size = among({s.size, 5, 48});
      s.page = among({1, 3, 16, 32, 128, 200});
      std::vector<Index> lengths;
      std::vector<std::pair<Index, Index>> tokens;
      for (Index i = among({1, 2, 5}); i > 0; --i) lengths.push_back(among({1, 17, 128, 129, 300}));
      for (Index i = among({1, 3, 40}); i > 0; --i) {
        const std::size_t sequence = random() % lengths.size();
        tokens.emplace_back(static_cast<Index>(sequence),
                            static_cast<Index>(random() % static_cast<std::uint64_t>(lengths[sequence])));
      }
      PagedAttentionAttrs a{.page = s.page};
      if (round % 3 == 0) a.window = among({1, 5, 128, 130});
      if (round % 4 == 0) a.soft_cap = 5;
      if (round % 5 == 0) a.scale = 0.3;
      const DType pool = round % 2 ? DType::f32 : round % 4 ? DType::f16 : DType::bf16;
      const Batch run(s, lengths, tokens, round, pool);
      const Difference d = compare(run_step(a, run.in), evaluate(graph_with(a, run.in), run.in)[0], relative(2e-5));
      EXPECT_TRUE(d.ok) << "round " << round << " " << d.where;
    }
  });
}

// The bits of a token are the same alone, in a chunk of 512, in a batch, in other pieces of work, and on other pages.
TEST(PagedAttention, BitsDependOnTheTokenAlone) {
  at_every_level([&] {
    for (const DType pool : {DType::f32, DType::f16, DType::bf16}) {
      for (const Index window : {0, 150}) {
        const Sizes s{.heads = 6, .kv_heads = 2, .size = 32, .value_size = 32, .page = 16};
        const PagedAttentionAttrs a{.page = 16, .window = window};
        std::vector<std::pair<Index, Index>> tokens = all_of(1, 88, 600);
        const Batch run(s, {40, 600, 7}, tokens, 3, pool);
        const Tensor chunk = run_step(a, run.in);
        EXPECT_TRUE(identical(chunk, run_step(a, run.in, 1)));
        EXPECT_TRUE(identical(chunk, run_step(a, run.in, 3, true)));
        for (const std::vector<Index>& rows : std::vector<std::vector<Index>>{
                 {0}, {39}, {40}, {41}, {127}, {300}, {511}, {5, 511, 17}, {100, 101, 102, 103, 104, 105, 106}}) {
          std::vector<Tensor> in = run.in;
          for (const std::size_t i : {0u, 4u, 5u}) in[i] = rows_of(run.in[i], rows);
          EXPECT_TRUE(identical(run_step(a, in), rows_of(chunk, rows))) << rows[0];
        }
        std::vector<Tensor> moved = run.in;  // every page two further
        const Index slots = run.in[1].shape()[0];
        std::vector<Index> from;
        for (Index i = 0; i < slots; ++i) from.push_back((i + slots - 2 * s.page) % slots);
        moved[1] = rows_of(moved[1], from), moved[2] = rows_of(moved[2], from);
        std::vector<Index> table;
        for (const std::int64_t x : load<std::int64_t>(moved[3])) table.push_back((x + 2) % (slots / s.page));
        moved[3] = integers(moved[3].shape(), table);
        EXPECT_TRUE(identical(chunk, run_step(a, moved)));
      }
    }
  });
}

TEST(PagedAttention, OneSequenceIsAttentionWithOffset) {
  const Sizes s{.heads = 4, .kv_heads = 2, .size = 16, .value_size = 8, .page = 8};
  const Batch run(s, {200}, all_of(0, 150, 200), 5);
  std::vector<Index> slots;
  const std::vector<std::int64_t> table = load<std::int64_t>(run.in[3]);
  for (Index p = 0; p < 200; ++p) slots.push_back(table[static_cast<std::size_t>(p / 8)] * 8 + p % 8);
  const std::vector<Tensor> dense{run.in[0].reshaped({1, 50, 4, 16}),
                                  rows_of(run.in[1], slots).reshaped({1, 200, 2, 16}),
                                  rows_of(run.in[2], slots).reshaped({1, 200, 2, 8})};
  const Graph g = graph_of(dense, [](const Values& v) {
    return attention(v[0], v[1], v[2], {.layout = AttentionLayout::bshd, .mask = AttentionMask::causal});
  });
  const Tensor want = evaluate(g, dense)[0].reshaped({50, 4, 8});
  const Difference d = compare(run_step({.page = 8}, run.in), want, relative(2e-6));
  EXPECT_TRUE(d.ok) << d.where;
}

// Slots that no token sees may hold anything: stale values of a page's last user, NaN, infinity.
TEST(PagedAttention, HiddenSlotsHoldAnything) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  at_every_level([&] {
    for (const DType pool : {DType::f32, DType::f16, DType::bf16}) {
      const Sizes s{.heads = 4, .kv_heads = 2, .size = 16, .value_size = 16, .page = 16};
      const Batch run(s, {100}, {{0, 3}, {0, 50}, {0, 70}, {0, 10}}, 9, pool);
      const PagedAttentionAttrs a{.page = 16, .window = 40};
      const std::vector<std::int64_t> table = load<std::int64_t>(run.in[3]);
      const auto spoilt = [&](Index first, Index end) {
        std::vector<Tensor> in = run.in;
        for (const std::size_t i : {1u, 2u}) {
          std::vector<double> x = load<double>(in[i]);
          for (Index p = first; p < end; ++p) {
            const Index slot = table[static_cast<std::size_t>(p / 16)] * 16 + p % 16;
            for (Index e = 0; e < 32; ++e) x[static_cast<std::size_t>(slot * 32 + e)] = nan;
          }
          store(in[i], x);
        }
        return run_step(a, in);
      };
      const Tensor clean = run_step(a, run.in);
      EXPECT_TRUE(identical(spoilt(71, 100), clean));
      // Positions 11 to 30 are seen by the second token alone.
      EXPECT_TRUE(identical(rows_of(spoilt(11, 20), {0, 2, 3}), rows_of(clean, {0, 2, 3})));
      EXPECT_FALSE(identical(rows_of(spoilt(11, 20), {1}), rows_of(clean, {1})));
    }
  });
}

// A slice of one projection is read in place.
TEST(PagedAttention, ReadsQueriesInPlace) {
  const Sizes s{.heads = 2, .kv_heads = 1, .size = 8, .value_size = 8, .page = 4};
  const Batch run(s, {9}, {{0, 8}, {0, 2}, {0, 5}}, 4);
  const Tensor wide = random_tensor({3, 4, 8}, 6, 2);
  std::vector<Tensor> dense = run.in;
  const std::vector<double> all = load<double>(wide);
  std::vector<double> part;
  for (std::size_t t = 0; t < 3; ++t)
    part.insert(part.end(), all.begin() + 8 + 32 * static_cast<long>(t), all.begin() + 24 + 32 * static_cast<long>(t));
  dense[0] = Tensor::of<double>(DType::f32, {3, 2, 8}, part);
  std::vector<PlacedInput> in = placed(dense);
  in[0] = PlacedInput(wide, 8, {32, 8, 1});
  const PagedAttentionAttrs a{.page = 4};
  EXPECT_TRUE(identical((*run_node(graph_with(a, dense), in, {}))[0], run_step(a, dense)));
}

void expect_error(const Batch& run, std::size_t operand, const std::vector<Index>& values, const std::string& message) {
  std::vector<Tensor> in = run.in;
  in[operand] = integers(in[operand].shape(), values);
  const PagedAttentionAttrs a{.page = run.sizes.page};
  for (const bool defined : {false, true}) {
    EXPECT_THROW(evaluate(graph_with(a, in), in, {defined, {}}), Error) << message;
  }
  try {
    run_step(a, in);
    ADD_FAILURE() << "no error: " << message;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
  }
}

TEST(PagedAttention, OutOfRangeIsAnError) {
  const Batch run({.page = 4}, {7, 3}, {{0, 6}, {1, 2}}, 1);  // 6 pages in all
  expect_error(run, 4, {0, 2}, "token 1 is of sequence 2, but there are tables for 2");
  expect_error(run, 4, {-1, 0}, "token 0 is of sequence -1, but there are tables for 2");
  expect_error(run, 5, {8, 0}, "token 0 has position 8, but tables have 2 pages of 4 slots");
  expect_error(run, 5, {0, -1}, "token 1 has position -1, but tables have 2 pages of 4 slots");
  expect_error(run, 3, {0, 6, 1, 0}, "entry 1 of the table of sequence 0 is page 6, but the pools have 6");
  expect_error(run, 3, {0, 2, -1, 0}, "entry 0 of the table of sequence 1 is page -1, but the pools have 6");
}

}  // namespace
}  // namespace rlx::test
