// Steps of pool and pool_index on the CPU: rows of results, to which every tap adds its part.
#include "ops/pool/pool.h"

#include <limits>

#include "core/element.h"
#include "ops/conv/conv.kernel.h"
#include "ops/conv/conv_steps.h"

namespace rlx {

namespace {

// A row of results is made in pieces that stay in the cache.
constexpr Index most_piece = 256;

// One row of windows: those of equal coordinates along the first two axes.
struct Row {
  Index plane = 0, z = 0, y = 0;
};
Row row_at(const WindowNumbers& w, Index i) {
  return {i / (w.out[0] * w.out[1]), i / w.out[1] % w.out[0], i % w.out[1]};
}

// Calls f(begin, end, from, position) for the taps of a row in order: windows [begin, end) read elements from `from`
// on, `stride` apart; position counts within the plane.
template <class F>
void each_run(const WindowNumbers& w, const Row& row, Index begin, Index end, F f) {
  for (Index a = 0; a < w.kernel[0]; ++a) {
    const Index z = w.position(0, row.z, a);
    if (!w.inside(0, z)) continue;
    for (Index b = 0; b < w.kernel[1]; ++b) {
      const Index y = w.position(1, row.y, b);
      if (!w.inside(1, y)) continue;
      for (Index c = 0; c < w.kernel[2]; ++c) {
        const Range r = windows_inside(w, 2, c, begin, end);
        if (r.begin < r.end) f(r.begin, r.end, (z * w.in[1] + y) * w.in[2] + w.position(2, r.begin, c));
      }
    }
  }
}

template <class N>
N least() {
  if constexpr (std::is_integral_v<N>) return std::numeric_limits<N>::min();
  return -std::numeric_limits<N>::infinity();
}

template <class N>
bool beats(N x, N best) {
  return x > best || (x != x && best == best);  // NOLINT(misc-redundant-expression): NaN alone
}

template <class T, bool is_max>
void pool_piece(const WindowNumbers& w, const Row& row, const T* x, Index begin, Index end, auto* sums) {
  using N = std::remove_pointer_t<decltype(sums)>;
  std::fill_n(sums, end - begin, is_max ? least<N>() : N{0});
  const Index stride = w.stride[2];
  each_run(w, row, begin, end, [&](Index low, Index high, Index from) {
    const T* p = x + from;
    N* to = sums + (low - begin);
    for (Index i = 0; i < high - low; ++i) {
      const N v = static_cast<N>(number_of(p[i * stride]));
      if constexpr (is_max) {
        to[i] = beats(v, to[i]) ? v : to[i];
      } else {
        to[i] = static_cast<N>(to[i] + v);
      }
    }
  });
}

struct PoolRun {
  WindowTokens windows;
  std::vector<DimToken> counted;
  PoolKind kind;

  // Positions of a window that a mean divides by.
  std::array<PoolCount, 3> counts(const WindowNumbers& w, const DimValues& d) const {
    std::array<PoolCount, 3> c;
    for (std::size_t i = 0; i < 3; ++i) c[i] = {0, w.in[i]};
    for (std::size_t i = 0; i < counted.size(); ++i) {
      const std::size_t axis = 3 - counted.size() + i;
      c[axis] = {-w.before[axis], w.in[axis] + d[counted[i]]};
    }
    return c;
  }

  template <class T>
  void rows(const DimValues& d, Range r, const T* x, T* y) const {
    const WindowNumbers w = windows(d);
    for (Index i = r.begin; i < r.end; ++i) {
      const Row row = row_at(w, i);
      for (Index at = 0; at < w.out[2]; at += most_piece) {
        const Index end = std::min(w.out[2], at + most_piece);
        piece(w, d, row, x + row.plane * w.in_count(), at, end, y + i * w.out[2] + at);
      }
    }
  }

 private:
  template <class T>
  void piece(const WindowNumbers& w, const DimValues& d, const Row& row, const T* x, Index begin, Index end,
             T* y) const {
    using Number = decltype(number_of(T{}));
    if (kind == PoolKind::max) {
      Number best[most_piece];
      pool_piece<T, true>(w, row, x, begin, end, best);
      for (Index i = 0; i < end - begin; ++i) y[i] = element_of<T>(best[i]);
      return;
    }
    typename SumOf<T>::type sums[most_piece];
    pool_piece<T, false>(w, row, x, begin, end, sums);
    if constexpr (!std::is_integral_v<T>) {
      if (kind == PoolKind::mean) divide(w, d, row, begin, end, sums);
    }
    for (Index i = 0; i < end - begin; ++i) y[i] = element_of<T>(sums[i]);
  }

