// The codecs of the blocks of 256 codes in groups.
#include "codecs/k_quants/formats.h"

namespace rlx {

namespace {

constexpr std::string_view source = "GGUF file format, ggml";
constexpr std::array codecs{block_codec<k_quants::Q2K>(source), block_codec<k_quants::Q3K>(source),
                            block_codec<k_quants::Q4K>(source), block_codec<k_quants::Q5K>(source),
                            block_codec<k_quants::Q6K>(source), block_codec<k_quants::Q8K>(source)};

}  // namespace

std::span<const Codec> k_quants_codecs() { return codecs; }

}  // namespace rlx
