// A decoder with its cache: sequences of tokens that are run in any mix and lengths, and the logits that follow.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "generate/page_pool.h"
#include "runtime/session.h"

namespace rlx {

struct CacheOptions {
  /// Most positions of a sequence, at most those the model has; 0: 4096.
  Index context = 0;
  /// Pages of all sequences together; 0: those of one sequence of the longest context.
  Index pages = 0;
  /// Keep pages of sequences that are gone, and let sequences with equal beginnings share them.
  bool reuse = true;
};

/// Tokens of a sequence that are run together, and of how many of the last of them logits are wanted.
struct RunPart {
  Index sequence = 0;
  std::span<const std::int32_t> tokens;
  Index logits = 1;
};

/// Runs a graph with the interface of `decoder` (models/decoder.h): inputs ids, positions, sequences, slots, tables,
/// rows; states of cached keys and values; output logits. The logits of a token have the same bits whatever it is run
/// with. For one caller at a time.
class PagedDecoder {
 public:
  using Sequence = Index;

  /// Throws Error for a graph of another interface.
  PagedDecoder(const Session& session, const Graph& graph, const CacheOptions& options = {},
               const CompileOptions& compile = {});

  Index context() const { return context_; }
  Index vocabulary() const { return vocabulary_; }
  /// Positions of a page.
  Index page() const { return page_; }
  const PagePool& pages() const { return pool_; }
  const Executable& executable() const { return executable_; }
  /// Sizes of a run, for Executable::report.
  DimEnv sizes(Index tokens, Index sequences, Index pages, Index rows) const;
  /// Bytes of cached keys and values of one position.
  Index position_bytes() const;

  /// A new sequence without tokens.
  Sequence open();
  /// Its pages lose a user.
  void close(Sequence sequence);
  /// Gives an empty sequence the longest beginning of `tokens` in whole pages that is cached, but not all of them.
  /// Gives its length.
  Index reuse(Sequence sequence, std::span<const std::int32_t> tokens);
  /// A second sequence of the same tokens; what one of them writes the other does not see.
  Sequence fork(Sequence sequence);
  /// Drops the tokens from `length` on.
  void truncate(Sequence sequence, Index length);
  std::span<const std::int32_t> tokens(Sequence sequence) const { return at(sequence).tokens; }
  Index length(Sequence sequence) const { return static_cast<Index>(at(sequence).tokens.size()); }
  /// Pages that `count` further tokens take.
  Index pages_for(Sequence sequence, Index count) const;

  /// Appends tokens to sequences, each of which is named once. Gives the wanted logits, vocabulary() numbers a token,
  /// part by part; they stay valid until the next call. Throws Error for a token outside the vocabulary, a sequence
  /// that would exceed the context, and a cache without a free page; then no sequence has changed.
  std::span<const float> run(std::span<const RunPart> parts);
  /// From now on runs write the time of every step here; null: they do not.
  void time_steps(std::vector<std::chrono::nanoseconds>* times) { step_times_ = times; }

 private:
  struct Cached {
    std::vector<std::int32_t> tokens;
    std::vector<Index> pages;
    PagePool::Chain chain = 0;  // of the first `named` pages
    std::size_t named = 0;
  };
  struct Inputs {
    std::vector<std::int32_t> ids, positions, sequences, slots, tables, rows;
  };
  Cached& at(Sequence sequence);
  const Cached& at(Sequence sequence) const;
  void check(std::span<const RunPart> parts) const;
  PagePool::Chain name_page(const Cached& c, std::size_t page);
  void name_full_pages(Cached& c);
  void make_room(Cached& c, Index count);
  void make_writable(Cached& c, std::size_t page);
  void copy_page(Index from, Index to);
  void collect(std::span<const RunPart> parts);

  Executable executable_;
  Index page_ = 0, context_ = 0, vocabulary_ = 0;
  bool reuse_ = true;
  bool rows_may_be_none_ = false;
  PagePool pool_;
  State state_;
  std::map<Sequence, Cached> sequences_;
  Sequence last_ = 0;
  Inputs in_;
  std::vector<float> logits_;
  std::vector<std::chrono::nanoseconds>* step_times_ = nullptr;
};

}  // namespace rlx
