// Cutting at the sizes that a run finds.
#include "plan/segments.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "ir/builder.h"
#include "ir/measure.h"
#include "ops/broadcast/broadcast.h"
#include "ops/reshape/reshape.h"

namespace rlx {

namespace {

class Cutter {
 public:
  explicit Cutter(const Graph& g) : g_(g), measures_(measures(g)), live_(live_nodes(g)), levels_(node_levels(g)) {
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      if (live_[i]) last_ = std::max(last_, levels_[i]);
    }
    for (const Check& c : g_.checks) last_ = std::max(last_, check_level(c));
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) input_numbers_.emplace(g_.inputs[i], i);
    find_repeated();
    find_needs();
  }

  Segments run() {
    Segments all;
    made_at_.resize(last_ + 1);
    for (std::uint32_t s = 0; s <= last_; ++s) all.parts.push_back(part(s));
    for (const Operand o : g_.outputs) all.outputs.push_back(source(o, last_ + 1));
    return all;
  }

 private:
  // Nodes that cost little and need nothing but constants: made anew in every segment that reads them.
  void find_repeated() {
    repeated_.resize(g_.nodes.size(), false);
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      const Node& n = g_.nodes[i];
      if (is_input(n)) continue;
      const bool cheap = n.operands.empty() || n.op == &broadcast_op || n.op == &reshape_op;
      repeated_[i] =
          cheap && std::ranges::all_of(n.operands, [&](Operand o) { return static_cast<bool>(repeated_[o.node]); });
    }
  }

  std::uint32_t level(Operand o) const { return levels_[o.node]; }
  Operand found(const Measure& m) const { return g_.nodes[m.node].operands[0]; }

  // Which values each segment reads from outside, and which values it must give.
  void find_needs() {
    reads_.resize(last_ + 1);
    gives_.resize(last_ + 1);
    extra_.resize(last_ + 1);
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      if (!live_[i] || is_input(g_.nodes[i]) || repeated_[i]) continue;
      for (const Operand o : g_.nodes[i].operands) need(o, levels_[i]);
    }
    for (const Measure& m : measures_) {
      if (!live_[m.node]) continue;
      need(found(m), levels_[m.node]);
      gives_[levels_[m.node]].insert(found(m));
    }
    for (const Operand o : g_.outputs) give(o);
    for (const StatePair& s : g_.states) {
      need(s.output, last_);
      reads_[last_].insert(s.input);
    }
  }

  void need(Operand o, std::uint32_t at) {
    if (repeated_[o.node]) return add_repeated(o.node, at);
    const bool input = is_input(g_.nodes[o.node]);
    if (!input && level(o) == at) return;
    reads_[at].insert(o);
    if (!input) gives_[level(o)].insert(o);
  }

  // An output of the whole comes from the segment that makes it; what is repeated from the last one.
  void give(Operand o) {
    if (is_input(g_.nodes[o.node])) return;
    const std::uint32_t at = repeated_[o.node] ? last_ : level(o);
    if (repeated_[o.node]) add_repeated(o.node, at);
    gives_[at].insert(o);
  }

  void add_repeated(Id id, std::uint32_t at) {
    if (!extra_[at].insert(id).second) return;
    for (const Operand o : g_.nodes[id].operands) add_repeated(o.node, at);
  }

  SegmentSource source(Operand o, std::uint32_t reader) {
    const auto input = input_numbers_.find(o.node);
    if (input != input_numbers_.end()) return {std::nullopt, input->second};
    for (std::uint32_t s = std::min(reader, last_ + 1); s-- > 0;) {
      const auto it = made_at_[s].find(o);
      if (it != made_at_[s].end()) return {s, it->second};
    }
    ensure(false, "a segment reads what none has made");
    return {};
  }

  std::string input_name(Operand o) const {
    const auto input = input_numbers_.find(o.node);
    if (input != input_numbers_.end()) return g_.input_names[input->second];
    std::string name = fmt::format("%{}#{}", o.node, o.result);
    while (std::ranges::find(g_.input_names, name) != g_.input_names.end()) name += "'";
    return name;
  }

  Segment part(std::uint32_t s) {
    Segment made;
    Builder b;
    std::map<Operand, Value> at;
    for (const Operand o : reads_[s]) {
      at.emplace(o, b.input(input_name(o), g_.type(o)));
      made.inputs.push_back(source(o, s));
    }
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      const Node& n = g_.nodes[i];
      const bool mine = live_[i] && !is_input(n) && !repeated_[i] && levels_[i] == s;
      if (!mine && !extra_[s].contains(i)) continue;
      Values operands;
      for (const Operand o : n.operands) operands.push_back(at.at(o));
      if (n.op == &measure_op()) {
        at.insert_or_assign({i, 0}, operands[0]);
        continue;
      }
      const Values results = b.emit(*n.op, n.attrs, operands, n.bodies, n.instance);
      for (std::uint32_t r = 0; r < results.size(); ++r) at.insert_or_assign({i, r}, results[r]);
    }
    finish(s, b, at, made);
    return made;
  }

  void finish(std::uint32_t s, Builder& b, const std::map<Operand, Value>& at, Segment& made) {
    // States that an earlier segment only reads stay as they are.
    for (const StatePair& state : g_.states) {
      if (!at.contains(state.input)) continue;
      b.state(state.name, at.at(state.input), at.at(s == last_ ? state.output : state.input));
    }
    for (const Label& l : g_.labels) {
      if (const auto it = at.find(l.at); it != at.end()) b.label(it->second, l.text);
    }
    for (const Check& c : g_.checks) {
      if (check_level(c) == s) b.check(c.left, c.right, c.why);
    }
    Values outputs;
    for (const Operand o : gives_[s]) {
      made_at_[s].emplace(o, outputs.size());
      for (const Measure& m : measures_) {
        if (live_[m.node] && found(m) == o) made.sizes.emplace_back(m.symbol, outputs.size());
      }
      outputs.push_back(at.at(o));
    }
    made.graph = std::make_shared<const Graph>(b.finish(outputs));
  }

  // The first segment that knows all sizes of a check.
  std::uint32_t check_level(const Check& c) const {
    DimSymbols used;
    c.left.collect_symbols(used);
    c.right.collect_symbols(used);
    std::uint32_t at = 0;
    for (const Measure& m : measures_) {
      if (used.contains(m.symbol)) at = std::max(at, levels_[m.node] + 1);
    }
    return at;
  }

  const Graph& g_;
  std::vector<Measure> measures_;
  std::vector<bool> live_;
  std::vector<std::uint32_t> levels_;
  std::uint32_t last_ = 0;
  std::unordered_map<Id, std::size_t> input_numbers_;
  std::vector<bool> repeated_;
  std::vector<std::set<Operand>> reads_, gives_;
  std::vector<std::set<Id>> extra_;
  std::vector<std::map<Operand, std::size_t>> made_at_;
};

}  // namespace

Segments cut_segments(const Graph& g) { return Cutter(g).run(); }

}  // namespace rlx
