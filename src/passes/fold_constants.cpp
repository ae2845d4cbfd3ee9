// fold-constants: nodes that depend on nothing are computed once, at compile time.
#include <algorithm>

#include "core/error.h"
#include "ir/control.h"
#include "ir/measure.h"
#include "ir/rewrite.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/sizes/sizes.h"
#include "ops/transpose/transpose.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace rlx {

namespace {

constexpr Index most_bytes = Index{16} << 20;    // of results, unless the operands are larger
constexpr Index most_operands = Index{1} << 28;  // of operands: what is larger takes too long
constexpr Index most_trips = 1024;               // of a scan over constants
constexpr Index small_bytes = Index{64} << 10;   // moves of constants up to here are folded

Index dense_bytes(const TensorType& t) {
  Dim count = 1;
  for (const Dim& d : t.dims) count = count * d;
  return storage_bytes(t.dtype, count.constant());
}

bool knows_no_symbols(const Node& n) {
  DimSymbols found;
  n.attrs.collect_symbols(found);
  const bool bodies = std::ranges::all_of(n.bodies, [](const GraphPtr& b) { return b->symbols.empty(); });
  const bool sizes = std::ranges::all_of(n.results, [](const TensorType& t) { return t.is_constant() && !t.encoding; });
  return found.empty() && bodies && sizes;
}

// What a run of the pass knows.
class Folding {
 public:
  Folding(const Graph& g, PassContext& context) : g_(g), context_(context), live_(live_nodes(g)) {}

  Graph run() {
    find_constant();
    choose();
    const Graph made = rewrite(g_, [this](Rewriter& r, Id id) { return rule(r, id); });
    return drop_dead(made);
  }
  Index folded() const { return folded_; }
  Index sized() const { return sized_; }

 private:
  // Marks nodes that depend on nothing and are small enough to be held.
  void find_constant() {
    constant_.assign(g_.nodes.size(), false);
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      const Node& n = g_.nodes[i];
      if (!live_[i] || is_input(n)) continue;
      if (n.op == &constant_op) {
        constant_[i] = !n.results[0].encoding;
      } else if (n.operands.empty() ? n.op == &iota_op || n.op == &sizes_op : true) {
        const bool all = std::ranges::all_of(n.operands, [&](Operand o) { return constant_[o.node]; });
        constant_[i] = all && ends(n) && knows_no_symbols(n) && bounded(n);
      }
    }
  }

  // Loops take their time, which nobody knows.
  static bool ends(const Node& n) {
    if (n.op == &measure_op()) return false;  // it says more than its value
    if (n.op == &while_op()) return false;
    if (n.op == &scan_op() && !(n.attrs.as<ScanAttrs>().trips.bounds().hi <= most_trips)) return false;
    return std::ranges::all_of(n.bodies, [](const GraphPtr& b) { return std::ranges::all_of(b->nodes, ends); });
  }

  bool bounded(const Node& n) const {
    try {
      Index in = 0, out = 0;
      for (const Operand o : n.operands) in += dense_bytes(g_.type(o));
      for (const TensorType& t : n.results) out += dense_bytes(t);
      return in <= most_operands && (out <= most_bytes || out <= in);
    } catch (const Error&) {  // a size beyond all numbers
      return false;
    }
  }

  // A move whose result is better made at run time: it is larger than what it is made of, or a matmul reads it as it
  // is.
  bool only_moves(Id id) const {
    const Node& n = g_.nodes[id];
    const Index bytes = dense_bytes(n.results[0]);
    if (bytes <= small_bytes) return false;
    if (n.op == &broadcast_op || n.op == &iota_op) return true;
    return n.op == &transpose_op && std::ranges::all_of(g_.users(id), [&](Id user) {
             return g_.nodes[user].op == &matmul_op || g_.nodes[user].op == &transpose_op;
           });
  }

