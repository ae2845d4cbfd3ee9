// An encoded operand of a step: its planes as addresses, and rows of it decoded.
#pragma once

#include <vector>

#include "codecs/codec.h"
#include "device/step.h"

namespace rlx {

/// Reads an encoded operand whose blocks run along its last axis. One plane is read where it is; the planes of a
/// constant that has several are brought together first.
class EncodedSource {
 public:
  /// Whether a step can read this operand: it is dense, its blocks run along the last axis, and it is a constant or has
  /// one plane.
  static bool takes(const Slot& slot);
  /// Declares the use of an operand that takes() accepts.
  EncodedSource(StepBuilder& s, const Slot& slot);

  const Codec& codec() const { return *codec_; }
  Token<std::byte, Access::read> token() const { return data_; }
  Index block() const { return codec_->encoding->block; }
  /// Columns [column, column + count) of `rows` rows from `row` on, decoded row after row. `column` and `count` are
  /// multiples of the block; `columns` is the size of the last axis.
  void decode(const Memory& m, Index columns, Index row, Index rows, Index column, Index count, float* to) const;

 private:
  const Codec* codec_;
  std::vector<Index> offsets_;  // of planes; before the token, whose making fills it
  Token<std::byte, Access::read> data_;
};

}  // namespace rlx
