// Images and channels: norms over groups of them and over batches, LRN, DepthToSpace, SpaceToDepth, CenterCropPad.
#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "io/onnx/window_nodes.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/pad/pad.h"
#include "ops/pool/pool.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

// Mean 0 and variance 1 over groups of channels.
Value group_normalized(Value x, const Dim& groups, double epsilon) {
  require(x.rank() >= 3, "operand 0 is {}, expected rank 3 or more", x.type().text());
  const std::span<const Dim> dims(x.type().dims);
  const Dim each = floordiv(dims[1], groups);
  x.builder->check(each * groups, dims[1], "channels of the groups of a norm");
  const Value rows = reshape(x, {dims[0], groups, each * product(dims.subspan(2))});
  return reshape(layer_norm(rows, {.axis = 2, .epsilon = epsilon}), {dims.begin(), dims.end()});
}

Values instance_normalization(NodeArgs& n) {
  n.expect(3, 3);
  const Value x = n[0];
  const Value y = group_normalized(x, x.dim(1), n.real("epsilon", 1e-5F));
  return {y * along_channels(n[1], x.rank()) + along_channels(n[2], x.rank())};
}

// Before version 21 scale and bias are given for each group, not for each channel.
Values group_normalization(NodeArgs& n) {
  n.expect(3, 3);
  const Value x = n[0];
  const Index groups = n.integer("num_groups");
  require(groups >= 1, "num_groups is {}, expected 1 or more", groups);
  const double epsilon = n.real("epsilon", 1e-5F);
  if (n.opset() >= 21) {
    const Index stash = n.integer("stash_type", 1);
    require(stash == 1, "stash_type {} is not supported, only 1 (FLOAT) is", stash);
    const Value y = group_normalized(x, groups, epsilon);
    return {y * along_channels(n[1], x.rank()) + along_channels(n[2], x.rank())};
  }
  const Value y = group_normalized(x, groups, epsilon);
  const std::vector<Dim> dims = x.type().dims;
  const Value rows = reshape(y, {dims[0], groups, floordiv(product(std::span(dims).subspan(1)), groups)});
  const auto each = [&](Value v) {
    require(v.rank() == 1, "a value for the groups is {}, expected rank 1", v.type().text());
    return reshape(v, {v.dim(0), 1});
  };
  return {reshape(rows * each(n[1]) + each(n[2]), dims)};
}

// One value a channel, for a tensor of this rank; of rank 1 it has one channel, without an axis.
Value of_channels(Value v, const TensorType& x, bool spatial) {
  if (!spatial) {  // one value for each element of an item
    require(v.type().dims == std::vector<Dim>(x.dims.begin() + 1, x.dims.end()),
            "a value for the elements is {}, expected the sizes of {} behind the first", v.type().text(), x.text());
    return v;
  }
  if (x.rank() > 1) return along_channels(v, x.rank());
  require(v.type().dims == std::vector<Dim>{Dim(1)}, "a value for the only channel is {}", v.type().text());
  return v;
}

