// Resize and Upsample, axis by axis: every position of a result is a weighted sum of a few elements of its line.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

enum class Interpolation : std::uint8_t { nearest, linear, cubic };

// What all axes share.
struct Resampling {
  Interpolation mode = Interpolation::nearest;
  std::string coordinates = "half_pixel", rounding = "round_prefer_floor";
  double cubic_a = -0.75, outside_value = 0;
  bool exclude_outside = false, antialias = false;
};

// One axis: its sizes, how much longer the result is meant to be, and the part of the operand that is read.
struct ResampledAxis {
  Index axis = 0, in = 0, out = 0;
  double scale = 1, roi_start = 0, roi_end = 1;
};

// The position in the operand that position `o` of the result shows.
double source(const Resampling& r, const ResampledAxis& a, Index o) {
  const double width = a.scale * static_cast<double>(a.in), in = static_cast<double>(a.in), x = static_cast<double>(o);
  if (r.coordinates == "align_corners") return width == 1 ? 0 : x * (in - 1) / (width - 1);
  if (r.coordinates == "asymmetric") return x / a.scale;
  if (r.coordinates == "tf_crop_and_resize") {
    const double part = (a.roi_end - a.roi_start) * (in - 1);
    return a.roi_start * (in - 1) + (width == 1 ? part / 2 : x * part / (width - 1));
  }
  if (r.coordinates == "pytorch_half_pixel" && width == 1) return -0.5;
  if (r.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  const double centre = (x + 0.5) / a.scale - 0.5;
  if (r.coordinates != "half_pixel_symmetric") return centre;
  return centre + in / 2 * (1 - static_cast<double>(a.out) / width);
}

Index nearest_index(const std::string& rounding, double x) {
  const double low = std::floor(x), part = x - low;
  const bool up = part > 0 && (rounding == "ceil" || (rounding == "round_prefer_floor" && part > 0.5) ||
                               (rounding == "round_prefer_ceil" && part >= 0.5));
  return static_cast<Index>(low) + (up ? 1 : 0);
}

// Weight of an element at this distance, in units of the coarser of both grids.
double weight(const Resampling& r, double distance) {
  const double x = std::fabs(distance), a = r.cubic_a;
  if (r.mode == Interpolation::linear) return std::max(1 - x, 0.0);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Elements and weights of every position of the result: [taps][out].
struct Taps {
  std::vector<std::vector<std::int64_t>> index;
  std::vector<std::vector<double>> weight;
  std::vector<double> outside;  // 1 where the result is the value for what lies outside
};

Taps taps_of(const Resampling& r, const ResampledAxis& a) {
  const double shrink = r.antialias ? std::min(a.scale, 1.0) : 1.0;
  const double reach = (r.mode == Interpolation::cubic ? 2 : 1) / shrink;
  const bool nearest = r.mode == Interpolation::nearest;
  require(reach <= 4096, "a scale of {} is not supported", a.scale);
  const Index count = nearest ? 1 : 2 * static_cast<Index>(std::ceil(reach));
  Taps t;
  const auto size = static_cast<std::size_t>(a.out);
  t.index.assign(static_cast<std::size_t>(count), std::vector<std::int64_t>(size));
  t.weight.assign(static_cast<std::size_t>(count), std::vector<double>(size, 1.0));
  for (Index o = 0; o < a.out; ++o) {
    const auto to = static_cast<std::size_t>(o);
    const double x = source(r, a, o);
    const bool crop = r.coordinates == "tf_crop_and_resize";
    t.outside.push_back(crop && (x < 0 || x > static_cast<double>(a.in - 1)) ? 1 : 0);
    const double at = std::clamp(x, -1e15, 1e15);
    const Index first = nearest ? nearest_index(r.rounding, at) : static_cast<Index>(std::floor(at)) - count / 2 + 1;
    double total = 0;
    for (Index k = 0; k < count; ++k) {
      const auto tap = static_cast<std::size_t>(k);
      const Index i = first + k;
      t.index[tap][to] = std::clamp<Index>(i, 0, a.in - 1);
      if (nearest) continue;
      const bool left_out = r.exclude_outside && (i < 0 || i >= a.in);
      t.weight[tap][to] = left_out ? 0 : weight(r, (static_cast<double>(i) - at) * shrink);
      total += t.weight[tap][to];
    }
    if (nearest || total == 0) continue;
    for (auto& w : t.weight) w[to] /= total;
  }
  return t;
}

Value resampled(Value x, const Resampling& r, const ResampledAxis& a) {
  require(a.in > 0 || a.out == 0, "an axis without elements cannot become one of {}", a.out);
  const Taps t = taps_of(r, a);
  Builder& b = *x.builder;
  std::vector<Dim> along(static_cast<std::size_t>(x.rank() - a.axis), Dim(1));
  along[0] = a.out;
  const auto line = [&](const std::vector<double>& v) {
    return reshape(constant(b, Tensor::of<double>(x.dtype(), {a.out}, v)), along);
  };
  std::optional<Value> sum;
  for (std::size_t k = 0; k < t.index.size(); ++k) {
    const bool none = std::ranges::all_of(t.weight[k], [](double w) { return w == 0; });
    if (none && k + 1 < t.index.size()) continue;
    Value part = gather(x, constant(b, Tensor::of<std::int64_t>(DType::i64, {a.out}, t.index[k])), a.axis);
    if (r.mode != Interpolation::nearest) part = part * line(t.weight[k]);
    sum = sum ? *sum + part : part;
  }
  if (std::ranges::none_of(t.outside, [](double v) { return v != 0; })) return *sum;
  const Value mask = not_equal(line(t.outside), like(x, 0));
  return select(mask, like(x, r.outside_value), *sum);
}

// Every element `times` times in a row: what nearest neighbours are for a whole scale, whatever the size.
Value repeated(Value x, Index axis, Index times) {
  std::vector<Dim> dims = x.type().dims, apart = dims, joined = dims;
  apart.insert(apart.begin() + axis + 1, Dim(1));
  std::vector<Dim> full = apart;
  full[static_cast<std::size_t>(axis) + 1] = times;
  joined[static_cast<std::size_t>(axis)] = dims[static_cast<std::size_t>(axis)] * times;
  return reshape(broadcast(reshape(x, std::move(apart)), std::move(full)), std::move(joined));
}

bool repeats(const Resampling& r) {
  if (r.mode != Interpolation::nearest) return false;
  const bool centred = r.coordinates == "half_pixel" || r.coordinates == "half_pixel_symmetric";
  return centred ? r.rounding.starts_with("round") : r.coordinates == "asymmetric" && r.rounding == "floor";
}

Value along_axis(Value x, const Resampling& r, Index axis, double scale, std::optional<Dim> size,
                 std::pair<double, double> roi) {
  const Dim in = x.dim(axis);
  const bool whole = roi.first == 0 && roi.second == 1;
  const bool crop = r.coordinates == "tf_crop_and_resize";
  if ((size ? *size == in : scale == 1) && (!crop || whole)) return x;
  if (!in.is_constant()) {
    const bool times = !size && scale == std::round(scale) && scale >= 1 && scale <= 4096;
    require(times && repeats(r), "axis {} of {} is resized in a way that needs its size as a number", axis,
            x.type().text());
    return repeated(x, axis, static_cast<Index>(scale));
  }
  require(!size || size->is_constant(), "axis {} becomes one of size {}, expected a number", axis,
          size ? size->text() : "");
  const Index from = in.constant();
  const Index to = size ? size->constant() : static_cast<Index>(std::floor(scale * static_cast<double>(from)));
  require(to >= 0 && to <= Index{1} << 24, "axis {} becomes one of size {}", axis, to);
  return resampled(x, r, {axis, from, to, scale, roi.first, roi.second});
}

std::vector<double> reals_of_operand(NodeArgs& n, std::size_t i) {
  const Tensor* t = n.importer().constant_of(n[i]);
  require(t != nullptr, "operand {} depends on the data of a run, expected a constant", i);
  require(t->rank() == 1 && is_float(t->dtype()), "operand {} is {}, expected floats of rank 1", i, t->type().text());
  return load<double>(*t);
}

bool stated(NodeArgs& n, std::size_t i) { return n.has(i) && n[i].type().dims != std::vector<Dim>{Dim(0)}; }

// One scale an axis that is listed; the others keep their sizes.
Values resize_by(NodeArgs& n, const Resampling& r, const std::vector<Index>& axes, std::vector<double> scales,
                 const std::vector<std::optional<Dim>>& sizes, const std::vector<double>& roi) {
  require(scales.size() == axes.size(), "{} scales are given for {} axes", scales.size(), axes.size());
  const bool nearest = r.mode == Interpolation::nearest;
  Value x = nearest ? n[0] : widen(n[0]);
  require(nearest || is_float(x.dtype()), "operand 0 is {}, expected floats", x.type().text());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    require(std::isfinite(scales[i]) && scales[i] > 0 && scales[i] <= 65536, "a scale is {}", scales[i]);
    const std::pair<double, double> part = roi.empty() ? std::pair(0.0, 1.0) : std::pair(roi[i], roi[axes.size() + i]);
    x = along_axis(x, r, axes[i], scales[i], sizes[i], part);
  }
  return {cast(x, n[0].dtype())};
}

Resampling resampling(NodeArgs& n) {
  Resampling r;
  const std::string mode = n.string("mode", "nearest");
  require(mode == "nearest" || mode == "linear" || mode == "cubic" || mode == "bilinear", "mode {} is unknown",
          in_quotes(mode));
  r.mode = mode == "nearest" ? Interpolation::nearest : mode == "cubic" ? Interpolation::cubic : Interpolation::linear;
  if (n.opset() < 11) {
    r.coordinates = "asymmetric";
    r.rounding = "floor";
    return r;
  }
  r.coordinates = n.string("coordinate_transformation_mode", "half_pixel");
  static constexpr std::string_view known[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                               "align_corners", "asymmetric",           "tf_crop_and_resize"};
  const bool old = n.opset() < 13 && r.coordinates == "tf_half_pixel_for_nn";
  require(old || std::ranges::find(known, r.coordinates) != std::end(known),
          "coordinate_transformation_mode {} is unknown", in_quotes(r.coordinates));
  r.rounding = n.string("nearest_mode", "round_prefer_floor");
  static constexpr std::string_view roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  require(std::ranges::find(roundings, r.rounding) != std::end(roundings), "nearest_mode {} is unknown",
          in_quotes(r.rounding));
  r.cubic_a = n.real("cubic_coeff_a", -0.75);
  r.outside_value = n.real("extrapolation_value", 0);
  r.exclude_outside = n.integer("exclude_outside", 0) != 0;
  r.antialias = n.integer("antialias", 0) != 0;
  return r;
}

std::vector<Index> resized_axes(NodeArgs& n) {
  std::vector<Index> axes;
  if (n.opset() >= 18) {
    if (const auto given = n.integers("axes")) axes = *given;
  }
  if (axes.empty()) {
    axes.resize(n[0].type().dims.size());
    std::iota(axes.begin(), axes.end(), Index{0});
  }
  std::vector<bool> seen(n[0].type().dims.size(), false);
  for (Index& a : axes) {
    a = axis_of(a, n[0].rank());
    require(!seen[static_cast<std::size_t>(a)], "axis {} is listed twice", a);
    seen[static_cast<std::size_t>(a)] = true;
  }
  return axes;
}

// Scales that sizes stand for; with a policy one for all axes, which then changes the sizes.
std::vector<double> scales_of(NodeArgs& n, const std::vector<Index>& axes, std::vector<std::optional<Dim>>& sizes) {
  const std::string policy = n.opset() >= 18 ? n.string("keep_aspect_ratio_policy", "stretch") : "stretch";
  require(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
          "keep_aspect_ratio_policy {} is unknown", in_quotes(policy));
  std::vector<double> scales;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Dim& in = n[0].dim(axes[i]);
    if (*sizes[i] == in && policy == "stretch") {
      scales.push_back(1);
      continue;
    }
    require(in.is_constant() && in.constant() > 0 && sizes[i]->is_constant() && sizes[i]->constant() > 0,
            "axis {} of size {} becomes one of size {}, expected numbers", axes[i], in.text(), sizes[i]->text());
    scales.push_back(static_cast<double>(sizes[i]->constant()) / static_cast<double>(in.constant()));
  }
  if (policy == "stretch" || scales.empty()) return scales;
  const auto [least, most] = std::ranges::minmax(scales);
  const double scale = policy == "not_larger" ? least : most;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    scales[i] = scale;
    sizes[i] = static_cast<Index>(std::floor(scale * static_cast<double>(n[0].dim(axes[i]).constant()) + 0.5));
  }
  return scales;
}

