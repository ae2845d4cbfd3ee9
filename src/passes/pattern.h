// Patterns: what a piece of a graph looks like, put together from small functions and matched with backtracking.
//
//   const Var x;
//   const Pattern gelu = product(0.5, {x, op("add", {number(1), op("erf", {product(sqrt_half, {x})})})});
//   Matcher m(g);
//   if (m.match(gelu, {id}) && m.same_type(x, {id})) … m[x] is the operand …
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/reduce/reduce.h"

namespace rlx::pattern {

/// A place in a pattern: matches any value; within one pattern every place of the same variable is the same value.
struct Var {
  std::size_t slot = 0;
};
inline constexpr std::size_t var_count = 8;

class Matcher;
using Next = std::function<bool()>;

/// A test of a value; it calls what comes next with the variables that it bound, and undoes them when that fails.
class Pattern {
 public:
  using Test = std::function<bool(Matcher&, Operand, const Next&)>;
  Pattern(Test test) : test_(std::move(test)) {}
  Pattern(Var v);
  bool operator()(Matcher& m, Operand o, const Next& next) const { return test_(m, o, next); }

 private:
  Test test_;
};

/// A constant whose elements all equal `value`, within one unit of its element type; also through reshape, broadcast
/// and the arithmetic of constants.
Pattern number(double value);
/// A node of this op and number of operands. Operands of a commutative op match in either order.
Pattern op(std::string_view name, std::vector<Pattern> operands);
/// `factor` times the values that the patterns describe: products in any order and association; constants may stand
/// anywhere and divide too, neg counts as -1.
Pattern product(double factor, std::vector<Pattern> factors);
/// The first pattern that leads to a match of the whole.
Pattern either(std::vector<Pattern> patterns);
/// A value that the pattern and the predicate accept.
Pattern where(Pattern pattern, std::function<bool(const Matcher&, Operand)> predicate);
/// A match of the pattern whose variables the predicate accepts.
Pattern where_all(Pattern pattern, std::function<bool(const Matcher&)> predicate);
/// x * x, or x to the power 2.
Pattern square(Pattern x);
/// 1 / x, however it is written.
Pattern inverse(Pattern x);
/// 1 / sqrt(x) of an x that is not negative.
Pattern inverse_root(Pattern x);
/// A reduction of `x` whose reduced axes stay as size 1, be it by a reshape; a mean may be a sum times or over a
/// constant. `result` becomes the reduction itself.
Pattern reduced(ReduceKind kind, Pattern x, Var result);

/// Matches patterns against one graph. A match is closed: nothing outside reads the nodes between the matched value
/// and the variables, and none of them is an output.
class Matcher {
 public:
  explicit Matcher(const Graph& g);

  /// Whether the value looks like that; the variables are then set until the next call.
  bool match(const Pattern& p, Operand root);
  Operand operator[](Var v) const { return *bound_[v.slot]; }
  bool has(Var v) const { return bound_[v.slot].has_value(); }
  bool same_type(Var v, Operand o) const { return graph_.type((*this)[v]) == graph_.type(o); }
  /// Nodes of the match, the matched one included.
  const std::vector<Id>& inner() const { return inner_; }

  const Graph& graph() const { return graph_; }
  const Node& node(Operand o) const { return graph_.nodes[o.node]; }
  bool is(Operand o, std::string_view op) const { return node(o).op->name() == op; }
  bool live(Id id) const { return live_[id]; }
  /// Whether `user` is the only live node that reads `id`, and `id` is no output.
  bool only_reader(Id id, Id user) const;
  /// Whether live nodes outside `inside` read `id`, or it is an output.
  bool read_outside(Id id, const std::vector<Id>& inside) const;

  // For patterns.
  bool bind(Var v, Operand o, const Next& next);
  /// Counts the node among those of the match while `next` runs.
  bool within(Id id, const Next& next);

 private:
  const Graph& graph_;
  std::vector<bool> live_;
  std::optional<Operand> bound_[var_count];
  std::vector<Id> path_, inner_;
};

/// Whether ops of all these names occur: without them a pass need not look further.
bool holds(const Graph& g, std::initializer_list<std::string_view> ops);
/// The one value of all elements of a float or integer constant, or nothing. Sees through reshape, broadcast, casts
/// between floats and arithmetic of such constants, rounded as the ops would; integer sizes that inference knows count
/// as constants.
std::optional<double> scalar_number(const Graph& g, Operand o);
/// Whether `value`, an element of type `dtype`, is `wanted` within `ulps` units in the last place of its rounding.
bool near(double value, double wanted, DType dtype, int ulps = 1);
/// The number with the fewest digits that rounds to the same element of type `dtype`.
double shortest(double value, DType dtype);
/// The axes of a reduction in order, non-negative.
std::vector<Index> reduced_axes(const Graph& g, Operand reduction);

}  // namespace rlx::pattern
