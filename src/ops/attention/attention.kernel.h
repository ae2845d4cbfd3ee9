// Kernels of attention.
#pragma once

#include "core/levels.h"

namespace rlx {

/// Elements from one batch, head and position to the next; the elements of a head lie side by side.
struct AttentionPlace {
  long batch = 0, head = 0, position = 0;
};

/// What the fourth operand holds.
enum class AttentionOperand {
  none,
  bias,  // scores of q's element type, to be added
  // Others hide keys: where an integer of this width is 0, where a float is less than 0.5.
  int8,
  int16,
  int32,
  int64,
  f16,
  bf16,
  f32,
  f64,
};

struct AttentionCall {
  static constexpr long max_size = 256;     // elements of a head
  static constexpr long block_rows = 128;   // most rows of one item
  static constexpr long block_size = 8192;  // most elements of the results of one item

  const void *q = nullptr, *k = nullptr, *v = nullptr, *extra = nullptr;
  void* out = nullptr;
  AttentionPlace q_at, k_at, v_at, out_at;
  AttentionOperand operand = AttentionOperand::none;
  long extra_batch = 0, extra_head = 0, extra_query = 0, extra_key = 0;  // strides in elements; 0 stretches
  long heads = 1, kv_heads = 1, queries = 0, keys = 0, size = 0, value_size = 0;
  float scale = 1, soft_cap = 0;  // 0: no cap
  bool by_position = false;       // query i sees the keys offset + i - window + 1 .. offset + i only
  long offset = 0, window = 0;
  bool far = false;  // keys and values do not fit into the second cache: they are fetched ahead
  long rows = 1;     // rows of one item: the queries of all heads that share a head of k and v, head by head

  [[gnu::always_inline]] long group() const { return heads / kv_heads; }
  [[gnu::always_inline]] long blocks() const {
    return (group() * queries + rows - 1) / rows;
  }  // items of one head of k and v
};

struct AttentionKernels {
  /// Items [begin, end) of batch * kv_heads * blocks(), for q, k, v of f32, f16 and bf16; halves are widened to f32 and
  /// rounded once. The bits of a query's result depend on that query, its keys and its values only. Results must not
  /// overlap operands. size and value_size are at most max_size, rows at most block_rows and at most
  /// block_size / (value_size rounded up to 16).
  void (*f32)(const AttentionCall& c, long begin, long end);
  void (*f16)(const AttentionCall& c, long begin, long end);
  void (*bf16)(const AttentionCall& c, long begin, long end);
};

}  // namespace rlx

RLX_LEVELS(AttentionKernels, attention_kernels)
