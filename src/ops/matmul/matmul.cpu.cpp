// Steps of matmul on the CPU.
#include "ops/matmul/matmul.h"

#include "ops/matmul/matmul_step.h"

namespace rlx {

static std::optional<Step> matmul_step(const StepArgs& n) {
  const auto plan = plan_product(n, n.node.attrs.as<MatmulAttrs>(), n.in[0], n.in[1], n.out[0].type);
  if (!plan) return {};
  if (!n.out[0].dense()) return n.decline("matmul writes dense rows");
  StepBuilder s("matmul");
  const auto out = s.write<std::byte>(n.out[0]);
  return product_step(s, *plan, [out](const Memory& m, Index row, Index columns, Index bytes) {
    ProductTarget target;
    target.c = m[out].data() + row * columns * bytes;
    return target;
  });
}

std::span<const MakerRow> matmul_cpu() {
  static const MakerRow rows[] = {{&matmul_op, matmul_step}};
  return rows;
}

}  // namespace rlx
