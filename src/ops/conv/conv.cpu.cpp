// Steps of conv on the CPU, alone or with the elementwise ops behind it. Convolutions of f32 by constant weights go by
// panels of them, depthwise ones row by row. In others the weights of a group are the left operand of a product,
// [results, taps]; the right one is the windows of a tile of results, gathered into a panel of [taps, tile], or the
// operand itself where every window is one element.
#include "ops/conv/conv.h"

#include <cstring>
#include <set>

#include "core/levels.h"
#include "ir/outline.h"
#include "ops/conv/conv.kernel.h"
#include "ops/conv/conv_panels.h"
#include "ops/conv/conv_steps.h"
#include "ops/matmul/matmul_step.h"
#include "ops/matmul/product_body.h"

namespace rlx {

namespace {

// Windows of a tile: whole panels of every kernel. Weights of that many results go over a tile at a time.
constexpr Index tile = 64, most_rows = 144;
// Tiles are dealt out to so many lanes at most; each has a panel of its own.
constexpr Index most_lanes = 32;
constexpr Index call_flops = Index{1} << 20;

// `count` elements of T, `stride` apart.
template <class T>
void gather_line(const T* from, Index stride, Index count, T* to) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  for (Index i = 0; i < count; ++i) to[i] = from[i * stride];
}

// Adjacent windows of a tile that lie in one row.
struct Piece {
  Index z = 0, y = 0, begin = 0, end = 0;
};
struct Pieces {
  Index count = 0;
  std::array<Piece, tile> all;
};

Pieces pieces_of(const WindowNumbers& w, Index first, Index count) {
  Pieces p;
  for (Index at = first; at < first + count;) {
    const Index row = at / w.out[2], x = at % w.out[2];
    const Index end = std::min(w.out[2], x + first + count - at);
    p.all[static_cast<std::size_t>(p.count++)] = {row / w.out[1], row % w.out[1], x, end};
    at += end - x;
  }
  return p;
}

// The panel of a tile: [channels * taps][tile]; windows that the tile lacks are 0.
template <class T>
void gather_panel(const WindowNumbers& w, const T* x, Index channels, const Pieces& p, Index count, T* to) {
  for (Index c = 0; c < channels; ++c, x += w.in_count()) {
    for (Index tap = 0; tap < w.taps(); ++tap, to += tile) {
      const Index a = tap / (w.kernel[1] * w.kernel[2]), b = tap / w.kernel[2] % w.kernel[1], k = tap % w.kernel[2];
      Index at = 0;
      for (Index i = 0; i < p.count; ++i) {
        const Piece& piece = p.all[static_cast<std::size_t>(i)];
        const Index n = piece.end - piece.begin, z = w.position(0, piece.z, a), y = w.position(1, piece.y, b);
        const bool inside = w.inside(0, z) && w.inside(1, y);
        const Range r = inside ? windows_inside(w, 2, k, piece.begin, piece.end) : Range{piece.begin, piece.begin};
        const Index before = r.begin - piece.begin, behind = piece.end - r.end;
        std::fill_n(to + at, before, T{});
        if (r.begin < r.end) {
          const T* from = x + (z * w.in[1] + y) * w.in[2] + w.position(2, r.begin, k);
          gather_line(from, w.stride[2], r.end - r.begin, to + at + before);
        }
        std::fill_n(to + at + n - behind, behind, T{});
        at += n;
      }
      std::fill_n(to + at, tile - count, T{});
    }
  }
}

// T holds the bits of an element.
template <class T>
struct ConvRun {
  const MatmulKernel* kernel;
  WindowTokens windows;
  bool pointwise;  // every window is one element, and they lie as the operand does
  Index groups;
  Token<T, Access::read> x, w;
  Token<T, Access::write> y;
  std::optional<Token<T, Access::scratch>> panels;
  DimToken batch, channels, results, lanes;

  void operator()(const Memory& m, const DimValues& d, Range r) const {
    const WindowNumbers n = windows(d);
    const Index across = (n.out_count() + tile - 1) / tile, each = d[results] / groups;
    const Index down = (each + most_rows - 1) / most_rows;
    const Index tiles = d[batch] * groups * down * across, step = d[lanes];
    for (Index lane = r.begin; lane < r.end; ++lane) {
      // A lane takes tiles that follow each other.
      for (Index t = tiles * lane / step; t < tiles * (lane + 1) / step; ++t) {
        const Index block = t / across % down, image = t / across / down;
        run_tile(
            m, d, n,
            {image / groups, image % groups, block * each / down, (block + 1) * each / down, t % across * tile, lane});
      }
    }
  }

