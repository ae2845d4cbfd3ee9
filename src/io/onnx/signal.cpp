// Signals and matrices: Fourier transforms, mel filters, determinants.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/det/det.h"
#include "ops/fft/fft.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/pad/pad.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

std::vector<Index> exchanged(Index rank, Index a, Index b) {
  std::vector<Index> order;
  for (Index i = 0; i < rank; ++i) order.push_back(i == a ? b : i == b ? a : i);
  return order;
}

// The first `size` elements along an axis, with zeros behind them where there are fewer.
Value resized(Value x, Index axis, const Dim& size) {
  const Dim kept = min(x.dim(axis), size);
  return pad(slice(x, axis, 0, kept), axis, 0, size - kept, 0);
}

// With an imaginary part, which is 0 where there is none.
Value complex_pairs(Value x) {
  const Dim& parts = x.dim(-1);
  require(parts == Dim(1) || parts == Dim(2), "the operand is {}, its last size must be 1 or 2", x.type().text());
  return parts == Dim(2) ? x : pad(x, -1 + x.rank(), 0, 1, 0);
}

// All `n` numbers of a spectrum from the first n/2 + 1, of which the others are the conjugates, backwards.
Value mirrored(Value half, const Dim& n) {
  const Index axis = half.rank() - 2;
  const Value x = resized(half, axis, floordiv(n, 2) + 1);
  const Dim others = n - (floordiv(n, 2) + 1);
  const Value tail = reversed(slice(x, axis, 1, others + 1), axis);
  const Value conjugate = concat({slice(tail, -1, 0, 1), -slice(tail, -1, 1, 2)}, -1);
  return concat({x, conjugate}, axis);
}

struct Transform {
  bool inverse = false, onesided = false;
  std::optional<Dim> length;
};

// Along the last axis but one.
Value transformed(NodeArgs& n, Value x, const Transform& t) {
  const Index axis = x.rank() - 2;
  const bool to_real = t.inverse && t.onesided;
  const Dim length = t.length ? *t.length : to_real ? 2 * x.dim(axis) - 2 : x.dim(axis);
  require(length.bounds().hi >= 1, "the length of the transform is {}", length.text());
  const Value pairs = complex_pairs(x);
  const Value y = fft(to_real ? mirrored(pairs, length) : resized(pairs, axis, length), t.inverse);
  if (!t.inverse) return t.onesided ? slice(y, axis, 0, floordiv(length, 2) + 1) : y;
  const Value scaled = y / cast(n.known(DType::i64, {length}, false), y.dtype());
  return to_real ? slice(scaled, -1, 0, 1) : scaled;
}

std::optional<Dim> length_operand(NodeArgs& n, std::size_t i) {
  if (!n.has(i)) return std::nullopt;
  const std::vector<Dim> d = n.sizes(i);
  require(d.size() == 1, "operand {} has {} elements, expected 1", i, d.size());
  return d[0];
}

Values dft(NodeArgs& n) {
  n.expect(1, 3);
  const Value x = n[0];
  require(x.rank() >= 2, "operand is {}, expected rank 2 or more", x.type().text());
  Index axis = n.opset() < 20 ? n.integer("axis", 1) : -2;
  if (n.opset() >= 20 && n.has(2)) axis = n.number(2);
  axis = axis_of(axis, x.rank());
  require(axis != x.rank() - 1, "axis {} holds the parts of complex numbers", axis);
  const Transform t{n.integer("inverse", 0) != 0, n.integer("onesided", 0) != 0, length_operand(n, 1)};
  const std::vector<Index> order = exchanged(x.rank(), axis, x.rank() - 2);
  return {transpose(transformed(n, transpose(x, order), t), order)};
}

