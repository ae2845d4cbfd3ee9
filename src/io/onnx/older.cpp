// Operands of operators of the versions 1 to 6.
#include "io/onnx/older.h"

#include <algorithm>

#include "core/error.h"
#include "ops/reshape/reshape.h"

namespace rlx::onnx {

Value second_operand(NodeArgs& n) {
  const Value a = n[0], b = n[1];
  if (n.opset() >= 7) return b;
  const bool broadcast = n.integer("broadcast", 0) != 0, placed = n.given("axis");
  const Index axis = n.integer("axis", 0);
  if (!broadcast) {
    require(!placed, "axis is given without broadcast");
    // Exporters of that time leave the attribute out for a single number.
    require(a.rank() == b.rank() || b.type().count() == Dim(1), "operands are {} and {}, expected the same sizes",
            a.type().text(), b.type().text());
    return b;
  }
  require(b.rank() <= a.rank(), "operands are {} and {}, the second may not have more axes", a.type().text(),
          b.type().text());
  if (!placed || b.rank() == 0) return b;
  const Index first = axis_of(axis, a.rank());
  require(first + b.rank() <= a.rank(), "operand 1 is {}, from axis {} on operand 0 has {} axes", b.type().text(),
          first, a.rank() - first);
  std::vector<Dim> dims = b.type().dims;
  dims.resize(static_cast<std::size_t>(a.rank() - first), Dim(1));
  return reshape(b, dims);
}

}  // namespace rlx::onnx
