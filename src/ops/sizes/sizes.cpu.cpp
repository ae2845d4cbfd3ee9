// Steps of sizes on the CPU: the sizes of a binding are numbers that the step knows.
#include "ops/sizes/sizes.h"

#include "device/step.h"

namespace rlx {

static std::optional<Step> sizes_step(const StepArgs& n) {
  if (!n.out[0].dense()) return n.decline("sizes writes a dense result");
  StepBuilder s("sizes");
  const auto y = s.write<Index>(n.out[0]);
  std::vector<DimToken> values;
  for (const Dim& d : n.node.attrs.as<SizesAttrs>().dims) values.push_back(s.dim(d));
  return s.run(1, 1, [=](const Memory& m, const DimValues& d, Range r) {
    if (r.begin >= r.end) return;
    for (std::size_t i = 0; i < values.size(); ++i) m[y][i] = d[values[i]];
  });
}

std::span<const MakerRow> sizes_cpu() {
  static const MakerRow rows[] = {{&sizes_op, sizes_step}};
  return rows;
}

}  // namespace rlx
