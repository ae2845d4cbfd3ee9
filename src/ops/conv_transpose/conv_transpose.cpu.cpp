// Steps of conv_transpose on the CPU. Results whose positions are equal modulo the strides, a phase, are a convolution
// of stride 1 by those elements of the kernel that reach them; it goes by panels of weights, which every lane brings in
// order for itself.
#include "ops/conv_transpose/conv_transpose.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ops/conv/conv.kernel.h"
#include "ops/conv/conv_panels.h"
#include "ops/conv/conv_steps.h"

namespace rlx {

namespace {

// Windows of a call of the kernel, which are as many lines as fit, or a part of one.
constexpr Index most_block = 384;
constexpr Index most_lanes = 32;
constexpr Index call_flops = Index{1} << 20;

// The elements of a kernel along an axis that reach a phase, and how far from a window's number they read.
struct PhaseAxis {
  Index count = 0;  // results of the phase
  std::vector<Index> taps, offsets;
  Index low = 0, high = 0;  // of the offsets

  PhaseAxis(Index size, Index phase, Index stride, Index before, Index kernel, Index dilation) {
    count = phase < size ? (size - phase + stride - 1) / stride : 0;
    for (Index k = 0; k < kernel; ++k) {
      const Index reached = phase + before - k * dilation;
      if (reached % stride != 0) continue;
      taps.push_back(k);
      offsets.push_back(reached / stride);
    }
    if (taps.empty()) return;
    const auto [least, most] = std::ranges::minmax(offsets);
    low = least;
    high = most;
  }
};

// One phase of one panel of one group.
struct Phase {
  Index group, panel, top, left;  // of the results
  PhaseAxis y, x;
  Index inner(Index channels) const {
    return channels * static_cast<Index>(y.taps.size()) * static_cast<Index>(x.taps.size());
  }
};

struct TransposeRun {
  const WindowKernels* kernels;
  WindowTokens windows;  // over the result, one for every position of x
  Index groups;
  Token<float, Access::read> x, w;
  Token<float, Access::write> y;
  Token<float, Access::scratch> strips, panels, buffers;
  Token<Index, Access::scratch> terms;
  DimToken batch, channels, results, lanes, strip, inner;

  void operator()(const Memory& m, const DimValues& d, Range r) const {
    const WindowNumbers n = windows(d);
    const Index each = d[results], across = (each + kernels->width - 1) / kernels->width;
    const Index high = (n.in[1] + n.stride[1] - 1) / n.stride[1], wide = (n.in[2] + n.stride[2] - 1) / n.stride[2];
    const Index columns = std::min(wide, most_block), lines = std::max<Index>(most_block / std::max<Index>(wide, 1), 1);
    const Index parts = columns == 0 ? 0 : (wide + columns - 1) / columns, blocks = (high + lines - 1) / lines * parts;
    const Index phases = n.stride[1] * n.stride[2], cells = d[batch] * blocks;
    const Index all = groups * across * phases * cells, step = d[lanes];
    for (Index lane = r.begin; lane < r.end; ++lane) {
      Index packed = -1;
      std::optional<Phase> phase;
      for (Index t = all * lane / step; t < all * (lane + 1) / step; ++t) {
        const Index which = t / cells, cell = t % cells;
        if (which != packed) {
          phase = phase_of(n, which % phases, which / phases / across, which / phases % across);
          pack(m, d, n, *phase, lane, each);
          packed = which;
        }
        const Index block = cell % blocks;
        run_cell(m, d, n, *phase, lane,
                 {cell / blocks, block / parts * lines, lines, block % parts * columns, columns});
      }
    }
  }

 private:
  struct Cell {
    Index image, line, lines, column, columns;
  };

  static Phase phase_of(const WindowNumbers& n, Index phase, Index group, Index panel) {
    const Index top = phase / n.stride[2], left = phase % n.stride[2];
    return {group,
            panel,
            top,
            left,
            PhaseAxis(n.in[1], top, n.stride[1], n.before[1], n.kernel[1], n.dilation[1]),
            PhaseAxis(n.in[2], left, n.stride[2], n.before[2], n.kernel[2], n.dilation[2])};
  }

