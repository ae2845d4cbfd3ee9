// Products with a matrix of any block format: panels of it are decoded to f32, a few columns at a time, and multiplied
// by all rows.
#include "ops/matmul/encoded_step.h"

#include <algorithm>
#include <numeric>

#include "ops/encode/encoded_source.h"
#include "ops/matmul/coded_step.h"
#include "ops/matmul/product_run.h"

namespace rlx {

namespace {

constexpr Index item_rows = 512, few_rows = 16, most_lanes = 8, decoded_columns = 256, decoded_rows = 64;

// Columns of the result that are decoded together: whole panels, and whole blocks where these run along them.
Index tile_columns(const EncodedPlan& p) {
  return p.transposed ? product_item_columns : std::lcm(product_item_columns, p.b.type.encoding->block);
}
// Columns of the stored matrix that are decoded together.
Index part_columns(const EncodedPlan& p) {
  const Index block = p.b.type.encoding->block;
  return p.transposed ? (decoded_columns + block - 1) / block * block : tile_columns(p);
}

// Where panels come from: blocks, or a matrix of codes that is packed already.
struct PanelSource {
  std::optional<EncodedSource> blocks = {};
  std::optional<Token<std::byte, Access::read>> packed = {};
  std::optional<CodedMatrix> matrix = {};

  static PanelSource of(StepBuilder& s, const EncodedPlan& p) {
    if (!p.transposed || !is_coded(p.b)) return {.blocks = EncodedSource(s, p.b)};
    const CodedMatrix matrix = *coded_matrix(*p.b.type.encoding);
    return {.packed = s.packed<std::byte>(p.b, coded_packing(matrix, p.b.type)), .matrix = matrix};
  }
};

// Part of one product: its work is cut into tiles of columns by blocks of rows, which lanes share.
struct DecodedRun {
  const MatmulKernel* kernel;
  PanelSource b;
  bool transposed;
  Index tile, part;
  Token<float, Access::read> a;
  Token<float, Access::scratch> panels, decoded;
  DimToken rows, inner, columns, lanes;
  ProductEnd end;

  void operator()(const Memory& m, const DimValues& d, Range range) const {
    if (!end.stage) return each_lane(m, d, range, nullptr);
    end.stage->run(m, d, [&](region::Give give) { each_lane(m, d, range, &give); });
  }

 private:
  void each_lane(const Memory& m, const DimValues& d, Range range, const region::Give* give) const {
    const Index across = (d[columns] + tile - 1) / tile, down = (d[rows] + item_rows - 1) / item_rows;
    const Index units = across * down, count = d[lanes];
    const Index panel_floats = (tile + kernel->width - 1) / kernel->width * kernel->panel_bytes(d[inner]) / 4;
    for (Index lane = range.begin; lane < range.end; ++lane) {
      float* const to = m[panels].data() + lane * panel_floats;
      float* const buffer = m[decoded].data() + lane * decoded_rows * part;
      Index packed = -1;
      if (b.matrix && d[rows] <= few_rows) {
        multiply_few(m, d, across * lane / count, across * (lane + 1) / count, give);
        continue;
      }
      for (Index unit = units * lane / count; unit < units * (lane + 1) / count; ++unit) {
        const Index column = unit / down * tile, row = unit % down * item_rows;
        const Index wide = std::min(tile, d[columns] - column);
        if (std::exchange(packed, column) != column) decode_panels(m, d, column, wide, buffer, to);
        multiply(m, d, {row, column, row * d[columns] + column}, std::min(item_rows, d[rows] - row), wide, to, give);
      }
    }
  }

  // Few rows: codes are decoded in registers. The sums are those of panels, bit for bit.
  void multiply_few(const Memory& m, const DimValues& d, Index tile_begin, Index tile_end,
                    const region::Give* give) const {
    if (tile_begin == tile_end) return;
    const Index k = d[inner], column = tile_begin * tile;
    CodedArgs args;
    args.x = m[a].data();
    args.x_row = k;
    args.panel_bytes = b.matrix->panel_bytes(k);
    args.w = m[*b.packed].data() + tile_begin * args.panel_bytes;
    args.units = b.matrix->units(k);
    args.values = b.matrix->form->values;
    args.rows = d[rows];
    args.columns = std::min(tile_end * tile, d[columns]) - column;
    args.c_row = d[columns];
    if (end.bias) args.bias = reinterpret_cast<const float*>(m[end.bias->row].data()) + column;
    const ProductFinish finish{give, column, args.c_row};
    if (give) {
      args.finish = {ProductFinish::run, &finish};
    } else {
      args.c = reinterpret_cast<float*>(m[*end.out].data()) + column;
    }
    b.matrix->kernel().multiply_dense(args);
  }

