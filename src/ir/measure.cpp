// Measures: the op, and what follows from sizes that come late.
#include "ir/measure.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"

namespace rlx {

static constinit const Op<MeasureAttrs> measure_definition{{
    .name = "measure",
    .doc =
        "A size that a run finds: its operand, an i64 of rank 0, whose element becomes the value of the symbol `size`. "
        "The element is within the bounds of the symbol, or the run ends with an Error. What uses the symbol runs "
        "afterwards. Such a node is part of no body.",
    .infer = [](const MeasureAttrs& a, InferContext& c) -> TensorType {
      require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
      require(c.in[0] == TensorType(DType::i64, {}), "the size is an element of {}, expected i64[]", c.in[0].text());
      require(!a.size.symbol_name().empty(), "a run is to find {}, which is no symbol", a.size.text());
      return c.in[0];
    },
    .reference =
        [](const MeasureAttrs& a, const RefArgs& r) {
          const Index size = load<std::int64_t>(r.in[0])[0];
          const Bounds b = a.size.bounds();
          require(b.lo <= size && size <= b.hi, "size symbol {} is {}, outside its bounds {}..{}", a.size.text(), size,
                  b.lo, b.hi);
          store(r.out[0], std::vector<std::int64_t>{size});
        },
    .failures =
        [] {
          return std::vector<Failure<MeasureAttrs>>{
              {{Dim::symbol("N")}, {}, "0 operands are given, expected 1"},
              {{Dim::symbol("N")}, {{DType::i32, {}}}, "the size is an element of i32[], expected i64[]"},
              {{3}, {{DType::i64, {}}}, "a run is to find 3, which is no symbol"},
          };
        },
}};
const OpDef& measure_op() { return measure_definition; }

Dim measure(Value count, const Dim& most) {
  Builder& b = *count.builder;
  b.own(count);
  std::size_t number = 0;
  for (const Measure& m : measures(b.graph())) {
    if (b.graph().nodes[m.node].operands[0] == count.at) return m.size;
    ++number;
  }
  while (b.graph().symbols.contains("found" + std::to_string(number))) ++number;
  const Dim size = Dim::symbol("found" + std::to_string(number), 0, std::clamp<Index>(most.bounds().hi, 0, unbounded));
  if (!size.is_constant()) b.emit(measure_op(), Attrs(MeasureAttrs{size}), std::span(&count, 1));
  return size;
}

std::vector<Measure> measures(const Graph& g) {
  std::vector<Measure> all;
  for (Id i = 0; i < g.nodes.size(); ++i) {
    if (g.nodes[i].op != &measure_op()) continue;
    const Dim& size = g.nodes[i].attrs.as<MeasureAttrs>().size;
    all.push_back({std::string(size.symbol_name()), size, i});
  }
  return all;
}

void collect_symbols(const Node& n, DimSymbols& out) {
  if (n.op == &measure_op()) return;
  n.attrs.collect_symbols(out);
  for (const TensorType& t : n.results) {
    for (const Dim& d : t.dims) d.collect_symbols(out);
  }
  for (const GraphPtr& b : n.bodies) out.insert(b->symbols.begin(), b->symbols.end());
}

std::vector<std::uint32_t> node_levels(const Graph& g) {
  std::vector<std::uint32_t> levels(g.nodes.size(), 0);
  const std::vector<Measure> all = measures(g);
  if (all.empty()) return levels;
  std::map<std::string_view, std::vector<Id>> users;
  for (Id i = 0; i < g.nodes.size(); ++i) {
    DimSymbols used;
    collect_symbols(g.nodes[i], used);
    for (const Measure& m : all) {
      if (used.contains(m.symbol)) users[m.symbol].push_back(i);
    }
  }
  for (std::size_t round = 0;; ++round) {
    require(round <= all.size() + 1, "sizes that a run finds depend on themselves");
    std::vector<std::uint32_t> next(g.nodes.size(), 0);
    for (const Measure& m : all) {
      for (const Id i : users[m.symbol]) next[i] = std::max(next[i], levels[m.node] + 1);
    }
    for (Id i = 0; i < g.nodes.size(); ++i) {
      for (const Operand o : g.nodes[i].operands) next[i] = std::max(next[i], next[o.node]);
    }
    if (next == levels) return levels;
    levels = std::move(next);
  }
}

void verify_measures(const Graph& g) {
  for (const Node& n : g.nodes) {
    for (const GraphPtr& b : n.bodies) {
      require(measures(*b).empty(), "graph: measure rule: a body of {} has sizes that a run finds", n.op->name());
    }
  }
  const std::vector<Measure> all = measures(g);
  if (all.empty()) return;
  DimSymbols shown;
  for (const Id i : g.inputs) {
    for (const Dim& d : g.nodes[i].results[0].dims) d.collect_symbols(shown);
  }
  std::set<std::string_view> names;
  for (const Measure& m : all) {
    require(names.insert(m.symbol).second, "graph: measure rule: size {} is found twice", m.symbol);
    require(!shown.contains(m.symbol), "graph: measure rule: an input shows size {}, which a run finds", m.symbol);
  }
  node_levels(g);
}

}  // namespace rlx
