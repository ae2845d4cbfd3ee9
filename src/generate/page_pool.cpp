// Users and names of pages.
#include "generate/page_pool.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

namespace {

std::uint64_t hash_of(std::uint64_t before, std::span<const std::int32_t> tokens) {
  std::uint64_t h = before * 0x9E3779B97F4A7C15u + tokens.size();
  for (const std::int32_t t : tokens) {
    h = (h ^ static_cast<std::uint32_t>(t)) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace

PagePool::PagePool(Index pages) {
  require(pages >= 1, "the cache has {} pages, expected 1 or more", pages);
  pages_.resize(static_cast<std::size_t>(pages));
  for (Index i = pages; i-- > 0;) free_.push_back(i);
}

Index PagePool::take() {
  if (free_.empty()) {
    require(!idle_.empty(), "all {} pages of the cache are in use", size());
    drop_name(idle_.front());
  }
  const Index page = free_.back();
  free_.pop_back();
  at(page).users = 1;
  return page;
}

void PagePool::share(Index page) {
  Page& p = at(page);
  if (p.users++ > 0) return;
  ensure(p.chain != 0, "a free page is shared");
  idle_.erase(p.idle);
}

void PagePool::release(Index page) {
  Page& p = at(page);
  ensure(p.users > 0, "a page without users is released");
  if (--p.users > 0) return;
  if (p.chain == 0) {
    free_.push_back(page);
  } else {
    p.idle = idle_.insert(idle_.end(), page);
  }
}

void PagePool::forget(Index page) {
  ensure(at(page).users == 1, "a page of several users, or of none, loses its name");
  if (at(page).chain != 0) drop_name(page);
}

void PagePool::drop_name(Index page) {
  Page& p = at(page);
  const auto [begin, end] = by_hash_.equal_range(hash_of(p.before, p.tokens));
  const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second == page; });
  if (found != end) by_hash_.erase(found);
  p.chain = 0;
  p.tokens.clear();
  if (p.users > 0) return;
  idle_.erase(p.idle);
  free_.push_back(page);
}

Index PagePool::lookup(std::uint64_t hash, Chain before, std::span<const std::int32_t> tokens) const {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto i = begin; i != end; ++i) {
    const Page& p = at(i->second);
    if (p.before == before && std::ranges::equal(p.tokens, tokens)) return i->second;
  }
  return -1;
}

PagePool::Chain PagePool::name(Index page, Chain before, std::span<const std::int32_t> tokens) {
  Page& p = at(page);
  if (p.chain != 0) return p.chain;
  const std::uint64_t hash = hash_of(before, tokens);
  const Index same = lookup(hash, before, tokens);
  // A second page of equal contents stays without a name: it is free as soon as its user is gone.
  if (same >= 0) return at(same).chain;
  p.chain = ++last_chain_;
  p.before = before;
  p.tokens.assign(tokens.begin(), tokens.end());
  by_hash_.emplace(hash, page);
  return p.chain;
}

Index PagePool::find(Chain& chain, std::span<const std::int32_t> tokens) {
  const Index page = lookup(hash_of(chain, tokens), chain, tokens);
  if (page < 0) return -1;
  share(page);
  chain = at(page).chain;
  return page;
}

}  // namespace rlx
