// matmul: matrix products, batched, of any numeric element type.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct MatmulAttrs {
  bool transpose_a = false;  // the first operand is stored [..,K,M]
  bool transpose_b = false;  // the second operand is stored [..,N,K]
  static void fields(auto& a, auto&& f) {
    f("transpose_a", a.transpose_a);
    f("transpose_b", a.transpose_b);
  }
};
extern const Op<MatmulAttrs> matmul_op;

/// [..,M,K] times [..,K,N], batch axes broadcast. A vector counts as one row on the left and as one column on the
/// right, and the axis that was added is not in the result. Throws Error for a rank-0 operand, a transposed vector, and
/// what the op refuses.
Value matmul(Value a, Value b, MatmulAttrs attrs = {});

}  // namespace rlx
