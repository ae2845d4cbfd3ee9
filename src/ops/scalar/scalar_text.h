// Scalar functions as GPU text: a Text is a number that writes the statements which compute it, so that the rows of
// rows.h and the two-operand ops give kernel text.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "device/gpu_launch.h"

namespace rlx {

/// Statements of a kernel, each of which names one value.
class TextWriter {
 public:
  /// Declares a value of a type (f32, f64, an integer, bool) and gives its name.
  std::string let(DType type, std::string_view expression);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int next_ = 0;
};

/// A value of a kernel: a name or a literal.
struct Text {
  TextWriter* writer = nullptr;
  DType type = DType::f32;
  std::string name;
};

/// Result of an elementwise op of one result on values of the element types `in`, for a result of type `out`: operands
/// and result are in the form of gpu_value(), small floats rounded to their type. `constant` tells the operand's value
/// where it is one. Empty, with a reason in `why`, when the op has no text.
std::optional<Text> scalar_text(const Node& node, std::span<const DType> in, DType out, std::span<const Text> operands,
                                std::span<const Tensor* const> constants, std::string& why);

/// A cast between element types; value and result in the form of gpu_value().
Text cast_text(const Text& value, DType from, DType to);

/// A launch of one elementwise node, or of a fusion whose body is elementwise, broadcast, cast, constant and iota: one
/// kernel over all elements of the result, operands dense, strided or broadcast.
std::optional<Launch> elementwise_launch(const StepArgs& n, const DeviceProperties& device);

}  // namespace rlx