// Frames of the signal, times the window, transformed.
Values stft(NodeArgs& n) {
  n.expect(2, 4);
  const Value x = n[0];
  require(x.rank() == 3, "the signal is {}, expected rank 3", x.type().text());
  const Index step = n.number(1);
  require(step >= 1, "the step between frames is {}", step);
  std::optional<Dim> given = length_operand(n, 3);
  if (!given && n.has(2)) given = n[2].dim(0);
  const Dim length = given ? *given : x.dim(1);
  const Dim frames = floordiv(x.dim(1) - length, step) + 1;
  Builder& b = n.builder();
  const Value at =
      iota(b, DType::i64, {frames, length}, 0) * constant(b, Tensor::of<std::int64_t>(DType::i64, {}, {step})) +
      iota(b, DType::i64, {frames, length}, 1);
  Value cut = gather(x, at, 1);
  if (n.has(2)) {
    require(n[2].rank() == 1, "the window is {}, expected rank 1", n[2].type().text());
    b.check(n[2].dim(0), length, "length of the window");
    cut = cut * reshape(n[2], {length, 1});
  }
  const bool onesided = n.integer("onesided", 1) != 0;
  require(!onesided || x.dim(2) == Dim(1), "onesided is given for a complex signal {}", x.type().text());
  return {transformed(n, cut, {false, onesided, std::nullopt})};
}

// Edges of the triangles, as positions in the spectrum.
std::vector<Index> mel_edges(Index bands, Index length, double rate, double lower, double upper) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(lower), step = (mel(upper) - first) / static_cast<double>(bands + 2);
  std::vector<Index> edges;
  for (Index i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (first + static_cast<double>(i) * step) / 2595) - 1);
    edges.push_back(static_cast<Index>(std::floor(static_cast<double>(length + 1) * hertz / rate)));
  }
  return edges;
}

Values mel_weight_matrix(NodeArgs& n) {
  n.expect(5, 5);
  const Index bands = n.number(0), length = n.number(1), rate = n.number(2);
  const double lower = n.scalar(3), upper = n.scalar(4);
  constexpr Index most = 1 << 20;
  require(0 < bands && bands <= most && 0 < length && length <= most && rate > 0,
          "{} bands of a transform of length {} at {} samples a second are asked for", bands, length, rate);
  require(0 <= lower && lower < upper && std::isfinite(upper), "the band reaches from {} to {} hertz", lower, upper);
  const Index bins = length / 2 + 1;
  require(bins * bands <= most, "a matrix of {} x {} is asked for", bins, bands);
  const std::vector<Index> edges = mel_edges(bands, length, static_cast<double>(rate), lower, upper);
  require(edges.back() <= bins, "{} hertz lie beyond the spectrum of {} samples a second", upper, rate);
  std::vector<double> out(static_cast<std::size_t>(bins * bands), 0);
  for (Index i = 0; i < bands; ++i) {
    const Index left = edges[static_cast<std::size_t>(i)], top = edges[static_cast<std::size_t>(i + 1)],
                right = edges[static_cast<std::size_t>(i + 2)];
    const auto set = [&](Index bin, double v) {
      require(bin < bins, "triangle {} reaches bin {} of {}", i, bin, bins);
      out[static_cast<std::size_t>(bin * bands + i)] = v;
    };
    if (left == top) set(top, 1);
    for (Index k = left; left < top && k <= top; ++k)
      set(k, static_cast<double>(k - left) / static_cast<double>(top - left));
    for (Index k = top; k < right; ++k) set(k, static_cast<double>(right - k) / static_cast<double>(right - top));
  }
  const auto dtype = dtype_of(static_cast<std::int32_t>(std::clamp<Index>(n.integer("output_datatype", 1), 0, 999)));
  require(dtype.has_value(), "output_datatype {} is not supported", n.integer("output_datatype", 1));
  return {constant(n.builder(), Tensor::of<double>(*dtype, {bins, bands}, out))};
}

Values det_operator(NodeArgs& n) {
  n.expect(1, 1);
  return {det(n[0])};
}

}  // namespace

OperatorRows signal_rows() {
  static constexpr OperatorRow rows[] = {
      {"DFT", 17, dft},
      {"STFT", 17, stft},
      {"MelWeightMatrix", 17, mel_weight_matrix},
      {"Det", 11, det_operator},
  };
  return rows;
}

}  // namespace rlx::onnx
