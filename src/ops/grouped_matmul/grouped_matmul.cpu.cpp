// Steps of grouped_matmul on the CPU: rows that name one matrix are brought together and multiplied by it at once.
#include "ops/grouped_matmul/grouped_matmul.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "codecs/a8/a8.h"
#include "ops/encode/encoded_source.h"
#include "ops/gather/index_view.h"
#include "ops/matmul/coded_step.h"
#include "ops/matmul/product_run.h"

namespace rlx {

namespace {

constexpr Index tile = product_item_columns;
// Bytes of rows that are brought together.
constexpr Index batch_bytes = Index{256} << 10;

// Rows by the matrix that they name: those of the i-th matrix in use are rows[begins[i]] and on.
struct Grouping {
  std::vector<Index> matrices, begins, rows;
};

template <class I>
Grouping group(std::span<const I> experts, Index extent) {
  Grouping g;
  std::vector<Index> counts(static_cast<std::size_t>(extent) + 1, 0);
  for (const I e : experts) ++counts[static_cast<std::size_t>(position(e, extent)) + 1];
  for (std::size_t e = 0; e + 1 < counts.size(); ++e) {
    if (counts[e + 1] == 0) continue;
    g.matrices.push_back(static_cast<Index>(e));
    g.begins.push_back(std::accumulate(counts.begin(), counts.begin() + static_cast<Index>(e) + 1, Index{0}));
  }
  g.begins.push_back(static_cast<Index>(experts.size()));
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
  g.rows.resize(experts.size());
  for (std::size_t i = 0; i < experts.size(); ++i)
    g.rows[static_cast<std::size_t>(counts[static_cast<std::size_t>(position(experts[i], extent))]++)] =
        static_cast<Index>(i);
  return g;
}

// Sizes of the rows and strides of x along them, in rows.
struct RowMap {
  std::vector<DimToken> sizes;
  std::vector<bool> stretched;
  static RowMap of(StepBuilder& s, const TensorType& x, const TensorType& experts) {
    RowMap m;
    for (std::size_t i = 0; i < experts.dims.size(); ++i) {
      m.sizes.push_back(s.dim(experts.dims[i]));
      m.stretched.push_back(x.dims[i] == Dim(1));
    }
    return m;
  }
  /// The row of x beside row `i` of the result.
  Index operator()(const DimValues& d, Index i) const {
    Index at = 0, stride = 1;
    for (std::size_t k = sizes.size(); k-- > 0;) {
      const Index extent = d[sizes[k]];
      if (!stretched[k]) {
        at += i % extent * stride;
        stride *= extent;
      }
      i /= extent;
    }
    return at;
  }
};

// Where finished rows of a batch go.
struct Scatter {
  const Index* rows;
  std::byte* to;
  Index columns, first, bytes;  // of a row of the result; the call's first column; of an element
  static void run(const void* context, long row, long column, long count, const void* values) {
    const auto& s = *static_cast<const Scatter*>(context);
    std::memcpy(s.to + (s.rows[row] * s.columns + s.first + column) * s.bytes, values,
                static_cast<std::size_t>(count * s.bytes));
  }
};

// What both kinds of steps share.
template <class I>
struct Common {
  Token<std::byte, Access::read> x;
  Token<I, Access::read> experts;
  Token<std::byte, Access::write> y;
  Layout shape;
  RowMap map;
  DimToken extent, inner, columns;

  Common(StepBuilder& s, const StepArgs& n, bool transposed)
      : x(s.read<std::byte>(n.in[0])),
        experts(s.read<I>(n.in[2])),
        y(s.write<std::byte>(n.out[0])),
        shape(s, n.in[2]),
        map(RowMap::of(s, n.in[0].type, n.in[2].type)),
        extent(s.dim(n.in[1].type.dims[0])),
        inner(s.dim(n.in[1].type.dim(transposed ? 2 : 1))),
        columns(s.dim(n.in[1].type.dim(transposed ? 1 : 2))) {}

