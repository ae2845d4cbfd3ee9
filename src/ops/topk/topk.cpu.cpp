// Steps of topk on the CPU: a heap holds the best so far of a line; no two elements rank equal, so that the order is
// one.
#include "ops/topk/topk.h"

#include <algorithm>

#include "core/element.h"
#include "device/step.h"

namespace rlx {

namespace {

// Whether `a` ranks above `b` by value alone; NaN is above all numbers.
template <class N>
bool above(N a, N b) {
  return a > b || (a != a && b == b);  // NOLINT(misc-redundant-expression): NaN alone
}

// The order of a line's elements: by value, then by place.
template <class T>
struct Order {
  const T* line;
  Index stride;
  bool largest;
  bool operator()(Index i, Index j) const {
    const auto a = number_of(line[i * stride]), b = number_of(line[j * stride]);
    if (largest ? above(a, b) : above(b, a)) return true;
    if (largest ? above(b, a) : above(a, b)) return false;
    return i < j;
  }
};

// The first k places of `extent` in order.
template <class T>
void first_places(const Order<T>& before, Index extent, std::span<Index> best) {
  const auto k = static_cast<Index>(best.size());
  for (Index i = 0; i < k; ++i) best[static_cast<std::size_t>(i)] = i;
  std::make_heap(best.begin(), best.end(), before);  // the last in order on top
  for (Index i = k; i < extent; ++i) {
    if (!before(i, best.front())) continue;
    std::pop_heap(best.begin(), best.end(), before);
    best.back() = i;
    std::push_heap(best.begin(), best.end(), before);
  }
  std::sort_heap(best.begin(), best.end(), before);
}

template <class T>
Step best_of_lines(const StepArgs& n, std::size_t axis, bool largest) {
  const TensorType &t = n.in[0].type, &out = n.out[0].type;
  const std::span<const Dim> dims(t.dims);
  const Dim behind = product(dims.subspan(axis + 1));
  StepBuilder s("topk");
  const auto x = s.read<T>(n.in[0]);
  const auto values = s.write<T>(n.out[0]);
  const auto indices = s.write<Index>(n.out[1]);
  const auto heaps = s.scratch<Index>(out.count());
  const auto extent = s.dim(dims[axis]), k = s.dim(out.dims[axis]), inner = s.dim(behind);
  return s.run(product(dims.first(axis)) * behind, max(ceildiv(4096, max(dims[axis], 1)), 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 const Index size = d[extent], count = d[k], stride = d[inner];
                 if (count == 0) return;
                 for (Index l = r.begin; l < r.end; ++l) {
                   const T* line = m[x].data() + l / stride * size * stride + l % stride;
                   const Index to = l / stride * count * stride + l % stride;
                   const std::span<Index> best =
                       m[heaps].subspan(static_cast<std::size_t>(l * count), static_cast<std::size_t>(count));
                   first_places(Order<T>{line, stride, largest}, size, best);
                   for (Index i = 0; i < count; ++i) {
                     const Index place = best[static_cast<std::size_t>(i)];
                     m[values].data()[to + i * stride] = line[place * stride];
                     m[indices].data()[to + i * stride] = place;
                   }
                 }
               });
}

std::optional<Step> topk_step(const StepArgs& n) {
  const auto& a = n.node.attrs.as<TopkAttrs>();
  const TensorType& t = n.in[0].type;
  if (!n.in[0].dense() || !n.out[0].dense() || !n.out[1].dense()) return n.decline("topk reads and writes densely");
  const auto axis = static_cast<std::size_t>(t.axis(a.axis));
  return with_element(t.dtype, [&]<class T>() { return best_of_lines<T>(n, axis, a.largest); });
}

}  // namespace

std::span<const MakerRow> topk_cpu() {
  static const MakerRow rows[] = {{&topk_op, topk_step}};
  return rows;
}

}  // namespace rlx
