// Operators that read images at positions of the data: GridSample, AffineGrid, RoiAlign, MaxRoiPool, DeformConv.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "io/onnx/sampling.h"
#include "io/onnx/window_nodes.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

// Element `i` of the last axis, which is left out.
Value component(Value v, Index i) {
  std::vector<Dim> dims = v.type().dims;
  dims.pop_back();
  return reshape(slice(v, v.rank() - 1, i, i + 1), std::move(dims));
}

Value number_like(NodeArgs& n, Value v, const Dim& d) { return cast(n.known(DType::i64, {d}, false), v.dtype()); }

void require_floats(Value v, std::string_view what) {
  require(is_arithmetic_float(v.dtype()), "{} {}, expected floats", what, v.type().text());
}

// --- GridSample, AffineGrid ---

enum class Method : std::uint8_t { nearest, linear, cubic };

Method grid_method(NodeArgs& n) {
  const std::string mode = n.string("mode", n.opset() < 20 ? "bilinear" : "linear");
  if (mode == "nearest") return Method::nearest;
  if (mode == (n.opset() < 20 ? "bilinear" : "linear")) return Method::linear;
  require(mode == (n.opset() < 20 ? "bicubic" : "cubic"), "mode {} is unknown", in_quotes(mode));
  return Method::cubic;
}

Sampler::Edge grid_edge(NodeArgs& n) {
  const std::string mode = n.string("padding_mode", "zeros");
  if (mode == "border") return Sampler::Edge::border;
  if (mode == "reflection") return Sampler::Edge::reflection;
  require(mode == "zeros", "padding_mode {} is unknown", in_quotes(mode));
  return Sampler::Edge::zeros;
}

Values grid_sample(NodeArgs& n) {
  n.expect(2, 2);
  const Method method = grid_method(n);
  const Sampler::Edge edge = grid_edge(n);
  const bool corners = n.integer("align_corners", 0) != 0;
  const Value x = n[0], grid = widen(n[1]);
  require(is_arithmetic_float(x.dtype()) || is_integer(x.dtype()), "operand 0 is {}, expected numbers",
          x.type().text());
  require_floats(grid, "the grid is");
  require(x.rank() >= 3 && x.rank() <= 5, "operand 0 is {}, expected rank 3 to 5", x.type().text());
  const Index axes = x.rank() - 2;
  require(grid.rank() == x.rank() && grid.dim(-1) == Dim(axes), "the grid is {} for an operand {}", grid.type().text(),
          x.type().text());
  n.builder().check(grid.dim(0), x.dim(0), "items of the grid and of the operand of GridSample");
  const std::vector<Dim> points(grid.type().dims.begin() + 1, grid.type().dims.end() - 1);
  std::vector<Value> at;
  for (Index i = 0; i < axes; ++i) {  // the grid states the last axis first
    const Value g = reshape(component(grid, axes - 1 - i), {x.dim(0), product(points)});
    const Value size = number_like(n, g, x.dim(2 + i)), one = like(g, 1), two = like(g, 2);
    at.push_back(corners ? (g + one) / two * (size - one) : ((g + one) * size - one) / two);
  }
  const Sampler sampler(x, edge, corners);
  const Value y = method == Method::nearest  ? sampler.nearest(at)
                  : method == Method::linear ? sampler.linear(at)
                                             : sampler.cubic(at);
  std::vector<Dim> dims{x.dim(0), x.dim(1)};
  dims.insert(dims.end(), points.begin(), points.end());
  return {reshape(cast(y, x.dtype()), std::move(dims))};
}

// Coordinates in [-1, 1] of all positions: [axes + 1, positions], the last axis first, and ones.
Value base_grid(NodeArgs& n, Value theta, const std::vector<Dim>& sizes, bool corners) {
  std::vector<Value> rows;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const Value at = cast(iota(n.builder(), DType::i64, sizes, static_cast<Index>(i)), theta.dtype());
    const Value size = number_like(n, theta, sizes[i]), one = like(theta, 1), two = like(theta, 2);
    // One position alone lies at -1 where it is at a corner.
    const Value step = corners ? two / maximum(size - one, one) : two / size;
    const Value row = at * step + (corners ? -one : step / two - one);
    rows.push_back(reshape(row, {1, product(sizes)}));
  }
  rows.push_back(broadcast(like(theta, 1), {1, product(sizes)}));
  return concat(rows, 0);
}

