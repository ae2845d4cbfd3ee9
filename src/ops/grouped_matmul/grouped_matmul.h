// grouped_matmul: every row times one matrix of a bank, as mixtures of experts have it.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct GroupedMatmulAttrs {
  bool transpose_b = false;  // matrices are stored [N,K]
  static void fields(auto& a, auto&& f) { f("transpose_b", a.transpose_b); }
};
extern const Op<GroupedMatmulAttrs> grouped_matmul_op;

/// Rows of `x` [..,K] times the matrices of `bank` [E,K,N] that `experts` (i32 or i64, of the sizes of the result's
/// rows) name; see the op.
Value grouped_matmul(Value x, Value bank, Value experts, GroupedMatmulAttrs attrs = {});

}  // namespace rlx
