// a8: activations in 8-bit blocks; what the kernels that read them must know.
#pragma once

#include "codecs/codec.h"

namespace rlx {

/// Elements and bytes of a block: 32 codes, f32 scale, f32 scale times the sum of the codes, i32 minus that sum, i32
/// minus the sum of the first 16 codes.
inline constexpr Index a8_block = 32, a8_block_bytes = 48;
/// Blocks of smaller magnitudes are 0.
inline constexpr float a8_least = 0x1p-100F;

std::span<const Codec> a8_codecs();

}  // namespace rlx
