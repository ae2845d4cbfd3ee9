// Kernels of paged_attention.
#pragma once

#include "ops/attention/attention.kernel.h"

namespace rlx {

struct PagedCall {
  /// Heads, sizes, scale, soft cap and window; q and out with their places, of which `position` steps from token to
  /// token; `rows` at most of a piece. Its k and v are the pools, dense.
  AttentionCall shape;
  const int *tables = nullptr, *sequences = nullptr, *positions = nullptr;
  long pages = 0;   // entries of a table
  long page = 1;    // slots of a page
  long tokens = 0;  // of the run
  long block = 1;   // tokens of one item
};

struct PagedAttentionKernels {
  /// Items [begin, end) of kv_heads * ceil(tokens / block), over pools of f32, f16 and bf16, widened to f32; q and out
  /// are f32. Sequences, positions and tables were checked. The bits of a token's result depend on its query and the
  /// keys and values that it sees. size and value_size are at most AttentionCall::max_size, shape.rows as there.
  void (*f32)(const PagedCall& c, long begin, long end);
  void (*f16)(const PagedCall& c, long begin, long end);
  void (*bf16)(const PagedCall& c, long begin, long end);
};

}  // namespace rlx

RLX_LEVELS(PagedAttentionKernels, paged_attention_kernels)
