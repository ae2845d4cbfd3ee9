// Convolutions of f32 by panels of weights: every sum is made in registers, for a few windows and all channels of a
// panel at a time, from the operand itself or from a copy of a part of it with its padding.
#pragma once

#include <memory>
#include <optional>

#include "device/step.h"
#include "ops/conv/conv.h"
#include "ops/scalar/region.h"

namespace rlx {

/// Where results go, and what becomes of them on the way.
struct ConvEnd {
  std::optional<Token<float, Access::write>> out = {};     // or a stage takes them
  std::shared_ptr<const region::Program> stage = nullptr;  // what the kernel does not do itself
  std::optional<Token<float, Access::read>> bias = {};     // one a channel
  bool relu = false;
};

/// Whether there are kernels for these operands: constant weights of enough channels, one or two axes.
bool takes_panels(const ConvAttrs& a, const Slot& x, const Slot& w);

/// The step, in a builder that has declared what `end` uses.
Step panel_conv(StepBuilder& s, const ConvAttrs& a, const Slot& x, const Slot& w, ConvEnd end);

}  // namespace rlx
