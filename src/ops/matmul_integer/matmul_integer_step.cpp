// Cutting integer products into items of rows by columns; packing constants.
#include "ops/matmul_integer/matmul_integer_step.h"

#include <algorithm>

#include "core/levels.h"

namespace rlx {

namespace {

// Columns of an item: whole panels of every level.
constexpr Index item_columns = 64;
// Rows of an item. A matrix that is packed while it is multiplied is packed once for 72 rows.
constexpr Index item_rows = 72;
// About 10 µs of multiplication on one core.
constexpr Index call_operations = Index{1} << 22;

Packing packing_of(const ProductPlan& p, bool transposed, Index matrices) {
  const IntegerKernels& kernel = integer_kernels();
  const Index inner = p.inner.constant(), columns = p.columns.constant();
  const Index b_inner = p.b_inner.constant(), b_column = p.b_column.constant();
  const bool has_sign = p.b.type.dtype == DType::i8;
  const Index to_bytes = (columns + kernel.width - 1) / kernel.width * kernel.panel_bytes(inner);
  return {fmt::format("integer panels {} {} {}x{}x{}{}", name(p.b.type.dtype), level_name(level()), matrices, inner,
                      columns, transposed ? " transposed" : ""),
          matrices * to_bytes, [=, pack = kernel.pack](const Tensor& from, std::span<std::byte> to) {
            for (Index i = 0; i < matrices; ++i)
              pack(from.bytes().data() + i * inner * columns, has_sign, b_inner, b_column, inner, columns,
                   to.data() + i * to_bytes);
          }};
}

}  // namespace

std::optional<ProductPlan> plan_integer_product(const StepArgs& n, const MatmulAttrs& attrs, const Slot& a,
                                                const Slot& b, const TensorType& result) {
  Slot codes = b;  // the layout of a product is the same whatever the signs are
  codes.type.dtype = a.type.dtype;
  std::optional<ProductPlan> p = plan_product(n, attrs, a, codes, result);
  if (!p) return {};
  p->kernel = nullptr;
  p->b = b;
  if (p->packing) {
    const std::span<const Dim> batch = std::span(b.type.dims).first(b.type.dims.size() - 2);
    p->packing = packing_of(*p, attrs.transpose_b, product(batch).constant());
  }
  return p;
}

namespace {

// The scaling as tokens.
struct Scaling {
  Token<float, Access::read> row, column;
  std::optional<Token<float, Access::read>> bias;
};

// The sizes of a plan as tokens, and what one range of items does with them.
struct IntegerRun {
  const IntegerKernels* kernel;
  bool a_signed, b_signed, packed;
  Token<std::byte, Access::read> a, b;
  std::vector<DimToken> batch, a_batch, b_batch;
  DimToken rows, inner, columns, a_row, a_inner, b_inner, b_column;
  std::optional<Scaling> scaling;
  std::optional<Token<std::byte, Access::read>> row_zeros;
  std::optional<Token<std::byte, Access::write>> out;
  std::shared_ptr<const region::Program> stage;

  void operator()(const Memory& m, const DimValues& d, Range range) const {
    if (!stage) return each_call(m, d, range, nullptr);
    stage->run(m, d, [&](region::Give give) { each_call(m, d, range, &give); });
  }

 private:
  void each_call(const Memory& m, const DimValues& d, Range range, const region::Give* give) const {
    const Index row_count = d[rows], column_count = d[columns];
    const Index across = (column_count + item_columns - 1) / item_columns;
    const Index down = (row_count + item_rows - 1) / item_rows;
    const Index height = down == 0 ? 0 : (row_count + down - 1) / down;
    IntegerArgs args{.a_row = d[a_row],
                     .a_inner = d[a_inner],
                     .a_signed = a_signed,
                     .b_signed = b_signed,
                     .b_inner = d[b_inner],
                     .b_column = d[b_column],
                     .packed = packed,
                     .c_row = column_count,
                     .inner = d[inner]};
    for (Index i = range.begin; i < range.end;) {
      const Index unit = i % across, block = i / across % down, matrix = i / across / down;
      const Index units = std::min(across - unit, range.end - i);
      const Index row = block * height, column = unit * item_columns;
      args.rows = std::min(height, row_count - row);
      args.columns = std::min(units * item_columns, column_count - column);
      if (args.rows > 0) call(m, d, args, {matrix, row, column}, give);
      i += units;
    }
  }

