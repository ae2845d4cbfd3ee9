// The text form of graphs: print, parse. Printing a parsed graph gives the same text.
//
//   rlx 1
//   graph(%x: f32[B,2*S], %w: f32:q4_k@1[64,256])
//     dims(B: 1..8, S: 2..512) {
//     %0 = exp %x : f32[B,2*S]
//     %1 = softmax %0 {axis=0} !1 : f32[B,2*S]
//     check S = floordiv(T,2) "why"
//     state kv: %x -> %0
//     return %0, %1 "probabilities"
//   } names(%1: "layer.0/softmax")
#pragma once

#include <string>
#include <string_view>

#include "ir/builder.h"
#include "ir/op_table.h"

namespace rlx {

/// Version of the text form; the first line of every text.
inline constexpr int text_version = 1;

/// The text. Constants that are not small go into `sink`, or, without one, are written `@data` and do not parse back.
std::string print(const Graph& g, ConstantSink* sink = nullptr);

/// The encodings of quantised types by name; codec folders register them.
using Encodings = std::map<std::string, const Encoding*, std::less<>>;

struct ParseOptions {
  const OpRegistry* ops = nullptr;       // null: those of rlx
  const Encodings* encodings = nullptr;  // null: none
  const NamedTensors* data = nullptr;    // what `@name` refers to
};

/// Reads the text form. Throws Error "line L, column C: …" naming what was found and expected. Every type stated is
/// compared with the inferred one.
Graph parse(std::string_view text, const ParseOptions& options = {});

}  // namespace rlx
