// Sequences over pages: room for new tokens, sharing, copies before writing, and the inputs of one run.
#include "generate/paged_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "ops/paged_attention/paged_attention.h"

namespace rlx {

namespace {

// Positions of a page, as the attention of the graph says.
Index page_of(const Graph& g) {
  Index page = 0;
  for (const Node& n : g.nodes) {
    if (n.op != &paged_attention_op) continue;
    const Index own = n.attrs.as<PagedAttentionAttrs>().page;
    require(page == 0 || page == own, "the graph has pages of {} and of {} positions", page, own);
    page = own;
  }
  require(page > 0, "the graph has no paged attention: it is no decoder with a cache");
  return page;
}

// The symbol that says how many slots all caches have.
std::string slots_symbol(const Graph& g) {
  require(!g.states.empty(), "the graph has no states: it is no decoder with a cache");
  const TensorType& first = g.type(g.states[0].input);
  require(first.rank() == 3 && !first.dims[0].is_constant(), "state {} is {}, expected [slots,heads,size]",
          g.states[0].name, first.text());
  DimSymbols symbols;
  first.dims[0].collect_symbols(symbols);
  require(symbols.size() == 1 && first.dims[0].text() == symbols.begin()->first,
          "state {} is {}: the number of slots is no symbol", g.states[0].name, first.text());
  for (const StatePair& s : g.states) {
    require(g.type(s.input).rank() == 3 && g.type(s.input).dims[0] == first.dims[0],
            "state {} is {}, expected as many slots as {}", s.name, g.type(s.input).text(), first.dims[0].text());
  }
  return symbols.begin()->first;
}

const Interface::Port& port(std::span<const Interface::Port> ports, std::string_view name, DType type, Index rank) {
  const auto found = std::ranges::find(ports, name, &Interface::Port::name);
  require(found != ports.end() && found->type.dtype == type && found->type.rank() == rank,
          "the graph has no {} {} of rank {}: it is no decoder with a cache", rlx::name(type), name, rank);
  return *found;
}

Index pages_in(Index positions, Index page) { return (positions + page - 1) / page; }

CacheOptions complete(CacheOptions o, Index page) {
  require(o.context >= 0, "context is {}, expected 1 or more positions, or 0", o.context);
  if (o.context == 0) o.context = 4096;
  if (o.pages == 0) o.pages = pages_in(o.context, page);
  return o;
}

}  // namespace

PagedDecoder::PagedDecoder(const Session& session, const Graph& graph, const CacheOptions& options,
                           const CompileOptions& compile)
    : executable_(session.compile(graph, compile)),
      page_(page_of(graph)),
      context_(complete(options, page_).context),
      reuse_(options.reuse),
      pool_(complete(options, page_).pages),
      state_(graph, {{slots_symbol(graph), complete(options, page_).pages * page_}}) {
  const Interface& i = executable_.interface();
  for (const std::string_view name : {"ids", "positions", "sequences", "slots", "rows"}) {
    port(i.inputs, name, DType::i32, 1);
  }
  port(i.inputs, "tables", DType::i32, 2);
  const TensorType& logits = port(i.outputs, "logits", DType::f32, 2).type;
  require(logits.dims[1].is_constant(), "logits are {}: the size of the vocabulary is no constant", logits.text());
  vocabulary_ = logits.dims[1].constant();
  DimSymbols rows;
  logits.dims[0].collect_symbols(rows);
  rows_may_be_none_ = rows.size() == 1 && rows.begin()->second.lo == 0;
}

DimEnv PagedDecoder::sizes(Index tokens, Index sequences, Index pages, Index rows) const {
  std::vector<TensorType> types;
  for (const Interface::Port& p : executable_.interface().inputs) {
    std::vector<Dim> dims{tokens};
    if (p.name == "tables") dims = {sequences, pages};
    if (p.name == "rows") dims = {rows};
    if (p.type.rank() == 3) dims = {pool_.size() * page_, p.type.dims[1], p.type.dims[2]};
    types.emplace_back(p.type.dtype, dims);
  }
  return bind_dims(executable_.interface(), types);
}

Index PagedDecoder::position_bytes() const {
  Index bytes = 0;
  for (const NamedTensors::value_type& s : state_.all()) {
    bytes += static_cast<Index>(s.second.bytes().size()) / (pool_.size() * page_);
  }
  return bytes;
}

PagedDecoder::Cached& PagedDecoder::at(Sequence sequence) {
  const auto found = sequences_.find(sequence);
  require(found != sequences_.end(), "there is no sequence {}", sequence);
  return found->second;
}
const PagedDecoder::Cached& PagedDecoder::at(Sequence sequence) const {
  const auto found = sequences_.find(sequence);
  require(found != sequences_.end(), "there is no sequence {}", sequence);
  return found->second;
}

PagedDecoder::Sequence PagedDecoder::open() {
  sequences_.emplace(++last_, Cached{});
  return last_;
}

void PagedDecoder::close(Sequence sequence) {
  Cached& c = at(sequence);
  name_full_pages(c);
  // The last page first: a chain is given up from its end.
  for (std::size_t i = c.pages.size(); i-- > 0;) pool_.release(c.pages[i]);
  sequences_.erase(sequence);
}

Index PagedDecoder::reuse(Sequence sequence, std::span<const std::int32_t> tokens) {
  Cached& c = at(sequence);
  require(c.tokens.empty(), "sequence {} has {} tokens, expected none", sequence, c.tokens.size());
  if (!reuse_) return 0;
  const auto page = static_cast<std::size_t>(page_);
  while (c.tokens.size() + page < tokens.size()) {
    const auto next = tokens.subspan(c.tokens.size(), page);
    const Index found = pool_.find(c.chain, next);
    if (found < 0) break;
    c.pages.push_back(found);
    c.tokens.insert(c.tokens.end(), next.begin(), next.end());
    ++c.named;
  }
  return static_cast<Index>(c.tokens.size());
}

PagedDecoder::Sequence PagedDecoder::fork(Sequence sequence) {
  Cached& from = at(sequence);
  name_full_pages(from);
  for (const Index p : from.pages) pool_.share(p);
  Cached copy = from;
  sequences_.emplace(++last_, std::move(copy));
  return last_;
}

void PagedDecoder::truncate(Sequence sequence, Index length) {
  Cached& c = at(sequence);
  require(length >= 0 && length <= static_cast<Index>(c.tokens.size()), "sequence {} has {} tokens, not {}", sequence,
          c.tokens.size(), length);
  c.tokens.resize(static_cast<std::size_t>(length));
  const auto kept = static_cast<std::size_t>(pages_in(length, page_));
  while (c.pages.size() > kept) {
    pool_.release(c.pages.back());
    c.pages.pop_back();
  }
  const auto full = static_cast<std::size_t>(length / page_);
  if (c.named <= full) return;
  c.named = 0;
  c.chain = 0;
  for (; c.named < full; ++c.named) c.chain = name_page(c, c.named);
}

Index PagedDecoder::pages_for(Sequence sequence, Index count) const {
  const Cached& c = at(sequence);
  return pages_in(static_cast<Index>(c.tokens.size()) + count, page_) - static_cast<Index>(c.pages.size());
}

PagePool::Chain PagedDecoder::name_page(const Cached& c, std::size_t page) {
  const auto size = static_cast<std::size_t>(page_);
  return pool_.name(c.pages[page], c.chain, std::span(c.tokens).subspan(page * size, size));
}

void PagedDecoder::name_full_pages(Cached& c) {
  if (!reuse_) return;
  for (const std::size_t full = c.tokens.size() / static_cast<std::size_t>(page_); c.named < full; ++c.named) {
    c.chain = name_page(c, c.named);
  }
}

void PagedDecoder::copy_page(Index from, Index to) {
  State::Hold hold(state_);
  for (const NamedTensors::value_type& s : state_.all()) {
    const std::span<std::byte> all = hold.bytes(s.first);
    const std::size_t bytes = all.size() / static_cast<std::size_t>(pool_.size());
    std::memcpy(all.data() + static_cast<std::size_t>(to) * bytes, all.data() + static_cast<std::size_t>(from) * bytes,
                bytes);
  }
}

// The page that the next token is written to belongs to this sequence alone.
void PagedDecoder::make_writable(Cached& c, std::size_t page) {
  const Index old = c.pages[page];
  if (pool_.users(old) == 1) return pool_.forget(old);
  const Index own = pool_.take();
  copy_page(old, own);
  pool_.release(old);
  c.pages[page] = own;
}

void PagedDecoder::make_room(Cached& c, Index count) {
  const auto length = static_cast<Index>(c.tokens.size());
  if (length % page_ != 0) make_writable(c, static_cast<std::size_t>(length / page_));
  while (static_cast<Index>(c.pages.size()) < pages_in(length + count, page_)) c.pages.push_back(pool_.take());
}

void PagedDecoder::check(std::span<const RunPart> parts) const {
  require(!parts.empty(), "a run needs tokens of at least one sequence");
  Index needed = 0;
  std::vector<Sequence> seen;
  for (const RunPart& p : parts) {
    const Cached& c = at(p.sequence);
    require(std::ranges::find(seen, p.sequence) == seen.end(), "sequence {} is named twice in a run", p.sequence);
    seen.push_back(p.sequence);
    require(!p.tokens.empty(), "sequence {} is run without tokens", p.sequence);
    const auto count = static_cast<Index>(p.tokens.size());
    require(p.logits >= 0 && p.logits <= count, "{} logits are wanted of {} tokens", p.logits, count);
    const auto length = static_cast<Index>(c.tokens.size());
    require(length + count <= context_, "sequence {} would have {} positions, but the context has {}", p.sequence,
            length + count, context_);
    for (const std::int32_t t : p.tokens) {
      require(t >= 0 && t < vocabulary_, "token {} is outside the vocabulary of {}", t, vocabulary_);
    }
    const bool copy = length % page_ != 0 && pool_.users(c.pages[static_cast<std::size_t>(length / page_)]) > 1;
    needed += pages_for(p.sequence, count) + (copy ? 1 : 0);
  }
  require(needed <= pool_.available(), "the cache has {} pages, of which {} are free, but {} are needed", pool_.size(),
          pool_.available(), needed);
}

// Tables are as wide as a power of two, so that few sizes are planned.
void PagedDecoder::collect(std::span<const RunPart> parts) {
  std::size_t width = 1;
  for (const RunPart& p : parts) width = std::max(width, std::bit_ceil(at(p.sequence).pages.size()));
  in_ = {};
  in_.tables.assign(parts.size() * width, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Cached& c = at(parts[i].sequence);
    for (std::size_t k = 0; k < c.pages.size(); ++k) {
      in_.tables[i * width + k] = static_cast<std::int32_t>(c.pages[k]);
    }
    auto position = static_cast<Index>(c.tokens.size());
    for (const std::int32_t t : parts[i].tokens) {
      const Index slot = c.pages[static_cast<std::size_t>(position / page_)] * page_ + position % page_;
      in_.ids.push_back(t);
      in_.positions.push_back(static_cast<std::int32_t>(position++));
      in_.sequences.push_back(static_cast<std::int32_t>(i));
      in_.slots.push_back(static_cast<std::int32_t>(slot));
    }
    const auto end = static_cast<Index>(in_.ids.size());
    for (Index r = end - parts[i].logits; r < end; ++r) in_.rows.push_back(static_cast<std::int32_t>(r));
  }
}

std::span<const float> PagedDecoder::run(std::span<const RunPart> parts) {
  check(parts);
  for (const RunPart& p : parts) name_full_pages(at(p.sequence));
  for (const RunPart& p : parts) make_room(at(p.sequence), static_cast<Index>(p.tokens.size()));
  collect(parts);
  const std::size_t wanted = in_.rows.size();
  if (wanted == 0 && !rows_may_be_none_) in_.rows.push_back(0);
  const auto tokens = static_cast<Index>(in_.ids.size()), rows = static_cast<Index>(in_.rows.size());
  const auto sequences = static_cast<Index>(parts.size());
  const std::array<Index, 1> by_token{tokens}, by_row{rows};
  const std::array<Index, 2> by_page{sequences, static_cast<Index>(in_.tables.size()) / sequences};
  const std::array<Index, 2> by_logit{rows, vocabulary_};
  logits_.resize(in_.rows.size() * static_cast<std::size_t>(vocabulary_));
  const auto input = [&](const char* name, std::span<const Index> shape, const std::vector<std::int32_t>& values) {
    return executable_.input(name).bind({DType::i32, shape, values.data()});
  };
  executable_.run({input("ids", by_token, in_.ids), input("positions", by_token, in_.positions),
                   input("sequences", by_token, in_.sequences), input("slots", by_token, in_.slots),
                   input("tables", by_page, in_.tables), input("rows", by_row, in_.rows)},
                  {executable_.output("logits").bind({DType::f32, by_logit, logits_.data()})},
                  {.state = &state_, .step_times = step_times_});
  for (const RunPart& p : parts) {
    std::vector<std::int32_t>& all = at(p.sequence).tokens;
    all.insert(all.end(), p.tokens.begin(), p.tokens.end());
  }
  return {logits_.data(), wanted * static_cast<std::size_t>(vocabulary_)};
}

}  // namespace rlx