  // Columns [column, column + wide) of the product's right operand as panels.
  void decode_panels(const Memory& m, const DimValues& d, Index column, Index wide, float* buffer, float* to) const {
    const Index k = d[inner], width = kernel->width, panel = kernel->panel_bytes(k) / 4;
    if (b.matrix) {
      const std::byte* const from = m[*b.packed].data() + column / coded_panel * b.matrix->panel_bytes(k);
      b.matrix->kernel().decode(from, b.matrix->units(k), wide, b.matrix->form->values, width, panel, to);
      return;
    }
    const auto pack = [&](Index first, Index count, Index inner_stride, Index column_stride) {
      for (Index j = 0; j < wide; j += width) {
        kernel->pack(buffer + j * column_stride, inner_stride, column_stride, count, std::min(width, wide - j),
                     to + j / width * panel + first * width);
      }
    };
    if (transposed) {
      for (Index first = 0; first < k; first += part) {
        const Index count = std::min(part, k - first);
        b.blocks->decode(m, k, column, wide, first, count, buffer);
        pack(first, count, 1, count);
      }
      return;
    }
    for (Index first = 0; first < k; first += decoded_rows) {
      const Index count = std::min(decoded_rows, k - first);
      b.blocks->decode(m, d[columns], first, count, column, wide, buffer);
      pack(first, count, wide, 1);
    }
  }

  void multiply(const Memory& m, const DimValues& d, ProductPlace at, Index height, Index wide, const float* right,
                const region::Give* give) const {
    MatmulArgs args;
    args.a = m[a].data() + at.row * d[inner];
    args.a_row = args.inner = d[inner];
    args.a_inner = args.b_inner = args.b_column = 1;
    args.b = right;
    args.packed = true;
    args.rows = height;
    args.columns = wide;
    args.c_row = d[columns];
    if (end.bias) args.bias = {m[end.bias->row].data() + at.column * Index{sizeof(float)}, end.bias->rounds};
    const ProductFinish finish{give, at.first, args.c_row};
    if (give) {
      args.finish = {ProductFinish::run, &finish};
    } else {
      args.c = m[*end.out].data() + at.first * Index{sizeof(float)};
    }
    kernel->multiply(args);
  }
};

}  // namespace

std::optional<EncodedPlan> plan_encoded_product(const StepArgs& n, const MatmulAttrs& attrs, const Slot& a,
                                                const Slot& b, const TensorType& result) {
  const auto decline = [&n](std::string_view why) {
    n.decline(why);
    return std::optional<EncodedPlan>();
  };
  if (a.type.encoding) return decline("no kernel multiplies " + a.type.text() + " by " + b.type.text());
  if (!a.dense()) return decline("rows beside an encoded matrix are dense");
  if (!EncodedSource::takes(b)) return decline("an encoded matrix is a constant, or one plane");
  EncodedPlan p{a, b, attrs.transpose_b, 1, a.type.dim(-1), result.dim(-1)};
  for (std::size_t i = 0; i + 1 < result.dims.size(); ++i) p.rows = p.rows * result.dims[i];
  return p;
}

Step encoded_step(StepBuilder& s, const EncodedPlan& p, ProductEnd end) {
  const MatmulKernel& kernel = matmul_kernels().f32;
  const Index tile = tile_columns(p), part = part_columns(p);
  const Dim units = ceildiv(p.columns, tile) * ceildiv(p.rows, item_rows), lanes = min(units, most_lanes);
  const Dim panel_floats =
      ceildiv(p.inner, kernel.step) * ((tile + kernel.width - 1) / kernel.width * kernel.width * kernel.bytes / 4);
  PanelSource b = PanelSource::of(s, p);
  const auto a = s.read<float>(p.a);
  const auto panels = s.scratch<float>(lanes * panel_floats);
  const auto decoded = s.scratch<float>(lanes * (decoded_rows * part));
  DecodedRun run{&kernel,       std::move(b),   p.transposed,     tile,         part,          a, panels, decoded,
                 s.dim(p.rows), s.dim(p.inner), s.dim(p.columns), s.dim(lanes), std::move(end)};
  s.flops(p.rows * p.inner * p.columns * 2);
  return s.run(lanes, 1, std::move(run));
}

}  // namespace rlx
