// paged_attention: attention of tokens of several sequences over keys and values in pages.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct PagedAttentionAttrs {
  Index page = 16;              // slots of a page
  std::optional<double> scale;  // none: 1 / sqrt(D)
  Index window = 0;             // keys that a token sees at most, its own included; 0: all up to its own
  double soft_cap = 0;          // 0: none
  static void fields(auto& a, auto&& f) {
    f("page", a.page);
    f("scale", a.scale);
    f("window", a.window);
    f("soft_cap", a.soft_cap);
  }
};
extern const Op<PagedAttentionAttrs> paged_attention_op;

/// Operands of paged_attention, in this order.
struct PagedOperands {
  Value q;             // f32 or f64 [T,H,D]: queries of T tokens
  Value keys, values;  // [slots,Hkv,D] and [slots,Hkv,Dv]: pools
  Value tables;        // i32 [B,P]: pages of every sequence, in order
  Value sequences;     // i32 [T]: row of `tables` that a token belongs to
  Value positions;     // i32 [T]: place of a token in its sequence, from 0
};

/// Attention of every token over the keys of its own sequence up to its own position, [T,H,Dv]; see the op.
Value paged_attention(const PagedOperands& operands, PagedAttentionAttrs attrs = {});

}  // namespace rlx