  // The weights of a phase as the kernel reads them: [channels * taps][columns].
  void pack(const Memory& m, const DimValues& d, const WindowNumbers& n, const Phase& p, Index lane, Index each) const {
    const Index in_channels = d[channels] / groups, first = p.panel * kernels->width;
    const Index columns = std::min(kernels->width, each - first);
    const Index full = (columns + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
    float* to = m[panels].data() + lane * d[inner] * kernels->width;
    for (Index c = 0; c < in_channels; ++c) {
      const float* const from = m[w].data() + ((p.group * in_channels + c) * each + first) * n.taps();
      for (const Index a : p.y.taps) {
        for (const Index b : p.x.taps) {
          for (Index j = 0; j < columns; ++j) to[j] = from[j * n.taps() + a * n.kernel[2] + b];
          std::fill_n(to + columns, full - columns, 0.0F);
          to += full;
        }
      }
    }
  }

  void run_cell(const Memory& m, const DimValues& d, const WindowNumbers& n, const Phase& p, Index lane, Cell c) const {
    c.lines = std::min(c.lines, p.y.count - c.line);
    c.columns = std::min(c.columns, p.x.count - c.column);
    if (c.lines <= 0 || c.columns <= 0) return;
    const Index in_channels = d[channels] / groups, area = n.out[1] * n.out[2];
    const float* const image = m[x].data() + (c.image * groups + p.group) * in_channels * area;
    const StripBox box{c.line + p.y.low, c.column + p.x.low, c.lines + p.y.high - p.y.low,
                       c.columns + p.x.high - p.x.low};
    const StripSource from =
        strip_source(*kernels, image, in_channels, n.out[1], n.out[2], box, m[strips].data() + lane * d[strip]);
    Index* const term = m[terms].data() + lane * d[inner];
    Index k = 0;
    for (Index i = 0; i < in_channels; ++i) {
      for (const Index a : p.y.offsets) {
        for (const Index b : p.x.offsets) term[k++] = i * from.plane + (a - p.y.low) * from.pitch + b - p.x.low;
      }
    }
    std::array<Index, most_block> window;
    WindowArgs args;
    args.x = from.x;
    args.windows = window.data();
    args.terms = term;
    args.panel = m[panels].data() + lane * d[inner] * kernels->width;
    args.y = m[buffers].data() + lane * kernels->width * most_block;
    args.y_column = most_block;
    args.inner = k;
    const Index first = p.panel * kernels->width;
    args.columns = std::min(kernels->width, d[results] - first);
    const Index all = c.lines * c.columns;
    for (Index done = 0; done < all; done += args.rows) {
      args.rows = std::min({all - done, kernels->rows, most_block});
      for (Index i = 0, line = done / c.columns, column = done % c.columns; i < args.rows; ++i) {
        window[static_cast<std::size_t>(i)] = line * from.pitch + column;
        if (++column == c.columns) column = 0, ++line;
      }
      kernels->multiply(args);
      const Index result = (c.image * groups + p.group) * d[results] + first;
      spread(m, n, p, c, args, done, result);
    }
  }

  // Results from the buffer to where they belong.
  void spread(const Memory& m, const WindowNumbers& n, const Phase& p, const Cell& c, const WindowArgs& args,
              Index done, Index result) const {
    for (Index j = 0; j < args.columns; ++j) {
      float* const plane = m[y].data() + (result + j) * n.in_count();
      const float* from = args.y + j * most_block;
      for (Index i = 0; i < args.rows;) {
        const Index line = c.line + (done + i) / c.columns, column = (done + i) % c.columns;
        const Index count = std::min(c.columns - column, args.rows - i);
        float* const to = plane + (line * n.stride[1] + p.top) * n.in[2] + (c.column + column) * n.stride[2] + p.left;
        for (Index k = 0; k < count; ++k) to[k * n.stride[2]] = from[i + k];
        i += count;
      }
    }
  }
};

// By how much the elements of x that a run of results of a phase needs are more than these, at most.
Dim reach_beside(const ConvAttrs& a, const TensorType& w, std::size_t axis) {
  return ceildiv((w.dims[2 + axis] - 1) * a.dilations[axis], a.strides[axis]) + 1;
}

std::optional<Step> conv_transpose_step(const StepArgs& n) {
  const auto& a = n.node.attrs.as<ConvAttrs>();
  const TensorType &xt = n.in[0].type, &wt = n.in[1].type;
  if (!n.in[0].dense() || !n.in[1].dense() || !n.out[0].dense()) {
    return n.decline("conv_transpose reads and writes densely");
  }
  if (xt.dtype != DType::f32 || !is_planar(conv_windows(a, wt), std::span(xt.dims).subspan(2))) {
    return n.decline("conv_transpose has kernels for f32 and two axes");
  }
  const WindowKernels& kernels = window_kernels();
  Windows over = conv_windows(a, wt);
  over.sizes.assign(xt.dims.begin() + 2, xt.dims.end());
  const Dim inner = floordiv(xt.dims[1], a.groups) * product(std::span(wt.dims).subspan(2));
  // A strip holds the lines of a cell, and what the kernel reaches beside them.
  const Dim wide = ceildiv(a.sizes.back(), a.strides.back());
  Dim phases = a.strides.back(), strip = min(wide, most_block) + reach_beside(a, wt, a.sizes.size() - 1);
  if (a.sizes.size() > 1) {
    const std::size_t axis = a.sizes.size() - 2;
    phases = phases * a.strides[axis];
    const Dim high = ceildiv(a.sizes[axis], a.strides[axis]);
    strip = strip * (min(high, max(floordiv(most_block, max(wide, 1)), 1)) + reach_beside(a, wt, axis));
  }
  strip = floordiv(xt.dims[1], a.groups) * strip + kernels.lanes;
  const Dim across = ceildiv(wt.dims[1], kernels.width);
  const Dim lanes =
      min(xt.dims[0] * a.groups * across * phases * max(ceildiv(product(a.sizes), most_block), 1), most_lanes);
  StepBuilder s("conv_transpose");
  const auto x = s.read<float>(n.in[0]);
  const auto w = s.read<float>(n.in[1]);
  const auto y = s.write<float>(n.out[0]);
  const Dim flops = xt.count() * wt.dims[1] * product(std::span(wt.dims).subspan(2)) * 2;
  s.flops(flops);
  const TransposeRun run{&kernels,
                         WindowTokens(s, over, a.sizes),
                         a.groups,
                         x,
                         w,
                         y,
                         s.scratch<float>(lanes * strip),
                         s.scratch<float>(lanes * inner * kernels.width),
                         s.scratch<float>(lanes * kernels.width * most_block),
                         s.scratch<Index>(lanes * inner),
                         s.dim(xt.dims[0]),
                         s.dim(xt.dims[1]),
                         s.dim(wt.dims[1]),
                         s.dim(lanes),
                         s.dim(strip),
                         s.dim(inner)};
  const Dim item_flops = max(floordiv(flops, max(lanes, 1)), 1);
  return s.run(lanes, max(ceildiv(call_flops, item_flops), 1), run);
}

}  // namespace

std::span<const MakerRow> conv_transpose_cpu() {
  static const MakerRow rows[] = {{&conv_transpose_op, conv_transpose_step}};
  return rows;
}

}  // namespace rlx
