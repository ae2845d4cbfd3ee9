// Cuts a convolution into cells of windows, and copies what their windows reach where that leaves the operand.
#include "ops/conv/conv_panels.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/levels.h"
#include "ops/conv/conv.kernel.h"
#include "ops/conv/conv_steps.h"

namespace rlx {

namespace {

// Windows of a cell: some blocks of the kernels.
constexpr Index cell_windows = 384, most_block = 384;
// Cells are dealt out to so many lanes at most; each has memory of its own.
constexpr Index most_lanes = 32;
constexpr Index call_flops = Index{1} << 20;

// How the windows of an image are cut into cells: a part of one line each, or several whole lines.
template <class Number>
struct Cut {
  Number across, columns, lines, down;
};
Cut<Dim> cut_of(const Dim& lines, const Dim& width) {
  const Dim across = max(ceildiv(width, cell_windows), 1), each = max(floordiv(cell_windows, max(width, 1)), 1);
  return {across, ceildiv(width, across), min(each, lines), ceildiv(lines, each)};
}

// The last two windowed axes; a line has none before.
struct Lines {
  Dim in, kernel, size, before;
  Index stride = 1, dilation = 1;
};
Lines lines_of(const ConvAttrs& a, const TensorType& x, const TensorType& w) {
  if (a.sizes.size() == 1) return {1, 1, 1, 0, 1, 1};
  const std::size_t axis = a.sizes.size() - 2;
  return {x.dims[2 + axis], w.dims[2 + axis], a.sizes[axis], a.before[axis], a.strides[axis], a.dilations[axis]};
}

Dim reach(const Dim& windows, Index stride, const Dim& kernel, Index dilation) {
  return (windows - 1) * stride + (kernel - 1) * dilation + 1;
}

// Whether all windows provably lie inside the operand.
bool stays_inside(const ConvAttrs& a, const TensorType& x, const TensorType& w) {
  for (std::size_t i = 0; i < a.sizes.size(); ++i) {
    const Dim room = x.dims[2 + i] - reach(a.sizes[i], a.strides[i], w.dims[2 + i], a.dilations[i]);
    if (a.before[i] != Dim(0) || room.bounds().lo < 0) return false;
  }
  return true;
}

struct Cell {
  Index image, group, panel, line, lines, column, columns;
};
struct PanelConv {
  const WindowKernels* kernels;
  WindowTokens windows;
  Index groups;
  Token<float, Access::read> x, w;
  ConvEnd end;
  std::optional<Token<float, Access::scratch>> strips, buffers;
  Token<Index, Access::scratch> terms;
  DimToken batch, channels, results, lanes, strip_size;
  Cut<DimToken> cut;

  void operator()(const Memory& m, const DimValues& d, Range r) const {
    if (!end.stage) return all_lanes(m, d, r, nullptr);
    end.stage->run(m, d, [&](region::Give give) { all_lanes(m, d, r, &give); });
  }

 private:
  // What the cells of a run share.
  struct Run {
    const Memory& m;
    WindowNumbers n;
    Index channels, each, panels, inner;  // of a group
    const region::Give* give;
  };

  void all_lanes(const Memory& m, const DimValues& d, Range r, const region::Give* give) const {
    const WindowNumbers n = windows(d);
    const Index each = d[results] / groups, in_channels = d[channels] / groups;
    const Run run{m, n, in_channels, each, (each + kernels->width - 1) / kernels->width, in_channels * n.taps(), give};
    const Index across = d[cut.across], down = d[cut.down], cells = across * down;
    const Index all = d[batch] * groups * run.panels * cells, step = d[lanes];
    for (Index lane = r.begin; lane < r.end; ++lane) {
      for (Index t = all * lane / step; t < all * (lane + 1) / step; ++t) {
        const Index cell = t % cells, matrix = t / cells, image = matrix / run.panels;
        const Index line = cell / across * d[cut.lines], column = cell % across * d[cut.columns];
        run_cell(run, d, lane,
                 {image / groups, image % groups, matrix % run.panels, line, std::min(d[cut.lines], n.out[1] - line),
                  column, std::min(d[cut.columns], n.out[2] - column)});
      }
    }
  }