Values affine_grid(NodeArgs& n) {
  n.expect(2, 2);
  const bool corners = n.integer("align_corners", 0) != 0;
  require_floats(n[0], "theta is");
  const Value theta = widen(n[0]);
  const std::vector<Dim> size = n.sizes(1);
  const auto axes = static_cast<Index>(size.size()) - 2;
  require(axes == 2 || axes == 3, "{} sizes are given, expected 4 or 5", size.size());
  require(theta.rank() == 3 && theta.dim(1) == Dim(axes) && theta.dim(2) == Dim(axes + 1),
          "theta is {}, expected [N, {}, {}]", theta.type().text(), axes, axes + 1);
  n.builder().check(theta.dim(0), size[0], "items of theta and of size");
  const std::vector<Dim> inner(size.begin() + 2, size.end());
  const Value grid = transpose(matmul(theta, base_grid(n, theta, inner, corners)), {0, 2, 1});
  std::vector<Dim> dims{theta.dim(0)};
  dims.insert(dims.end(), inner.begin(), inner.end());
  dims.emplace_back(axes);
  return {cast(reshape(grid, std::move(dims)), n[0].dtype())};
}

// --- regions ---

// Sample points along one axis of all regions.
struct RegionAxis {
  Index parts = 1, samples = 1;     // of the result; of each part, at most
  Value at;                         // [R, parts * samples] positions
  std::optional<Value> used = {};   // whether a region has that sample, where they have different numbers
  std::optional<Value> count = {};  // [R, 1] of samples of a part; missing: `samples`
};

struct RegionOptions {
  bool half_pixel = true;
  double scale = 1;
  Index ratio = 0;
};

// Numbers of samples that follow from sizes of regions, which then must be known.
std::vector<double> adaptive_counts(NodeArgs& n, Index axis, Index parts, const RegionOptions& o) {
  const Tensor* const t = n.importer().constant_of(n[1]);
  require(t != nullptr, "sampling_ratio 0 needs regions that are constant");
  const std::vector<double> v = load<double>(*t);
  std::vector<double> counts;
  for (std::size_t i = 0; i + 3 < v.size(); i += 4) {
    const auto from = i + static_cast<std::size_t>(axis);
    const auto scaled = [&](std::size_t at) { return static_cast<float>(v[at]) * static_cast<float>(o.scale); };
    float size = scaled(from + 2) - scaled(from);
    if (!o.half_pixel) size = std::max(size, 1.0F);
    counts.push_back(std::max(0.0F, std::ceil(size / static_cast<float>(parts))));
    require(counts.back() <= 4096, "a region has {} samples along an axis", counts.back());
  }
  return counts;
}

// `axis` is 0 for x, 1 for y.
RegionAxis region_axis(NodeArgs& n, Value regions, Index axis, Index parts, const RegionOptions& o) {
  RegionAxis r{parts, o.ratio, regions};
  const Dim& count = regions.dim(0);
  const auto edge = [&](Index i) { return reshape(component(regions, i), {count, 1}) * like(regions, o.scale); };
  const Value offset = like(regions, o.half_pixel ? 0.5 : 0);
  const Value start = edge(axis) - offset;
  Value size = edge(axis + 2) - offset - start;
  if (!o.half_pixel) size = maximum(size, like(size, 1));
  if (o.ratio == 0) {
    const std::vector<double> counts = adaptive_counts(n, axis, parts, o);
    for (const double c : counts) r.samples = std::max(r.samples, static_cast<Index>(c));
    r.count =
        constant(n.builder(), Tensor::of<double>(regions.dtype(), {static_cast<Index>(counts.size()), 1}, counts));
  }
  require(parts * r.samples <= Index{1} << 20, "a region has {} samples along an axis", parts * r.samples);
  std::vector<double> part, sample;
  for (Index i = 0; i < parts * r.samples; ++i) {
    const Index region = i / r.samples;
    part.push_back(static_cast<double>(region));
    sample.push_back(static_cast<double>(i % r.samples));
  }
  const auto line = [&](const std::vector<double>& v) {
    return constant(n.builder(), Tensor::of<double>(regions.dtype(), {1, static_cast<Index>(v.size())}, v));
  };
  const Value bin = size / like(size, static_cast<double>(parts));
  const Value each = r.count ? *r.count : like(size, static_cast<double>(o.ratio));
  r.at = start + line(part) * bin + (line(sample) + like(bin, 0.5)) * bin / each;
  if (r.count) r.used = less(line(sample), *r.count);
  return r;
}

// Where a sample lies between two elements of an axis.
struct Between {
  Value low, high, weight, inside;  // places as i64, the weight of the second one
};

