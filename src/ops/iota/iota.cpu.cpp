// Steps of iota on the CPU.
#include "ops/iota/iota.h"

#include <algorithm>

#include "core/element.h"
#include "device/step.h"

namespace rlx {

namespace {

struct Encoded8 {
  std::uint8_t bits;
};

template <class T>
T coordinate(Index i, DType type) {
  if constexpr (std::is_same_v<T, Encoded8>) {
    return {static_cast<std::uint8_t>(encode_float(type, static_cast<double>(i)))};
  } else {
    return element_of<T>(i);
  }
}

template <class T>
Step coordinates(const StepArgs& n, std::size_t axis) {
  const TensorType& t = n.out[0].type;
  StepBuilder s("iota");
  const auto y = s.write<T>(n.out[0]);
  const auto extent = s.dim(t.dims[axis]), inner = s.dim(product(std::span(t.dims).subspan(axis + 1)));
  const DType type = t.dtype;
  return s.run(t.count(), 16384, [=](const Memory& m, const DimValues& d, Range r) {
    const Index run = d[inner], size = d[extent];
    for (Index i = r.begin; i < r.end;) {
      const Index behind = std::min(r.end, (i / run + 1) * run);
      std::fill(m[y].data() + i, m[y].data() + behind, coordinate<T>(i / run % size, type));
      i = behind;
    }
  });
}

std::optional<Step> iota_step(const StepArgs& n) {
  const TensorType& t = n.out[0].type;
  if (!n.out[0].dense()) return n.decline("iota writes a dense result");
  const auto axis = static_cast<std::size_t>(t.axis(n.node.attrs.as<IotaAttrs>().axis));
  if (is_float(t.dtype) && bits(t.dtype) == 8) return coordinates<Encoded8>(n, axis);
  return with_element(t.dtype, [&]<class T>() { return coordinates<T>(n, axis); });
}

}  // namespace

std::span<const MakerRow> iota_cpu() {
  static const MakerRow rows[] = {{&iota_op, iota_step}};
  return rows;
}

}  // namespace rlx
