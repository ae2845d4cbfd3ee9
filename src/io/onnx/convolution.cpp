// Convolutions, pools and what goes with them: Conv, ConvTranspose, CausalConvWithState, MaxPool, AveragePool, LpPool,
// global pools, MaxUnpool, Col2Im.
#include <algorithm>

#include "core/error.h"
#include "io/onnx/window_nodes.h"
#include "ops/broadcast/broadcast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/iota/iota.h"
#include "ops/pad/pad.h"
#include "ops/pool/pool.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter_add_along/scatter_add_along.h"
#include "ops/slice/slice.h"

namespace rlx::onnx {

std::vector<Index> axis_list(NodeArgs& n, std::string_view name, std::size_t axes, Index standard) {
  const auto given = n.integers(name);
  if (!given) return std::vector<Index>(axes, standard);
  require(given->size() == axes, "{} has {} elements, expected {}", in_quotes(name), given->size(), axes);
  return *given;
}

namespace {

constexpr Index most_step = Index{1} << 30;

std::vector<Index> steps(NodeArgs& n, std::string_view name, std::size_t axes) {
  std::vector<Index> all = axis_list(n, name, axes, 1);
  for (const Index s : all) require(s >= 1 && s <= most_step, "{} has the element {}", in_quotes(name), s);
  return all;
}

std::vector<Dim> kernel_sizes(NodeArgs& n, std::vector<Dim> of_weight) {
  const auto given = n.integers("kernel_shape");
  if (of_weight.empty()) {
    require(given.has_value(), "attribute \"kernel_shape\" is missing");
    for (const Index k : *given) require(k >= 1 && k <= most_step, "\"kernel_shape\" has the element {}", k);
    return {given->begin(), given->end()};
  }
  require(!given || given->size() == of_weight.size(), "\"kernel_shape\" has {} elements, the weight {} such axes",
          given ? given->size() : 0, of_weight.size());
  for (std::size_t i = 0; given && i < of_weight.size(); ++i) {
    n.builder().check(of_weight[i], (*given)[i], "kernel_shape and the weight");
  }
  return of_weight;
}

Dim reach(const Dim& kernel, Index dilation) { return (kernel - 1) * dilation + 1; }

Dim half(const Dim& total, bool upper) { return upper ? floordiv(total, 2) : ceildiv(total, 2); }

enum class AutoPad : std::uint8_t { none, same_upper, same_lower, valid };
AutoPad auto_pad(NodeArgs& n) {
  const std::string word = n.string("auto_pad", "NOTSET");
  if (word == "SAME_UPPER") return AutoPad::same_upper;
  if (word == "SAME_LOWER") return AutoPad::same_lower;
  if (word == "VALID") return AutoPad::valid;
  require(word == "NOTSET", "auto_pad {} is unknown", in_quotes(word));
  return AutoPad::none;
}

std::span<const Dim> inner_dims(const TensorType& x) {
  require(x.rank() >= 3 && x.rank() <= 5, "operand 0 is {}, expected rank 3 to 5", x.text());
  return std::span(x.dims).subspan(2);
}

}  // namespace

NodeWindows node_windows(NodeArgs& n, const TensorType& x, std::vector<Dim> kernel, bool ceil) {
  const std::span<const Dim> in = inner_dims(x);
  const std::size_t axes = in.size();
  NodeWindows w;
  w.windows.kernel = kernel_sizes(n, std::move(kernel));
  require(w.windows.kernel.size() == axes, "a kernel of {} axes over {}", w.windows.kernel.size(), x.text());
  w.windows.strides = steps(n, "strides", axes);
  w.windows.dilations = steps(n, "dilations", axes);
  const AutoPad mode = auto_pad(n);
  const std::vector<Index> pads = axis_list(n, "pads", 2 * axes, 0);
  for (const Index p : pads) require(p >= 0 && p <= most_step, "\"pads\" has the element {}, expected 0 or more", p);
  for (std::size_t i = 0; i < axes; ++i) {
    const Dim& k = w.windows.kernel[i];
    const Index stride = w.windows.strides[i], dilation = w.windows.dilations[i];
    if (mode == AutoPad::same_upper || mode == AutoPad::same_lower) {
      const Dim count = ceildiv(in[i], stride);
      const Dim total = max((count - 1) * stride + reach(k, dilation) - in[i], 0);
      w.windows.before.push_back(half(total, mode == AutoPad::same_upper));
      w.after.push_back(total - w.windows.before.back());
      w.windows.sizes.push_back(count);
      continue;
    }
    const bool given = mode == AutoPad::none;
    w.windows.before.emplace_back(given ? pads[i] : 0);
    w.after.emplace_back(given ? pads[axes + i] : 0);
    w.windows.sizes.push_back(window_count(in[i], w.windows.before[i], w.after[i], k, stride, dilation, ceil && given));
  }
  return w;
}

Value along_channels(Value v, Index rank) {
  require(v.rank() == 1, "a value for the channels is {}, expected rank 1", v.type().text());
  std::vector<Dim> dims(static_cast<std::size_t>(rank - 1), Dim(1));
  dims[0] = v.dim(0);
  return reshape(v, std::move(dims));
}

namespace {

std::vector<Dim> weight_kernel(const TensorType& x, const TensorType& w) {
  require(w.rank() == x.rank(), "the weight is {}, expected the rank {} of operand 0", w.text(), x.rank());
  return {w.dims.begin() + 2, w.dims.end()};
}

Value with_bias(NodeArgs& n, Value y) { return n.has(2) ? y + along_channels(n[2], y.rank()) : y; }

Values conv_operator(NodeArgs& n) {
  n.expect(2, 3);
  const Value x = n[0], w = n[1];
  inner_dims(x.type());
  const NodeWindows g = node_windows(n, x.type(), weight_kernel(x.type(), w.type()), false);
  const Windows& s = g.windows;
  return {with_bias(n, conv(x, w, ConvAttrs{s.strides, s.dilations, s.before, s.sizes, n.integer("group", 1)}))};
}

// Depthwise, over what was before and the operand; the state is the end of that.
Values causal_conv_with_state(NodeArgs& n) {
  n.expect(2, 4);
  const Value x = n[0], w = n[1];
  require(x.rank() == 3 && w.rank() == 3 && w.dim(1) == Dim(1), "operands are {} and {}, expected [N, C, L], [C, 1, K]",
          x.type().text(), w.type().text());
  const std::string after = n.string("activation", "none");
  require(after == "none" || after == "silu" || after == "swish", "activation {} is unknown", in_quotes(after));
  const Dim &items = x.dim(0), &channels = x.dim(1), &length = x.dim(2), before = w.dim(2) - 1;
  require(channels.is_constant(), "operand 0 is {}, expected a known number of channels", x.type().text());
  require(channels.constant() >= 1, "operand 0 is {}, expected a channel", x.type().text());
  n.builder().check(w.dim(0), channels, "channels of the weight and of the operand");
  Value past = broadcast(like(x, 0), {items, channels, before});
  if (n.has(3)) {
    require(n[3].rank() == 3, "the state is {}, expected rank 3", n[3].type().text());
    n.builder().check(n[3].dim(0), items, "items of the state and of the operand");
    n.builder().check(n[3].dim(1), channels, "channels of the state and of the operand");
    n.builder().check(n[3].dim(2), before, "length of the state, and of the kernel less 1");
    past = reshape(n[3], past.type().dims);
  }
  const Value all = concat({past, x}, 2);
  Value y = conv(all, w, ConvAttrs{{1}, {1}, {0}, {length}, channels.constant()});
  if (n.has(2)) y = y + along_channels(n[2], 3);
  if (after != "none") y = silu(y);
  return {y, slice(all, 2, length, length + before)};
}

Values conv_transpose_operator(NodeArgs& n) {
  n.expect(2, 3);
  const Value x = n[0], w = n[1];
  const std::span<const Dim> in = inner_dims(x.type());
  const std::size_t axes = in.size();
  const std::vector<Dim> kernel = kernel_sizes(n, weight_kernel(x.type(), w.type()));
  ConvAttrs a{steps(n, "strides", axes), steps(n, "dilations", axes), {}, {}, n.integer("group", 1)};
  const std::vector<Index> more = axis_list(n, "output_padding", axes, 0);
  const AutoPad mode = auto_pad(n);
  const bool same = mode == AutoPad::same_upper || mode == AutoPad::same_lower;
  const auto shape = n.integers("output_shape"), pads = n.integers("pads");
  // Some exporters state the first two axes as well.
  const std::size_t skip = shape && shape->size() == axes + 2 ? 2 : 0;
  require(!shape || shape->size() == axes + skip, "\"output_shape\" has {} elements, expected {}",
          shape ? shape->size() : 0, axes);
  require(!pads || pads->size() == 2 * axes, "\"pads\" has {} elements, expected {}", pads ? pads->size() : 0,
          2 * axes);
  for (std::size_t i = 0; i < axes; ++i) {
    require(more[i] >= 0 && more[i] <= most_step, "\"output_padding\" has the element {}", more[i]);
    const Dim full = (in[i] - 1) * a.strides[i] + more[i] + reach(kernel[i], a.dilations[i]);
    if (!shape && !same) {
      const Index front = pads ? (*pads)[i] : 0, back = pads ? (*pads)[axes + i] : 0;
      require(front >= 0 && back >= 0 && front <= most_step && back <= most_step, "\"pads\" has a negative element");
      a.before.emplace_back(front);
      a.sizes.push_back(full - front - back);
      continue;
    }
    a.sizes.push_back(shape ? Dim((*shape)[skip + i]) : in[i] * a.strides[i]);
    // Of an odd padding the larger half is in front, unless it is said to be behind; before version 11 the other way.
    const bool behind = n.opset() >= 11 ? mode == AutoPad::same_upper : mode != AutoPad::same_lower;
    a.before.push_back(half(max(full - a.sizes[i], 0), behind));
  }
  return {with_bias(n, conv_transpose(x, w, std::move(a)))};
}

std::vector<Index> numbers_of(const std::vector<Dim>& dims) {
  std::vector<Index> all;
  for (const Dim& d : dims) all.push_back(d.constant());
  return all;
}

PoolAttrs pool_attrs(NodeArgs& n, PoolKind kind, NodeWindows* found = nullptr) {
  NodeWindows w = node_windows(n, n[0].type(), {}, n.integer("ceil_mode", 0) != 0);
  const Windows& s = w.windows;
  PoolAttrs a{kind, numbers_of(s.kernel), s.strides, s.dilations, s.before, s.sizes, {}};
  if (found) *found = std::move(w);
  return a;
}

// Places within a plane as places within the whole tensor.
Value whole_places(NodeArgs& n, Value places, Value x, bool column_major) {
  Builder& b = n.builder();
  const std::span<const Dim> in = inner_dims(x.type());
  const auto number = [&](const Dim& d) { return n.known(DType::i64, {d}, false); };
  Value at = places;
  if (column_major) {
    // The coordinates, last axis first, each times the product of the axes before it.
    Dim before = product(in);
    std::optional<Value> sum;
    Value rest = places;
    for (std::size_t i = in.size(); i-- > 0;) {
      before = floordiv(before, in[i]);
      const Value size = number(in[i]), quotient = rest / size;
      const Value part = (rest - quotient * size) * number(before);
      sum = sum ? *sum + part : part;
      rest = quotient;
    }
    at = *sum;
  }
  const std::vector<Dim> heads{x.dim(0), x.dim(1)};
  std::vector<Dim> dims = heads;
  dims.resize(places.type().dims.size(), Dim(1));
  const Value plane = reshape(iota(b, DType::i64, {x.dim(0) * x.dim(1)}, 0), dims);
  return at + plane * number(product(in));
}

Values max_pool(NodeArgs& n) {
  n.expect(1, 1);
  const Index order = n.integer("storage_order", 0);
  require(order == 0 || order == 1, "storage_order is {}, expected 0 or 1", order);
  const PoolAttrs a = pool_attrs(n, PoolKind::max);
  const Value y = pool(n[0], a);
  if (!n.wants(1)) return {y};
  return {y, whole_places(n, pool_index(n[0], a), n[0], order == 1)};
}

Values average_pool(NodeArgs& n) {
  n.expect(1, 1);
  NodeWindows w;
  PoolAttrs a = pool_attrs(n, PoolKind::mean, &w);
  if (n.integer("count_include_pad", 0) != 0) a.counted = w.after;
  return {pool(n[0], std::move(a))};
}

double norm_order(NodeArgs& n) {
  const Index p = n.integer("p", 2);
  require(p >= 1 && p <= 64, "p is {}, expected 1 to 64", p);
  return static_cast<double>(p);
}

Value powers(Value x, double p) { return p == 1 ? abs(x) : p == 2 ? x * x : pow(abs(x), like(x, p)); }
Value root(Value x, double p) { return p == 1 ? x : p == 2 ? sqrt(x) : pow(x, like(x, 1 / p)); }

Values lp_pool(NodeArgs& n) {
  n.expect(1, 1);
  n.ignore("count_include_pad");
  const double p = norm_order(n);
  const PoolAttrs a = pool_attrs(n, PoolKind::sum);
  return {root(pool(powers(n[0], p), a), p)};
}

std::vector<Index> inner_axes(Value x) {
  require(x.rank() >= 2, "operand 0 is {}, expected rank 2 or more", x.type().text());
  std::vector<Index> axes;
  for (Index i = 2; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

Values global_average_pool(NodeArgs& n) {
  n.expect(1, 1);
  return {mean(n[0], inner_axes(n[0]), true)};
}

Values global_max_pool(NodeArgs& n) {
  n.expect(1, 1);
  return {max(n[0], inner_axes(n[0]), true)};
}

Values global_lp_pool(NodeArgs& n) {
  n.expect(1, 1);
  const double p = norm_order(n);
  return {root(sum(powers(n[0], p), inner_axes(n[0]), true), p)};
}

// The places count within the tensor that the attributes describe, in which windows lie from its first elements on.
Values max_unpool(NodeArgs& n) {
  n.expect(2, 3);
  const Value x = n[0], places = n[1];
  const std::span<const Dim> in = inner_dims(x.type());
  const std::size_t axes = in.size();
  const std::vector<Dim> kernel = kernel_sizes(n, {});
  require(kernel.size() == axes, "a kernel of {} axes over {}", kernel.size(), x.type().text());
  const std::vector<Index> strides = steps(n, "strides", axes), pads = axis_list(n, "pads", 2 * axes, 0);
  std::vector<Dim> dims{x.dim(0), x.dim(1)};
  for (std::size_t i = 0; i < axes; ++i) {
    dims.push_back((in[i] - 1) * strides[i] - pads[i] - pads[axes + i] + kernel[i]);
  }
  const Value whole =
      scatter_add_along(reshape(x, {x.type().count()}), reshape(places, {places.type().count()}), 0, {product(dims)});
  const Value y = reshape(whole, dims);
  if (!n.has(2)) return {y};
  const std::vector<Dim> target = n.sizes(2);
  require(target.size() == dims.size(), "the output shape has {} elements, expected {}", target.size(), dims.size());
  return {pad(y, PadAttrs{target, std::vector<Dim>(dims.size(), Dim(0)), {}, 0})};
}

Values col2im(NodeArgs& n) {
  n.expect(3, 3);
  const Value x = n[0];
  const std::vector<Dim> image = n.sizes(1);
  const std::vector<Index> block = n.numbers(2);
  const std::size_t axes = block.size();
  require(x.rank() == 3 && axes >= 1 && axes <= 3 && image.size() == axes,
          "operands are {}, {} image sizes and {} block sizes", x.type().text(), image.size(), axes);
  for (const Index k : block) require(k >= 1 && k <= most_step, "a block size is {}", k);
  const std::vector<Index> pads = axis_list(n, "pads", 2 * axes, 0);
  Windows w{{block.begin(), block.end()}, steps(n, "strides", axes), steps(n, "dilations", axes), {}, {}};
  for (std::size_t i = 0; i < axes; ++i) {
    require(pads[i] >= 0 && pads[axes + i] >= 0, "\"pads\" has a negative element");
    w.before.emplace_back(pads[i]);
    w.sizes.push_back(window_count(image[i], pads[i], pads[axes + i], block[i], w.strides[i], w.dilations[i]));
  }
  std::vector<Dim> dims{x.dim(0), floordiv(x.dim(1), product(w.kernel))};
  dims.insert(dims.end(), w.kernel.begin(), w.kernel.end());
  dims.insert(dims.end(), w.sizes.begin(), w.sizes.end());
  return {fold(reshape(x, std::move(dims)), w, image)};
}

}  // namespace

OperatorRows convolution_rows() {
  static constexpr OperatorRow rows[] = {
      {"Conv", 1, conv_operator},
      {"CausalConvWithState", 27, causal_conv_with_state},
      {"ConvTranspose", 1, conv_transpose_operator},
      {"MaxPool", 1, max_pool},
      {"AveragePool", 1, average_pool},
      {"LpPool", 2, lp_pool},
      {"GlobalAveragePool", 1, global_average_pool},
      {"GlobalMaxPool", 1, global_max_pool},
      {"GlobalLpPool", 2, global_lp_pool},
      {"MaxUnpool", 9, max_unpool},
      {"Col2Im", 18, col2im},
  };
  return rows;
}

}  // namespace rlx::onnx
