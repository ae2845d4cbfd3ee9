// Steps of fft on the CPU: rows in f64, rounded once.
#include "ops/fft/fft.h"

#include "core/element.h"
#include "device/step.h"
#include "ops/fft/fft_plan.h"

namespace rlx {

namespace {

using Number = FftPlan::Number;

template <class T>
Step transform_rows(const StepArgs& n) {
  const TensorType& t = n.out[0].type;
  const std::span<const Dim> dims(t.dims);
  const Dim length = dims[dims.size() - 2];
  StepBuilder s("fft");
  const auto x = s.read<T>(n.in[0]);
  const auto y = s.write<T>(n.out[0]);
  s.may_overwrite(y, x);
  const auto size = s.dim(length);
  const bool inverse = n.node.attrs.as<FftAttrs>().inverse;
  s.flops(t.count() * 16);
  const auto plans = std::make_shared<FftPlans>();
  return s.run(product(dims.first(dims.size() - 2)), max(ceildiv(512, max(length, 1)), 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 const Index count = d[size];
                 if (count == 0 || r.begin == r.end) return;
                 const auto plan = plans->find(count);
                 std::vector<Number> numbers(static_cast<std::size_t>(count + plan->work()));
                 for (Index row = r.begin; row < r.end; ++row) {
                   const T* from = m[x].data() + row * count * 2;
                   T* to = m[y].data() + row * count * 2;
                   for (Index i = 0; i < count; ++i) {
                     numbers[static_cast<std::size_t>(i)] = {static_cast<double>(number_of(from[2 * i])),
                                                             static_cast<double>(number_of(from[2 * i + 1]))};
                   }
                   plan->run(numbers.data(), numbers.data() + count, inverse);
                   for (Index i = 0; i < count; ++i) {
                     to[2 * i] = element_of<T>(numbers[static_cast<std::size_t>(i)].real());
                     to[2 * i + 1] = element_of<T>(numbers[static_cast<std::size_t>(i)].imag());
                   }
                 }
               });
}

std::optional<Step> fft_step(const StepArgs& n) {
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("fft reads and writes densely");
  switch (n.out[0].type.dtype) {
    case DType::f64:
      return transform_rows<double>(n);
    case DType::f32:
      return transform_rows<float>(n);
    case DType::f16:
      return transform_rows<StoredHalf16>(n);
    default:
      return transform_rows<StoredBrain16>(n);
  }
}

}  // namespace

std::span<const MakerRow> fft_cpu() {
  static const MakerRow rows[] = {{&fft_op, fft_step}};
  return rows;
}

}  // namespace rlx