Between between(NodeArgs& n, Value at, const Dim& size) {
  const Value extent = number_like(n, at, size), most = extent - like(at, 1), zero = like(at, 0);
  const Value inside = bitwise_and(less_equal(like(at, -1), at), less_equal(at, extent));
  const Value x = minimum(maximum(at, zero), most), low = floor(x), high = minimum(low + like(at, 1), most);
  return {cast(low, DType::i64), cast(high, DType::i64), x - low, inside};
}

// The elements of images [N, C, H, W] as rows of all channels, and which row a position is.
struct PixelRows {
  Value rows;  // [N * H * W, C]
  Value item;  // [R] of each region
  Value height, width;

  PixelRows(NodeArgs& n, Value images, Value items)
      : rows(transpose(images, {0, 2, 3, 1})),
        item(reshape(items, {items.dim(0), 1, 1})),
        height(n.known(DType::i64, {images.dim(2)}, false)),
        width(n.known(DType::i64, {images.dim(3)}, false)) {
    rows = reshape(rows, {images.dim(0) * images.dim(2) * images.dim(3), images.dim(1)});
  }
  // [R, Y, X, C] at places y [R, Y] and x [R, X].
  Value at(Value y, Value x) const {
    const Value down = reshape(y, {y.dim(0), y.dim(1), 1}), across = reshape(x, {x.dim(0), 1, x.dim(1)});
    return gather(rows, (item * height + down) * width + across, 0);
  }
};

// Positions of items, checked against the number of images where they are used.
Value item_numbers(NodeArgs& n, Value items, const Dim& images) {
  require(items.rank() == 1 && is_integer(items.dtype()), "batch indices are {}, expected integers of rank 1",
          items.type().text());
  const Value at = cast(items, DType::i64);
  // A gather of the images' own numbers is an Error for an index outside.
  return gather(iota(n.builder(), DType::i64, {images}, 0), at, 0);
}

Value for_rows(Value v) { return reshape(v, {v.dim(0), v.dim(1), 1, 1}); }
Value for_columns(Value v) { return reshape(v, {v.dim(0), 1, v.dim(1), 1}); }

// [R, PY * SY, PX * SX, C] interpolated; each of the four weighted elements goes through `join`.
Value region_samples(const PixelRows& pixels, const Between& y, const Between& x, bool largest) {
  const Value one = like(y.weight, 1);
  const Value down[] = {for_rows(one - y.weight), for_rows(y.weight)};
  const Value across[] = {for_columns(one - x.weight), for_columns(x.weight)};
  const Value rows[] = {y.low, y.high}, columns[] = {x.low, x.high};
  std::optional<Value> all;
  for (const std::size_t i : {0U, 1U}) {
    for (const std::size_t j : {0U, 1U}) {
      const Value part = widen(pixels.at(rows[i], columns[j])) * (down[i] * across[j]);
      all = !all ? part : largest ? maximum(*all, part) : *all + part;
    }
  }
  const Value inside = bitwise_and(for_rows(y.inside), for_columns(x.inside));
  return select(inside, *all, like(*all, 0));
}

// Images, and a region a row of so many numbers.
void require_regions(NodeArgs& n, Index numbers) {
  require(n[0].rank() == 4, "operand 0 is {}, expected rank 4", n[0].type().text());
  require_floats(n[0], "operand 0 is");
  require_floats(n[1], "regions are");
  require(n[1].rank() == 2 && n[1].dim(1) == Dim(numbers), "regions are {}, expected [R, {}]", n[1].type().text(),
          numbers);
}

