// The searches for scales: some starts around the one that just covers the largest element, each with the scale that is
// best for the codes it gives.
#include "codecs/fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codecs/write.h"

namespace rlx {

namespace {

// Sums are taken in four lanes, so that the loops are vectorised and their order is fixed.
using Four [[gnu::vector_size(16)]] = float;
constexpr int largest_count = 256;

Four four(const float* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
Four all(float x) { return Four{x, x, x, x}; }
float total(Four v) { return (v[0] + v[1]) + (v[2] + v[3]); }
Four held(Four v, Four low, Four high) {
  v = v < low ? low : v;
  return v > high ? high : v;
}
// To the nearest integer, ties to even, up to 2^22.
Four rounded(Four v) {
  const Four shift = all(0x1.8p23F);
  return (v + shift) - shift;
}

struct Weights {
  std::array<float, largest_count> values;
  Weights(const float* w, int n) {
    for (int i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = w ? w[i] : 1;
  }
  Four at(int i) const { return four(values.data() + i); }
};

// Squares of smaller numbers are lost, those of larger ones overflow.
bool has_squares(float x) { return std::fabs(x) > 1e-15F && std::fabs(x) < 1e15F; }

float furthest_from_zero(const float* x, int n) {
  float extreme = 0;
  for (int i = 0; i < n; ++i) extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
  return extreme;
}

// Of codes q: the sums of w x q and w q q. The best scale for them is the quotient; the squared error falls by `gain`.
struct Match {
  float product = 0, square = 0;
  float scale() const { return product / square; }
  float gain() const { return product * scale(); }
};

// Keeps the match that lowers the error most.
void keep_better(Match& best, const Match& other) {
  if (other.square > 0 && (best.square == 0 || other.gain() > best.gain())) best = other;
}

Match match(const float* x, const Weights& w, int n, float inverse, float low, float high) {
  Four product = all(0), square = all(0);
  for (int i = 0; i < n; i += 4) {
    const Four v = four(x + i), q = rounded(held(v * all(inverse), all(low), all(high))), wq = w.at(i) * q;
    product += wq * v;
    square += wq * q;
  }
  return {total(product), total(square)};
}

}  // namespace

float fit_scale(const float* x, const float* w, int n, int low, int high) {
  const float extreme = furthest_from_zero(x, n);
  if (!has_squares(extreme)) return extreme / static_cast<float>(low);
  const Weights weights(w, n);
  const auto lowest = static_cast<float>(low), highest = static_cast<float>(high);
  Match best;
  constexpr int steps = 6;
  for (int step = -steps; step <= steps; ++step) {
    // The code of the extreme is moved around the lowest; few codes leave room for larger moves.
    const float at = lowest + static_cast<float>(step) * 0.15F;
    keep_better(best, match(x, weights, n, at / extreme, lowest, highest));
  }
  for (int i = 0; i < 2 && best.square > 0; ++i) {
    keep_better(best, match(x, weights, n, 1 / best.scale(), lowest, highest));
  }
  return best.square > 0 ? best.scale() : extreme / lowest;
}

namespace {

// Sums of w, w x and so on, of the codes q that a start gives.
struct LineSums {
  float w = 0, x = 0, q = 0, qq = 0, xq = 0;

  Line best(bool below_zero) const {
    const float determinant = w * qq - q * q;
    if (determinant > 0) {
      const Line line{(w * xq - x * q) / determinant, (qq * x - q * xq) / determinant};
      if (!below_zero || line.minimum <= 0) return line;
    }
    return {qq > 0 ? xq / qq : 0, 0};
  }
  // What the line takes off the squared error.
  float gain(const Line& l) const {
    return 2 * (l.scale * xq + l.minimum * x) -
           (l.scale * l.scale * qq + 2 * l.scale * l.minimum * q + l.minimum * l.minimum * w);
  }
};

LineSums line_sums(const float* x, const Weights& weights, int n, float inverse, float minimum, float high) {
  Four sw = all(0), sx = all(0), sq = all(0), sqq = all(0), sxq = all(0);
  for (int i = 0; i < n; i += 4) {
    const Four v = four(x + i), w = weights.at(i);
    const Four q = rounded(held((v - all(minimum)) * all(inverse), all(0), all(high))), wq = w * q;
    sw += w;
    sx += w * v;
    sq += wq;
    sqq += wq * q;
    sxq += wq * v;
  }
  return {total(sw), total(sx), total(sq), total(sqq), total(sxq)};
}

Line best_line(const float* x, const float* w, int n, int high, bool below_zero) {
  float lowest = below_zero ? 0 : x[0], highest = x[0];
  for (int i = 0; i < n; ++i) lowest = std::min(lowest, x[i]), highest = std::max(highest, x[i]);
  const auto top = static_cast<float>(high);
  const float range = highest - lowest;
  if (!has_squares(range) || !has_squares(std::max(range, std::fabs(lowest)))) return {range / top, lowest};
  const Weights weights(w, n);
  Line best{range / top, lowest};
  float gain = -1;
  const auto keep = [&](float inverse, float minimum) {
    const LineSums sums = line_sums(x, weights, n, inverse, minimum, top);
    const Line line = sums.best(below_zero);
    if (!(line.scale > 0) || (gain >= 0 && sums.gain(line) <= gain)) return;
    gain = sums.gain(line);
    best = line;
  };
  for (int step = 0; step <= 14; ++step) keep((top - 0.8F + 0.12F * static_cast<float>(step)) / range, lowest);
  for (int i = 0; i < 3; ++i) keep(1 / best.scale, best.minimum);
  return best;
}

}  // namespace

Line fit_line_below_zero(const float* x, const float* w, int n, int high) { return best_line(x, w, n, high, true); }

Line fit_line(const float* x, const float* w, int n, int high) {
  // Without the common part, sums of squares do not cancel.
  std::array<float, largest_count> moved;
  const auto [least, most] = std::minmax_element(x, x + n);
  const float lowest = *least, top = static_cast<float>(high);
  if (!has_squares(*most - lowest)) return {*most / top - lowest / top, lowest};
  for (int i = 0; i < n; ++i) moved[static_cast<std::size_t>(i)] = x[i] - lowest;
  const Line line = best_line(moved.data(), w, n, high, false);
  return {line.scale, line.minimum + lowest};
}

void round_codes(const float* x, int n, float scale, int low, int high, std::int8_t* codes) {
  const float inverse = scale == 0 ? 0 : 1 / scale;
  const auto lowest = static_cast<float>(low), highest = static_cast<float>(high);
  for (int i = 0; i < n; ++i) codes[i] = static_cast<std::int8_t>(nearest_within(x[i] * inverse, lowest, highest));
}

void LevelTable::places(const float* x, int n, float scale, std::uint8_t* at) const {
  const float inverse = scale == 0 ? 0 : 1 / scale;
  for (int i = 0; i < n; ++i) at[i] = static_cast<std::uint8_t>(nearest_within(x[i] * inverse, -128, 127) + 128);
}

void LevelTable::round(const float* x, int n, float scale, std::uint8_t* codes) const {
  places(x, n, scale, codes);
  for (int i = 0; i < n; ++i) codes[i] = nearest_[codes[i]];
}

float LevelTable::fit(const float* x, const float* w, int n) const {
  const float extreme = furthest_from_zero(x, n);
  if (!has_squares(extreme)) return extreme / static_cast<float>(levels_[0]);
  const Weights weights(w, n);
  const auto matched = [&](float scale) {
    std::array<std::uint8_t, largest_count> at;
    places(x, n, scale, at.data());
    Four product = all(0), square = all(0);
    for (int i = 0; i < n; i += 4) {
      const std::uint8_t* p = at.data() + i;
      const Four q{level_at_[p[0]], level_at_[p[1]], level_at_[p[2]], level_at_[p[3]]}, wq = weights.at(i) * q;
      product += wq * four(x + i);
      square += wq * q;
    }
    return Match{total(product), total(square)};
  };
  Match best;
  constexpr int steps = 5;
  for (int step = -steps; step <= steps; ++step) {
    keep_better(best, matched(extreme / (static_cast<float>(levels_[0]) + 3 * static_cast<float>(step))));
  }
  keep_better(best, matched(extreme / static_cast<float>(levels_[15])));
  if (best.square > 0) keep_better(best, matched(best.scale()));
  return best.square > 0 ? best.scale() : 0;
}

}  // namespace rlx
