// Steps of scatter_add on the CPU: each column of the result belongs to one thread, which adds in the order of the
// indices.
#include "ops/scatter_add/scatter_add.h"

#include <algorithm>

#include "core/element.h"
#include "ops/gather/index_view.h"

namespace rlx {

namespace {

// Where columns [begin, end) of one part of the result are summed.
template <class Sum>
struct Columns {
  Sum* sums;  // the part: `extent` rows of `inner`
  Index extent, inner, begin, end;
};

template <class I, class T, class Sum>
void add_slices(const Columns<Sum>& c, const T* updates, std::span<const I> indices) {
  for (Index i = 0; i < c.extent; ++i) std::fill(c.sums + i * c.inner + c.begin, c.sums + i * c.inner + c.end, Sum(0));
  for (const I index : indices) {
    Sum* row = c.sums + position(index, c.extent) * c.inner;
    for (Index k = c.begin; k < c.end; ++k) row[k] = static_cast<Sum>(row[k] + static_cast<Sum>(number_of(updates[k])));
    updates += c.inner;
  }
}

struct ScatterSizes {
  DimToken outer, extent, inner;
};

// T is the element in memory. Where sums are no elements, they are held in scratch memory and rounded at the end.
template <class I, class T>
Step scatter_columns(const StepArgs& n, Index axis, Index parts) {
  using Sum = typename SumOf<T>::type;
  constexpr bool rounds = sizeof(Sum) != sizeof(T);
  const TensorType& out = n.out[0].type;
  const std::span<const Dim> dims(out.dims);
  const auto at = static_cast<std::size_t>(axis);
  const Dim outer = product(dims.first(at)), inner = product(dims.subspan(at + 1)) * parts;
  const Dim items = outer * inner, each = n.in[1].type.count() + dims[at];
  StepBuilder s("scatter_add");
  const auto updates = s.read<T>(n.in[0]);
  const auto indices = s.read<I>(n.in[1]);
  const auto y = s.write<T>(n.out[0]);
  const auto scratch = s.scratch<Sum>(rounds ? out.count() * parts : Dim(0));
  const Layout shape(s, n.in[1]);
  const ScatterSizes sizes{s.dim(outer), s.dim(dims[at]), s.dim(inner)};
  s.flops(n.in[0].type.count());
  return s.run(max(items, 1), max(ceildiv(32768, max(each, 1)), 64), [=](const Memory& m, const DimValues& d, Range r) {
    const Index extent = d[sizes.extent], width = d[sizes.inner];
    check_indices("scatter_add", m[indices].data(), shape(d), axis, extent);
    const auto count = static_cast<Index>(m[indices].size());
    const Index behind = std::min(r.end, d[sizes.outer] * width);
    for (Index begin = r.begin; begin < behind;) {
      const Index o = begin / width, first = begin % width, last = std::min(width, first + behind - begin);
      T* to = m[y].data() + o * extent * width;
      Sum* sums = nullptr;
      if constexpr (rounds) {
        sums = m[scratch].data() + o * extent * width;
      } else {
        sums = reinterpret_cast<Sum*>(to);
      }
      add_slices(Columns<Sum>{sums, extent, width, first, last}, m[updates].data() + o * count * width, m[indices]);
      if constexpr (rounds) {
        for (Index i = 0; i < extent; ++i) {
          for (Index k = first; k < last; ++k) to[i * width + k] = element_of<T>(sums[i * width + k]);
        }
      }
      begin += last - first;
    }
  });
}

std::optional<Step> scatter_add_step(const StepArgs& n) {
  const TensorType& t = n.out[0].type;
  if (!n.in[0].dense() || !n.in[1].dense() || !n.out[0].dense()) {
    return n.decline("scatter_add reads and writes densely");
  }
  if (n.in[1].type.dims.size() > most_axes) return n.decline("scatter_add has a kernel for indices of up to 16 axes");
  const Index axis = t.axis(n.node.attrs.as<ScatterAddAttrs>().axis);
  const bool complex = is_complex(t.dtype);  // real and imaginary parts are columns of their own
  return with_index_type(n.in[1].type.dtype, [&]<class I>() {
    return with_element(complex ? DType::f32 : t.dtype,
                        [&]<class T>() { return scatter_columns<I, T>(n, axis, complex ? 2 : 1); });
  });
}

}  // namespace

std::span<const MakerRow> scatter_add_cpu() {
  static const MakerRow rows[] = {{&scatter_add_op, scatter_add_step}};
  return rows;
}

}  // namespace rlx
