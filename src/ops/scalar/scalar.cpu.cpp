// Steps of elementwise ops, casts, stretched copies, coordinates and elementwise regions on the CPU.
#include "device/step.h"
#include "ir/outline.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/iota/iota.h"
#include "ops/scalar/region.h"
#include "ops/scalar/scalar_parts.h"

namespace rlx {

std::span<const MakerRow> scalar_cpu() {
  static const auto all = [] {
    std::vector<MakerRow> rows;
    for (const OpDef* op : scalar_ops()) rows.push_back({op, region::make_step});
    for (const OpDef* op : std::initializer_list<const OpDef*>{&cast_op, &broadcast_op, &iota_op, &fusion_op()}) {
      rows.push_back({op, region::make_step});
    }
    return rows;
  }();
  return all;
}

}  // namespace rlx
