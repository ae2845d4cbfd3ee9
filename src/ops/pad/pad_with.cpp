// Padding with elements of the operand: positions along the axis, computed from those of the result.
#include <array>

#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/pad/pad.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"

namespace rlx {

std::span<const std::string_view> enum_names(PadMode) {
  static constexpr std::array<std::string_view, 4> names{"constant", "edge", "reflect", "wrap"};
  return names;
}

static Value number(Builder& b, const Dim& d) { return reshape(sizes(b, {d}), {}); }

// The remainder with the sign of the divisor, which is positive.
static Value cyclic(Value at, Value period) {
  const Value r = fmod(at, period);
  return select(less(r, like(r, 0)), r + period, r);
}

Value pad_with(Value x, Index axis, const Dim& before, const Dim& after, PadMode mode) {
  if (mode == PadMode::constant) return pad(x, axis, before, after, 0);
  if (before == Dim(0) && after == Dim(0)) return x;
  Builder& b = *x.builder;
  const Dim& n = x.dim(axis);
  const Value at = iota(b, DType::i64, {before + n + after}) - number(b, before), zero = like(at, 0);
  Value from = at;
  if (mode == PadMode::edge) {
    from = maximum(minimum(at, number(b, n - 1)), zero);
  } else if (mode == PadMode::wrap) {
    from = cyclic(at, number(b, n));
  } else {
    const Value period = number(b, max(2 * n - 2, 1)), way = cyclic(at, period);
    from = minimum(way, period - way);
  }
  return gather(x, from, axis);
}

}  // namespace rlx
