// Steps of nonzero on the CPU.
#include "ops/nonzero/nonzero.h"

#include <algorithm>

#include "core/element.h"
#include "device/step.h"

namespace rlx {

namespace {

template <class T>
Step positions_of(const StepArgs& n) {
  StepBuilder s("nonzero");
  const auto x = s.read<T>(n.in[0]);
  const auto positions = s.write<std::int64_t>(n.out[0]);
  const auto count = s.write<std::int64_t>(n.out[1]);
  return s.run(1, 1, [=](const Memory& m, const DimValues&, Range) {
    std::int64_t* const to = m[positions].data();
    std::int64_t found = 0, at = 0;
    for (const T v : m[x]) {
      to[found] = at++;
      found += number_of(v) != 0;
    }
    std::fill(to + found, to + at, 0);
    m[count][0] = found;
  });
}

std::optional<Step> nonzero_step(const StepArgs& n) {
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("nonzero reads and writes densely");
  const DType d = n.in[0].type.dtype;
  return with_element(d == DType::boolean ? DType::u8 : d, [&]<class T>() { return positions_of<T>(n); });
}

}  // namespace

std::span<const MakerRow> nonzero_cpu() {
  static const MakerRow rows[] = {{&nonzero_op, nonzero_step}};
  return rows;
}

}  // namespace rlx
