// Steps of cumsum on the CPU: floats are summed in f64, integers as integers.
#include "ops/cumsum/cumsum.h"

#include "core/columns.h"
#include "core/element.h"
#include "device/step.h"

namespace rlx {

namespace {

constexpr Index most = 64;

template <class T, class Sum>
void sum_lines(const LineBlock& b, Index extent, const CumsumAttrs& a, const T* x, T* y) {
  Sum sums[most] = {};
  for (Index step = 0; step < extent; ++step) {
    const Index at = b.first + (a.reverse ? extent - 1 - step : step) * b.stride;
    for (Index k = 0; k < b.width; ++k) {
      const Sum before = sums[k];
      sums[k] = static_cast<Sum>(before + static_cast<Sum>(number_of(x[at + k])));
      y[at + k] = element_of<T>(a.exclusive ? before : sums[k]);
    }
  }
}

template <class T>
Step running_sums(const StepArgs& n, std::size_t axis) {
  using Element = typename SumOf<T>::type;
  using Sum = std::conditional_t<std::is_integral_v<T>, Element, double>;
  const TensorType& t = n.out[0].type;
  const std::span<const Dim> dims(t.dims);
  const Dim behind = product(dims.subspan(axis + 1));
  StepBuilder s("cumsum");
  const auto x = s.read<T>(n.in[0]);
  const auto y = s.write<T>(n.out[0]);
  s.may_overwrite(y, x);
  const auto extent = s.dim(dims[axis]), inner = s.dim(behind);
  const CumsumAttrs a = n.node.attrs.as<CumsumAttrs>();
  s.flops(t.count());
  return s.run(product(dims.first(axis)) * behind, max(ceildiv(8192, max(dims[axis], 1)), 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 line_blocks(d[extent], d[inner], r.begin, r.end, most,
                             [&](const LineBlock& b) { sum_lines<T, Sum>(b, d[extent], a, m[x].data(), m[y].data()); });
               });
}

std::optional<Step> cumsum_step(const StepArgs& n) {
  const TensorType& t = n.in[0].type;
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("cumsum reads and writes densely");
  const auto axis = static_cast<std::size_t>(t.axis(n.node.attrs.as<CumsumAttrs>().axis));
  return with_element(t.dtype, [&]<class T>() { return running_sums<T>(n, axis); });
}

}  // namespace

std::span<const MakerRow> cumsum_cpu() {
  static const MakerRow rows[] = {{&cumsum_op, cumsum_step}};
  return rows;
}

}  // namespace rlx
