// legalise: rounds of asking for every node and expanding those that are refused.
#include "passes/legalise.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "device/view.h"
#include "ir/control.h"
#include "ir/measure.h"
#include "ir/outline.h"
#include "ir/rewrite.h"
#include "ops/constant/constant.h"
#include "passes/define.h"

namespace rlx {

namespace {

// Reasons stand one a line; here they go into one.
std::string in_one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 2) text.replace(at, 1, "; ");
  return text;
}

class Legaliser {
 public:
  explicit Legaliser(PassContext& context) : context_(context) {}

  Graph run(const Graph& g) {
    constexpr int deepest = 64;  // definitions inside definitions
    Graph current = g;
    for (int round = 0;; ++round) {
      ensure(round < deepest, "definitions lead back to themselves");
      failures_.clear();
      bool changed = false;
      Graph next = rewrite(current, [&](Rewriter& r, Id id) {
        std::optional<Values> by = expanded(current, r, id);
        changed = changed || by;
        return by;
      });
      if (!changed) break;
      current = drop_dead(next);
    }
    for (const auto& [what, count] : said_) context_.remark(fmt::format("{}: {}", what, count));
    if (!failures_.empty()) report();
    return current;
  }

 private:
  std::optional<Values> expanded(const Graph& g, Rewriter& r, Id id) {
    const Node& n = g.nodes[id];
    std::string why;
    if (n.op == &constant_op || context_.device.accepts(g, id, &why)) return {};
    why = why.empty() ? "no kernel" : in_one_line(std::move(why));
    if (n.op == &fusion_op()) {
      ++said_[fmt::format("regions inlined ({})", why)];
      return r.builder().inline_graph(*n.bodies[0], r.operands(id));
    }
    if (!n.op->has_definition() || n.operands.empty()) {
      failures_.push_back(fmt::format("{}: {}", describe(g, id), why));
      return {};
    }
    try {
      Values by = in_declared_sizes(define(*n.op, n.attrs, r.operands(id), n.bodies), n);
      ++said_[fmt::format("{} expanded ({})", n.op->name(), why)];
      return by;
    } catch (const Error& e) {
      failures_.push_back(fmt::format("{}: {}; its definition: {}", describe(g, id), why, e.what()));
      return {};
    }
  }

  [[noreturn]] void report() const {
    std::string text;
    for (const std::string& f : failures_) text += "\n  " + f;
    fail("{} of the graph cannot run on device {}:{}",
         failures_.size() == 1 ? "1 node" : std::to_string(failures_.size()) + " nodes", context_.device.name, text);
  }

  PassContext& context_;
  std::vector<std::string> failures_;  // of the last round: all that is left then
  std::map<std::string, Index> said_;
};

}  // namespace

Graph legalise(const Graph& g, PassContext& context) {
  if (!context.device.accepts) return g;
  return Legaliser(context).run(g);
}

std::function<bool(const Graph&, Id, std::string* why)> accepts_by(const MakerTable& makers) {
  return [&makers](const Graph& g, Id id, std::string* why) {
    const Node& n = g.nodes[id];
    if (n.op == &constant_op || is_input(n) || is_control(*n.op)) return true;
    if (n.op == &measure_op()) return true;  // the host takes the size
    std::vector<Slot> in, out;
    BufferId buffer = 0;
    for (const Operand o : n.operands) {
      Slot s{buffer++, g.type(o)};
      const Node& from = g.nodes[o.node];
      if (from.op == &constant_op) s.constant = &from.attrs.as<ConstantAttrs>().data;
      in.push_back(std::move(s));
    }
    if (const ViewMaker view = find_view(n.op); view && view({n, in, {}})) return true;
    for (const TensorType& t : n.results) out.push_back({buffer++, t});
    return makers.make({n, in, out, why}).has_value();
  };
}

}  // namespace rlx
