// attention: scaled dot-product attention with masks, grouped heads and a soft cap.
#pragma once

#include "ir/builder.h"

namespace rlx {

/// Axes of q, k, v and the result: B batch, S positions, H heads, D elements of a head.
enum class AttentionLayout : std::uint8_t {
  bhsd,    // [B,H,S,D]
  bshd,    // [B,S,H,D]
  packed,  // [B,S,H*D]
};
std::span<const std::string_view> enum_names(AttentionLayout);

/// Which keys a query sees by their positions.
enum class AttentionMask : std::uint8_t {
  none,    // all
  causal,  // those up to its own position
  window,  // the last `window` of those, its own position included
};
std::span<const std::string_view> enum_names(AttentionMask);

/// What the fourth operand is; it acts on top of `mask`.
enum class AttentionExtra : std::uint8_t {
  none,   // there is none
  keys,   // [B|1,S_k]: a key is visible where true, an integer is not 0, or a float is at least 0.5
  pairs,  // bool [B|1,H|1,S_q|1,S_k|1]: a key is visible to a query where true
  bias,   // [B|1,H|1,S_q|1,S_k|1], added to the scores; -inf hides
};
std::span<const std::string_view> enum_names(AttentionExtra);

struct AttentionAttrs {
  AttentionLayout layout = AttentionLayout::bhsd;
  AttentionMask mask = AttentionMask::none;
  AttentionExtra extra = AttentionExtra::none;
  Index heads = 0;              // of q; required by the packed layout, else 0 or what the shape says
  std::optional<double> scale;  // none: 1 / sqrt(D)
  double soft_cap = 0;          // 0: none
  Index window = 0;             // keys in the window, at least 1; 0 for the other masks
  std::optional<Dim> offset;    // position of query 0 among the keys; none: max(0, S_k - S_q); 0: top-left
  static void fields(auto& a, auto&& f) {
    f("layout", a.layout);
    f("mask", a.mask);
    f("extra", a.extra);
    f("heads", a.heads);
    f("scale", a.scale);
    f("soft_cap", a.soft_cap);
    f("window", a.window);
    f("offset", a.offset);
  }
};
extern const Op<AttentionAttrs> attention_op;

/// softmax(scale * q k^T) v per head; see the op's documentation.
Value attention(Value q, Value k, Value v, AttentionAttrs attrs = {});
/// The same with the operand that `attrs.extra` describes.
Value attention(Value q, Value k, Value v, Value extra, AttentionAttrs attrs);

}  // namespace rlx
