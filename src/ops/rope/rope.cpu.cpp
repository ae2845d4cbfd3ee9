// Steps of rope on the CPU.
#include "ops/rope/rope.h"

#include "device/view.h"
#include "ops/rope/rope.kernel.h"

namespace rlx {

// Elements from one row of heads to the next; nothing when these differ, or rows have gaps.
static std::optional<Dim> between_rows(const Slot& x) {
  const std::vector<Dim> strides = strides_of(x);
  const std::size_t last = strides.size() - 1;
  if (strides[last] != Dim(1)) return std::nullopt;
  for (std::size_t i = 0; i + 1 < last; ++i) {
    if (strides[i] != strides[i + 1] * x.type.dims[i + 1]) return std::nullopt;
  }
  return strides[last - 1];
}

static std::optional<Step> rope_step(const StepArgs& n) {
  if (!n.in[1].dense() || !n.in[2].dense()) return n.decline("rope reads dense tables");
  const std::optional<Dim> apart = between_rows(n.in[0]);
  if (!apart) return n.decline("rope reads rows that are equally far apart");
  if (!n.out[0].dense()) return n.decline("rope writes a dense result");
  const RopeAttrs& a = n.node.attrs.as<RopeAttrs>();
  const TensorType &t = n.in[0].type, &table = n.in[1].type;
  RopeRows fixed;
  fixed.size = a.head_size == 0 ? t.dim(-1).constant() : a.head_size;
  fixed.heads = t.dim(-1).constant() / fixed.size;
  fixed.half = (a.rotary == 0 ? fixed.size : a.rotary) / 2;
  const auto kernel = rope_kernels().rotate[static_cast<std::size_t>(t.dtype)][table.dtype == t.dtype ? 0 : 1]
                                           [a.pairing == RopePairing::gptj ? 1 : 0];
  StepBuilder s("rope");
  const auto x = s.read<std::byte>(n.in[0]), cosine = s.read<std::byte>(n.in[1]), sine = s.read<std::byte>(n.in[2]);
  const auto y = s.write<std::byte>(n.out[0]);
  if (n.in[0].dense()) s.may_overwrite(y, x);
  const bool per_batch = table.rank() == 3;
  const std::span<const Dim> leading = std::span(t.dims).first(t.dims.size() - 1);
  const auto positions = s.dim(t.dim(-2)), entries = s.dim(table.dim(-1)), row = s.dim(*apart);
  const auto batch_rows = s.dim(per_batch ? product(leading.subspan(1)) : product(leading));
  const auto batch_entries = s.dim(per_batch ? table.dim(-2) * table.dim(-1) : Dim(0));
  s.flops(t.count() * 3);
  return s.run(product(leading), ceildiv(16384, t.dim(-1)), [=](const Memory& m, const DimValues& d, Range r) {
    RopeRows rows = fixed;
    rows.x = m[x].data(), rows.cos = m[cosine].data(), rows.sin = m[sine].data(), rows.y = m[y].data();
    rows.positions = d[positions], rows.entries = d[entries], rows.apart = d[row];
    rows.batch_rows = d[batch_rows], rows.batch_entries = d[batch_entries];
    kernel(rows, r.begin, r.end);
  });
}

std::span<const MakerRow> rope_cpu() {
  static const MakerRow rows[] = {{&rope_op, rope_step}};
  return rows;
}

}  // namespace rlx
