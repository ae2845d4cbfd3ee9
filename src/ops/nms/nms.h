// nms: boxes that do not overlap better ones, as many as a run finds.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct NmsAttrs {
  bool centered = false;  // boxes are x and y of the centre, width, height; else y, x, y, x of opposite corners
  static void fields(auto& a, auto&& f) { f("centered", a.centered); }
};
extern const Op<NmsAttrs> nms_op;

/// Non-maximum suppression: i64[number, 3], each row batch item, class and box; see the op. `most` is i64[], the
/// thresholds f32[]. Their number is a size that a run finds.
Value nms(Value boxes, Value scores, Value most, Value overlap, Value score, bool centered = false);

}  // namespace rlx
