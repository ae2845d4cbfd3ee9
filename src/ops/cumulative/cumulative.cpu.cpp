// Steps of cumulative on the CPU: floats are summed and multiplied in f64, integers in their own type.
#include "ops/cumulative/cumulative.h"

#include <algorithm>
#include <limits>

#include "core/columns.h"
#include "core/element.h"
#include "core/num.h"
#include "device/step.h"

namespace rlx {

namespace {

constexpr Index most = 64;

// What a running value starts as, and how an element joins it; integers are unsigned where they wrap.
template <CumulativeKind kind, class T, class N>
N first_value() {
  if constexpr (kind == CumulativeKind::sum || kind == CumulativeKind::prod) {
    return kind == CumulativeKind::prod ? N(1) : N(0);
  } else if constexpr (std::is_floating_point_v<N>) {
    return kind == CumulativeKind::max ? -std::numeric_limits<N>::infinity() : std::numeric_limits<N>::infinity();
  } else {
    return kind == CumulativeKind::max ? std::numeric_limits<N>::lowest() : std::numeric_limits<N>::max();
  }
}

template <CumulativeKind kind, class N>
N joined(N a, N b) {
  const Num<N> x{a}, y{b};
  switch (kind) {
    case CumulativeKind::sum:
      return (x + y).v;
    case CumulativeKind::prod:
      return (x * y).v;
    case CumulativeKind::max:
      return maximum(x, y).v;
    case CumulativeKind::min:
      return minimum(x, y).v;
  }
  return b;
}

template <CumulativeKind kind, class T, class N>
void run_lines(const LineBlock& b, Index extent, const CumulativeAttrs& a, const T* x, T* y) {
  N so_far[most];
  std::fill_n(so_far, most, first_value<kind, T, N>());
  for (Index step = 0; step < extent; ++step) {
    const Index at = b.first + (a.reverse ? extent - 1 - step : step) * b.stride;
    for (Index k = 0; k < b.width; ++k) {
      const N before = so_far[k];
      so_far[k] = joined<kind, N>(before, static_cast<N>(number_of(x[at + k])));
      y[at + k] = element_of<T>(a.exclusive ? before : so_far[k]);
    }
  }
}

template <CumulativeKind kind, class T>
Step running(const StepArgs& n, std::size_t axis) {
  using N = std::conditional_t<std::is_integral_v<T>, T, double>;
  const TensorType& t = n.out[0].type;
  const std::span<const Dim> dims(t.dims);
  const Dim behind = product(dims.subspan(axis + 1));
  StepBuilder s("cumulative");
  const auto x = s.read<T>(n.in[0]);
  const auto y = s.write<T>(n.out[0]);
  s.may_overwrite(y, x);
  const auto extent = s.dim(dims[axis]), inner = s.dim(behind);
  const CumulativeAttrs a = n.node.attrs.as<CumulativeAttrs>();
  s.flops(t.count());
  return s.run(product(dims.first(axis)) * behind, max(ceildiv(8192, max(dims[axis], 1)), 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 line_blocks(d[extent], d[inner], r.begin, r.end, most, [&](const LineBlock& b) {
                   run_lines<kind, T, N>(b, d[extent], a, m[x].data(), m[y].data());
                 });
               });
}

template <class T>
Step running_of(CumulativeKind kind, const StepArgs& n, std::size_t axis) {
  switch (kind) {
    case CumulativeKind::prod:
      return running<CumulativeKind::prod, T>(n, axis);
    case CumulativeKind::max:
      return running<CumulativeKind::max, T>(n, axis);
    case CumulativeKind::min:
      return running<CumulativeKind::min, T>(n, axis);
    default:
      return running<CumulativeKind::sum, T>(n, axis);
  }
}

std::optional<Step> cumulative_step(const StepArgs& n) {
  const TensorType& t = n.in[0].type;
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("cumulative reads and writes densely");
  const auto& a = n.node.attrs.as<CumulativeAttrs>();
  const auto axis = static_cast<std::size_t>(t.axis(a.axis));
  return with_element(t.dtype, [&]<class T>() { return running_of<T>(a.kind, n, axis); });
}

}  // namespace

std::span<const MakerRow> cumulative_cpu() {
  static const MakerRow rows[] = {{&cumulative_op, cumulative_step}};
  return rows;
}

}  // namespace rlx
