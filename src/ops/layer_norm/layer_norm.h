// layer_norm and rms_norm: rows scaled to unit variance or unit mean square.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct NormAttrs {
  Index axis = -1;  // the first normalised axis: a row spans it and all axes behind it
  double epsilon = 1e-5;
  static void fields(auto& a, auto&& f) {
    f("axis", a.axis);
    f("epsilon", a.epsilon);
  }
};
extern const Op<NormAttrs> layer_norm_op;
extern const Op<NormAttrs> rms_norm_op;

/// (x - mean) / sqrt(variance + epsilon), times gamma, plus beta. gamma and beta have the sizes of the normalised axes.
/// To normalise one inner axis alone, transpose it to the end.
Value layer_norm(Value x, NormAttrs attrs = {});
Value layer_norm(Value x, Value gamma, NormAttrs attrs = {});
Value layer_norm(Value x, Value gamma, Value beta, NormAttrs attrs = {});
/// x / sqrt(mean(x^2) + epsilon), times gamma.
Value rms_norm(Value x, NormAttrs attrs = {});
Value rms_norm(Value x, Value gamma, NormAttrs attrs = {});

}  // namespace rlx
