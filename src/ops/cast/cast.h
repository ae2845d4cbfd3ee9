// cast: element type conversion.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct CastAttrs {
  DType to = DType::f32;
  static void fields(auto& a, auto&& f) { f("to", a.to); }
};
extern const Op<CastAttrs> cast_op;

/// `x` converted to `to`; `x` itself when it has that type.
Value cast(Value x, DType to);
/// f16 and bf16 as f32, the type their composites are computed in; anything else itself.
Value widen(Value x);

}  // namespace rlx
