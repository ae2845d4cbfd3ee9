// Steps of arg_reduce on the CPU.
#include "ops/arg_reduce/arg_reduce.h"

#include "core/columns.h"
#include "core/element.h"
#include "device/step.h"

namespace rlx {

namespace {

constexpr Index most = 64;

// The first best element of each line; a NaN is better than all, and the first stays.
template <ArgKind kind, class T>
void best_of_lines(const LineBlock& b, Index extent, const T* x, Index* y) {
  decltype(number_of(T{})) best[most];
  for (Index k = 0; k < b.width; ++k) {
    best[k] = number_of(x[b.first + k]);
    y[b.number + k] = 0;
  }
  for (Index i = 1; i < extent; ++i) {
    const T* row = x + b.first + i * b.stride;
    for (Index k = 0; k < b.width; ++k) {
      const auto v = number_of(row[k]);
      const bool nan = v != v && best[k] == best[k];  // NOLINT(misc-redundant-expression): NaN alone
      if (nan || (kind == ArgKind::max ? v > best[k] : v < best[k])) {
        best[k] = v;
        y[b.number + k] = i;
      }
    }
  }
}

template <class T>
Step places_of_best(const StepArgs& n, std::size_t axis, ArgKind kind) {
  const TensorType& t = n.in[0].type;
  const std::span<const Dim> dims(t.dims);
  const Dim behind = product(dims.subspan(axis + 1));
  StepBuilder s("arg_reduce");
  const auto x = s.read<T>(n.in[0]);
  const auto y = s.write<Index>(n.out[0]);
  const auto extent = s.dim(dims[axis]), inner = s.dim(behind);
  return s.run(product(dims.first(axis)) * behind, max(ceildiv(16384, max(dims[axis], 1)), 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 line_blocks(d[extent], d[inner], r.begin, r.end, most, [&](const LineBlock& b) {
                   const auto kernel =
                       kind == ArgKind::max ? best_of_lines<ArgKind::max, T> : best_of_lines<ArgKind::min, T>;
                   kernel(b, d[extent], m[x].data(), m[y].data());
                 });
               });
}

std::optional<Step> arg_reduce_step(const StepArgs& n) {
  const auto& a = n.node.attrs.as<ArgReduceAttrs>();
  const TensorType& t = n.in[0].type;
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("arg_reduce reads and writes densely");
  const auto axis = static_cast<std::size_t>(t.axis(a.axis));
  return with_element(t.dtype, [&]<class T>() { return places_of_best<T>(n, axis, a.kind); });
}

}  // namespace

std::span<const MakerRow> arg_reduce_cpu() {
  static const MakerRow rows[] = {{&arg_reduce_op, arg_reduce_step}};
  return rows;
}

}  // namespace rlx
