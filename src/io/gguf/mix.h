// Which type every tensor of a model gets when it is quantised: the mixes of types that llama.cpp's files have.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf/gguf.h"

namespace rlx {

/// A mix: the type of most matrices, and the number of the mix in `general.file_type`.
struct GgufMix {
  std::string_view name;  // `q4_k_m`
  std::string_view base;  // type of the list
  std::uint32_t file_type;
};

/// All mixes; `q4_k` is another name of `q4_k_m`, as `q3_k` and `q5_k` are.
std::span<const GgufMix> gguf_mixes();
/// The mix called `name`; throws Error that lists the known ones.
const GgufMix& find_gguf_mix(std::string_view name);

/// What the choice of types depends on.
struct GgufMixFacts {
  std::string architecture;
  Index layers = 0;
  Index queries_per_key = 1;  // heads of queries that share a head of keys
  Index experts = 0;
  bool tied = true;         // the output layer is the embedding table
  bool importance = false;  // weights of the error are given
};

/// From the metadata of a model, missing keys as they are above; `names` tells whether there is an output layer.
GgufMixFacts gguf_mix_facts(const GgufFile& file);

/// The number after `blk.` or `layers.` in a name, or 0.
Index gguf_layer(std::string_view name);

/// Whether a tensor is quantised at all: matrices called `*weight`, but not norms, routers, convolutions, positions and
/// others that are small and sensitive.
bool gguf_quantizes(std::string_view name, std::span<const Index> shape);

/// The type of a tensor that is quantised. Rows that are no multiple of the block get a type of smaller blocks, at
/// last F16.
const GgufTensorType& gguf_mix_type(const GgufMix& mix, std::string_view name, std::span<const Index> shape,
                                    const GgufMixFacts& facts);

}  // namespace rlx
