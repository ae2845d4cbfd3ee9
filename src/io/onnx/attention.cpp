// Attention and rotary embedding, as operators of their own from version 23 on.
#include "ops/attention/attention.h"

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/reshape/reshape.h"
#include "ops/rope/rope.h"

namespace rlx::onnx {

namespace {

// The mask with four axes: what broadcasts to [B,H,S_q,S_k].
Value with_four_axes(Value mask) {
  require(mask.rank() >= 2 && mask.rank() <= 4, "the mask is {}, expected rank 2 to 4", mask.type().text());
  std::vector<Dim> dims(static_cast<std::size_t>(4 - mask.rank()), Dim(1));
  dims.insert(dims.end(), mask.type().dims.begin(), mask.type().dims.end());
  return reshape(mask, std::move(dims));
}

Values attention_operator(NodeArgs& n) {
  n.expect(3, 7);
  require(!n.has(4) && !n.has(5) && !n.has(6), "past keys and values and their lengths are not supported");
  require(n.integer("softmax_precision", 1) == 1, "softmax_precision is supported as 1 (FLOAT) only");
  n.ignore("qk_matmul_output_mode");  // says what result 3 is, which is not supported
  const Value q = n[0], k = n[1], v = n[2];
  const Index heads = n.integer("q_num_heads", 0), kv_heads = n.integer("kv_num_heads", 0);
  AttentionAttrs a;
  require(q.rank() == 3 || q.rank() == 4, "q is {}, expected rank 3 or 4", q.type().text());
  if (q.rank() == 3) {
    a.layout = AttentionLayout::packed;
    a.heads = heads;
    require(heads > 0 && kv_heads > 0, "q_num_heads is {} and kv_num_heads is {}, expected more than 0", heads,
            kv_heads);
    const Dim head = floordiv(q.dim(-1), heads);
    require(k.rank() == 3 && k.dim(-1) == head * kv_heads, "k is {}, expected {} heads of {} elements", k.type().text(),
            kv_heads, head.text());
  }
  if (n.given("scale")) a.scale = n.real("scale", 1);
  a.soft_cap = n.real("softcap", 0);
  if (n.integer("is_causal", 0) != 0) {
    a.mask = AttentionMask::causal;
    a.offset = 0;
  }
  if (!n.has(3)) return {attention(q, k, v, a)};
  require(a.soft_cap == 0, "a softcap together with a mask is not supported");
  a.extra = n[3].dtype() == DType::boolean ? AttentionExtra::pairs : AttentionExtra::bias;
  return {attention(q, k, v, with_four_axes(n[3]), a)};
}

Values rotary_embedding(NodeArgs& n) {
  n.expect(3, 4);
  const Value x = n[0];
  const Index heads = n.integer("num_heads", 0);
  RopeAttrs a;
  a.pairing = n.integer("interleaved", 0) != 0 ? RopePairing::gptj : RopePairing::neox;
  a.rotary = n.integer("rotary_embedding_dim", 0);
  require(x.rank() == 3 || x.rank() == 4, "x is {}, expected rank 3 or 4", x.type().text());
  if (x.rank() == 3) {
    const Dim& last = x.dim(-1);
    require(heads > 0 && last.is_constant() && last.constant() % heads == 0, "x is {}, expected {} heads of one size",
            x.type().text(), heads);
    a.head_size = last.constant() / heads;
  }
  Value cos = n[1], sin = n[2];
  if (n.has(3)) {
    cos = gather(cos, n[3], 0);
    sin = gather(sin, n[3], 0);
  }
  require(cos.rank() == 3, "cos is {}, expected one row for every position", cos.type().text());
  return {rope(x, cos, sin, a)};
}

}  // namespace

OperatorRows attention_rows() {
  static constexpr OperatorRow rows[] = {
      {"Attention", 23, attention_operator},
      {"RotaryEmbedding", 23, rotary_embedding},
  };
  return rows;
}

}  // namespace rlx::onnx