  // Marks the nodes whose values appear as constants, and those that are computed on the way.
  void choose() {
    stored_.assign(g_.nodes.size(), false);
    computed_.assign(g_.nodes.size(), false);
    std::vector<bool> kept(g_.nodes.size(), false);  // stays, so that its operands are needed as values
    for (Id i = static_cast<Id>(g_.nodes.size()); i-- > 0;) {
      if (!live_[i] || !constant_[i] || g_.nodes[i].op == &constant_op) continue;
      const auto reads = [&](Id user) { return live_[user] && (!constant_[user] || kept[user]); };
      const bool needed = g_.is_output(i) || std::ranges::any_of(g_.users(i), reads);
      const auto computes = [&](Id user) { return live_[user] && computed_[user]; };
      kept[i] = needed && only_moves(i);
      stored_[i] = needed && !kept[i];
      computed_[i] = stored_[i] || std::ranges::any_of(g_.users(i), computes);
    }
    uses_.assign(g_.nodes.size(), 0);
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      if (!computed_[i]) continue;
      for (const Operand o : g_.nodes[i].operands) ++uses_[o.node];
    }
  }

  std::optional<Values> rule(Rewriter& r, Id id) {
    if (computed_[id]) {
      if (std::optional<Values> made = compute(r, id)) return made;
    }
    return known_sizes(r, id);
  }

  std::optional<Values> compute(Rewriter& r, Id id) {
    const Node& n = g_.nodes[id];
    std::vector<Tensor> in;
    for (const Operand o : n.operands) {
      if (g_.nodes[o.node].op == &constant_op) {
        in.push_back(*match::constant_of(g_.nodes[o.node]));
      } else if (const auto it = values_.find(o.node); it != values_.end()) {
        in.push_back(it->second[o.result]);
      } else {
        return {};  // could not be computed
      }
    }
    std::vector<Tensor> out;
    try {
      out = evaluate(n, in);
    } catch (const Error& e) {
      context_.remark(fmt::format("{} stays: {}", describe(g_, id), e.what()));
      return {};
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      ensure(out[i].type() == n.results[i], "a computed constant has the type of its node");
    }
    for (const Operand o : n.operands) {
      if (--uses_[o.node] == 0) values_.erase(o.node);
    }
    std::optional<Values> made;
    if (stored_[id]) {
      ++folded_;
      made.emplace();
      for (const Tensor& t : out) made->push_back(constant(r.builder(), t));
    }
    if (uses_[id] > 0) values_.emplace(id, std::move(out));
    return made;
  }

  std::vector<Tensor> evaluate(const Node& n, const std::vector<Tensor>& in) const {
    if (context_.evaluate_node) return context_.evaluate_node(n, in);
    require(n.op->has_reference(), "no evaluator is given");
    std::vector<Tensor> out;
    for (const TensorType& t : n.results) {
      std::vector<Index> shape;
      for (const Dim& d : t.dims) shape.push_back(d.constant());
      out.emplace_back(t.dtype, std::move(shape));
    }
    n.op->reference(n.attrs, {in, out, {}});
    return out;
  }

  // An integer vector or number whose elements are known as sizes does not depend on data.
  std::optional<Values> known_sizes(Rewriter& r, Id id) {
    const Node& n = g_.nodes[id];
    if (n.results.size() != 1 || n.instance != 0 || n.op == &constant_op || n.op == &sizes_op) return {};
    const TensorType& type = n.results[0];
    if (!is_integer(type.dtype) || bits(type.dtype) < 32 || !type.is_constant() || type.rank() > 1) return {};
    const std::vector<Dim>* known = r.builder().known(r.copy(id)[0]);  // more may be known than before
    if (!known) return {};
    const std::vector<Dim> elements = *known;
    if (static_cast<Index>(elements.size()) != type.count().constant()) return {};
    const bool numbers = std::ranges::all_of(elements, &Dim::is_constant);
    Value v;
    if (numbers) {
      std::vector<std::int64_t> all;
      for (const Dim& d : elements) all.push_back(d.constant());
      Tensor t(type.dtype, type.rank() == 0 ? std::vector<Index>{} : std::vector<Index>{type.dims[0].constant()});
      store(t, all);
      v = constant(r.builder(), std::move(t));
    } else {
      const bool made_of_sizes = n.operands.size() == 1 && g_.nodes[n.operands[0].node].op == &sizes_op &&
                                 (n.op == &reshape_op || n.op == &cast_op);
      if (made_of_sizes || type.dtype == DType::u64) return {};
      v = reshape(cast(sizes(r.builder(), elements), type.dtype), type.dims);
    }
    ++sized_;
    return Values{v};
  }

  const Graph& g_;
  PassContext& context_;
  std::vector<bool> live_, constant_, stored_, computed_;
  std::vector<Index> uses_;
  std::unordered_map<Id, std::vector<Tensor>> values_;  // of nodes that others are computed from
  Index folded_ = 0, sized_ = 0;
};

}  // namespace

Graph fold_constants(const Graph& g, PassContext& context) {
  constexpr int rounds = 4;  // a node whose elements become known lets others be computed
  std::optional<Graph> current;
  Index folded = 0, sized = 0;
  for (int i = 0; i < rounds; ++i) {
    Folding folding(current ? *current : g, context);
    Graph next = folding.run();
    folded += folding.folded();
    sized += folding.sized();
    if (folding.folded() + folding.sized() == 0) break;
    current = std::move(next);
  }
  if (folded > 0) context.remark(fmt::format("{} nodes computed", folded));
  if (sized > 0) context.remark(fmt::format("{} integer tensors stated as sizes", sized));
  return current ? *std::move(current) : g;
}

}  // namespace rlx
