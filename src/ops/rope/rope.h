// rope: rotary position embedding.
#pragma once

#include "ir/builder.h"

namespace rlx {

/// Which elements of a head are rotated together, i from 0 to n/2 - 1 of n rotated elements.
enum class RopePairing : std::uint8_t {
  neox,  // i and i + n/2
  gptj,  // 2i and 2i + 1
};
std::span<const std::string_view> enum_names(RopePairing);

struct RopeAttrs {
  RopePairing pairing = RopePairing::neox;
  Index head_size = 0;  // elements of a head, of which the last axis holds some; 0: the last axis is one head
  Index rotary = 0;     // elements of a head that are rotated, the first ones; 0: all
  static void fields(auto& a, auto&& f) {
    f("pairing", a.pairing);
    f("head_size", a.head_size);
    f("rotary", a.rotary);
  }
};
extern const Op<RopeAttrs> rope_op;

/// `x` with every head rotated by the angles of its position, whose cosines and sines are rows of the tables; see the
/// op's documentation. Rank-1 tables are rows of rotary/2 entries without gaps.
Value rope(Value x, Value cos, Value sin, RopeAttrs attrs = {});

}  // namespace rlx
