// Steps of fft on the CPU: row by row. A spectrum of a real signal has elements of very different sizes, which share
// the rounding errors of the largest: transforms of signals are computed in f64.
#include "ops/fft/fft.h"

#include "core/element.h"
#include "device/step.h"
#include "ops/fft/fft_plan.h"

namespace rlx {

namespace {

// T is the element in memory, R the type of the arithmetic.
template <class T, class R>
Step transform_rows(const StepArgs& n) {
  using Number = std::complex<R>;
  const TensorType& t = n.out[0].type;
  const std::span<const Dim> dims(t.dims);
  const Dim& length = dims[dims.size() - 2];
  StepBuilder s("fft");
  const auto x = s.read<T>(n.in[0]);
  const auto y = s.write<T>(n.out[0]);
  s.may_overwrite(y, x);
  const auto size = s.dim(length);
  const bool inverse = n.node.attrs.as<FftAttrs>().inverse;
  s.flops(t.count() * 16, std::is_same_v<R, double> ? DType::f64 : DType::f32);
  const auto plans = std::make_shared<FftPlans<R>>();
  return s.run(product(dims.first(dims.size() - 2)), max(ceildiv(512, max(length, 1)), 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 const Index count = d[size];
                 if (count == 0 || r.begin == r.end) return;
                 const auto plan = plans->find(count);
                 std::vector<Number> numbers(static_cast<std::size_t>(count));
                 std::vector<std::byte> work(static_cast<std::size_t>(plan->work_bytes()));
                 for (Index row = r.begin; row < r.end; ++row) {
                   const T* from = m[x].data() + row * count * 2;
                   T* to = m[y].data() + row * count * 2;
                   for (Number& v : numbers) {
                     v = {static_cast<R>(number_of(from[0])), static_cast<R>(number_of(from[1]))};
                     from += 2;
                   }
                   plan->run(numbers.data(), work.data(), inverse);
                   for (const Number& v : numbers) {
                     to[0] = element_of<T>(v.real());
                     to[1] = element_of<T>(v.imag());
                     to += 2;
                   }
                 }
               });
}

template <class T>
Step transform(const StepArgs& n) {
  return n.node.attrs.as<FftAttrs>().inverse ? transform_rows<T, float>(n) : transform_rows<T, double>(n);
}

std::optional<Step> fft_step(const StepArgs& n) {
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("fft reads and writes densely");
  switch (n.out[0].type.dtype) {
    case DType::f64:
      return transform_rows<double, double>(n);
    case DType::f32:
      return transform<float>(n);
    case DType::f16:
      return transform<StoredHalf16>(n);
    default:
      return transform<StoredBrain16>(n);
  }
}

}  // namespace

std::span<const MakerRow> fft_cpu() {
  static const MakerRow rows[] = {{&fft_op, fft_step}};
  return rows;
}

}  // namespace rlx