  void run_cell(const Run& run, const DimValues& d, Index lane, const Cell& c) const {
    if (c.columns <= 0) return;
    const WindowNumbers& n = run.n;
    const StripSource from = source(run, d, lane, c);
    Index* const term = run.m[terms].data() + lane * run.inner;
    for (Index i = 0, k = 0; i < run.channels; ++i) {
      for (Index a = 0; a < n.kernel[1]; ++a) {
        for (Index b = 0; b < n.kernel[2]; ++b, ++k) {
          term[k] = i * from.plane + a * n.dilation[1] * from.pitch + b * n.dilation[2];
        }
      }
    }
    std::array<Index, most_block> window;
    WindowArgs args;
    args.x = from.x;
    args.windows = window.data();
    args.terms = term;
    args.inner = run.inner;
    const Index first_column = c.panel * kernels->width, result = c.group * run.each + first_column;
    args.columns = std::min(kernels->width, run.each - first_column);
    const Index lanes_all = (run.each + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
    args.panel = run.m[w].data() + (c.group * lanes_all + first_column) * run.inner;
    if (end.bias) args.finish.bias = run.m[*end.bias].data() + result;
    args.finish.activation = end.activation;
    args.finish.slope = end.slope;
    const Index count = n.out_count();
    const Index place = (c.image * run.each * groups + result) * count + c.line * n.out[2] + c.column;
    const Index all = c.lines * c.columns;
    for (Index done = 0; done < all; done += args.rows) {
      args.rows = std::min({all - done, kernels->rows, most_block});
      for (Index i = 0, line = done / c.columns, column = done % c.columns; i < args.rows; ++i) {
        window[static_cast<std::size_t>(i)] = line * n.stride[1] * from.pitch + column * n.stride[2];
        if (++column == c.columns) column = 0, ++line;
      }
      multiply(run, lane, args, place + done, count);
    }
  }

  void multiply(const Run& run, Index lane, WindowArgs args, Index place, Index count) const {
    if (!run.give) {
      args.y = run.m[*end.out].data() + place;
      args.y_column = count;
      return kernels->multiply(args);
    }
    args.y = run.m[*buffers].data() + lane * kernels->width * most_block;
    args.y_column = most_block;
    kernels->multiply(args);
    for (Index j = 0; j < args.columns; ++j) {
      (*run.give)(place + j * count, args.rows, reinterpret_cast<const std::byte*>(args.y + j * most_block));
    }
  }

  StripSource source(const Run& run, const DimValues& d, Index lane, const Cell& c) const {
    const WindowNumbers& n = run.n;
    const StripBox box{n.position(1, c.line, 0), n.position(2, c.column, 0),
                       (c.lines - 1) * n.stride[1] + (n.kernel[1] - 1) * n.dilation[1] + 1,
                       (c.columns - 1) * n.stride[2] + (n.kernel[2] - 1) * n.dilation[2] + 1};
    const float* const image = run.m[x].data() + (c.image * groups + c.group) * run.channels * n.in_count();
    float* const strip = strips ? run.m[*strips].data() + lane * d[strip_size] : nullptr;
    return strip_source(*kernels, image, run.channels, n.in[1], n.in[2], box, strip);
  }
};

Packing packing_of(const Slot& w, Index groups) {
  const WindowKernels& k = window_kernels();
  const Index results = w.type.dims[0].constant(), inner = w.type.count().constant() / std::max<Index>(results, 1);
  const Index each = results / groups, full = (each + k.lanes - 1) / k.lanes * k.lanes;
  return {fmt::format("conv panels {} {}x{}x{}", level_name(level()), groups, each, inner),
          groups * full * inner * Index{sizeof(float)},
          [=, pack = k.pack](const Tensor& from, std::span<std::byte> to) {
            const auto* weights = reinterpret_cast<const float*>(from.bytes().data());
            auto* panels = reinterpret_cast<float*>(to.data());
            for (Index i = 0; i < groups; ++i) pack(weights + i * each * inner, each, inner, panels + i * full * inner);
          }};
}

}  // namespace

StripSource strip_source(const WindowKernels& kernels, const float* image, Index channels, Index high, Index wide,
                         const StripBox& box, float* strip) {
  if (box.top >= 0 && box.left >= 0 && box.top + box.high <= high && box.left + box.wide <= wide) {
    return {image + box.top * wide + box.left, high * wide, wide};
  }
  const Index first = std::clamp<Index>(-box.top, 0, box.high), last = std::clamp(high - box.top, first, box.high);
  StripArgs args;
  args.pitch = wide;
  args.width = box.wide;
  args.lines = last - first;
  args.begin = std::clamp<Index>(-box.left, 0, box.wide);
  args.end = std::clamp(wide - box.left, args.begin, box.wide);
  float* to = strip;
  for (Index i = 0; i < channels; ++i, to += box.high * box.wide) {
    std::fill_n(to, first * box.wide, 0.0F);
    args.to = to + first * box.wide;
    args.from = image + (i * high + box.top + first) * wide + box.left;
    kernels.copy(args);
    std::fill_n(to + last * box.wide, (box.high - last) * box.wide, 0.0F);
  }
  return {strip, box.high * box.wide, box.wide};
}

bool takes_panels(const ConvAttrs& a, const Slot& x, const Slot& w) {
  if (x.type.dtype != DType::f32 || !x.dense()) return false;
  if (!is_planar(conv_windows(a, w.type), std::span(x.type.dims).subspan(2))) return false;
  if (!w.constant || !w.dense() || w.offset != Dim(0) || !w.type.is_constant()) return false;
  return w.type.dims[0].constant() / a.groups >= window_kernels().lanes / 2;
}

Step panel_conv(StepBuilder& s, const ConvAttrs& a, const Slot& x, const Slot& w, ConvEnd end) {
  const TensorType &xt = x.type, &wt = w.type;
  const WindowKernels& kernels = window_kernels();
  const Index each = wt.dims[0].constant() / a.groups, panels = (each + kernels.width - 1) / kernels.width;
  const Dim inner = product(std::span(wt.dims).subspan(1)), channels = floordiv(xt.dims[1], a.groups);
  const Lines lines = lines_of(a, xt, wt);
  const Dim &width = a.sizes.back(), &kernel = wt.dims.back();
  const Cut<Dim> cut = cut_of(lines.size, width);
  const Dim cells = xt.dims[0] * a.groups * panels * cut.across * cut.down, lanes = min(cells, most_lanes);
  // Lines are copied in whole packs: the last one of a strip may need room behind it.
  const Dim strip = kernels.lanes + channels * max(reach(cut.lines, lines.stride, lines.kernel, lines.dilation), 0) *
                                        max(reach(cut.columns, a.strides.back(), kernel, a.dilations.back()), 0);
  std::optional<Token<float, Access::scratch>> strips, buffers;
  if (!stays_inside(a, xt, wt)) strips = s.scratch<float>(lanes * strip);
  if (end.stage) buffers = s.scratch<float>(lanes * kernels.width * most_block);
  const Dim flops = xt.dims[0] * wt.dims[0] * inner * product(a.sizes) * 2;
  s.flops(flops);
  const auto read = s.read<float>(x);
  const auto weights = s.packed<float>(w, packing_of(w, a.groups));
  const auto terms = s.scratch<Index>(lanes * inner);
  const PanelConv run{&kernels,
                      WindowTokens(s, conv_windows(a, wt), std::span(xt.dims).subspan(2)),
                      a.groups,
                      read,
                      weights,
                      std::move(end),
                      strips,
                      buffers,
                      terms,
                      s.dim(xt.dims[0]),
                      s.dim(xt.dims[1]),
                      s.dim(wt.dims[0]),
                      s.dim(lanes),
                      s.dim(strip),
                      {s.dim(cut.across), s.dim(cut.columns), s.dim(cut.lines), s.dim(cut.down)}};
  const Dim item_flops = max(floordiv(flops, max(lanes, 1)), 1);
  return s.run(lanes, max(ceildiv(call_flops, item_flops), 1), run);
}

}  // namespace rlx
