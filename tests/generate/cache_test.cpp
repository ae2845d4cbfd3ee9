// Pages and sequences: users and names of pages, sharing, copies before writing, and what does not fit.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "tiny_decoder.h"

namespace rlx::test {
namespace {

TEST(PagePool, PagesAreFreeNamedOrUsed) {
  PagePool p(3);
  const Index a = p.take(), b = p.take();
  EXPECT_NE(a, b);
  EXPECT_EQ(p.available(), 1);
  const Tokens one{1, 2}, two{3, 4};
  const auto first = p.name(a, 0, one);
  const auto second = p.name(b, first, two);
  EXPECT_NE(first, second);
  p.release(b);
  p.release(a);
  EXPECT_EQ(p.available(), 3);
  PagePool::Chain chain = 0;
  EXPECT_EQ(p.find(chain, two), -1) << "the second page is not known behind nothing";
  EXPECT_EQ(p.find(chain, one), a);
  EXPECT_EQ(p.find(chain, two), b);
  EXPECT_EQ(chain, second);
  EXPECT_EQ(p.available(), 1);
  p.share(a);
  EXPECT_EQ(p.users(a), 2);
}

TEST(PagePool, TheLongestUnusedIsGivenUpFirst) {
  PagePool p(2);
  const Index a = p.take(), b = p.take();
  const Tokens one{1}, two{2};
  p.name(a, 0, one);
  p.name(b, 0, two);
  p.release(a);
  p.release(b);
  EXPECT_EQ(p.take(), a);
  PagePool::Chain chain = 0;
  EXPECT_EQ(p.find(chain, one), -1);
  EXPECT_EQ(p.find(chain, two), b);
  EXPECT_THROW(p.take(), Error);
}

TEST(PagePool, EqualPagesHaveOneChain) {
  PagePool p(2);
  const Index a = p.take(), b = p.take();
  const Tokens t{5, 6, 7};
  const PagePool::Chain chain = p.name(a, 0, t);
  EXPECT_EQ(p.name(b, 0, t), chain);
  EXPECT_FALSE(p.named(b));
  p.forget(a);
  EXPECT_FALSE(p.named(a));
  EXPECT_THROW(PagePool(0), Error);
}

std::vector<float> logits_of(PagedDecoder& d, PagedDecoder::Sequence s, const Tokens& tokens) {
  const RunPart part{s, tokens, 1};
  const std::span<const float> logits = d.run(std::span(&part, 1));
  return {logits.begin(), logits.end()};
}

Tokens with(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(PagedDecoder, ForkedSequencesDoNotSeeEachOther) {
  const TinyDecoder tiny;
  const auto d = make_decoder(tiny, {.context = 64, .pages = 32}), other = make_decoder(tiny, {.context = 64});
  const auto a = d->open();
  logits_of(*d, a, random_tokens(10, 1));  // two and a half pages
  const auto b = d->fork(a);
  EXPECT_EQ(d->pages().available(), 29);
  const std::vector<float> left = logits_of(*d, a, {1, 2, 3}), right = logits_of(*d, b, {4, 5, 6});
  Tokens whole = random_tokens(10, 1);
  whole.insert(whole.end(), {1, 2, 3});
  EXPECT_EQ(logits_of(*other, other->open(), whole), left);
  std::copy_n(std::begin({4, 5, 6}), 3, whole.end() - 3);
  EXPECT_EQ(logits_of(*d, d->open(), whole), right);
  EXPECT_EQ(logits_of(*d, a, {7}), logits_of(*other, 1, {7}));
}

TEST(PagedDecoder, TruncatedSequencesGoOnFromThere) {
  const TinyDecoder tiny;
  const Tokens tokens = random_tokens(30, 2);
  for (const Index length : {29, 28, 17, 16, 15, 1, 0}) {
    const auto d = make_decoder(tiny, {.context = 64, .pages = 40});
    const auto s = d->open();
    logits_of(*d, s, tokens);
    const auto twin = d->fork(s);  // shares the pages, so that they must be copied
    d->truncate(s, length);
    const Tokens more = random_tokens(9, 3);
    const std::vector<float> got = logits_of(*d, s, more);
    Tokens whole(tokens.begin(), tokens.begin() + length);
    whole.insert(whole.end(), more.begin(), more.end());
    const auto fresh = make_decoder(tiny, {.context = 64, .pages = 40});
    EXPECT_EQ(logits_of(*fresh, fresh->open(), whole), got) << length;
    d->close(s);
    EXPECT_EQ(logits_of(*d, twin, {1}), logits_of(*fresh, fresh->open(), with(tokens, {1})));
    d->close(twin);
    EXPECT_EQ(d->pages().available(), 40);
  }
}

// Rejected guesses lie in pages that another sequence may not find.
TEST(PagedDecoder, TruncatedTokensAreNotFound) {
  const TinyDecoder tiny;
  const auto d = make_decoder(tiny, {.context = 64, .pages = 40});
  const Tokens tokens = random_tokens(16, 2);
  const auto s = d->open();
  logits_of(*d, s, tokens);
  d->truncate(s, 9);
  Tokens other = random_tokens(7, 4);
  logits_of(*d, s, other);
  d->close(s);
  const auto t = d->open();
  EXPECT_EQ(d->reuse(t, tokens), 8);
  Tokens kept(tokens.begin(), tokens.begin() + 9);
  kept.insert(kept.end(), other.begin(), other.end());
  kept.push_back(1);
  const auto u = d->open();
  EXPECT_EQ(d->reuse(u, kept), 16);
  const auto fresh = make_decoder(tiny, {.context = 64});
  EXPECT_EQ(logits_of(*d, u, {1}), logits_of(*fresh, fresh->open(), kept));
}

TEST(PagedDecoder, SharedPagesAreCopiedBeforeWriting) {
  const TinyDecoder tiny;
  const auto d = make_decoder(tiny, {.context = 64, .pages = 20});
  const Tokens tokens = random_tokens(13, 5);
  const auto a = d->open();
  logits_of(*d, a, tokens);
  d->close(a);
  const auto b = d->open(), c = d->open();
  EXPECT_EQ(d->reuse(b, tokens), 12);
  EXPECT_EQ(d->reuse(c, tokens), 12);
  d->truncate(b, 10);
  const std::vector<float> got = logits_of(*d, b, {3});
  const auto fresh = make_decoder(tiny, {.context = 64});
  Tokens whole(tokens.begin(), tokens.begin() + 10);
  whole.push_back(3);
  EXPECT_EQ(got, logits_of(*fresh, fresh->open(), whole));
  EXPECT_EQ(logits_of(*d, c, {tokens[12]}), logits_of(*fresh, fresh->open(), tokens));
}

TEST(PagedDecoder, Errors) {
  const TinyDecoder tiny;
  const auto d = make_decoder(tiny, {.context = 16, .pages = 5});
  const auto s = d->open(), t = d->open();
  logits_of(*d, s, {1, 2, 3});
  expect_error([&] { logits_of(*d, 99, {1}); }, "there is no sequence 99");
  expect_error([&] { logits_of(*d, s, {}); }, "is run without tokens");
  expect_error([&] { logits_of(*d, s, {61}); }, "token 61 is outside the vocabulary of 61");
  expect_error([&] { logits_of(*d, s, random_tokens(14, 1)); }, "would have 17 positions, but the context has 16");
  const Tokens one{1};
  const std::vector<RunPart> twice{{s, one, 1}, {s, one, 1}}, too_many{{s, one, 2}};
  expect_error([&] { d->run(twice); }, "is named twice in a run");
  expect_error([&] { d->run(too_many); }, "2 logits are wanted of 1 tokens");
  expect_error([&] { d->run({}); }, "a run needs tokens of at least one sequence");
  expect_error([&] { d->truncate(s, 4); }, "has 3 tokens, not 4");
  const Tokens many = random_tokens(13, 1);
  const std::vector<RunPart> large{{s, many, 1}, {t, many, 1}};
  expect_error([&] { d->run(large); }, "the cache has 5 pages, of which 4 are free, but 7 are needed");
  EXPECT_EQ(d->length(s), 3);
  EXPECT_EQ(d->length(t), 0);
  const auto fresh = make_decoder(tiny, {.context = 16});
  EXPECT_EQ(logits_of(*d, s, {4}), logits_of(*fresh, fresh->open(), {1, 2, 3, 4}));
  expect_error([&] { make_decoder(tiny, {.context = -1}); }, "context is -1, expected 1 or more positions, or 0");
  expect_error([&] { PagedDecoder(cpu_session(), tiny.plain()); }, "no paged attention: it is no decoder with a cache");
}

TEST(PagedDecoder, NoLogitsAreWanted) {
  const TinyDecoder tiny;
  const auto d = make_decoder(tiny, {.context = 64});
  const auto s = d->open();
  const Tokens tokens = random_tokens(10, 1);
  const RunPart part{s, tokens, 0};
  EXPECT_TRUE(d->run(std::span(&part, 1)).empty());
  EXPECT_EQ(d->length(s), 10);
  EXPECT_EQ(d->position_bytes(), 2 * 2 * 2 * 8 * 4);
}

}  // namespace
}  // namespace rlx::test
