// Steps of unique on the CPU: rows are sorted by place, equal ones then lie side by side.
#include "ops/unique/unique.h"

#include <algorithm>
#include <numeric>

#include "core/element.h"
#include "device/step.h"

namespace rlx {

namespace {

// A bool as it lies in memory.
struct Truth {
  std::uint8_t byte;
};
using rlx::number_of;
int number_of(Truth t) { return t.byte != 0 ? 1 : 0; }

template <class T>
struct Rows {
  const T* x;
  Index width;

  // -1, 0, 1; NaN is above all numbers and equal to itself.
  int order(Index i, Index j) const {
    const T *a = x + i * width, *b = x + j * width;
    for (Index k = 0; k < width; ++k) {
      const auto l = number_of(a[k]), r = number_of(b[k]);
      if (l < r) return -1;
      if (r < l) return 1;
      const bool left = l != l, right = r != r;  // NOLINT(misc-redundant-expression): NaN alone
      if (left != right) return left ? 1 : -1;
    }
    return 0;
  }
};

struct Lists {
  std::span<Index> first, inverse, counts, places;
};

// `places`: rows in ascending order, equal ones in theirs. Gives the number of different rows.
template <class T>
Index number_rows(const Rows<T>& rows, const Lists& to, bool sorted) {
  const auto count = static_cast<Index>(to.places.size());
  std::iota(to.places.begin(), to.places.end(), Index{0});
  std::ranges::sort(to.places, [&](Index i, Index j) {
    const int o = rows.order(i, j);
    return o < 0 || (o == 0 && i < j);
  });
  std::ranges::fill(to.first, 0);
  std::ranges::fill(to.counts, 0);
  Index number = 0;
  for (Index k = 0; k < count; ++k) {
    const Index row = to.places[static_cast<std::size_t>(k)];
    const bool again = k > 0 && rows.order(to.places[static_cast<std::size_t>(k - 1)], row) == 0;
    if (!again) to.first[static_cast<std::size_t>(number++)] = row;
    to.inverse[static_cast<std::size_t>(row)] = number - 1;
    ++to.counts[static_cast<std::size_t>(number - 1)];
  }
  if (sorted) return number;
  // In the order of the first places: places of groups, and of what groups were.
  const auto groups = to.places.first(static_cast<std::size_t>(number));
  const std::vector<Index> first(to.first.begin(), to.first.begin() + number),
      counts(to.counts.begin(), to.counts.begin() + number);
  std::iota(groups.begin(), groups.end(), Index{0});
  std::ranges::sort(groups, {}, [&](Index g) { return first[static_cast<std::size_t>(g)]; });
  std::vector<Index> place(first.size());
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const auto g = static_cast<std::size_t>(groups[k]);
    place[g] = static_cast<Index>(k);
    to.first[k] = first[g];
    to.counts[k] = counts[g];
  }
  for (Index& i : to.inverse) i = place[static_cast<std::size_t>(i)];
  return number;
}

template <class T>
Step unique_rows(const StepArgs& n) {
  const std::vector<Dim>& dims = n.in[0].type.dims;
  StepBuilder s("unique");
  const auto x = s.read<T>(n.in[0]);
  const auto first = s.write<Index>(n.out[0]), inverse = s.write<Index>(n.out[1]), counts = s.write<Index>(n.out[2]),
             number = s.write<Index>(n.out[3]);
  const auto places = s.scratch<Index>(dims[0]);
  const auto rows = s.dim(dims[0]), width = s.dim(dims[1]);
  const bool sorted = n.node.attrs.as<UniqueAttrs>().sorted;
  return s.run(1, 1, [=](const Memory& m, const DimValues& d, Range) {
    const Lists to{m[first], m[inverse], m[counts], m[places].first(static_cast<std::size_t>(d[rows]))};
    m[number][0] = number_rows(Rows<T>{m[x].data(), d[width]}, to, sorted);
  });
}

std::optional<Step> unique_step(const StepArgs& n) {
  if (!n.in[0].dense()) return n.decline("unique reads densely");
  const DType d = n.in[0].type.dtype;
  if (d == DType::boolean) return unique_rows<Truth>(n);
  return with_element(d, [&]<class T>() { return unique_rows<T>(n); });
}

}  // namespace

std::span<const MakerRow> unique_cpu() {
  static const MakerRow rows[] = {{&unique_op, unique_step}};
  return rows;
}

}  // namespace rlx
