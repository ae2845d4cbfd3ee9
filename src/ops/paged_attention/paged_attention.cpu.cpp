// Steps of paged_attention on the CPU.
#include <algorithm>
#include <limits>

#include "device/step.h"
#include "ops/paged_attention/paged_attention.kernel.h"
#include "ops/paged_attention/paged_attention_parts.h"

namespace rlx {

namespace {

using detail::PagedRanges;
using detail::PagedSizes;

// Strides of [T,H,size] from token to token and head to head.
struct Places {
  Dim token, head;
};
std::optional<Places> places_of(const Slot& s) {
  const TensorType& t = s.type;
  if (s.dense()) return Places{t.dim(1) * t.dim(2), t.dim(2)};
  if (s.strides[2] != Dim(1) && t.dim(2) != Dim(1)) return {};
  return Places{s.strides[0], s.strides[1]};
}

// What is known when the step is made.
PagedCall fixed_part(const PagedAttentionAttrs& a, const PagedSizes& s) {
  PagedCall c{.page = a.page};
  c.shape = {.heads = s.heads,
             .kv_heads = s.kv_heads,
             .size = s.size,
             .value_size = s.value_size,
             .scale = static_cast<float>(detail::paged_scale(a, s)),
             .soft_cap = static_cast<float>(a.soft_cap),
             .by_position = true,
             .window = a.window > 0 ? a.window : std::numeric_limits<Index>::max() / 4};
  c.shape.rows = std::min(AttentionCall::block_rows, AttentionCall::block_size / ((s.value_size + 15) / 16 * 16));
  return c;
}

// What the tokens of one item read is there.
void check(const PagedCall& c, const PagedRanges& ranges, Index item) {
  const Index blocks = (c.tokens + c.block - 1) / c.block, first = item % blocks * c.block;
  Index checked = -1;
  for (Index t = first; t < std::min(c.tokens, first + c.block); ++t) {
    const Index sequence = c.sequences[t];
    ranges.check_token(t, sequence, c.positions[t]);
    if (sequence == checked) continue;
    ranges.check_table(sequence, {c.tables + sequence * ranges.pages, static_cast<std::size_t>(ranges.pages)});
    checked = sequence;
  }
}

std::optional<Step> paged_attention_step(const StepArgs& n) {
  const PagedAttentionAttrs& a = n.node.attrs.as<PagedAttentionAttrs>();
  std::vector<TensorType> types;
  for (const Slot& s : n.in) types.push_back(s.type);
  const PagedSizes z = detail::paged_sizes(types);
  const DType pool = types[1].dtype;
  if (types[0].dtype != DType::f32) return n.decline("paged_attention has kernels for q of f32");
  if (std::max(z.size, z.value_size) > AttentionCall::max_size || z.group() > AttentionCall::block_rows / 4) {
    return n.decline("paged_attention has kernels for heads of up to 256 elements, 32 to a head of the keys");
  }
  for (std::size_t i = 1; i < 6; ++i) {
    if (!n.in[i].dense()) return n.decline("paged_attention reads pools and tables densely");
  }
  const auto at_q = places_of(n.in[0]), at_out = places_of(n.out[0]);
  if (!at_q || !at_out) return n.decline("the elements of a head do not lie side by side");

  StepBuilder s("paged_attention");
  const auto q = s.read<float>(n.in[0]);
  const auto k = s.read<std::byte>(n.in[1]), v = s.read<std::byte>(n.in[2]);
  const auto tables = s.read<std::int32_t>(n.in[3]), sequences = s.read<std::int32_t>(n.in[4]),
             positions = s.read<std::int32_t>(n.in[5]);
  const auto out = s.write<float>(n.out[0]);
  const auto q_token = s.dim(at_q->token), q_head = s.dim(at_q->head), out_token = s.dim(at_out->token),
             out_head = s.dim(at_out->head);
  const PagedCall fixed = fixed_part(a, z);
  // At least 8 blocks of tokens a head, as long as blocks hold a token, so that threads share a small batch too.
  const Dim block = max(min(Dim(fixed.shape.rows / z.group()), ceildiv(z.tokens, Dim(8))), Dim(1));
  const auto block_size = s.dim(block), tokens = s.dim(z.tokens), slots = s.dim(z.slots), pages = s.dim(z.pages),
             rows = s.dim(z.sequences);
  const Dim length = z.pages * a.page;
  const Dim seen = a.window > 0 ? min(length, Dim(a.window)) : length;
  const Index flops_of_a_pair = 2 * (z.size + z.value_size);
  s.flops(z.tokens * seen * (z.heads * flops_of_a_pair));
  const Dim work = max(block * seen * (z.group() * flops_of_a_pair), 1);
  const auto& kernels = paged_attention_kernels();
  const auto kernel = pool == DType::f32 ? kernels.f32 : pool == DType::f16 ? kernels.f16 : kernels.bf16;
  return s.run(ceildiv(z.tokens, block) * z.kv_heads, max(ceildiv(300'000, work), 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 PagedCall c = fixed;
                 c.shape.q = m[q].data(), c.shape.k = m[k].data(), c.shape.v = m[v].data();
                 c.shape.out = m[out].data();
                 c.shape.q_at = {0, d[q_head], d[q_token]}, c.shape.out_at = {0, d[out_head], d[out_token]};
                 c.tables = m[tables].data(), c.sequences = m[sequences].data(), c.positions = m[positions].data();
                 c.pages = d[pages], c.tokens = d[tokens], c.block = d[block_size];
                 c.shape.keys = c.pages * c.page;
                 const PagedRanges ranges{d[rows], c.pages, c.page, d[slots] / c.page};
                 for (Index i = r.begin; i < r.end; ++i) check(c, ranges, i);
                 kernel(c, r.begin, r.end);
               });
}

}  // namespace

std::span<const MakerRow> paged_attention_cpu() {
  static const MakerRow rows[] = {{&paged_attention_op, paged_attention_step}};
  return rows;
}

}  // namespace rlx
