// The body of a fusion node around one product: what a kernel can do of what stands behind it, and the rest.
#pragma once

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "device/step.h"

namespace rlx {

class ProductBody {
 public:
  /// `product` is a node of the one body of n.node; it is taken from the start.
  ProductBody(const StepArgs& n, Id product)
      : n_(n), g_(*n.node.bodies[0]), product_(product), last_(product), taken_{product} {}

  const Graph& graph() const { return g_; }
  /// The slot of a value that is an input of the body, or null.
  const Slot* input(Operand o) const;

  static constexpr Id none = ~Id{0};
  /// The only reader of a node that is no output, if it has this op.
  Id next(Id id, std::string_view op) const;
  /// The other operand of a node of two, where it is a dense input of the body of this element type; or null.
  const Slot* other(Id id, Id one, DType type) const;
  /// Whether a value has one element for each row of the product, or for each column.
  bool is_rows(const Slot& s) const;
  bool is_columns(const Slot& s) const;

  /// States that the kernel computes this node too; it is then the last.
  void take(Id id) {
    taken_.insert(id);
    last_ = id;
  }
  Id last() const { return last_; }
  /// Whether nothing is left to be done behind last().
  bool is_done() const { return g_.outputs.size() == 1 && g_.outputs[0].node == last_; }
  /// The rest of the body, as a fusion node of its own: operand 0 is last().
  std::pair<Node, std::vector<Slot>> rest() const;

 private:
  const std::vector<Dim>& dims() const { return g_.nodes[product_].results[0].dims; }

  const StepArgs& n_;
  const Graph& g_;
  Id product_, last_;
  std::set<Id> taken_;
};

}  // namespace rlx
