// scatter: elements of a tensor replaced by, or joined with, others at positions given by index.
#pragma once

#include "ir/builder.h"

namespace rlx {

enum class ScatterKind : std::uint8_t { none, add, mul, max, min };
std::span<const std::string_view> enum_names(ScatterKind);

struct ScatterAttrs {
  ScatterKind kind = ScatterKind::none;
  Index axis = 0;
  static void fields(auto& a, auto&& f) {
    f("kind", a.kind);
    f("axis", a.axis);
  }
};
extern const Op<ScatterAttrs> scatter_op;

/// `x`, into which each element of `updates` goes at its own coordinate, with that along `axis` replaced by its index.
Value scatter(Value x, Value updates, Value indices, Index axis, ScatterKind kind = ScatterKind::none);
/// `x`, into which slices go: the last axis of `indices` [..,K] names elements of the first K axes of `x`, and
/// `updates` has sizes indices[:-1] ++ x[K:]. Throws Error when K is no constant from 0 to the rank of `x`.
Value scatter_nd(Value x, Value updates, Value indices, ScatterKind kind = ScatterKind::none);
/// The rows of `indices` [..,K] as positions in the first K of these sizes joined to one axis, i64; one that lies
/// outside becomes a position that no axis has.
Value joined_positions(Value indices, std::span<const Dim> dims);

}  // namespace rlx