  /// Calls call(matrix, first tile, tiles behind the last, rows, count, gathered) for batches of rows of one matrix,
  /// which `gathered` holds side by side.
  template <class Call>
  void run(const Memory& m, const DimValues& d, Range range, Index row_bytes, Call call) const {
    check_indices("grouped_matmul", m[experts].data(), shape(d), 0, d[extent]);
    const Grouping g = group(m[experts], d[extent]);
    const Index across = (d[columns] + tile - 1) / tile, used = static_cast<Index>(g.matrices.size());
    const Index batch = std::max<Index>(1, batch_bytes / std::max<Index>(row_bytes, 1));
    std::vector<std::byte> gathered;
    for (Index item = range.begin; item < std::min(range.end, used * across);) {
      const Index i = item / across, first = item % across, end = std::min(across, first + range.end - item);
      item += end - first;
      const Index begin = g.begins[static_cast<std::size_t>(i)], behind = g.begins[static_cast<std::size_t>(i) + 1];
      for (Index row = begin; row < behind; row += batch) {
        const Index count = std::min(batch, behind - row);
        const Index* const rows = g.rows.data() + row;
        gathered.resize(static_cast<std::size_t>(count * row_bytes));
        for (Index k = 0; k < count && row_bytes > 0; ++k)
          std::memcpy(gathered.data() + k * row_bytes, m[x].data() + map(d, rows[k]) * row_bytes,
                      static_cast<std::size_t>(row_bytes));
        call(g.matrices[static_cast<std::size_t>(i)], first, end, rows, count, gathered.data());
      }
    }
  }
};

Dim rows_of(const StepArgs& n) { return n.in[2].type.count(); }
Dim items_of(const StepArgs& n, const Dim& columns) {
  return max(min(n.in[1].type.dims[0], rows_of(n)) * ceildiv(columns, tile), 1);
}

// A bank of codes, times activations in blocks.
template <class I>
Step coded(const StepArgs& n, const CodedMatrix& matrix) {
  StepBuilder s("grouped_matmul_coded");
  const TensorType& bank = n.in[1].type;
  const auto w = s.packed<std::byte>(n.in[1], coded_packing(matrix, bank));
  const Common<I> common(s, n, true);
  const Index columns = bank.dims[1].constant(), inner = bank.dims[2].constant();
  s.flops(rows_of(n) * (2 * columns * inner), DType::i8);
  const Index panel = matrix.panel_bytes(inner), matrix_bytes = (columns + tile - 1) / tile * panel;
  return s.run(items_of(n, columns), ceildiv(65536, panel + 1), [=](const Memory& m, const DimValues& d, Range range) {
    const Index row_bytes = inner / a8_block * a8_block_bytes;
    common.run(m, d, range, row_bytes,
               [&](Index e, Index first, Index end, const Index* rows, Index count, const std::byte* gathered) {
                 const Scatter scatter{rows, m[common.y].data(), columns, first * tile, sizeof(float)};
                 CodedArgs args;
                 args.x = gathered;
                 args.x_row = row_bytes;
                 args.w = m[w].data() + e * matrix_bytes + first * panel;
                 args.panel_bytes = panel;
                 args.units = matrix.units(inner);
                 args.values = matrix.form->values;
                 args.rows = count;
                 args.columns = std::min(end * tile, columns) - first * tile;
                 args.finish = {Scatter::run, &scatter};
                 matrix.kernel().multiply(args);
               });
  });
}

// Any other bank: panels of it are packed, or decoded, when rows name them.
template <class I>
Step panels(const StepArgs& n, const MatmulKernel& kernel, bool transposed) {
  StepBuilder s("grouped_matmul");
  const TensorType& bank = n.in[1].type;
  std::optional<EncodedSource> blocks;
  if (bank.encoding) blocks.emplace(s, n.in[1]);
  const auto w = blocks ? blocks->token() : s.read<std::byte>(n.in[1]);
  const Common<I> common(s, n, transposed);
  const Dim columns = bank.dim(transposed ? 1 : 2), inner = bank.dim(transposed ? 2 : 1);
  s.flops(rows_of(n) * columns * inner * 2, bank.dtype == DType::f64 ? DType::f64 : DType::f32);
  const Index bytes = bits(bank.dtype) / 8, block = bank.encoding ? bank.encoding->block : 1;
  const Dim grain = max(floordiv(65536, max(inner, 1) * tile), 1);
  return s.run(items_of(n, columns), grain, [=, &kernel](const Memory& m, const DimValues& d, Range range) {
    const Index k = d[common.inner], all = d[common.columns], panel = kernel.panel_bytes(k);
    std::vector<std::byte> packed(static_cast<std::size_t>((tile + kernel.width - 1) / kernel.width * panel));
    std::vector<float> decoded;
    common.run(m, d, range, k * bytes,
               [&](Index e, Index first, Index end, const Index* rows, Index count, const std::byte* gathered) {
                 for (Index t = first; t < end; ++t) {
                   const Index column = t * tile, wide = std::min(tile, all - column);
                   const std::byte* from = m[w].data() + (e * k * all + column * (transposed ? k : 1)) * bytes;
                   Index b_inner = transposed ? 1 : all, b_column = transposed ? k : 1;
                   if (blocks) {  // whole blocks around the columns
                     const Index begin = transposed ? 0 : column / block * block;
                     const Index behind = transposed ? k : (column + wide + block - 1) / block * block;
                     decoded.resize(static_cast<std::size_t>((transposed ? wide : k) * (behind - begin)));
                     blocks->decode(m, transposed ? k : all, e * (transposed ? all : k) + (transposed ? column : 0),
                                    transposed ? wide : k, begin, behind - begin, decoded.data());
                     from = reinterpret_cast<const std::byte*>(decoded.data() + (transposed ? 0 : column - begin));
                     b_inner = transposed ? 1 : behind - begin;
                   }
                   kernel.pack(from, b_inner, b_column, k, wide, packed.data());
                   const Scatter scatter{rows, m[common.y].data(), all, column, bytes};
                   MatmulArgs args;
                   args.a = gathered;
                   args.a_row = args.inner = k;
                   args.a_inner = args.b_inner = args.b_column = 1;
                   args.b = packed.data();
                   args.packed = true;
                   args.rows = count;
                   args.columns = wide;
                   args.c_row = wide;
                   args.finish = {Scatter::run, &scatter};
                   kernel.multiply(args);
                 }
               });
  });
}

std::optional<Step> grouped_step(const StepArgs& n) {
  const Slot &x = n.in[0], &bank = n.in[1], &experts = n.in[2];
  if (!x.dense() || !bank.dense() || !experts.dense() || !n.out[0].dense())
    return n.decline("grouped_matmul reads and writes densely");
  if (experts.type.dims.size() > most_axes) return n.decline("experts have up to 16 axes");
  const bool transposed = n.node.attrs.as<GroupedMatmulAttrs>().transpose_b;
  const auto matrix = bank.type.encoding ? coded_matrix(*bank.type.encoding) : std::nullopt;
  const bool constant = bank.constant && bank.offset == Dim(0) && bank.type.is_constant();
  if (x.type.encoding) {
    if (!is_a8(x.type) || !matrix || !constant) return n.decline("no kernel multiplies " + x.type.text());
    return with_index_type(experts.type.dtype, [&]<class I>() { return coded<I>(n, *matrix); });
  }
  if (bank.type.encoding && !EncodedSource::takes(bank))
    return n.decline("an encoded bank is a constant, or one plane");
  const MatmulKernel* const kernel = matmul_kernel(x.type.dtype);
  if (!kernel) return n.decline("no kernel multiplies " + x.type.text());
  return with_index_type(experts.type.dtype, [&]<class I>() { return panels<I>(n, *kernel, transposed); });
}

}  // namespace

std::span<const MakerRow> grouped_matmul_cpu() {
  static const MakerRow rows[] = {{&grouped_matmul_op, grouped_step}};
  return rows;
}

}  // namespace rlx
