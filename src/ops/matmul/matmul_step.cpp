// Cutting products into items of rows by columns; packing constants.
#include "ops/matmul/matmul_step.h"

#include <algorithm>

#include "core/levels.h"
#include "device/view.h"
#include "ops/matmul/product_run.h"

namespace rlx {

const MatmulKernel* matmul_kernel(DType d) {
  const MatmulKernels& k = matmul_kernels();
  switch (d) {
    case DType::f32:
      return &k.f32;
    case DType::f64:
      return &k.f64;
    case DType::f16:
      return &k.f16;
    case DType::bf16:
      return &k.bf16;
    case DType::c64:
      return &k.c64;
    default:
      break;
  }
  if (!is_integer(d)) return nullptr;
  switch (bits(d)) {
    case 8:
      return &k.bits8;
    case 16:
      return &k.bits16;
    case 32:
      return &k.bits32;
    case 64:
      return &k.bits64;
    default:
      return nullptr;
  }
}

namespace {

// Rows of an item. A matrix that is packed while it is multiplied is packed once an item, so items are higher there.
constexpr Index packed_rows = 144, loose_rows = 144;
// About 10 µs of multiplication on one core.
constexpr Index call_flops = Index{1} << 20;

// What the kernel multiplies in, for reports: halves are widened where the level has no instruction for them.
DType arithmetic(DType d) {
  if (d == DType::f64 || d == DType::c64) return DType::f64;
  if (d == DType::bf16 && level() >= Level::v4b) return DType::bf16;
  return bits(d) == 8 ? DType::i8 : DType::f32;
}

bool is_one(const Dim& d) { return d == Dim(1); }

// Strides of the batch axes of an operand along those of the result.
std::vector<Dim> batch_strides(std::span<const Dim> dims, std::span<const Dim> strides, std::size_t result_axes) {
  std::vector<Dim> out(result_axes, 0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!is_one(dims[i])) out[result_axes - dims.size() + i] = strides[i];
  }
  return out;
}

// One matrix for the whole batch, and rows that follow each other through it: a single product with more rows.
void merge_batch(ProductPlan& p) {
  if (std::ranges::any_of(p.b_batch, [](const Dim& d) { return d != Dim(0); })) return;
  Dim rows = p.rows;
  for (std::size_t i = p.batch.size(); i-- > 0;) {
    if (p.a_batch[i] != rows * p.a_row && !is_one(p.batch[i])) return;
    rows = rows * p.batch[i];
  }
  p.rows = rows;
  p.batch.clear();
  p.a_batch.clear();
  p.b_batch.clear();
}

Packing packing_of(const ProductPlan& p, DType dtype, bool transposed, Index matrices) {
  const MatmulKernel& kernel = *p.kernel;
  // The constant's own sizes: those of the left operand and of the result may be symbols that a run finds equal.
  const Index inner = p.b.type.dim(transposed ? -1 : -2).constant(),
              columns = p.b.type.dim(transposed ? -2 : -1).constant();
  const Index b_inner = p.b_inner.constant(), b_column = p.b_column.constant();
  const Index from_bytes = inner * columns * p.element_bytes;
  const Index to_bytes = (columns + kernel.width - 1) / kernel.width * kernel.panel_bytes(inner);
  return {fmt::format("matmul panels {} {} {}x{}x{}{}", name(dtype), level_name(level()), matrices, inner, columns,
                      transposed ? " transposed" : ""),
          matrices * to_bytes, [=, pack = kernel.pack](const Tensor& from, std::span<std::byte> to) {
            for (Index i = 0; i < matrices; ++i)
              pack(from.bytes().data() + i * from_bytes, b_inner, b_column, inner, columns, to.data() + i * to_bytes);
          }};
}

void pack_right(ProductPlan& p, const MatmulAttrs& attrs) {
  const Slot& b = p.b;
  if (!b.constant || !b.dense() || b.offset != Dim(0) || !b.type.is_constant()) return;
  const std::span<const Dim> dims = std::span(b.type.dims).first(b.type.dims.size() - 2);
  p.packing = packing_of(p, b.type.dtype, attrs.transpose_b, product(dims).constant());
  p.b_batch = batch_strides(dims, dense_strides(dims), p.batch.size());
}

}  // namespace

