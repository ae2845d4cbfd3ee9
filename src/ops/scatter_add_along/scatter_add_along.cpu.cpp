// Steps of scatter_add_along on the CPU: each line of the result along the axis belongs to one thread, which adds in
// the order of the updates.
#include "ops/scatter_add_along/scatter_add_along.h"

#include <algorithm>

#include "core/element.h"
#include "ops/gather/index_view.h"

namespace rlx {

namespace {

// `parts` numbers an element, each with a sum of its own. Where sums are no elements, they are held in scratch memory
// and rounded at the end.
template <class I, class T>
Step scatter_lines(const StepArgs& n, std::size_t axis, Index parts) {
  using Sum = typename SumOf<T>::type;
  constexpr bool rounds = sizeof(Sum) != sizeof(T);
  const TensorType& out = n.out[0].type;
  Dim lines = 1;
  for (std::size_t i = 0; i < out.dims.size(); ++i) lines = i == axis ? lines : lines * out.dims[i];
  const Dim each = out.dims[axis] + n.in[0].type.dims[axis];
  StepBuilder s("scatter_add_along");
  const auto updates = s.read<T>(n.in[0]);
  const auto indices = s.read<I>(n.in[1]);
  const auto y = s.write<T>(n.out[0]);
  const auto scratch = s.scratch<Sum>(rounds ? out.count() * parts : Dim(0));
  const Layout in(s, n.in[0]), result(s, n.out[0]), shape(s, n.in[1]);
  const auto count = s.dim(lines);
  s.flops(n.in[0].type.count());
  const Dim grain = max(max(ceildiv(32768, max(each, 1)), ceildiv(lines, 16)), 1);
  return s.run(max(lines, 1), grain, [=](const Memory& m, const DimValues& d, Range r) {
    const Layout::Numbers x = in(d), to = result(d);
    const Index extent = to.size[axis], stride = to.stride[axis] * parts;
    const I* index = m[indices].data();
    check_indices("scatter_add_along", index, shape(d), static_cast<Index>(axis), extent);
    for (Index l = r.begin; l < std::min(r.end, d[count]); ++l) {
      const ScatterLine line = scatter_line(to, x, axis, l);
      T* elements = m[y].data() + line.to * parts;
      Sum* sums = nullptr;
      if constexpr (rounds) {
        sums = m[scratch].data() + line.to * parts;
      } else {
        sums = reinterpret_cast<Sum*>(elements);
      }
      for (Index p = 0; p < parts; ++p) {
        for (Index i = 0; i < extent; ++i) sums[i * stride + p] = Sum(0);
        for (Index j = 0; line.from >= 0 && j < x.size[axis]; ++j) {
          const Index from = line.from + j * x.stride[axis];
          Sum& sum = sums[position(index[from], extent) * stride + p];
          sum = static_cast<Sum>(sum +
                                 static_cast<Sum>(number_of(m[updates][static_cast<std::size_t>(from * parts + p)])));
        }
        if constexpr (rounds) {
          for (Index i = 0; i < extent; ++i) elements[i * stride + p] = element_of<T>(sums[i * stride + p]);
        }
      }
    }
  });
}

std::optional<Step> scatter_add_along_step(const StepArgs& n) {
  const TensorType& t = n.out[0].type;
  if (!n.in[0].dense() || !n.in[1].dense() || !n.out[0].dense()) {
    return n.decline("scatter_add_along reads and writes densely");
  }
  if (t.dims.size() > most_axes) return n.decline("scatter_add_along has a kernel for up to 16 axes");
  const auto axis = static_cast<std::size_t>(t.axis(n.node.attrs.as<ScatterAddAlongAttrs>().axis));
  const bool complex = is_complex(t.dtype);  // real and imaginary parts are summed apart
  return with_index_type(n.in[1].type.dtype, [&]<class I>() {
    return with_element(complex ? DType::f32 : t.dtype,
                        [&]<class T>() { return scatter_lines<I, T>(n, axis, complex ? 2 : 1); });
  });
}

}  // namespace

std::span<const MakerRow> scatter_add_along_cpu() {
  static const MakerRow rows[] = {{&scatter_add_along_op, scatter_add_along_step}};
  return rows;
}

}  // namespace rlx
