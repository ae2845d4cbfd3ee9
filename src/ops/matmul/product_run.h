// What steps of matrix products share when they run: sizes as tokens, the cut of a range of items into calls of a
// kernel, finished results on their way to a stage.
#pragma once

#include <algorithm>
#include <vector>

#include "device/step.h"
#include "ops/matmul/matmul_step.h"
#include "ops/scalar/region.h"

namespace rlx {

/// Columns of an item: whole panels of every kernel.
inline constexpr Index product_item_columns = 64;

/// A plan as tokens; the builder has declared both operands.
struct ProductTokens {
  Token<std::byte, Access::read> a, b;
  bool packed;
  std::vector<DimToken> batch, a_batch, b_batch;
  DimToken rows, inner, columns, a_row, a_inner, b_inner, b_column;

  static ProductTokens of(StepBuilder& s, const ProductPlan& p) {
    const auto tokens = [&s](const std::vector<Dim>& dims) {
      std::vector<DimToken> all;
      for (const Dim& d : dims) all.push_back(s.dim(d));
      return all;
    };
    const auto a = s.read<std::byte>(p.a);
    const auto b = p.packing ? s.packed<std::byte>(p.b, *p.packing) : s.read<std::byte>(p.b);
    return {a,
            b,
            p.packing.has_value(),
            tokens(p.batch),
            tokens(p.a_batch),
            tokens(p.b_batch),
            s.dim(p.rows),
            s.dim(p.inner),
            s.dim(p.columns),
            s.dim(p.a_row),
            s.dim(p.a_inner),
            s.dim(p.b_inner),
            s.dim(p.b_column)};
  }
};

/// Rows of an item; bytes of an element; columns and bytes of a panel of the packed operand.
struct ProductCut {
  Index item_rows, element_bytes, panel_columns, panel_bytes;
};

/// Where a call begins: in the rows of all matrices, in the columns, and among all elements of the result.
struct ProductPlace {
  Index row, column, first;
};

/// `finish` of a kernel's call: its results are given to a stage as elements of the whole result.
struct ProductFinish {
  const region::Give* give;
  Index first, columns;
  static void run(const void* context, long row, long column, long count, const void* values) {
    const auto& f = *static_cast<const ProductFinish*>(context);
    (*f.give)(f.first + row * f.columns + column, count, static_cast<const std::byte*>(values));
  }
};

/// call(args, place) for each part of the range that is one call of a kernel: adjacent items of the same rows. `args`
/// then has the operands, their strides and sizes, and lacks the results.
template <class Args, class Call>
void each_product_call(const ProductTokens& t, const Memory& m, const DimValues& d, Range range, const ProductCut& cut,
                       Args args, Call call) {
  const Index row_count = d[t.rows], column_count = d[t.columns];
  const Index across = (column_count + product_item_columns - 1) / product_item_columns;
  const Index down = (row_count + cut.item_rows - 1) / cut.item_rows;
  const Index height = down == 0 ? 0 : (row_count + down - 1) / down;
  args.a_row = d[t.a_row];
  args.a_inner = d[t.a_inner];
  args.b_inner = d[t.b_inner];
  args.b_column = d[t.b_column];
  args.packed = t.packed;
  args.inner = d[t.inner];
  args.c_row = column_count;
  for (Index i = range.begin; i < range.end;) {
    const Index unit = i % across, block = i / across % down, matrix = i / across / down;
    const Index units = std::min(across - unit, range.end - i);
    const Index row = block * height, column = unit * product_item_columns;
    i += units;
    args.rows = std::min(height, row_count - row);
    args.columns = std::min(units * product_item_columns, column_count - column);
    if (args.rows <= 0) continue;
    Index a_at = row * args.a_row, b_at = 0, rest = matrix;
    for (std::size_t axis = t.batch.size(); axis-- > 0;) {
      const Index extent = d[t.batch[axis]];
      a_at += rest % extent * d[t.a_batch[axis]];
      b_at += rest % extent * d[t.b_batch[axis]];
      rest /= extent;
    }
    args.a = m[t.a].data() + a_at * cut.element_bytes;
    if (t.packed) {
      const Index panels = (column_count + cut.panel_columns - 1) / cut.panel_columns;
      args.b = m[t.b].data() + (b_at * panels + column / cut.panel_columns) * cut.panel_bytes;
    } else {
      args.b = m[t.b].data() + (b_at + column * args.b_column) * cut.element_bytes;
    }
    const Index all_rows = matrix * row_count + row;
    call(args, ProductPlace{all_rows, column, all_rows * column_count + column});
  }
}

}  // namespace rlx
