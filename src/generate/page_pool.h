// Pages of cached keys and values: who uses them, and which tokens they hold, so that sequences with equal beginnings
// share them.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/index.h"

namespace rlx {

/// Hands out page numbers. A page has a user for every sequence whose table holds it. A full page may be named by the
/// tokens that it and all pages before it hold; it can then be found again, also when it has no user any more, until
/// its place is needed: pages without users are given up in the order in which they lost the last one.
class PagePool {
 public:
  /// A chain of full pages from the beginning of a sequence; equal beginnings have equal numbers. 0: no page yet.
  using Chain = std::uint64_t;

  /// Throws Error for less than one page.
  explicit PagePool(Index pages);

  Index size() const { return static_cast<Index>(pages_.size()); }
  /// Pages without users.
  Index available() const { return static_cast<Index>(free_.size() + idle_.size()); }
  Index users(Index page) const { return at(page).users; }
  bool named(Index page) const { return at(page).chain != 0; }

  /// A page of unknown contents, with one user. Throws Error when all pages have users.
  Index take();
  /// One more user.
  void share(Index page);
  /// One user less.
  void release(Index page);
  /// Takes the name away: the only user is about to write other tokens.
  void forget(Index page);

  /// States what a full page holds behind the pages of `before`; gives the chain that ends with it.
  Chain name(Index page, Chain before, std::span<const std::int32_t> tokens);
  /// The page that holds `tokens` behind `before` gets one more user; -1 when there is none. `chain` moves on.
  Index find(Chain& chain, std::span<const std::int32_t> tokens);

 private:
  struct Page {
    Index users = 0;
    Chain chain = 0, before = 0;
    std::vector<std::int32_t> tokens;
    std::list<Index>::iterator idle;  // valid while there are no users and a name
  };
  Page& at(Index page) { return pages_[static_cast<std::size_t>(page)]; }
  const Page& at(Index page) const { return pages_[static_cast<std::size_t>(page)]; }
  // The named page of these contents, or -1.
  Index lookup(std::uint64_t hash, Chain before, std::span<const std::int32_t> tokens) const;
  void drop_name(Index page);

  std::vector<Page> pages_;
  std::vector<Index> free_;
  std::list<Index> idle_;  // named pages without users, the longest unused first
  std::unordered_multimap<std::uint64_t, Index> by_hash_;
  Chain last_chain_ = 0;
};

}  // namespace rlx
