// Operators whose results have sizes that only a run finds.
#include <limits>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/nms/nms.h"
#include "ops/nonzero/nonzero.h"
#include "ops/reshape/reshape.h"
#include "ops/unique/unique.h"

namespace rlx::onnx {

namespace {

Values nonzero_operator(NodeArgs& n) {
  n.expect(1, 1);
  return {nonzero_coordinates(n[0])};
}

Values compress_operator(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0], condition = n[1];
  require(condition.dtype() == DType::boolean && condition.rank() == 1, "the condition is {}, expected bool of rank 1",
          condition.type().text());
  if (n.given("axis")) return {compress(x, condition, axis_of(n.integer("axis"), x.rank()))};
  return {compress(reshape(x, {x.type().count()}), condition, 0)};
}

Values unique_operator(NodeArgs& n) {
  n.expect(1, 1);
  Value x = n[0];
  const bool sorted = n.integer("sorted", 1) != 0;
  Index axis = 0;
  if (n.given("axis")) {
    axis = axis_of(n.integer("axis"), x.rank());
  } else {
    x = reshape(x, {x.type().count()});
  }
  const UniqueValues u = unique(x, axis, sorted);
  return {u.values, u.first, u.inverse, u.counts};
}

// A scalar operand, also as a vector of one element.
Value scalar_operand(NodeArgs& n, std::size_t i, DType dtype, double standard) {
  if (!n.has(i)) return constant(n.builder(), dtype, standard);
  require(n[i].dtype() == dtype, "operand {} is {}, expected one {}", i, n[i].type().text(), name(dtype));
  return reshape(n[i], {});
}

Values non_max_suppression(NodeArgs& n) {
  n.expect(2, 5);
  const Index centered = n.integer("center_point_box", 0);
  require(centered == 0 || centered == 1, "center_point_box is {}, expected 0 or 1", centered);
  const double lowest = -std::numeric_limits<double>::infinity();
  return {nms(n[0], n[1], scalar_operand(n, 2, DType::i64, 0), scalar_operand(n, 3, DType::f32, 0),
              scalar_operand(n, 4, DType::f32, lowest), centered == 1)};
}

}  // namespace

OperatorRows found_rows() {
  static constexpr OperatorRow rows[] = {
      {"NonZero", 9, nonzero_operator},
      {"Compress", 9, compress_operator},
      {"Unique", 11, unique_operator},
      {"NonMaxSuppression", 10, non_max_suppression},
  };
  return rows;
}

}  // namespace rlx::onnx
