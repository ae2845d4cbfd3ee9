// Generation: the same tokens however the cache, chunks, batches, threads and guesses are; and the ends of requests.
#include "generate/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "tiny_decoder.h"

namespace rlx::test {
namespace {

GenerateOptions greedy(Index count) { return {.sampling = SamplerOptions::greedy(), .max_tokens = count}; }

std::map<Index, Tokens> run_all(Generator& g) {
  std::map<Index, Tokens> out;
  while (!g.idle()) {
    for (const GeneratedToken& t : g.step()) out[t.request].push_back(t.token);
  }
  return out;
}

// What a text must be, by the reference evaluator, which has no cache.
TEST(Generate, GreedyIsWhatTheWholeSequenceGives) {
  const TinyDecoder tiny;
  const Tokens prompt = random_tokens(37, 1);
  Generator g(make_decoder(tiny));
  const Tokens tokens = g.generate(prompt, greedy(30));
  EXPECT_EQ(tokens, tiny.greedy(prompt, 30));
  EXPECT_GT(std::set<std::int32_t>(tokens.begin(), tokens.end()).size(), 5u) << "too dull to show anything";
}

TEST(Generate, LogitsAreThoseOfTheWholeSequence) {
  const TinyDecoder tiny;
  const Tokens tokens = random_tokens(50, 2);
  const auto d = make_decoder(tiny);
  const auto s = d->open();
  const RunPart part{s, tokens, 50};
  const std::span<const float> logits = d->run(std::span(&part, 1));
  ASSERT_EQ(logits.size(), 50u * 61u);
  const Graph plain = tiny.plain();
  for (const Index at : {0, 3, 4, 31, 49}) {
    const std::vector<double> want = tiny.row(plain, tokens, at);
    for (std::size_t i = 0; i < 61; ++i) EXPECT_NEAR(logits[static_cast<std::size_t>(at) * 61 + i], want[i], 1e-4);
  }
}

// Half caches round keys and values: close, and the same bits however they are run.
TEST(Generate, CachesOfHalfTypesAreClose) {
  for (const DType cache : {DType::f16, DType::bf16}) {
    const TinyDecoder tiny{.cache = cache};
    const Tokens tokens = random_tokens(50, 2);
    const auto d = make_decoder(tiny);
    const auto s = d->open();
    const RunPart part{s, tokens, 1};
    const std::span<const float> logits = d->run(std::span(&part, 1));
    const std::vector<double> want = tiny.row(tiny.plain(), tokens, 49);
    const double bound = cache == DType::f16 ? 0.02 : 0.2;
    for (std::size_t i = 0; i < 61; ++i) EXPECT_NEAR(logits[i], want[i], bound);
  }
}

struct How {
  Index chunk = 512;
  int threads = 1;
  Index page = 4;
  MakeSpeculator speculate;
};

Tokens generate(const TinyDecoder& base, const Tokens& prompt, const GenerateOptions& options, const How& how,
                GeneratorCounts* counts = nullptr) {
  TinyDecoder tiny = base;
  tiny.page = how.page;
  Generator g(make_decoder(tiny, {.context = 256}, how.threads), {how.chunk, how.speculate});
  const Tokens tokens = g.generate(prompt, options);
  if (counts) *counts = g.counts();
  return tokens;
}

GenerateOptions sampled(Index count, std::uint64_t seed) {
  GenerateOptions o{.sampling = {.temperature = 1.3, .top_k = 20, .seed = seed}, .max_tokens = count};
  o.sampling.repeat_penalty = 1.2;
  return o;
}

TEST(Generate, ChunksPagesAndThreadsChangeNothing) {
  for (const DType cache : {DType::f32, DType::f16, DType::bf16}) {
    const TinyDecoder tiny{.cache = cache};
    const Tokens prompt = random_tokens(101, 3);
    for (const GenerateOptions& o : {greedy(40), sampled(40, 5)}) {
      const Tokens want = generate(tiny, prompt, o, {});
      EXPECT_EQ(want.size(), 40u);
      for (const Index chunk : {1, 2, 7, 16, 64, 100, 101})
        EXPECT_EQ(generate(tiny, prompt, o, {.chunk = chunk}), want);
      EXPECT_EQ(generate(tiny, prompt, o, {.threads = 2}), want);
      EXPECT_EQ(generate(tiny, prompt, o, {.chunk = 32, .threads = 2}), want);
      for (const Index page : {1, 3, 16, 64}) EXPECT_EQ(generate(tiny, prompt, o, {.page = page}), want);
    }
  }
}

TEST(Generate, BatchesChangeNothing) {
  const TinyDecoder tiny;
  std::vector<Tokens> prompts;
  for (unsigned i = 0; i < 8; ++i) prompts.push_back(random_tokens(5 + 13 * i, 10 + i));
  const auto options = [&](std::size_t i) { return i % 2 ? greedy(20 + static_cast<Index>(i)) : sampled(25, i); };
  std::vector<Tokens> alone;
  for (std::size_t i = 0; i < prompts.size(); ++i) alone.push_back(generate(tiny, prompts[i], options(i), {}));
  for (const int threads : {1, 2}) {
    for (std::size_t batch = 1; batch <= prompts.size(); ++batch) {
      Generator g(make_decoder(tiny, {.context = 256, .pages = 8 * 64}, threads), {.chunk = 40});
      std::vector<Index> ids;
      for (std::size_t i = 0; i < batch; ++i) ids.push_back(g.add(prompts[i], options(i)));
      std::map<Index, Tokens> got = run_all(g);
      for (std::size_t i = 0; i < batch; ++i) EXPECT_EQ(got[ids[i]], alone[i]) << i << " of " << batch;
    }
  }
}

// Requests that come and go while others write, in a cache that does not hold all of them at once.
TEST(Generate, RequestsWaitForPages) {
  const TinyDecoder tiny;
  Generator g(make_decoder(tiny, {.context = 64, .pages = 40}), {.chunk = 8});
  std::map<Index, Tokens> want, got;
  for (unsigned i = 0; i < 12; ++i) {
    const Tokens prompt = random_tokens(10 + i, 40 + i);
    const Index id = g.add(prompt, greedy(20));
    want[id] = tiny.greedy(prompt, 20);
    for (const GeneratedToken& t : g.step()) got[t.request].push_back(t.token);
  }
  for (auto& [id, tokens] : run_all(g)) got[id].insert(got[id].end(), tokens.begin(), tokens.end());
  EXPECT_EQ(got, want);
  EXPECT_EQ(g.decoder().pages().available(), 40);
}

TEST(Generate, SpeculationChangesNothing) {
  const TinyDecoder tiny;
  Tokens prompt = random_tokens(12, 6);
  for (int i = 0; i < 3; ++i) prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 12);
  TinyDecoder other{.layers = 1, .seed = 7};
  for (const GenerateOptions& o : {greedy(60), sampled(60, 9)}) {
    const Tokens want = generate(tiny, prompt, o, {});
    GeneratorCounts counts;
    EXPECT_EQ(generate(tiny, prompt, o, {.speculate = prompt_lookup()}, &counts), want);
    EXPECT_GT(counts.guessed, 0);
    // A draft that is the model itself: every guess of a greedy text is right.
    EXPECT_EQ(generate(tiny, prompt, o, {.speculate = draft_model(make_decoder(tiny), 4)}, &counts), want);
    EXPECT_GT(counts.accepted, 0);
    if (o.sampling.temperature == 0) {
      EXPECT_EQ(counts.accepted, counts.guessed);
    }
    EXPECT_EQ(generate(tiny, prompt, o, {.speculate = draft_model(make_decoder(other), 4)}, &counts), want);
    EXPECT_LT(counts.accepted, counts.guessed);
  }
}

// A run that checks k right guesses gives k + 1 tokens: the one behind the last guess is kept.
TEST(Pitfalls, R24_BonusTokenOfSpeculation) {
  const TinyDecoder tiny;
  const Tokens prompt = random_tokens(9, 4);
  GeneratorCounts counts;
  const How how{.speculate = draft_model(make_decoder(tiny), 4)};
  EXPECT_EQ(generate(tiny, prompt, greedy(26), how, &counts), tiny.greedy(prompt, 26));
  // The prompt's run gives the first token, then five runs give five tokens each.
  EXPECT_EQ(counts.runs, 6);
  EXPECT_EQ(counts.accepted, 20);
}

TEST(Generate, SpeculationInABatch) {
  const TinyDecoder tiny;
  const auto draft = make_decoder(tiny, {.context = 256, .pages = 4 * 64});
  Generator g(make_decoder(tiny, {.context = 256, .pages = 4 * 64}), {.chunk = 16, .speculate = draft_model(draft, 3)});
  std::map<Index, Tokens> want;
  for (unsigned i = 0; i < 4; ++i) {
    const Tokens prompt = random_tokens(20 + 3 * i, 70 + i);
    want[g.add(prompt, greedy(15 + static_cast<Index>(i)))] = tiny.greedy(prompt, 15 + static_cast<Index>(i));
  }
  EXPECT_EQ(run_all(g), want);
  EXPECT_EQ(draft->pages().available(), 4 * 64);
}

TEST(Generate, ReusedPrefixesChangeNothing) {
  const TinyDecoder tiny;
  const auto d = make_decoder(tiny, {.context = 256, .pages = 128});
  Generator g(d);
  const Tokens shared = random_tokens(90, 20);
  const auto with = [&](unsigned seed) {
    Tokens t = shared;
    const Tokens more = random_tokens(seed, seed);
    t.insert(t.end(), more.begin(), more.end());
    return t;
  };
  EXPECT_EQ(g.generate(with(5), greedy(20)), tiny.greedy(with(5), 20));
  EXPECT_EQ(g.counts().reused, 0);
  EXPECT_EQ(g.generate(with(9), greedy(20)), tiny.greedy(with(9), 20));
  EXPECT_EQ(g.counts().reused, 88);  // 22 whole pages of 4
  // The same prompt again: all pages but the one of the last token; what was generated is found too.
  Tokens again = with(9);
  EXPECT_EQ(g.generate(again, greedy(20)), tiny.greedy(with(9), 20));
  EXPECT_EQ(g.counts().reused, 88 + 96);
  const Tokens answer = tiny.greedy(again, 20);
  again.insert(again.end(), answer.begin(), answer.end());
  EXPECT_EQ(g.generate(again, greedy(5)), tiny.greedy(again, 5));
  EXPECT_EQ(g.counts().reused, 88 + 96 + 116);
  Generator without(make_decoder(tiny, {.context = 256, .reuse = false}));
  without.generate(with(5), greedy(2));
  without.generate(with(5), greedy(2));
  EXPECT_EQ(without.counts().reused, 0);
}

TEST(Generate, SeedsDecide) {
  const TinyDecoder tiny;
  const Tokens prompt = random_tokens(10, 1);
  EXPECT_EQ(generate(tiny, prompt, sampled(30, 1), {}), generate(tiny, prompt, sampled(30, 1), {}));
  EXPECT_NE(generate(tiny, prompt, sampled(30, 1), {}), generate(tiny, prompt, sampled(30, 2), {}));
}

TEST(Generate, EndsOfRequests) {
  const TinyDecoder tiny;
  const Tokens prompt = random_tokens(10, 1), want = tiny.greedy(prompt, 50);
  const auto finish = [&](const GenerateOptions& o, const CacheOptions& cache, MakeSpeculator speculate) {
    Generator g(make_decoder(tiny, cache), {.speculate = std::move(speculate)});
    g.add(prompt, o);
    std::pair<Tokens, Finish> out{{}, Finish::none};
    while (!g.idle()) {
      for (const GeneratedToken& t : g.step()) {
        EXPECT_EQ(out.second, Finish::none) << "a token behind the last";
        out.first.push_back(t.token);
        out.second = t.finish;
      }
    }
    return out;
  };
  const auto first = [&](std::size_t n) { return Tokens(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(n)); };
  for (const bool guesses : {false, true}) {
    const MakeSpeculator s = guesses ? draft_model(make_decoder(tiny), 6) : nullptr;
    EXPECT_EQ(finish(greedy(17), {.context = 64}, s), std::pair(first(17), Finish::length));
    EXPECT_EQ(finish(greedy(1), {.context = 64}, s), std::pair(first(1), Finish::length));
    EXPECT_EQ(finish(greedy(-1), {.context = 33}, s), std::pair(first(23), Finish::context));
    GenerateOptions ends = greedy(-1);
    ends.end_tokens = {want[7], 60};
    const auto stop = static_cast<std::size_t>(std::ranges::find_first_of(want, ends.end_tokens) - want.begin()) + 1;
    EXPECT_EQ(finish(ends, {.context = 64}, s), std::pair(first(stop), Finish::end));
  }
}

TEST(Generate, LogProbabilities) {
  const TinyDecoder tiny;
  const Tokens prompt = random_tokens(10, 1);
  GenerateOptions o = sampled(6, 3);
  o.logprobs = 4;
  Generator g(make_decoder(tiny));
  g.add(prompt, o);
  Tokens all = prompt;
  const Graph plain = tiny.plain();
  while (!g.idle()) {
    for (const GeneratedToken& t : g.step()) {
      const std::vector<double> logits = tiny.row(plain, all, static_cast<Index>(all.size()) - 1);
      double sum = 0;
      for (const double x : logits) sum += std::exp(x);
      EXPECT_NEAR(t.logprob, logits[static_cast<std::size_t>(t.token)] - std::log(sum), 1e-4);
      ASSERT_EQ(t.most_probable.size(), 4u);
      EXPECT_NEAR(t.most_probable[0].logprob, *std::ranges::max_element(logits) - std::log(sum), 1e-4);
      for (std::size_t i = 1; i < 4; ++i) EXPECT_LE(t.most_probable[i].logprob, t.most_probable[i - 1].logprob);
      all.push_back(t.token);
    }
  }
  EXPECT_EQ(all.size(), prompt.size() + 6);
}

TEST(Generate, CancelledRequestsGiveTheirPagesBack) {
  const TinyDecoder tiny;
  Generator g(make_decoder(tiny, {.context = 64, .pages = 16}));
  const Index a = g.add(random_tokens(10, 1), greedy(-1)), b = g.add(random_tokens(11, 2), greedy(5));
  g.step();
  EXPECT_LT(g.decoder().pages().available(), 16);
  g.cancel(a);
  EXPECT_EQ(run_all(g)[b], tiny.greedy(random_tokens(11, 2), 5));
  EXPECT_EQ(g.decoder().pages().available(), 16);
  g.cancel(a);  // nothing is there any more
}

TEST(Generate, Errors) {
  const TinyDecoder tiny;
  Generator g(make_decoder(tiny, {.context = 32, .pages = 6}));
  expect_error([&] { g.add({}); }, "the prompt is empty, expected 1 token or more");
  expect_error([&] { g.add(random_tokens(32, 1)); }, "the prompt has 32 tokens, which leaves none of the 32 positions");
  expect_error([&] { g.add({1, 61}); }, "token 61 of the prompt is outside the vocabulary of 61");
  expect_error([&] { g.add({-1}); }, "token -1 of the prompt is outside the vocabulary of 61");
  expect_error([&] { g.add({1}, greedy(0)); }, "max_tokens is 0, expected 1 or more, or -1");
  expect_error([&] { g.add({1}, greedy(-1)); }, "a request of up to 32 tokens needs 8 pages, but the cache has 6");
  expect_error([&] { g.add({1}, {.sampling = {.temperature = -1}}); }, "temperature is -1, expected 0 or more");
  const auto d = make_decoder(tiny, {.context = 32});
  expect_error([&] { Generator(d, {.chunk = 0}); }, "chunk is 0, expected 1 token or more");
  expect_error([&] { Generator(nullptr); }, "there is no model to generate with");
  expect_error([&] { prompt_lookup({.longest = 1, .shortest = 2}); }, "prompt lookup compares 2 to 1 tokens");
  expect_error([&] { draft_model(nullptr); }, "there is no draft model");
  EXPECT_EQ(g.generate({1, 2, 3}, greedy(4)), tiny.greedy({1, 2, 3}, 4));
}

}  // namespace
}  // namespace rlx::test
