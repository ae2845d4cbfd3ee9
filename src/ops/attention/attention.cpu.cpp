// Steps of attention on the CPU.
#include <algorithm>
#include <limits>

#include "device/step.h"
#include "ops/attention/attention.kernel.h"
#include "ops/attention/attention_parts.h"

namespace rlx {

namespace {

using detail::AttentionSizes;

struct PlaceDims {
  Dim batch, head, position;
};
struct PlaceTokens {
  DimToken batch, head, position;
};

PlaceTokens declare(StepBuilder& s, const PlaceDims& p) { return {s.dim(p.batch), s.dim(p.head), s.dim(p.position)}; }
AttentionPlace values(const DimValues& d, const PlaceTokens& p) { return {d[p.batch], d[p.head], d[p.position]}; }

// Strides of an operand with `heads` heads of `size` elements; nothing when those of a head do not lie side by side.
std::optional<PlaceDims> place_of(const Slot& s, AttentionLayout layout, Index heads, Index size) {
  const TensorType& t = s.type;
  if (s.dense()) {
    if (layout == AttentionLayout::bhsd) return PlaceDims{t.dim(1) * t.dim(2) * size, t.dim(2) * size, size};
    return PlaceDims{t.dim(1) * (heads * size), size, heads * size};
  }
  if (s.strides.back() != Dim(1) && t.dim(-1) != Dim(1)) return {};
  if (layout == AttentionLayout::packed) return PlaceDims{s.strides[0], size, s.strides[1]};
  const bool heads_first = layout == AttentionLayout::bhsd;
  return PlaceDims{s.strides[0], s.strides[heads_first ? 1 : 2], s.strides[heads_first ? 2 : 1]};
}

AttentionOperand operand_of(const AttentionAttrs& a, DType type) {
  if (a.extra == AttentionExtra::none) return AttentionOperand::none;
  if (a.extra == AttentionExtra::bias) return AttentionOperand::bias;
  switch (type) {
    case DType::f16:
      return AttentionOperand::f16;
    case DType::bf16:
      return AttentionOperand::bf16;
    case DType::f32:
      return AttentionOperand::f32;
    case DType::f64:
      return AttentionOperand::f64;
    default:
      break;
  }
  const int width = bits(type);
  if (width == 8) return AttentionOperand::int8;
  if (width == 16) return AttentionOperand::int16;
  return width == 32 ? AttentionOperand::int32 : AttentionOperand::int64;
}

// Strides of the fourth operand by batch, head, query, key; 0 where it stretches.
std::vector<Dim> extra_strides(const AttentionAttrs& a, const Slot& s) {
  std::vector<Dim> own(s.type.dims.size(), 1);
  if (s.dense()) {
    for (std::size_t i = own.size() - 1; i-- > 0;) own[i] = own[i + 1] * s.type.dims[i + 1];
  } else {
    own = s.strides;
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (s.type.dims[i] == Dim(1)) own[i] = 0;
  }
  return a.extra == AttentionExtra::keys ? std::vector<Dim>{own[0], 0, 0, own[1]} : own;
}

struct ExtraTokens {
  Token<std::byte, Access::read> data;
  DimToken batch, head, query, key;
};

// What is known when the step is made.
AttentionCall fixed_part(const AttentionAttrs& a, const AttentionSizes& s) {
  AttentionCall c{.heads = s.heads,
                  .kv_heads = s.kv_heads,
                  .size = s.size,
                  .value_size = s.value_size,
                  .scale = static_cast<float>(detail::attention_scale(a, s)),
                  .soft_cap = static_cast<float>(a.soft_cap),
                  .by_position = a.mask != AttentionMask::none,
                  .window = a.mask == AttentionMask::window ? a.window : std::numeric_limits<Index>::max() / 4};
  c.rows = std::min(AttentionCall::block_rows, AttentionCall::block_size / ((s.value_size + 15) / 16 * 16));
  return c;
}

std::optional<Step> attention_step(const StepArgs& n) {
  const AttentionAttrs& a = n.node.attrs.as<AttentionAttrs>();
  const std::vector<TensorType> types{n.in[0].type, n.in[1].type, n.in[2].type};
  const AttentionSizes z = detail::attention_sizes(a, types);
  const DType type = types[0].dtype;
  if (type == DType::f64) return n.decline("attention has kernels for f32, f16 and bf16");
  if (std::max(z.size, z.value_size) > AttentionCall::max_size) {
    return n.decline("attention has kernels for heads of up to 256 elements");
  }
  const auto at_q = place_of(n.in[0], a.layout, z.heads, z.size);
  const auto at_k = place_of(n.in[1], a.layout, z.kv_heads, z.size);
  const auto at_v = place_of(n.in[2], a.layout, z.kv_heads, z.value_size);
  const auto at_out = place_of(n.out[0], a.layout, z.heads, z.value_size);
  if (!at_q || !at_k || !at_v || !at_out) return n.decline("the elements of a head do not lie side by side");

  StepBuilder s("attention");
  const auto q = s.read<std::byte>(n.in[0]), k = s.read<std::byte>(n.in[1]), v = s.read<std::byte>(n.in[2]);
  std::optional<ExtraTokens> extra;
  AttentionCall fixed = fixed_part(a, z);
  if (a.extra != AttentionExtra::none) {
    const std::vector<Dim> strides = extra_strides(a, n.in[3]);
    fixed.operand = operand_of(a, n.in[3].type.dtype);
    if (fixed.operand == AttentionOperand::bias && strides[3] != Dim(0) && strides[3] != Dim(1)) {
      return n.decline("the biases of a query do not lie side by side");
    }
    extra = ExtraTokens{s.read<std::byte>(n.in[3]), s.dim(strides[0]), s.dim(strides[1]), s.dim(strides[2]),
                        s.dim(strides[3])};
  }
  const auto out = s.write<std::byte>(n.out[0]);
  const PlaceTokens q_at = declare(s, *at_q), k_at = declare(s, *at_k), v_at = declare(s, *at_v),
                    out_at = declare(s, *at_out);
  const auto queries = s.dim(z.queries), keys = s.dim(z.keys), offset = s.dim(detail::attention_offset(a, z));
  const Index flops_of_a_pair = 2 * (z.size + z.value_size);
  s.flops(z.batch * z.heads * z.queries * z.keys * flops_of_a_pair);
  const Dim rows = z.queries * z.group();
  const Dim work = max(min(rows, fixed.rows) * z.keys * flops_of_a_pair, 1);
  const auto& kernels = attention_kernels();
  const auto kernel = type == DType::f32 ? kernels.f32 : type == DType::f16 ? kernels.f16 : kernels.bf16;
  return s.run(z.batch * z.kv_heads * ceildiv(rows, fixed.rows), max(ceildiv(600'000, work), 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 AttentionCall c = fixed;
                 c.q = m[q].data(), c.k = m[k].data(), c.v = m[v].data(), c.out = m[out].data();
                 c.q_at = values(d, q_at), c.k_at = values(d, k_at), c.v_at = values(d, v_at);
                 c.out_at = values(d, out_at);
                 c.far = m[k].size() > std::size_t{1} << 20;
                 c.queries = d[queries], c.keys = d[keys], c.offset = d[offset];
                 if (extra) {
                   c.extra = m[extra->data].data();
                   c.extra_batch = d[extra->batch], c.extra_head = d[extra->head];
                   c.extra_query = d[extra->query], c.extra_key = d[extra->key];
                 }
                 kernel(c, r.begin, r.end);
               });
}

}  // namespace

std::span<const MakerRow> attention_cpu() {
  static const MakerRow rows[] = {{&attention_op, attention_step}};
  return rows;
}

}  // namespace rlx
