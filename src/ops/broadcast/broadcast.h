// broadcast: repeats axes of size 1.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct BroadcastAttrs {
  std::vector<Dim> dims;
  static void fields(auto& a, auto&& f) { f("dims", a.dims); }
};
extern const Op<BroadcastAttrs> broadcast_op;

/// `x` stretched to `dims`, right-aligned; `x` itself when these are its sizes.
Value broadcast(Value x, std::vector<Dim> dims);
/// The adjoint: sums over the axes along which `x` was stretched from `dims`, and drops padded axes.
Value sum_to(Value x, const std::vector<Dim>& dims);

}  // namespace rlx