 private:
  struct Place {
    Index image, group, row, row_end, first, lane;
  };

  void run_tile(const Memory& m, const DimValues& d, const WindowNumbers& n, const Place& at) const {
    const Index in_channels = d[channels] / groups, out_channels = d[results] / groups, windows_count = n.out_count();
    const Index count = std::min(tile, windows_count - at.first);
    MatmulArgs args;
    args.rows = at.row_end - at.row;
    args.inner = in_channels * n.taps();
    args.columns = count;
    const Index result = at.group * out_channels + at.row;
    args.a = m[w].data() + result * args.inner;
    args.a_row = args.inner;
    args.a_inner = 1;
    args.c = m[y].data() + (at.image * d[results] + result) * windows_count + at.first;
    args.c_row = windows_count;
    args.b_column = 1;
    const T* from = m[x].data() + (at.image * d[channels] + at.group * in_channels) * n.in_count();
    if (pointwise) {
      args.b = from + at.first;
      args.b_inner = windows_count;
    } else {
      T* const panel = m[*panels].data() + at.lane * args.inner * tile;
      gather_panel(n, from, in_channels, pieces_of(n, at.first, count), count, panel);
      args.b = panel;
      args.b_inner = tile;
      args.packed = kernel->width == tile && kernel->step == 1 && kernel->bytes == Index{sizeof(T)};
    }
    kernel->multiply(args);
  }
};

bool is_one(const Dim& d) { return d == Dim(1); }

bool is_pointwise(const ConvAttrs& a, const TensorType& x, const TensorType& w) {
  for (std::size_t i = 0; i < a.strides.size(); ++i) {
    if (!is_one(w.dims[2 + i]) || a.strides[i] != 1 || a.before[i] != Dim(0) || a.sizes[i] != x.dims[2 + i]) {
      return false;
    }
  }
  return true;
}

template <class T>
Step product_conv(const StepArgs& n, const ConvAttrs& a, const MatmulKernel* kernel) {
  const TensorType &xt = n.in[0].type, &wt = n.in[1].type;
  const bool pointwise = is_pointwise(a, xt, wt);
  const Dim inner = product(std::span(wt.dims).subspan(1)), count = product(a.sizes);
  const Dim each = floordiv(wt.dims[0], a.groups);
  const Dim tiles = xt.dims[0] * a.groups * ceildiv(each, most_rows) * ceildiv(count, tile);
  const Dim lanes = min(tiles, most_lanes);
  StepBuilder s(pointwise ? "conv_pointwise" : "conv");
  const auto x = s.read<T>(n.in[0]);
  const auto w = s.read<T>(n.in[1]);
  const auto y = s.write<T>(n.out[0]);
  std::optional<Token<T, Access::scratch>> panels;
  if (!pointwise) panels = s.template scratch<T>(lanes * inner * tile);
  const WindowTokens windows(s, conv_windows(a, wt), std::span(xt.dims).subspan(2));
  const Dim flops = xt.dims[0] * wt.dims[0] * inner * count * 2;
  s.flops(flops);
  const ConvRun<T> run{kernel, windows,           pointwise,         a.groups,          x,           w, y,
                       panels, s.dim(xt.dims[0]), s.dim(xt.dims[1]), s.dim(wt.dims[0]), s.dim(lanes)};
  const Dim item_flops = max(floordiv(flops, max(lanes, 1)), 1);
  return s.run(lanes, max(ceildiv(call_flops, item_flops), 1), run);
}

// One channel of x and of the weight a result.
struct DepthwiseRun {
  decltype(ConvKernels::depthwise) kernel;
  WindowTokens windows;
  Token<float, Access::read> x, w;
  ConvEnd end;
  std::optional<Token<float, Access::scratch>> buffers;
  DimToken channels, results, planes, lanes, count;

  void operator()(const Memory& m, const DimValues& d, Range r) const {
    if (!end.stage) return all_lanes(m, d, r, nullptr);
    end.stage->run(m, d, [&](region::Give give) { all_lanes(m, d, r, &give); });
  }

