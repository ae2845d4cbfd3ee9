// Cutting integer products into items of rows by columns; packing constants.
#include "ops/matmul_integer/matmul_integer_step.h"

#include <algorithm>

#include "core/levels.h"
#include "ops/matmul/product_run.h"

namespace rlx {

namespace {

// Rows of an item. A matrix that is packed while it is multiplied is packed once for 72 rows.
constexpr Index item_rows = 72;
// About 10 µs of multiplication on one core.
constexpr Index call_operations = Index{1} << 22;

Packing packing_of(const ProductPlan& p, bool transposed, Index matrices) {
  const IntegerKernels& kernel = integer_kernels();
  const Index inner = p.b.type.dim(transposed ? -1 : -2).constant(),
              columns = p.b.type.dim(transposed ? -2 : -1).constant();
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

// A plan as tokens, and what one range of items does with them.
struct IntegerRun {
  const IntegerKernels* kernel;
  bool a_signed, b_signed;
  ProductTokens tokens;
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
    const ProductCut cut{item_rows, 1, kernel->width, kernel->panel_bytes(d[tokens.inner])};
    const IntegerArgs signs{.a_signed = a_signed, .b_signed = b_signed};
    each_product_call(tokens, m, d, range, cut, signs, [&](IntegerArgs args, const ProductPlace& at) {
      if (scaling) {
        args.scales = {m[scaling->row].data() + at.row, m[scaling->column].data() + at.column,
                       scaling->bias ? m[*scaling->bias].data() + at.column : nullptr};
      }
      if (row_zeros) args.row_zeros = m[*row_zeros].data() + at.row;
      const ProductFinish finish{give, at.first, args.c_row};
      if (give) {
        args.finish = {ProductFinish::run, &finish};
      } else {
        args.c = m[*out].data() + at.first * 4;
      }
      kernel->multiply(args);
    });
  }
};

}  // namespace

Step integer_step(StepBuilder& s, const ProductPlan& p, IntegerEnd end) {
  ProductTokens tokens = ProductTokens::of(s, p);
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
                 std::move(tokens),
                 scaling,
                 row_zeros,
                 end.out,
                 std::move(end.stage)};
  const Dim matrices = product(p.batch);
  s.flops(matrices * p.rows * p.inner * p.columns * 2, DType::i8);
  // One row costs as much time as three: it waits for memory. A result costs as much as a few more products.
  const Dim item_operations = max(min(p.rows, item_rows), 3) * (p.inner + 64) * (2 * product_item_columns);
  return s.run(matrices * ceildiv(p.rows, item_rows) * ceildiv(p.columns, product_item_columns),
               ceildiv(call_operations, item_operations), std::move(run));
}

}  // namespace rlx