Values resize(NodeArgs& n) {
  n.expect(1, 4);
  const Resampling r = resampling(n);
  const std::vector<Index> axes = resized_axes(n);
  std::vector<std::optional<Dim>> sizes(axes.size());
  if (n.opset() < 11) return resize_by(n, r, axes, reals_of_operand(n, 1), sizes, {});
  std::vector<double> roi;
  if (r.coordinates == "tf_crop_and_resize") {
    roi = reals_of_operand(n, 1);
    require(roi.size() == 2 * axes.size(), "the region has {} elements, expected {}", roi.size(), 2 * axes.size());
    for (const double v : roi) require(std::isfinite(v) && std::fabs(v) <= 1e6, "the region has the element {}", v);
  }
  if (stated(n, 2)) {
    require(!stated(n, 3), "both scales and sizes are given");
    n.ignore("keep_aspect_ratio_policy");
    return resize_by(n, r, axes, reals_of_operand(n, 2), sizes, roi);
  }
  require(stated(n, 3), "neither scales nor sizes are given");
  const std::vector<Dim> wanted = n.sizes(3);
  require(wanted.size() == axes.size(), "{} sizes are given for {} axes", wanted.size(), axes.size());
  std::ranges::copy(wanted, sizes.begin());
  std::vector<double> scales = scales_of(n, axes, sizes);
  return resize_by(n, r, axes, std::move(scales), sizes, roi);
}

Values upsample(NodeArgs& n) {
  n.expect(1, 2);
  require(n.opset() < 10, "Upsample ends with version 9");
  const Resampling r = resampling(n);
  std::vector<double> scales;
  if (n.opset() >= 9) {
    scales = reals_of_operand(n, 1);
  } else {
    const auto given = n.reals("scales");
    require(given.has_value(), "attribute \"scales\" is missing");
    scales.assign(given->begin(), given->end());
  }
  const std::vector<Index> axes = resized_axes(n);
  return resize_by(n, r, axes, std::move(scales), std::vector<std::optional<Dim>>(axes.size()), {});
}

}  // namespace

OperatorRows resample_rows() {
  static constexpr OperatorRow rows[] = {{"Resize", 10, resize}, {"Upsample", 7, upsample}};
  return rows;
}

}  // namespace rlx::onnx
