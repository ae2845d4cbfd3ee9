// What the parts of the scalar folder share.
#pragma once

#include <string_view>

#include "ir/op.h"

namespace rlx {

std::span<const OpDef* const> scalar_ops();   // scalar.cpp: unary rows, conj, binary_ops(), compare_ops()
std::span<const OpDef* const> binary_ops();   // scalar_binary.cpp
std::span<const OpDef* const> compare_ops();  // scalar_compare.cpp: comparisons, bitwise_not, select
/// Cases with hand-computed values of the unary op of this name (scalar_values.cpp).
std::vector<Case<NoAttrs>> known_unary_values(std::string_view name);

}  // namespace rlx
