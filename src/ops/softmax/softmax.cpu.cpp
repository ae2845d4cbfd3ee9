// Steps of softmax on the CPU.
#include "ops/softmax/softmax.h"

#include "device/step.h"
#include "ops/softmax/softmax.kernel.h"

namespace rlx {

static std::optional<Step> softmax_step(const StepArgs& n) {
  const TensorType& t = n.in[0].type;
  const Index axis = n.node.attrs.as<SoftmaxAttrs>().axis;
  if (t.dtype != DType::f32) return n.decline("softmax has a kernel for f32 only");
  if (axis != -1 && axis != t.rank() - 1) return n.decline("softmax has a kernel for the last axis only");
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("softmax reads and writes dense rows");
  StepBuilder s("softmax_rows");
  const auto x = s.read<float>(n.in[0]);
  const auto y = s.write<float>(n.out[0]);
  s.may_overwrite(y, x);
  const auto cols = s.dim(t.dim(-1));
  s.flops(t.count() * 20);
  const auto kernel = softmax_kernels().rows_f32;
  const Dim width = max(t.dim(-1), 1);
  return s.run(floordiv(t.count(), width), ceildiv(4096, width), [=](const Memory& m, const DimValues& d, Range r) {
    const Index c = d[cols];
    kernel(m[x].data() + r.begin * c, m[y].data() + r.begin * c, r.end - r.begin, c);
  });
}

std::span<const MakerRow> softmax_cpu() {
  static const MakerRow rows[] = {{&softmax_op, softmax_step}};
  return rows;
}

}  // namespace rlx
