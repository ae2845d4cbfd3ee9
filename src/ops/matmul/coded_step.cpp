// Cutting products of codes into items of rows by columns.
#include "ops/matmul/coded_step.h"

#include "codecs/a8/a8.h"
#include "ops/matmul/product_run.h"

namespace rlx {

namespace {

// Rows of an item: a matrix is read once for all of them.
constexpr Index item_rows = 192;
// About 10 µs of products on one core.
constexpr Index call_operations = Index{1} << 22;
static_assert(product_item_columns == coded_panel);

struct CodedRun {
  CodedMatrix matrix;
  ProductTokens tokens;
  std::optional<Token<std::byte, Access::read>> second;
  void (*activate)(const void* const*, void*, long);
  ProductEnd end;

  void operator()(const Memory& m, const DimValues& d, Range range) const {
    if (!end.stage) return each_call(m, d, range, nullptr);
    end.stage->run(m, d, [&](region::Give give) { each_call(m, d, range, &give); });
  }

 private:
  struct Args {
    const void *a = nullptr, *b = nullptr;
    Index a_row = 0, a_inner = 0, b_inner = 0, b_column = 0, inner = 0, c_row = 0, rows = 0, columns = 0;
    bool packed = false;
  };

  void each_call(const Memory& m, const DimValues& d, Range range, const region::Give* give) const {
    CodedArgs args;
    args.panel_bytes = matrix.panel_bytes(d[tokens.inner]);
    args.units = matrix.units(d[tokens.inner]);
    args.values = matrix.form->values;
    args.activate = activate;
    const ProductCut cut{item_rows, 1, coded_panel, args.panel_bytes};
    each_product_call(tokens, m, d, range, cut, Args{}, [&](const Args& call, const ProductPlace& at) {
      args.x = call.a;
      args.x_row = call.a_row;
      args.w = call.b;
      if (second) args.second = m[*second].data() + (static_cast<const std::byte*>(call.b) - m[tokens.b].data());
      args.rows = call.rows;
      args.columns = call.columns;
      args.c_row = call.c_row;
      if (end.bias) args.bias = reinterpret_cast<const float*>(m[end.bias->row].data()) + at.column;
      const ProductFinish finish{give, at.first, args.c_row};
      if (give) {
        args.finish = {ProductFinish::run, &finish};
      } else {
        args.c = reinterpret_cast<float*>(m[*end.out].data()) + at.first;
      }
      matrix.kernel().multiply(args);
    });
  }
};

}  // namespace

bool is_a8(const TensorType& t) { return t.encoding == a8_codecs()[0].encoding; }

bool is_coded(const Slot& b) {
  return b.constant && b.dense() && b.offset == Dim(0) && b.type.is_constant() && b.type.encoding &&
         b.type.rank() == 2 && coded_matrix(*b.type.encoding);
}

std::optional<CodedPlan> plan_coded_product(const StepArgs& n, const MatmulAttrs& attrs, const Slot& a, const Slot& b,
                                            const TensorType& result) {
  const auto decline = [&n](std::string_view why) {
    n.decline(why);
    return std::optional<CodedPlan>();
  };
  if (!a.type.encoding || !is_a8(a.type) || !attrs.transpose_b || !is_coded(b))
    return decline("no kernel multiplies " + a.type.text() + " by " + b.type.text());
  if (!a.dense()) return decline("encoded rows are dense");
  CodedPlan p{.a = a, .b = b, .matrix = *coded_matrix(*b.type.encoding), .product = {}};
  ProductPlan& q = p.product;
  q.a = a;
  q.b = b;
  q.rows = 1;
  for (std::size_t i = 0; i + 1 < result.dims.size(); ++i) q.rows = q.rows * result.dims[i];
  q.inner = b.type.dim(1);
  q.columns = b.type.dim(0);
  q.a_row = q.inner.constant() / a8_block * a8_block_bytes;
  q.a_inner = q.b_inner = q.b_column = 1;
  q.packing = coded_packing(p.matrix, b.type);
  return p;
}

Step coded_step(StepBuilder& s, const CodedPlan& p, ProductEnd end) {
  ProductTokens tokens = ProductTokens::of(s, p.product);
  std::optional<Token<std::byte, Access::read>> second;
  if (p.second) second = s.packed<std::byte>(*p.second, coded_packing(p.matrix, p.second->type));
  CodedRun run{p.matrix, std::move(tokens), second, p.activate, std::move(end)};
  const Dim rows = p.product.rows;
  const Index columns = p.product.columns.constant(), inner = p.product.inner.constant(), both = p.second ? 2 : 1;
  s.flops(rows * (inner * columns * 2 * both), DType::i8);
  // One row costs as much time as six: it waits for memory.
  const Dim item_operations = max(min(rows, item_rows), 6) * ((inner + 64) * 2 * product_item_columns * both);
  return s.run(ceildiv(rows, item_rows) * ((columns + product_item_columns - 1) / product_item_columns),
               ceildiv(call_operations, item_operations), std::move(run));
}

}  // namespace rlx