std::optional<ProductPlan> plan_product(const StepArgs& n, const MatmulAttrs& attrs, const Slot& a, const Slot& b,
                                        const TensorType& result) {
  ProductPlan p;
  p.kernel = matmul_kernel(a.type.dtype);
  if (!p.kernel || a.type.encoding || b.type.encoding || a.type.dtype != b.type.dtype) {
    n.decline("matmul has no kernel for " + a.type.text() + " times " + b.type.text());
    return {};
  }
  p.element_bytes = storage_bytes(a.type.dtype, 1);
  p.a = a;
  p.b = b;
  const std::vector<Dim> as = strides_of(a), bs = strides_of(b);
  const std::size_t a_axes = as.size() - 2, b_axes = bs.size() - 2, axes = result.dims.size() - 2;
  p.batch.assign(result.dims.begin(), result.dims.end() - 2);
  p.a_batch = batch_strides(std::span(a.type.dims).first(a_axes), as, axes);
  p.b_batch = batch_strides(std::span(b.type.dims).first(b_axes), bs, axes);
  p.rows = result.dim(-2);
  p.columns = result.dim(-1);
  p.inner = a.type.dim(attrs.transpose_a ? -2 : -1);
  p.a_row = as[attrs.transpose_a ? a_axes + 1 : a_axes];
  p.a_inner = as[attrs.transpose_a ? a_axes : a_axes + 1];
  p.b_inner = bs[attrs.transpose_b ? b_axes + 1 : b_axes];
  p.b_column = bs[attrs.transpose_b ? b_axes : b_axes + 1];
  // A size of 1 has no stride to speak of.
  if (is_one(p.rows)) p.a_row = p.inner;
  if (is_one(p.inner)) p.a_inner = p.b_inner = 1;
  if (!is_one(p.a_row) && !is_one(p.a_inner) && !is_one(p.rows)) {
    n.decline("neither rows nor columns of the left operand have unit stride");
    return {};
  }
  if (!is_one(p.b_inner) && !is_one(p.b_column) && !is_one(p.columns)) {
    n.decline("neither rows nor columns of the right operand have unit stride");
    return {};
  }
  pack_right(p, attrs);
  merge_batch(p);
  return p;
}

namespace {

// A plan as tokens, and what one range of items does with them.
struct ProductRun {
  const MatmulKernel* kernel;
  Index element_bytes, item_rows;
  ProductTokens tokens;
  ProductEnd end;

  void operator()(const Memory& m, const DimValues& d, Range range) const {
    if (!end.stage) return each_call(m, d, range, nullptr);
    end.stage->run(m, d, [&](region::Give give) { each_call(m, d, range, &give); });
  }

 private:
  void each_call(const Memory& m, const DimValues& d, Range range, const region::Give* give) const {
    const ProductCut cut{item_rows, element_bytes, kernel->width, kernel->panel_bytes(d[tokens.inner])};
    each_product_call(tokens, m, d, range, cut, MatmulArgs{}, [&](MatmulArgs args, const ProductPlace& at) {
      const ProductFinish finish{give, at.first, args.c_row};
      if (end.bias) {
        const Index bytes = bits(end.bias->type) / 8;
        args.bias = {m[end.bias->row].data() + at.column * bytes, end.bias->rounds};
      }
      if (give) {
        args.finish = {ProductFinish::run, &finish};
      } else {
        args.c = m[*end.out].data() + at.first * (end.bias && !end.bias->rounds ? Index{sizeof(float)} : element_bytes);
      }
      kernel->multiply(args);
    });
  }
};

}  // namespace

Step product_step(StepBuilder& s, const ProductPlan& p, ProductEnd end) {
  const Index item_rows = p.packing ? packed_rows : loose_rows;
  ProductRun run{p.kernel, p.element_bytes, item_rows, ProductTokens::of(s, p), std::move(end)};
  const Dim matrices = product(p.batch);
  s.flops(matrices * p.rows * p.inner * p.columns * 2, arithmetic(p.a.type.dtype));
  // One row costs as much time as three: it waits for memory.
  const Dim item_flops = max(min(p.rows, item_rows), 3) * max(p.inner, 1) * (2 * product_item_columns);
  return s.run(matrices * ceildiv(p.rows, item_rows) * ceildiv(p.columns, product_item_columns),
               ceildiv(call_flops, item_flops), std::move(run));
}

}  // namespace rlx
