// conv: cross-correlation over one to three axes.
#pragma once

#include "ops/conv/conv_windows.h"

namespace rlx {

struct ConvAttrs {
  std::vector<Index> strides, dilations;  // one a windowed axis
  std::vector<Dim> before;                // padding in front of each windowed axis
  std::vector<Dim> sizes;                 // of the result's windowed axes; what lies behind the operand reads as 0
  Index groups = 1;
  static void fields(auto& a, auto&& f) {
    f("strides", a.strides);
    f("dilations", a.dilations);
    f("before", a.before);
    f("sizes", a.sizes);
    f("groups", a.groups);
  }
};
extern const Op<ConvAttrs> conv_op;

/// How a convolution is usually given; empty lists mean 1, 1, 0 and 0 for every axis.
struct ConvOptions {
  std::vector<Index> strides = {}, dilations = {};
  std::vector<Dim> before = {}, after = {};  // padding
  Index groups = 1;
};

/// The convolution whose sizes follow from padding at both ends; see the op.
Value conv(Value x, Value w, ConvOptions options = {});
Value conv(Value x, Value w, ConvAttrs attrs);

/// The windows of a kernel of type `w` [.., .., kernel..].
Windows conv_windows(const ConvAttrs& a, const TensorType& w);
/// The gradient of w[Co, C/groups, kernel..] in y = conv(x, w), for the cotangent `dy` of y.
Value conv_weight_gradient(const ConvAttrs& a, Value x, Value dy, const TensorType& w);

}  // namespace rlx