Values roi_align(NodeArgs& n) {
  n.expect(3, 3);
  const Value x = n[0];
  require_regions(n, 4);
  const std::string mode = n.string("mode", "avg");
  require(mode == "avg" || mode == "max", "mode {} is unknown", in_quotes(mode));
  RegionOptions o{false, n.real("spatial_scale", 1), n.integer("sampling_ratio", 0)};
  require(o.ratio >= 0 && o.ratio <= 4096, "sampling_ratio is {}, expected 0 to 4096", o.ratio);
  if (n.opset() >= 16) {
    const std::string word = n.string("coordinate_transformation_mode", "half_pixel");
    require(word == "half_pixel" || word == "output_half_pixel", "coordinate_transformation_mode {} is unknown",
            in_quotes(word));
    o.half_pixel = word == "half_pixel";
  }
  const Index high = n.integer("output_height", 1), wide = n.integer("output_width", 1);
  require(high >= 1 && high <= 65536 && wide >= 1 && wide <= 65536, "the result has {} by {} parts", high, wide);
  const DType type = widen(x).dtype();
  const Value regions = cast(n[1], type);
  const RegionAxis down = region_axis(n, regions, 1, high, o), across = region_axis(n, regions, 0, wide, o);
  Between y = between(n, down.at, x.dim(2)), z = between(n, across.at, x.dim(3));
  n.builder().check(n[2].dim(0), regions.dim(0), "batch indices and regions of RoiAlign");
  const bool largest = mode == "max";
  const PixelRows pixels(n, x, item_numbers(n, n[2], x.dim(0)));
  Value all = region_samples(pixels, y, z, largest);
  const double none = largest ? -INFINITY : 0;
  if (down.used) all = select(bitwise_and(for_rows(*down.used), for_columns(*across.used)), all, like(all, none));
  all = reshape(all, {regions.dim(0), high, down.samples, wide, across.samples, x.dim(1)});
  Value y_all = largest ? max(all, {2, 4}) : sum(all, {2, 4});
  if (largest) {
    if (down.used) y_all = select(equal(y_all, like(y_all, none)), like(y_all, 0), y_all);
  } else {
    const Value count = down.count ? maximum(*down.count * *across.count, like(all, 1))
                                   : like(all, static_cast<double>(o.ratio * o.ratio));
    y_all = y_all / (down.count ? reshape(count, {count.dim(0), 1, 1, 1}) : count);
  }
  return {cast(transpose(y_all, {0, 3, 1, 2}), x.dtype())};
}

// Nearest integer, ties away from 0.
Value rounded_away(Value v) {
  const Value up = floor(abs(v) + like(v, 0.5));
  return select(less(v, like(v, 0)), -up, up);
}

// [R, parts, size]: whether an element of an axis lies in a part of a region; `from` and `to` are its ends, [R, 1].
Value part_members(NodeArgs& n, Value from, Value to, Index parts, const Dim& size) {
  const Value first = rounded_away(from), one = like(first, 1);
  const Value bin = maximum(rounded_away(to) - first + one, one) / like(first, static_cast<double>(parts));
  const Value part = cast(iota(n.builder(), DType::i64, {1, parts}, 1), bin.dtype());
  const Value low = floor(part * bin) + first, high = ceil((part + one) * bin) + first;
  const Value at = cast(iota(n.builder(), DType::i64, {1, 1, size}, 2), bin.dtype());
  const auto each = [&](Value v) { return reshape(v, {v.dim(0), parts, 1}); };
  return bitwise_and(less_equal(each(low), at), less(at, each(high)));
}

Values max_roi_pool(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0];
  require_regions(n, 5);
  const auto shape = n.integers("pooled_shape");
  require(shape && shape->size() == 2, "attribute \"pooled_shape\" has not two elements");
  for (const Index p : *shape) require(p >= 1 && p <= 65536, "\"pooled_shape\" has the element {}", p);
  const Value regions = widen(n[1]);
  const Value scale = like(regions, n.real("spatial_scale", 1));
  const Dim& count = regions.dim(0);
  const auto edge = [&](Index i) { return reshape(component(regions, i), {count, 1}) * scale; };
  const Value items = item_numbers(n, cast(component(regions, 0), DType::i64), x.dim(0));
  const Value down = part_members(n, edge(2), edge(4), (*shape)[0], x.dim(2));
  const Value across = part_members(n, edge(1), edge(3), (*shape)[1], x.dim(3));
  const Value images = gather(x, items, 0), none = like(images, -INFINITY);
  // Along each axis the elements of every part; [R, C, PY, H, W], then [R, C, PY, PX, W].
  const auto beside = [&](Value v) { return reshape(v, {count, v.dim(1), v.dim(2), v.dim(3)}); };
  const Value image = beside(images);
  const Value tall = reshape(image, {count, x.dim(1), 1, x.dim(2), x.dim(3)});
  const Value rows = max(select(reshape(down, {count, 1, (*shape)[0], x.dim(2), 1}), tall, none), {3});
  const Value wide = reshape(rows, {count, x.dim(1), (*shape)[0], 1, x.dim(3)});
  const Value y = max(select(reshape(across, {count, 1, 1, (*shape)[1], x.dim(3)}), wide, none), {4});
  // A part without elements gives 0.
  const Value some_down = max(cast(down, DType::i32), {2}), some_across = max(cast(across, DType::i32), {2});
  const Value some = reshape(some_down, {count, 1, (*shape)[0], 1}) * reshape(some_across, {count, 1, 1, (*shape)[1]});
  return {select(equal(some, like(some, 0)), like(y, 0), y)};
}

// --- DeformConv ---

