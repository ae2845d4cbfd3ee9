// Steps of quantize, dequantize and quantize_rows on the CPU. The first two run as regions of their definitions.
#include "ops/quantize/quantize.h"

#include <algorithm>

#include "device/step.h"
#include "ir/outline.h"
#include "ops/quantize/quantize.kernel.h"
#include "ops/scalar/region.h"

namespace rlx {

namespace {

std::optional<Step> rows_step(const StepArgs& n) {
  const TensorType& t = n.in[0].type;
  if (!n.in[0].dense() || !std::ranges::all_of(n.out, [](const Slot& s) { return s.dense(); }))
    return n.decline("quantize_rows reads and writes dense rows");
  const int type = static_cast<int>(t.dtype) - static_cast<int>(DType::f32);
  StepBuilder s("quantize_rows");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto codes = s.write<std::byte>(n.out[0]);
  const auto scales = s.write<float>(n.out[1]);
  const auto cols = s.dim(t.dim(-1));
  const Index bytes = bits(t.dtype) / 8;
  s.flops(t.count() * 3);
  const Dim grain = ceildiv(32768, max(t.dim(-1), 1));
  if (n.node.attrs.as<QuantizeRowsAttrs>().zero_point) {
    const auto zeros = s.write<unsigned char>(n.out[2]);
    const auto kernel = quantize_rows_kernels().zero_point_rows[type];
    return s.run(n.out[1].type.count(), grain, [=](const Memory& m, const DimValues& d, Range r) {
      const Index c = d[cols], at = r.begin;
      kernel(m[x].data() + at * c * bytes, reinterpret_cast<unsigned char*>(m[codes].data() + at * c),
             m[scales].data() + at, m[zeros].data() + at, r.end - at, c);
    });
  }
  const auto kernel = quantize_rows_kernels().rows[type];
  return s.run(n.out[1].type.count(), grain, [=](const Memory& m, const DimValues& d, Range r) {
    const Index c = d[cols], at = r.begin;
    kernel(m[x].data() + at * c * bytes, reinterpret_cast<signed char*>(m[codes].data() + at * c),
           m[scales].data() + at, r.end - at, c);
  });
}

static_assert(static_cast<int>(DType::f16) == static_cast<int>(DType::f32) + 1 &&
              static_cast<int>(DType::bf16) == static_cast<int>(DType::f32) + 2);

// The definition as one region; of blocks, which are no region, nothing.
std::optional<Step> region_step(const StepArgs& n) {
  if (n.node.attrs.as<QuantizeAttrs>().block != 0) return n.decline("blocks of scales are no region");
  Builder g;
  Values operands;
  for (const Slot& s : n.in) operands.push_back(g.input("a" + std::to_string(operands.size()), s.type));
  const Values results = n.node.op->define(n.node.attrs, {operands, {}});
  Node node;
  node.op = &fusion_op();
  node.bodies = {std::make_shared<const Graph>(g.finish(results))};
  node.results = n.node.results;
  auto step = region::make_step({node, n.in, n.out, n.why});
  if (step) step->name = n.node.op->name();
  return step;
}

}  // namespace

std::span<const MakerRow> quantize_cpu() {
  static const MakerRow rows[] = {
      {&quantize_op, region_step}, {&dequantize_op, region_step}, {&quantize_rows_op, rows_step}};
  return rows;
}

}  // namespace rlx
