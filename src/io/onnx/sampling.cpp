// Taps of positions along each axis, and sums over their combinations.
#include "io/onnx/sampling.h"

#include "core/error.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "ops/take_along/take_along.h"

namespace rlx::onnx {

namespace {

std::optional<Value> both(std::optional<Value> a, const std::optional<Value>& b) {
  if (!a || !b) return a ? a : b;
  return bitwise_and(*a, *b);
}

// [N, P] beside [N, C, P].
Value for_channels(Value v) { return reshape(v, {v.dim(0), 1, v.dim(1)}); }

Value clamped(Value v, Value most) { return minimum(maximum(v, like(v, 0)), most); }

}  // namespace

Sampler::Sampler(Value images, Edge edge, bool corners) : images_(images), edge_(edge), corners_(corners) {
  require(images.rank() >= 3 && images.rank() <= 5, "images are {}, expected rank 3 to 5", images.type().text());
}

// The size of an axis, of rank 0.
Value Sampler::number(std::size_t axis, DType dtype) const {
  const Dim size = images_.dim(static_cast<Index>(axis) + 2);
  if (size.is_constant()) return constant(*images_.builder, dtype, static_cast<double>(size.constant()));
  return cast(reshape(sizes(*images_.builder, {size}), {}), dtype);
}

// Folded back at both ends until it lies inside.
Value Sampler::reflected(std::size_t axis, Value at) const {
  const Value size = number(axis, at.dtype()), zero = like(at, 0);
  const Value low = like(at, corners_ ? 0 : -0.5), span = corners_ ? size - like(at, 1) : size;
  const Value way = abs(at - low), turns = floor(way / span), rest = way - turns * span;
  const Value odd = not_equal(turns - like(at, 2) * floor(turns * like(at, 0.5)), zero);
  return select(equal(span, zero), zero, select(odd, low + span - rest, low + rest));
}

// A position beyond the outermost elements as the one that is read there.
Value Sampler::moved(std::size_t axis, Value at) const {
  if (edge_ == Edge::zeros) return at;
  const Value most = number(axis, at.dtype()) - like(at, 1), margin = like(at, corners_ ? 0 : 0.5);
  const Value outside = bitwise_or(less(at, -margin), less(most + margin, at));
  return select(outside, edge_ == Edge::border ? clamped(at, most) : reflected(axis, at), at);
}

Sampler::Tap Sampler::tap(std::size_t axis, Value whole, std::optional<Value> weight) const {
  const Value most = number(axis, whole.dtype()) - like(whole, 1);
  Tap t{whole, {}, weight};
  if (edge_ == Edge::zeros) t.inside = bitwise_and(less_equal(like(whole, 0), whole), less_equal(whole, most));
  if (edge_ == Edge::reflection) {
    const Value outside = bitwise_or(less(whole, like(whole, 0)), less(most, whole));
    t.place = select(outside, reflected(axis, whole), whole);
  }
  t.place = cast(clamped(t.place, most), DType::i64);
  return t;
}

// [N, C, P] elements where one tap of each axis lies; 0 outside.
Value Sampler::element(const std::vector<const Tap*>& taps) const {
  std::optional<Value> place, inside;
  for (std::size_t axis = 0; axis < taps.size(); ++axis) {
    place = place ? *place * number(axis, DType::i64) + taps[axis]->place : taps[axis]->place;
    inside = both(inside, taps[axis]->inside);
  }
  const std::vector<Dim>& dims = images_.type().dims;
  const Dim &n = dims[0], &c = dims[1], points = place->dim(1);
  const Value lines = reshape(images_, {n, c, product(std::span(dims).subspan(2))});
  const Value found = take_along(lines, broadcast(for_channels(*place), {n, c, points}), 2);
  return inside ? select(for_channels(*inside), found, like(found, 0)) : found;
}

Value Sampler::sum(const Taps& taps, std::vector<const Tap*>& chosen, DType dtype) const {
  if (chosen.size() == taps.size()) return cast(element(chosen), dtype);
  std::optional<Value> total;
  for (const Tap& t : taps[chosen.size()]) {
    chosen.push_back(&t);
    const Value part = sum(taps, chosen, dtype) * for_channels(*t.weight);
    chosen.pop_back();
    total = total ? *total + part : part;
  }
  return *total;
}

Value Sampler::nearest(const std::vector<Value>& at) const {
  Taps taps;
  std::vector<const Tap*> all;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    taps.push_back({tap(axis, moved(axis, round(at[axis])), {})});
  }
  for (const std::vector<Tap>& t : taps) all.push_back(t.data());
  return element(all);
}

Value Sampler::linear(const std::vector<Value>& at) const {
  Taps taps;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    const Value x = moved(axis, at[axis]), low = floor(x), part = x - low, one = like(x, 1);
    taps.push_back({tap(axis, low, one - part), tap(axis, low + one, part)});
  }
  std::vector<const Tap*> chosen;
  return sum(taps, chosen, at[0].dtype());
}

Value Sampler::cubic(const std::vector<Value>& at) const {
  constexpr double a = -0.75;
  Taps taps;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    const Value x = moved(axis, at[axis]), low = floor(x), part = x - low;
    const auto number = [&](double v) { return like(x, v); };
    // Weights of elements at most 1, and at most 2 away.
    const auto near = [&](Value d) { return ((number(a + 2) * d - number(a + 3)) * d) * d + number(1); };
    const auto far = [&](Value d) { return ((number(a) * d - number(5 * a)) * d + number(8 * a)) * d - number(4 * a); };
    const Value rest = number(1) - part;
    taps.push_back({tap(axis, low - number(1), far(part + number(1))), tap(axis, low, near(part)),
                    tap(axis, low + number(1), near(rest)), tap(axis, low + number(2), far(rest + number(1)))});
  }
  std::vector<const Tap*> chosen;
  return sum(taps, chosen, at[0].dtype());
}

}  // namespace rlx::onnx