 private:
  void all_lanes(const Memory& m, const DimValues& d, Range r, const region::Give* give) const {
    const WindowNumbers g = windows(d);
    DepthwiseArgs args;
    for (std::size_t i = 0; i < 3; ++i) {
      args.in[i] = g.in[i];
      args.kernel[i] = g.kernel[i];
      args.out[i] = g.out[i];
      args.stride[i] = g.stride[i];
      args.dilation[i] = g.dilation[i];
      args.before[i] = g.before[i];
    }
    args.finish.activation = end.activation;
    args.finish.slope = end.slope;
    const Index each = d[results] / d[channels], all = d[planes], step = d[lanes];
    for (Index lane = r.begin; lane < r.end; ++lane) {
      for (Index plane = all * lane / step; plane < all * (lane + 1) / step; ++plane) {
        const Index image = plane / d[results], o = plane % d[results], first = plane * g.out_count();
        args.x = m[x].data() + (image * d[channels] + o / each) * g.in_count();
        args.w = m[w].data() + o * g.taps();
        if (end.bias) args.finish.bias = m[*end.bias].data() + o;
        args.y = give ? m[*buffers].data() + lane * d[count] : m[*end.out].data() + first;
        kernel(args);
        if (give) (*give)(first, g.out_count(), reinterpret_cast<const std::byte*>(args.y));
      }
    }
  }
};

bool takes_depthwise(const ConvAttrs& a, const Slot& x, const Slot& w) {
  return x.type.dtype == DType::f32 && x.dense() && w.dense() && is_one(w.type.dims[1]) &&
         x.type.dims[1] == Dim(a.groups) && a.groups > 1;
}

Step depthwise(StepBuilder& s, const ConvAttrs& a, const Slot& x, const Slot& w, ConvEnd end) {
  const TensorType &xt = x.type, &wt = w.type;
  const Dim taps = product(std::span(wt.dims).subspan(2)), planes = xt.dims[0] * wt.dims[0], count = product(a.sizes);
  const Dim flops = planes * count * taps * 2, lanes = min(planes, most_lanes * 4);
  const auto read = s.read<float>(x);
  const auto weights = s.read<float>(w);
  std::optional<Token<float, Access::scratch>> buffers;
  if (end.stage) buffers = s.scratch<float>(lanes * count);
  s.flops(flops);
  const DepthwiseRun run{conv_kernels().depthwise,
                         WindowTokens(s, conv_windows(a, wt), std::span(xt.dims).subspan(2)),
                         read,
                         weights,
                         std::move(end),
                         buffers,
                         s.dim(xt.dims[1]),
                         s.dim(wt.dims[0]),
                         s.dim(planes),
                         s.dim(lanes),
                         s.dim(count)};
  const Dim item_flops = max(floordiv(flops, max(lanes, 1)), 1);
  return s.run(lanes, max(ceildiv(call_flops / 4, item_flops), 1), run);
}

std::optional<Step> conv_step(const StepArgs& n) {
  const auto& a = n.node.attrs.as<ConvAttrs>();
  if (!n.in[0].dense() || !n.in[1].dense() || !n.out[0].dense()) return n.decline("conv reads and writes densely");
  const TensorType& x = n.in[0].type;
  if (takes_depthwise(a, n.in[0], n.in[1]) || takes_panels(a, n.in[0], n.in[1])) {
    const bool planes = takes_depthwise(a, n.in[0], n.in[1]);
    StepBuilder s(planes ? "conv_depthwise" : "conv_panels");
    ConvEnd end{.out = s.write<float>(n.out[0])};
    return planes ? depthwise(s, a, n.in[0], n.in[1], std::move(end))
                  : panel_conv(s, a, n.in[0], n.in[1], std::move(end));
  }
  const MatmulKernel* kernel = is_arithmetic_float(x.dtype) ? matmul_kernel(x.dtype) : nullptr;
  if (!kernel) return n.decline("conv has kernels for f64, f32, f16 and bf16");
  switch (storage_bytes(x.dtype, 1)) {
    case 8:
      return product_conv<std::uint64_t>(n, a, kernel);
    case 4:
      return product_conv<std::uint32_t>(n, a, kernel);
    default:
      return product_conv<std::uint16_t>(n, a, kernel);
  }
}

// Whether an operand holds one number a channel of results of these sizes.
bool is_of_channels(const Slot& s, const std::vector<Dim>& dims) {
  const std::vector<Dim>& d = s.type.dims;
  if (d.size() + 1 < dims.size() || d.size() > dims.size()) return false;
  const std::size_t channel = d.size() + 1 - dims.size();
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (d[i] != (i == channel ? dims[1] : Dim(1))) return false;
  }
  return true;
}

