// Masks of written attention: what was added to the scores or put in their place, and what the op's mask, window and
// fourth operand are for it.
#pragma once

#include <optional>
#include <vector>

#include "ir/rewrite.h"
#include "ops/attention/attention.h"
#include "passes/pattern.h"

namespace rlx::pattern {

/// One step between scores and softmax.
struct MaskTerm {
  enum class Kind : std::uint8_t {
    bias,  // `at` is added
    less,  // `at` is subtracted
    fill,  // where the condition `at` is `fills_when`, `fill` stands in place of the score
  };
  Kind kind = Kind::bias;
  Operand at;
  bool fills_when = true;
  double fill = 0;
};

/// Sizes of the scores [B,H,Sq,Sk], of which a graph may leave out H, or both B and H.
struct ScoreSizes {
  Dim batch = 1, heads = 1, queries, keys;
  std::size_t rank = 4;
};

/// A condition that shows a key, with its negation resolved.
struct Condition {
  Operand at;
  bool shows_when = true;
  std::vector<Dim> dims;  // the sizes under which it stands beside the scores
};

struct MaskPlan {
  AttentionMask mask = AttentionMask::none;
  Index window = 0;
  std::optional<Dim> offset;
  std::vector<Condition> conditions;                             // hide with -inf
  std::vector<std::pair<Operand, bool>> biases;                  // added; subtracted where true
  std::vector<std::pair<std::vector<Condition>, double>> fills;  // as a bias: 0 where all show, else the number
  bool masks() const { return mask != AttentionMask::none || extra(); }
  bool extra() const { return !conditions.empty() || !biases.empty() || !fills.empty(); }
};

/// What attention on elements of type `dtype` needs to do the same as `terms` (the outermost first); nothing where it
/// cannot. A finite number added or filled in stays one, but for a causal fill with the lowest number: every row then
/// shows a key.
std::optional<MaskPlan> plan_mask(const Graph& g, const std::vector<MaskTerm>& terms, const ScoreSizes& sizes,
                                  DType dtype);

/// The fourth operand, and its kind in `attrs`; nothing for kind none.
std::optional<Value> mask_operand(Rewriter& r, const MaskPlan& plan, const ScoreSizes& sizes, DType dtype,
                                  AttentionAttrs& attrs);

/// Keys j that query i sees by position: offset + i - window < j <= offset + i, either bound alone.
struct Positions {
  std::optional<Dim> upper;  // j <= i + upper
  std::optional<Dim> lower;  // j >= i + lower
};
std::optional<Positions> positions_of(const Graph& g, const Condition& c);
/// Whether a comparison of positions shows every key.
bool always_shows(const Graph& g, const Condition& c);

}  // namespace rlx::pattern
