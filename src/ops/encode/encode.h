// encode, decode: from f32 to a block format and back.
#pragma once

#include <string>

#include "ir/builder.h"

namespace rlx {

struct EncodeAttrs {
  std::string to;  // name of the format
  static void fields(auto& a, auto&& f) { f("to", a.to); }
};
extern const Op<EncodeAttrs> encode_op;
extern const Op<NoAttrs> decode_op;

/// `x`, f32, in blocks along its last axis; see the op.
Value encode(Value x, std::string_view to);
/// The f32 tensor of an encoded one.
Value decode(Value x);

}  // namespace rlx