// The number that a scalar operand of a body holds in every run.
std::optional<float> number_of(const ProductBody& body, Operand o) {
  const Slot* const s = body.input(o);
  if (!s || !s->constant || s->constant->count() != 1 || s->type.dtype != DType::f32) return {};
  return static_cast<float>(load<double>(*s->constant)[0]);
}

// relu, or select(less(v, 0), v * slope, v), behind what is taken.
void take_activation(ProductBody& body, ConvEnd& end) {
  const Graph& g = body.graph();
  const Operand v{body.last(), 0};
  if (const Id relu = body.next(v.node, "relu"); relu != ProductBody::none) {
    end.activation = ConvActivation::relu;
    return body.take(relu);
  }
  const std::span<const Id> users = g.users(v.node);
  if (g.is_output(v.node) || std::set<Id>(users.begin(), users.end()).size() != 3) return;
  const Node& last = g.nodes[*std::ranges::max_element(users)];
  if (last.op->name() != "select" || last.operands[2] != v) return;
  const Operand below = last.operands[0], scaled = last.operands[1];
  const auto only_here = [&](Operand o, std::string_view op) {
    return g.nodes[o.node].op->name() == op && g.nodes[o.node].operands[0] == v && g.users(o.node).size() == 1 &&
           !g.is_output(o.node);
  };
  if (!only_here(below, "less") || !only_here(scaled, "mul")) return;
  const auto zero = number_of(body, g.nodes[below.node].operands[1]);
  const auto slope = number_of(body, g.nodes[scaled.node].operands[1]);
  if (!zero || *zero != 0 || !slope) return;
  end.activation = ConvActivation::leaky;
  end.slope = *slope;
  for (const Id id : {below.node, scaled.node, static_cast<Id>(&last - g.nodes.data())}) body.take(id);
}

// A body of one convolution of body inputs, and elementwise ops on it, of its shape.
std::optional<Step> fused_step(const StepArgs& n) {
  const Graph& g = *n.node.bodies[0];
  const auto is_product = [](const Node& node) { return node.op == &conv_op; };
  if (std::ranges::count_if(g.nodes, is_product) != 1) return n.decline("conv takes bodies with one conv");
  const auto product = static_cast<Id>(std::ranges::find_if(g.nodes, is_product) - g.nodes.begin());
  ProductBody body(n, product);
  const Node& node = g.nodes[product];
  const auto& a = node.attrs.as<ConvAttrs>();
  const Slot *const x = body.input(node.operands[0]), *const w = body.input(node.operands[1]);
  if (!x || !w) return n.decline("operands of a conv in a body are inputs of the body");
  for (const Slot& s : n.out) {
    if (s.type.dims != node.results[0].dims || !s.dense()) return n.decline("a result has another shape or strides");
  }
  const bool planes = takes_depthwise(a, *x, *w);
  if (!planes && !takes_panels(a, *x, *w)) {
    return n.decline("conv is fused by kernels of f32 for constant weights and for single channels");
  }
  StepBuilder s(planes ? "conv_depthwise_fused" : "conv_panels_fused");
  ConvEnd end;
  const Id plus = body.next(product, "add");
  const Slot* const bias = plus == ProductBody::none ? nullptr : body.other(plus, product, DType::f32);
  if (bias && is_of_channels(*bias, node.results[0].dims)) {
    end.bias = s.read<float>(*bias);
    body.take(plus);
  }
  take_activation(body, end);
  if (body.is_done()) {
    end.out = s.write<float>(n.out[0]);
  } else {
    const auto [rest, slots] = body.rest();
    end.stage = region::make_stage(s, {rest, slots, n.out, n.why});
    if (!end.stage) return {};
  }
  return planes ? depthwise(s, a, *x, *w, std::move(end)) : panel_conv(s, a, *x, *w, std::move(end));
}

}  // namespace

std::span<const MakerRow> conv_cpu() {
  static const MakerRow rows[] = {{&conv_op, conv_step}, {&fusion_op(), fused_step}};
  return rows;
}

}  // namespace rlx