// Everything is computed in the widest type of the operands, at least f32; results are rounded once.
Values batch_normalization(NodeArgs& n) {
  n.expect(5, 5);
  const Value given = n[0];
  const double epsilon = n.real("epsilon", 1e-5F), momentum = n.real("momentum", 0.9F);
  require(n.opset() >= 7 || n.integer("is_test", 0) != 0, "training before version 14 is not supported");
  const bool training = n.opset() >= 14 && n.integer("training_mode", 0) != 0;
  const bool spatial = n.opset() >= 9 || n.integer("spatial", 1) != 0;
  require(given.rank() >= 1, "operand 0 is {}, expected rank 1 or more", given.type().text());
  const bool wide = n[0].dtype() == DType::f64 || n[1].dtype() == DType::f64 || n[3].dtype() == DType::f64;
  const DType type = wide ? DType::f64 : DType::f32;
  const auto operand = [&](std::size_t i) {
    require(is_arithmetic_float(n[i].dtype()), "operand {} is {}, expected floats", i, n[i].type().text());
    return cast(n[i], type);
  };
  Value x = operand(0);
  const auto channel = [&](std::size_t i) { return of_channels(operand(i), x.type(), spatial); };
  Value middle = channel(3), variance = channel(4);
  Values more;
  if (training) {
    std::vector<Index> axes{0};
    for (Index i = 2; i < x.rank(); ++i) axes.push_back(i);
    // A mean far from 0 is rounded: what is left of it is taken away again.
    const Value rough = mean(x, axes, true), rest = mean(x - rough, axes, true), now = rough + rest;
    x = (x - rough) - rest;
    const Value spread = mean(x * x, axes, true);
    const auto joined = [&](std::size_t i, Value current) {
      const Value old = operand(i);
      const Value sum = old * like(old, momentum) + reshape(current, old.type().dims) * like(old, 1 - momentum);
      return cast(sum, n[i].dtype());
    };
    more = {joined(3, now), joined(4, spread)};
    middle = like(x, 0);
    variance = spread;
  }
  const Value factor = channel(1) / sqrt(variance + like(variance, epsilon));
  Values out{cast((x - middle) * factor + channel(2), given.dtype())};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

// x / (bias + alpha / size * sum of squares of the channels around)^beta
Values lrn(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  require(x.rank() >= 2, "operand 0 is {}, expected rank 2 or more", x.type().text());
  const Index size = n.integer("size");
  require(size >= 1 && size <= 65536, "size is {}, expected 1 to 65536", size);
  const double alpha = n.real("alpha", 1e-4F), beta = n.real("beta", 0.75), bias = n.real("bias", 1);
  const std::span<const Dim> dims(x.type().dims);
  const Value lines = reshape(x * x, {dims[0], dims[1], product(dims.subspan(2))});
  const PoolAttrs around{PoolKind::sum, {size, 1}, {1, 1}, {1, 1}, {(size - 1) / 2, 0}, {dims[1], lines.dim(2)}, {}};
  const Value sums = reshape(pool(lines, around), {dims.begin(), dims.end()});
  const Value base = sums * like(x, alpha / static_cast<double>(size)) + like(x, bias);
  return {x / pow(base, like(x, beta))};
}

Index block_size(NodeArgs& n) {
  const Index b = n.integer("blocksize");
  require(b >= 1 && b <= 65536, "blocksize is {}, expected 1 to 65536", b);
  require(n[0].rank() == 4, "operand 0 is {}, expected rank 4", n[0].type().text());
  return b;
}

Values depth_to_space(NodeArgs& n) {
  n.expect(1, 1);
  const Index b = block_size(n);
  const std::string mode = n.string("mode", "DCR");
  require(mode == "DCR" || mode == "CRD", "mode {} is unknown", in_quotes(mode));
  const std::vector<Dim> d = n[0].type().dims;
  const Dim depth = floordiv(d[1], b * b);
  n.builder().check(depth * (b * b), d[1], "channels of DepthToSpace and whole blocks");
  const Value y = mode == "DCR" ? transpose(reshape(n[0], {d[0], b, b, depth, d[2], d[3]}), {0, 3, 4, 1, 5, 2})
                                : transpose(reshape(n[0], {d[0], depth, b, b, d[2], d[3]}), {0, 1, 4, 2, 5, 3});
  return {reshape(y, {d[0], depth, d[2] * b, d[3] * b})};
}

Values space_to_depth(NodeArgs& n) {
  n.expect(1, 1);
  const Index b = block_size(n);
  const std::string mode = n.opset() >= 28 ? n.string("mode", "DCR") : "DCR";
  require(mode == "DCR" || mode == "CRD", "mode {} is unknown", in_quotes(mode));
  const std::vector<Dim> d = n[0].type().dims;
  const Dim high = floordiv(d[2], b), wide = floordiv(d[3], b);
  n.builder().check(high * b, d[2], "height of SpaceToDepth and whole blocks");
  n.builder().check(wide * b, d[3], "width of SpaceToDepth and whole blocks");
  const Value y =
      transpose(reshape(n[0], {d[0], d[1], high, b, wide, b}),
                mode == "DCR" ? std::vector<Index>{0, 3, 5, 1, 2, 4} : std::vector<Index>{0, 1, 3, 5, 2, 4});
  return {reshape(y, {d[0], d[1] * (b * b), high, wide})};
}

// The middle of an axis, or the axis in the middle of zeros; of an odd difference the smaller half is in front.
Values center_crop_pad(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0];
  const std::vector<Dim> wanted = n.sizes(1);
  std::vector<Index> axes;
  if (const auto given = n.integers("axes")) {
    axes = *given;
  } else {
    axes.resize(x.type().dims.size());
    std::iota(axes.begin(), axes.end(), Index{0});
  }
  require(wanted.size() == axes.size(), "{} sizes are given for {} axes", wanted.size(), axes.size());
  const std::vector<Dim> none(x.type().dims.size(), Dim(0));
  SliceAttrs middle{none, x.type().dims, {}};
  PadAttrs around{x.type().dims, none, {}, 0};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Index axis = axis_of(axes[i], x.rank());
    require(std::ranges::count(axes, axis) + std::ranges::count(axes, axis - x.rank()) == 1, "axis {} is listed twice",
            axis);
    const Dim &have = x.dim(axis), &want = wanted[i];
    require(want.bounds().lo >= 0, "size {} of axis {}, expected 0 or more", want.text(), axis);
    const auto at = static_cast<std::size_t>(axis);
    middle.starts[at] = floordiv(max(have - want, 0), 2);
    middle.sizes[at] = min(have, want);
    around.starts[at] = floordiv(max(want - have, 0), 2);
    around.dims[at] = want;
  }
  return {pad(slice(x, std::move(middle)), std::move(around))};
}

}  // namespace

OperatorRows image_rows() {
  static constexpr OperatorRow rows[] = {
      {"BatchNormalization", 1, batch_normalization},
      {"InstanceNormalization", 1, instance_normalization},
      {"GroupNormalization", 18, group_normalization},
      {"LRN", 1, lrn},
      {"CenterCropPad", 18, center_crop_pad},
      {"DepthToSpace", 1, depth_to_space},
      {"SpaceToDepth", 1, space_to_depth},
  };
  return rows;
}

}  // namespace rlx::onnx