  template <class N>
  void divide(const WindowNumbers& w, const DimValues& d, const Row& row, Index begin, Index end, N* sums) const {
    const std::array<PoolCount, 3> c = counts(w, d);
    const Index outer = c[0].of(w, 0, row.z) * c[1].of(w, 1, row.y);
    for (Index i = begin; i < end; ++i) {
      sums[i - begin] = sums[i - begin] / static_cast<N>(outer * c[2].of(w, 2, i));
    }
  }
};

// Rows of windows, and how many make a call worth it.
struct Work {
  Dim rows, grain;
};
Work work_of(const PoolAttrs& a, const TensorType& out) {
  Index taps = 1;
  for (const Index k : a.kernel) taps *= k;
  const Dim& width = out.dims.back();
  return {product(std::span(out.dims).first(out.dims.size() - 1)), max(ceildiv(16384, max(width, 1) * taps), 1)};
}

std::span<const Dim> windowed(const PoolAttrs& a, const TensorType& t) {
  return std::span(t.dims).last(a.kernel.size());
}

// Lines of one call of the kernel of maxima.
constexpr Index most_lines = 32;

// Maxima of f32, plane by plane and, where windows have two axes, some lines at a time.
Step maxima(const StepArgs& n, const PoolAttrs& a) {
  StepBuilder s("pool_max");
  const auto x = s.read<float>(n.in[0]);
  const auto y = s.write<float>(n.out[0]);
  const std::span<const Dim> out = windowed(a, n.out[0].type);
  const bool cut = a.kernel.size() == 2;
  const Dim lines = cut ? ceildiv(out[0], most_lines) : Dim(1);
  const std::size_t lead = n.out[0].type.dims.size() - out.size();
  const Dim planes = product(std::span(n.out[0].type.dims).first(lead));
  const WindowTokens windows(s, pool_windows(a), windowed(a, n.in[0].type));
  const DimToken parts = s.dim(lines);
  Index taps = 1;
  for (const Index k : a.kernel) taps *= k;
  const Dim item = max(floordiv(product(out), max(lines, 1)), 1) * taps;
  const auto kernel = conv_kernels().maxima;
  return s.run(planes * lines, max(ceildiv(65536, item), 1), [=](const Memory& m, const DimValues& d, Range r) {
    const WindowNumbers w = windows(d);
    DepthwiseArgs args;
    for (std::size_t i = 0; i < 3; ++i) {
      args.in[i] = w.in[i];
      args.kernel[i] = w.kernel[i];
      args.out[i] = w.out[i];
      args.stride[i] = w.stride[i];
      args.dilation[i] = w.dilation[i];
      args.before[i] = w.before[i];
    }
    for (Index i = r.begin; i < r.end; ++i) {
      const Index plane = i / d[parts], line = i % d[parts] * most_lines;
      args.x = m[x].data() + plane * w.in_count();
      args.y = m[y].data() + plane * w.out_count() + line * w.out[2];
      if (cut) {
        args.out[1] = std::min(most_lines, w.out[1] - line);
        args.before[1] = w.before[1] - line * w.stride[1];
      }
      kernel(args);
    }
  });
}

std::optional<Step> pool_step(const StepArgs& n) {
  const auto& a = n.node.attrs.as<PoolAttrs>();
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("pool reads and writes densely");
  if (a.kind == PoolKind::max && n.in[0].type.dtype == DType::f32) return maxima(n, a);
  return with_element(n.in[0].type.dtype, [&]<class T>() {
    StepBuilder s("pool");
    const auto x = s.read<T>(n.in[0]);
    const auto y = s.write<T>(n.out[0]);
    PoolRun run{WindowTokens(s, pool_windows(a), windowed(a, n.in[0].type)), {}, a.kind};
    for (const Dim& c : a.counted) run.counted.push_back(s.dim(c));
    const Work work = work_of(a, n.out[0].type);
    return s.run(work.rows, work.grain,
                 [=](const Memory& m, const DimValues& d, Range r) { run.rows(d, r, m[x].data(), m[y].data()); });
  });
}

template <class T>
void index_row(const WindowNumbers& w, const Row& row, const T* x, Index* y) {
  std::fill_n(y, w.out[2], Index{-1});
  each_run(w, row, 0, w.out[2], [&](Index low, Index high, Index from) {
    for (Index i = low; i < high; ++i, from += w.stride[2]) {
      if (y[i] < 0 || beats(number_of(x[from]), number_of(x[y[i]]))) y[i] = from;
    }
  });
}

std::optional<Step> pool_index_step(const StepArgs& n) {
  const auto& a = n.node.attrs.as<PoolAttrs>();
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("pool_index reads and writes densely");
  return with_element(n.in[0].type.dtype, [&]<class T>() {
    StepBuilder s("pool_index");
    const auto x = s.read<T>(n.in[0]);
    const auto y = s.write<Index>(n.out[0]);
    const WindowTokens windows(s, pool_windows(a), windowed(a, n.in[0].type));
    const Work work = work_of(a, n.out[0].type);
    return s.run(work.rows, work.grain, [=](const Memory& m, const DimValues& d, Range r) {
      const WindowNumbers w = windows(d);
      for (Index i = r.begin; i < r.end; ++i) {
        const Row row = row_at(w, i);
        index_row(w, row, m[x].data() + row.plane * w.in_count(), m[y].data() + i * w.out[2]);
      }
    });
  });
}

}  // namespace

std::span<const MakerRow> pool_cpu() {
  static const MakerRow rows[] = {{&pool_op, pool_step}, {&pool_index_op, pool_index_step}};
  return rows;
}

}  // namespace rlx
