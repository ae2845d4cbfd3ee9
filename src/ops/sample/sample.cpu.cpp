// Steps of sample on the CPU: row by row, in f64.
#include "ops/sample/sample.h"

#include <algorithm>

#include "core/element.h"
#include "device/step.h"
#include "ops/sample/draw.h"

namespace rlx {

namespace {

template <class T>
Step drawn_rows(const StepArgs& n) {
  const Dim classes = n.in[0].type.dims.back();
  StepBuilder s("sample");
  const auto logits = s.read<T>(n.in[0]);
  const auto numbers = s.read<float>(n.in[1]);
  const auto y = s.write<std::int64_t>(n.out[0]);
  const auto width = s.dim(classes);
  const SampleAttrs a = n.node.attrs.as<SampleAttrs>();
  s.flops(n.in[0].type.count() * 8);
  return s.run(n.out[0].type.count(), max(ceildiv(1024, max(classes, 1)), 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 const auto count = static_cast<std::size_t>(d[width]);
                 std::vector<double> row(count), weights;
                 std::vector<Index> order;
                 for (Index i = r.begin; i < r.end; ++i) {
                   const auto from = m[logits].subspan(static_cast<std::size_t>(i) * count, count);
                   std::ranges::transform(from, row.begin(), [](T v) { return static_cast<double>(number_of(v)); });
                   m[y].data()[i] = draw(row, static_cast<double>(m[numbers].data()[i]), a, weights, order);
                 }
               });
}

std::optional<Step> sample_step(const StepArgs& n) {
  if (!n.in[0].dense() || !n.in[1].dense() || !n.out[0].dense()) return n.decline("sample reads and writes densely");
  switch (n.in[0].type.dtype) {
    case DType::f64:
      return drawn_rows<double>(n);
    case DType::f32:
      return drawn_rows<float>(n);
    case DType::f16:
      return drawn_rows<StoredHalf16>(n);
    default:
      return drawn_rows<StoredBrain16>(n);
  }
}

}  // namespace

std::span<const MakerRow> sample_cpu() {
  static const MakerRow rows[] = {{&sample_op, sample_step}};
  return rows;
}

}  // namespace rlx
