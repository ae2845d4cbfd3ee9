// Steps of philox on the CPU: every chunk counts from its own block.
#include "ops/philox/philox.h"

#include <algorithm>

#include "device/step.h"

namespace rlx {

namespace {

std::optional<Step> philox_step(const StepArgs& n) {
  if (!n.in[0].dense() || !n.in[1].dense() || !n.out[0].dense()) return n.decline("philox reads and writes densely");
  const Dim count = n.out[0].type.count();
  StepBuilder s("philox");
  const auto key = s.read<std::uint32_t>(n.in[0]), counter = s.read<std::uint32_t>(n.in[1]);
  const auto words = s.write<std::uint32_t>(n.out[0]);
  const auto size = s.dim(count);
  s.flops(count * 20);
  return s.run(ceildiv(count, 4), 1024, [=](const Memory& m, const DimValues& d, Range r) {
    const std::array<std::uint32_t, 2> k{m[key][0], m[key][1]};
    const std::array<std::uint32_t, 4> start{m[counter][0], m[counter][1], m[counter][2], m[counter][3]};
    for (Index i = r.begin; i < r.end; ++i) {
      const auto block = philox_block(philox_counter(start, static_cast<std::uint64_t>(i)), k);
      std::copy_n(block.begin(), std::min<Index>(4, d[size] - 4 * i), m[words].data() + 4 * i);
    }
  });
}

}  // namespace

std::span<const MakerRow> philox_cpu() {
  static const MakerRow rows[] = {{&philox_op, philox_step}};
  return rows;
}

}  // namespace rlx
