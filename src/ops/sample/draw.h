// Drawing one class of a row of logits.
#pragma once

#include <span>
#include <vector>

#include "ops/sample/sample.h"

namespace rlx {

/// The class that `number` in [0, 1) draws; `work` is work space. Throws Error for logits of which one is NaN or
/// +infinity or all are -infinity, and a number outside [0, 1).
Index draw(std::span<const double> logits, double number, const SampleAttrs& a, std::vector<double>& weights,
           std::vector<Index>& order);

}  // namespace rlx