  // Where a call begins.
  struct Place {
    Index matrix, row, column;
  };
  // What finish() of the kernel needs: results are given as elements of the whole result.
  struct Finish {
    const region::Give* give;
    Index first, columns;
    static void run(const void* context, long row, long column, long count, const void* values) {
      const auto& f = *static_cast<const Finish*>(context);
      (*f.give)(f.first + row * f.columns + column, count, static_cast<const std::byte*>(values));
    }
  };

  void call(const Memory& m, const DimValues& d, IntegerArgs args, Place at, const region::Give* give) const {
    Index a_at = at.row * args.a_row, b_at = 0, rest = at.matrix;
    for (std::size_t axis = batch.size(); axis-- > 0;) {
      const Index extent = d[batch[axis]];
      a_at += rest % extent * d[a_batch[axis]];
      b_at += rest % extent * d[b_batch[axis]];
      rest /= extent;
    }
    args.a = m[a].data() + a_at;
    if (packed) {
      const Index panels = (args.c_row + kernel->width - 1) / kernel->width;
      args.b = m[b].data() + (b_at * panels + at.column / kernel->width) * kernel->panel_bytes(args.inner);
    } else {
      args.b = m[b].data() + b_at + at.column * args.b_column;
    }
    const Index row = at.matrix * d[rows] + at.row, first = row * args.c_row + at.column;
    if (scaling) {
      args.scales = {m[scaling->row].data() + row, m[scaling->column].data() + at.column,
                     scaling->bias ? m[*scaling->bias].data() + at.column : nullptr};
    }
    if (row_zeros) args.row_zeros = m[*row_zeros].data() + row;
    const Finish finish{give, first, args.c_row};
    if (give) {
      args.finish = {Finish::run, &finish};
    } else {
      args.c = m[*out].data() + first * 4;
    }
    kernel->multiply(args);
  }
};

}  // namespace

Step integer_step(StepBuilder& s, const ProductPlan& p, IntegerEnd end) {
  const auto tokens = [&](const std::vector<Dim>& dims) {
    std::vector<DimToken> all;
    for (const Dim& d : dims) all.push_back(s.dim(d));
    return all;
  };
  const auto a = s.read<std::byte>(p.a);
  const auto b = p.packing ? s.packed<std::byte>(p.b, *p.packing) : s.read<std::byte>(p.b);
  std::optional<Scaling> scaling;
  if (end.scaling) {
    scaling = Scaling{s.read<float>(end.scaling->row), s.read<float>(end.scaling->column), {}};
    if (end.scaling->bias) scaling->bias = s.read<float>(*end.scaling->bias);
  }
  std::optional<Token<std::byte, Access::read>> row_zeros;
  if (end.row_zeros) row_zeros = s.read<std::byte>(*end.row_zeros);
  IntegerRun run{&integer_kernels(),
                 p.a.type.dtype == DType::i8,
                 p.b.type.dtype == DType::i8,
                 p.packing.has_value(),
                 a,
                 b,
                 tokens(p.batch),
                 tokens(p.a_batch),
                 tokens(p.b_batch),
                 s.dim(p.rows),
                 s.dim(p.inner),
                 s.dim(p.columns),
                 s.dim(p.a_row),
                 s.dim(p.a_inner),
                 s.dim(p.b_inner),
                 s.dim(p.b_column),
                 scaling,
                 row_zeros,
                 end.out,
                 std::move(end.stage)};
  const Dim matrices = product(p.batch);
  s.flops(matrices * p.rows * p.inner * p.columns * 2, DType::i8);
  // One row costs as much time as three: it waits for memory. A result costs as much as a few more products.
  const Dim item_operations = max(min(p.rows, item_rows), 3) * (p.inner + 64) * (2 * item_columns);
  return s.run(matrices * ceildiv(p.rows, item_rows) * ceildiv(p.columns, item_columns),
               ceildiv(call_operations, item_operations), std::move(run));
}

}  // namespace rlx
