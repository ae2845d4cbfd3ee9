// Windows as gathers and their adjoint as scattered sums, axis by axis.
#include "ops/conv/conv_windows.h"

#include "core/error.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/pad/pad.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter_add/scatter_add.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"

namespace rlx {

namespace {

// Size of an axis with its padding at both ends, so that every tap of every window lies inside.
Dim padded_size(const Windows& w, std::size_t axis, const Dim& in) {
  const Dim reach = (w.sizes[axis] - 1) * w.strides[axis] + (w.kernel[axis] - 1) * w.dilations[axis] + 1;
  return max(w.before[axis] + in, reach);
}

// [kernel, sizes] positions in the padded axis.
Value positions(Builder& b, const Windows& w, std::size_t axis) {
  const std::vector<Dim> dims{w.kernel[axis], w.sizes[axis]};
  const Value tap = iota(b, DType::i64, dims, 0), window = iota(b, DType::i64, dims, 1);
  const auto times = [&](Value v, Index n) { return n == 1 ? v : v * like(v, static_cast<double>(n)); };
  return times(tap, w.dilations[axis]) + times(window, w.strides[axis]);
}

}  // namespace

Dim window_count(const Dim& in, const Dim& before, const Dim& after, const Dim& kernel, Index stride, Index dilation,
                 bool ceil) {
  require(stride > 0 && dilation > 0, "stride {} and dilation {} of a window, expected 1 or more", stride, dilation);
  const Dim room = before + in + after - (kernel - 1) * dilation - 1;
  const Dim whole =
      ceil ? min(ceildiv(room, stride) + 1, floordiv(in + before - 1, stride) + 1) : floordiv(room, stride) + 1;
  return whole.bounds().lo >= 0 ? whole : max(whole, 0);
}

void check_windows(const Windows& w, std::size_t axes) {
  require(axes >= 1 && axes <= 3, "{} windowed axes, expected 1 to 3", axes);
  const auto count = [&](std::size_t n, const char* what) {
    require(n == axes, "{} {} are given for {} windowed axes", n, what, axes);
  };
  count(w.kernel.size(), "kernel sizes");
  count(w.strides.size(), "strides");
  count(w.dilations.size(), "dilations");
  count(w.before.size(), "paddings");
  count(w.sizes.size(), "sizes");
  for (std::size_t i = 0; i < axes; ++i) {
    require(w.kernel[i].bounds().hi > 0, "kernel size {} of axis {}, expected 1 or more", w.kernel[i].text(), i);
    require(w.strides[i] > 0, "stride {} of axis {}, expected 1 or more", w.strides[i], i);
    require(w.dilations[i] > 0, "dilation {} of axis {}, expected 1 or more", w.dilations[i], i);
    require(w.before[i].bounds().lo >= 0, "padding {} of axis {}, expected 0 or more", w.before[i].text(), i);
    require(w.sizes[i].bounds().lo >= 0, "size {} of axis {}, expected 0 or more", w.sizes[i].text(), i);
  }
}

Value windows(Value x, const Windows& w, double fill) {
  const std::size_t axes = w.kernel.size(), lead = x.type().dims.size() - axes;
  PadAttrs padding{x.type().dims, std::vector<Dim>(x.type().dims.size(), Dim(0)), {}, fill};
  for (std::size_t i = 0; i < axes; ++i) {
    padding.dims[lead + i] = padded_size(w, i, x.dim(static_cast<Index>(lead + i)));
    padding.starts[lead + i] = w.before[i];
  }
  Value v = pad(x, std::move(padding));
  for (std::size_t i = axes; i-- > 0;) v = gather(v, positions(*x.builder, w, i), static_cast<Index>(lead + i));
  std::vector<Index> order;
  for (std::size_t i = 0; i < lead; ++i) order.push_back(static_cast<Index>(i));
  for (const std::size_t part : {0U, 1U}) {
    for (std::size_t i = 0; i < axes; ++i) order.push_back(static_cast<Index>(lead + 2 * i + part));
  }
  return transpose(v, std::move(order));
}

Value fold(Value columns, const Windows& w, const std::vector<Dim>& dims) {
  const std::size_t axes = w.kernel.size(), lead = columns.type().dims.size() - 2 * axes;
  std::vector<Index> order;
  for (std::size_t i = 0; i < lead; ++i) order.push_back(static_cast<Index>(i));
  for (std::size_t i = 0; i < axes; ++i) {
    order.push_back(static_cast<Index>(lead + i));
    order.push_back(static_cast<Index>(lead + axes + i));
  }
  Value v = transpose(columns, std::move(order));
  for (std::size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<Index>(lead + i);
    v = scatter_add(v, positions(*v.builder, w, i), axis, padded_size(w, i, dims[i]));
  }
  for (std::size_t i = 0; i < axes; ++i) {
    v = slice(v, static_cast<Index>(lead + i), w.before[i], w.before[i] + dims[i]);
  }
  return v;
}

WindowNumbers window_numbers(const Windows& w, std::span<const Index> in, const DimEnv& dims) {
  WindowNumbers n;
  const std::size_t axes = w.kernel.size(), skip = 3 - axes;
  for (std::size_t i = 0; i < axes; ++i) {
    n.in[skip + i] = in[i];
    n.kernel[skip + i] = w.kernel[i].evaluate(dims);
    n.out[skip + i] = w.sizes[i].evaluate(dims);
    n.stride[skip + i] = w.strides[i];
    n.dilation[skip + i] = w.dilations[i];
    n.before[skip + i] = w.before[i].evaluate(dims);
  }
  return n;
}

}  // namespace rlx
