// concat: tensors one behind the other along an axis.
#pragma once

#include <initializer_list>

#include "ir/builder.h"

namespace rlx {

struct ConcatAttrs {
  Index axis = 0;
  static void fields(auto& a, auto&& f) { f("axis", a.axis); }
};
extern const Op<ConcatAttrs> concat_op;

/// The parts (at least one) in order along `axis`; a single part is itself.
Value concat(std::span<const Value> parts, Index axis);
inline Value concat(std::initializer_list<Value> parts, Index axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}

}  // namespace rlx