// Coordinates along an axis of all taps of all windows, [N * offset groups, taps * windows].
Value deformed(NodeArgs& n, const NodeWindows& g, std::size_t axis, Value offset, Index taps_inside) {
  const Windows& w = g.windows;
  Builder& b = n.builder();
  const Index tap_count = product(w.kernel).constant();
  std::vector<std::int64_t> taps;
  for (Index t = 0; t < tap_count; ++t) {
    taps.push_back(t / taps_inside % w.kernel[axis].constant() * w.dilations[axis]);
  }
  const Value tap = constant(b, Tensor::of<std::int64_t>(DType::i64, {1, tap_count, 1}, taps));
  const Value window = reshape(iota(b, DType::i64, w.sizes, static_cast<Index>(axis)), {1, 1, product(w.sizes)});
  const Value stride = constant(b, DType::i64, static_cast<double>(w.strides[axis]));
  const Value start = window * stride + tap - n.known(DType::i64, {w.before[axis]}, false);
  const Value at = offset + cast(start, offset.dtype());
  return reshape(at, {offset.dim(0), tap_count * product(w.sizes)});
}

Values deform_conv(NodeArgs& n) {
  n.expect(3, 5);
  const Value x = n[0], w = n[1];
  require_floats(x, "operand 0 is");
  require(w.rank() == x.rank() && x.rank() >= 3, "the weight is {} for an operand {}", w.type().text(),
          x.type().text());
  const NodeWindows g = node_windows(n, x.type(), {w.type().dims.begin() + 2, w.type().dims.end()}, false);
  const std::vector<Dim>& kernel = g.windows.kernel;
  for (const Dim& k : kernel) require(k.is_constant(), "the kernel has the size {}, expected a number", k.text());
  const Index axes = x.rank() - 2, taps = product(kernel).constant();
  const Index groups = n.integer("group", 1), offset_groups = n.integer("offset_group", 1);
  require(groups >= 1 && offset_groups >= 1, "{} groups and {} of offsets, expected 1 or more", groups, offset_groups);
  const Dim &items = x.dim(0), &channels = x.dim(1);
  const Dim count = product(g.windows.sizes), parts = items * offset_groups;
  const Dim each = floordiv(channels, offset_groups);
  n.builder().check(each * offset_groups, channels, "channels of DeformConv and its groups of offsets");
  n.builder().check(w.dim(1) * groups, channels, "channels of DeformConv and its weight");
  const auto grouped = [&](Value v, Index inner, const char* what) {
    require(v.rank() == x.rank(), "{} {}, expected the rank {} of operand 0", what, v.type().text(), x.rank());
    n.builder().check(v.dim(0), items, "items of DeformConv");
    n.builder().check(v.dim(1), offset_groups * taps * inner, "offsets of DeformConv and its taps");
    for (Index i = 0; i < axes; ++i) {
      n.builder().check(v.dim(i + 2), g.windows.sizes[static_cast<std::size_t>(i)], "windows of DeformConv");
    }
    return reshape(widen(v), {parts, taps, inner, count});
  };
  const Value offsets = grouped(n[2], axes, "offsets are");
  std::vector<Value> at;
  Index inside = taps;
  for (Index i = 0; i < axes; ++i) {
    inside /= kernel[static_cast<std::size_t>(i)].constant();
    const Value along = reshape(slice(offsets, 2, i, i + 1), {parts, taps, count});
    at.push_back(deformed(n, g, static_cast<std::size_t>(i), along, inside));
  }
  std::vector<Dim> images{parts, each};
  images.insert(images.end(), x.type().dims.begin() + 2, x.type().dims.end());
  Value columns = Sampler(widen(reshape(x, images)), Sampler::Edge::zeros, true).linear(at);
  if (n.has(4)) columns = columns * reshape(grouped(n[4], 1, "the mask is"), {parts, 1, taps * count});
  const Dim inner = w.dim(1) * taps, results = floordiv(w.dim(0), groups);
  const Value weight = reshape(widen(w), {groups, results, inner});
  std::vector<Dim> dims{items, w.dim(0)};
  dims.insert(dims.end(), g.windows.sizes.begin(), g.windows.sizes.end());
  Value y = reshape(matmul(weight, reshape(columns, {items, groups, inner, count})), dims);
  if (n.has(3)) y = y + along_channels(widen(n[3]), y.rank());
  return {cast(y, x.dtype())};
}

}  // namespace

OperatorRows sampling_rows() {
  static constexpr OperatorRow rows[] = {
      {"GridSample", 16, grid_sample}, {"AffineGrid", 20, affine_grid}, {"RoiAlign", 10, roi_align},
      {"MaxRoiPool", 1, max_roi_pool}, {"DeformConv", 19, deform_conv},
  };
  return rows;
}

}  // namespace rlx::onnx
