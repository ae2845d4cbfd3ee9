// Convolutions of f32 by panels of weights: every sum is made in registers, for a few windows and all channels of a
// panel at a time, from the operand itself or from a copy of a part of it with its padding.
#pragma once

#include <memory>
#include <optional>

#include "device/step.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv.kernel.h"
#include "ops/scalar/region.h"

namespace rlx {

/// Where results go, and what becomes of them on the way.
struct ConvEnd {
  std::optional<Token<float, Access::write>> out = {};     // or a stage takes them
  std::shared_ptr<const region::Program> stage = nullptr;  // what the kernel does not do itself
  std::optional<Token<float, Access::read>> bias = {};     // one a channel
  ConvActivation activation = ConvActivation::none;
  float slope = 0;
};

/// A box of the last two axes of an image, which may begin before it and end behind it.
struct StripBox {
  Index top = 0, left = 0, high = 0, wide = 0;
};
/// Where the first element of a box is, and distances of channels and lines.
struct StripSource {
  const float* x;
  Index plane, pitch;
};
/// The box of all channels of `image` [channels, high, wide]: where it lies, or a copy in `strip` with zeros around,
/// which has room for a pack more than its elements.
StripSource strip_source(const WindowKernels& kernels, const float* image, Index channels, Index high, Index wide,
                         const StripBox& box, float* strip);

/// Whether there are kernels for these operands: constant weights of enough channels, one or two axes.
bool takes_panels(const ConvAttrs& a, const Slot& x, const Slot& w);

/// The step, in a builder that has declared what `end` uses.
Step panel_conv(StepBuilder& s, const ConvAttrs& a, const Slot& x, const Slot& w, ConvEnd end);

}  // namespace rlx
