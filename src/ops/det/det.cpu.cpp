// Steps of det and cofactors on the CPU: one matrix after the other, in f64.
#include "ops/det/det.h"

#include <algorithm>

#include "core/element.h"
#include "device/step.h"
#include "ops/det/elimination.h"

namespace rlx {

namespace {

template <class T>
std::vector<double> matrix_at(const T* x, Index count) {
  std::vector<double> a(static_cast<std::size_t>(count));
  std::ranges::transform(std::span(x, a.size()), a.begin(), [](T v) { return static_cast<double>(number_of(v)); });
  return a;
}

template <class T>
Step matrices(const StepArgs& n, bool whole) {
  const std::span<const Dim> dims(n.in[0].type.dims);
  StepBuilder s(whole ? "cofactors" : "det");
  const auto x = s.read<T>(n.in[0]);
  const auto y = s.write<T>(n.out[0]);
  const auto size = s.dim(dims.back());
  const Dim cube = dims.back() * dims.back() * dims.back();
  const Dim count = product(dims.first(dims.size() - 2));
  s.flops(count * cube);
  return s.run(count, max(ceildiv(16384, max(cube, 1)), 1), [=](const Memory& m, const DimValues& d, Range r) {
    const Index side = d[size], each = side * side;
    for (Index i = r.begin; i < r.end; ++i) {
      std::vector<double> a = matrix_at(m[x].data() + i * each, each);
      if (!whole) {
        m[y].data()[i] = element_of<T>(eliminated(a.data(), side));
        continue;
      }
      std::vector<double> out(a.size());
      cofactors_of(a.data(), side, out.data());
      for (Index k = 0; k < each; ++k) m[y].data()[i * each + k] = element_of<T>(out[static_cast<std::size_t>(k)]);
    }
  });
}

template <bool whole>
std::optional<Step> det_step(const StepArgs& n) {
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("det reads and writes densely");
  switch (n.out[0].type.dtype) {
    case DType::f64:
      return matrices<double>(n, whole);
    case DType::f32:
      return matrices<float>(n, whole);
    case DType::f16:
      return matrices<StoredHalf16>(n, whole);
    default:
      return matrices<StoredBrain16>(n, whole);
  }
}

}  // namespace

std::span<const MakerRow> det_cpu() {
  static const MakerRow rows[] = {{&det_op, det_step<false>}, {&cofactors_op, det_step<true>}};
  return rows;
}

}  // namespace rlx
