// Local rewrites: rules that replace a value by an equal one, looking at it and at what it is made of.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/rewrite.h"
#include "passes/pass.h"

namespace rlx {

class LocalRules;

/// What a rule is asked about: the only result of a node that stands in the new graph.
struct Site {
  LocalRules& rules;
  Value value;
  /// The old node, whose users count; none: the node was made by a rule.
  std::optional<Id> old;

  Builder& builder() const { return *value.builder; }
  const TensorType& type() const { return value.type(); }
  std::size_t operand_count() const { return builder().graph().nodes[value.at.node].operands.size(); }
  Value operator[](std::size_t i) const { return {value.builder, builder().graph().nodes[value.at.node].operands[i]}; }
  template <class A>
  A attrs() const {
    return builder().graph().nodes[value.at.node].attrs.template as<A>();
  }
};

/// A value equal to the one of the site, of the same type, or nothing. Rules make nodes with LocalRules::make, so that
/// these are simplified in turn; whatever a rule makes must be smaller or in a form that no rule turns back.
struct LocalRule {
  const OpDef* op;        // null: any op
  std::string_view what;  // for the report: "a rule that …" as a noun
  std::optional<Value> (*apply)(const Site&);
};

/// Rewrites with lists of rules.
class LocalRules {
 public:
  explicit LocalRules(std::initializer_list<std::span<const LocalRule>> lists);

  /// The graph with every live node of one result offered to the rules, in order, once; `fired` counts them.
  Graph run(const Graph& g);
  const std::map<std::string_view, Index>& fired() const { return fired_; }
  Index fired_count() const { return fired_count_; }

  /// A node, simplified.
  Value make(Builder& b, const OpDef& op, Attrs attrs, std::span<const Value> operands);
  template <class A>
  Value make(const Op<A>& op, A attrs, std::initializer_list<Value> operands) {
    return make(*operands.begin()->builder, op, Attrs(std::move(attrs)), std::span(operands.begin(), operands.size()));
  }
  Value make(const OpDef& op, std::initializer_list<Value> operands) {
    return make(*operands.begin()->builder, op, Attrs(), std::span(operands.begin(), operands.size()));
  }

  /// Whether the node that runs is the only one that reads operand `i` of its old form, which is no output either.
  bool only_user(const Site& s, std::size_t i) const;
  /// The first node of this graph that has the two operands of the site, in either order, and its op; itself if none.
  Value first_of_either_order(const Site& s);
  /// The old graph.
  const Graph& from() const { return *from_; }

 private:
  Value simplified(Value v, std::optional<Id> old);

  std::vector<LocalRule> any_;
  std::unordered_map<const OpDef*, std::vector<LocalRule>> by_op_;
  std::map<std::string_view, Index> fired_;
  Index fired_count_ = 0;
  std::unordered_map<std::size_t, Value> pairs_;  // by op and operands, the smaller first
  const Graph* from_ = nullptr;
  int depth_ = 0;
};

/// Runs rules until nothing changes, at most `rounds` times, and says how often each kind fired.
Graph run_local_rules(const Graph& g, PassContext& context, std::initializer_list<std::span<const LocalRule>> lists,
                      int rounds = 4);

std::span<const LocalRule> arithmetic_rules();  // simplify_arithmetic.cpp
std::span<const LocalRule> logic_rules();       // simplify_logic.cpp
std::span<const LocalRule> movement_rules();    // simplify_movement.cpp
std::span<const LocalRule> layout_rules();      // absorb_layout.cpp

}  // namespace rlx
