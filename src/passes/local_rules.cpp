// Local rewrites: the driver.
#include "passes/local_rules.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

LocalRules::LocalRules(std::initializer_list<std::span<const LocalRule>> lists) {
  for (const std::span<const LocalRule> list : lists) {
    for (const LocalRule& rule : list) (rule.op ? by_op_[rule.op] : any_).push_back(rule);
  }
}

Value LocalRules::make(Builder& b, const OpDef& op, Attrs attrs, std::span<const Value> operands) {
  return simplified(b.emit(op, std::move(attrs), operands)[0], {});
}

bool LocalRules::only_user(const Site& s, std::size_t i) const {
  if (!s.old) return false;
  const Operand o = from_->nodes[*s.old].operands[i];
  const auto users = from_->users(o.node);
  return !from_->is_output(o.node) && !is_input(from_->nodes[o.node]) && users.front() == *s.old &&
         users.back() == *s.old;
}

Value LocalRules::first_of_either_order(const Site& s) {
  const OpDef* op = s.builder().graph().nodes[s.value.at.node].op;
  Operand low = s[0].at, high = s[1].at;
  if (high < low) std::swap(low, high);
  const std::size_t key = mix(mix(std::hash<const void*>{}(op), OperandHash{}(low)), OperandHash{}(high));
  const Value first = pairs_.emplace(key, s.value).first->second;
  const Node& n = s.builder().graph().nodes[first.at.node];
  const bool equal = n.op == op && n.operands.size() == 2 && std::min(n.operands[0], n.operands[1]) == low &&
                     std::max(n.operands[0], n.operands[1]) == high;
  return equal ? first : s.value;
}

// The node stays behind when a rule fires; it is dead then.
Value LocalRules::simplified(Value v, std::optional<Id> old) {
  constexpr int deepest = 64;  // rules end by themselves; a pair that turns each other back would show here
  ensure(++depth_ < deepest, "local rules do not end");
  const Node& n = v.builder->graph().nodes[v.at.node];
  const auto apply = [&](const std::vector<LocalRule>& rules) -> std::optional<Value> {
    for (const LocalRule& rule : rules) {
      const std::optional<Value> by = rule.apply({*this, v, old});
      if (!by || by->at == v.at) continue;
      ensure(by->type() == v.type(), "a local rule changes a type");
      ++fired_[rule.what];
      ++fired_count_;
      return by;
    }
    return {};
  };
  std::optional<Value> by;
  if (n.results.size() == 1 && n.instance == 0 && !is_input(n)) {
    if (const auto own = by_op_.find(n.op); own != by_op_.end()) by = apply(own->second);
    if (!by) by = apply(any_);
  }
  if (by && !is_input(by->builder->graph().nodes[by->at.node])) by = simplified(*by, {});
  --depth_;
  return by.value_or(v);
}

Graph LocalRules::run(const Graph& g) {
  from_ = &g;
  pairs_.clear();
  return drop_dead(rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    if (g.nodes[id].results.size() != 1 || g.nodes[id].instance != 0) return {};
    const Value v = r.copy(id)[0];
    return Values{simplified(v, id)};
  }));
}

Graph run_local_rules(const Graph& g, PassContext& context, std::initializer_list<std::span<const LocalRule>> lists,
                      int rounds) {
  LocalRules rules(lists);
  std::optional<Graph> current;
  for (int i = 0; i < rounds; ++i) {
    const Index before = rules.fired_count();
    Graph next = rules.run(current ? *current : g);
    if (rules.fired_count() == before) break;
    current = std::move(next);
  }
  for (const auto& [what, count] : rules.fired()) context.remark(fmt::format("{}: {}", what, count));
  return current ? *std::move(current) : g;
}

}  // namespace rlx
