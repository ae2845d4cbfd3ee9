// philox: random numbers as a function of a key and a counter (Philox-4x32-10, Salmon et al. 2011).
#pragma once

#include <array>
#include <cstdint>

#include "ir/builder.h"

namespace rlx {

struct PhiloxAttrs {
  std::vector<Dim> dims;
  static void fields(auto& a, auto&& f) { f("dims", a.dims); }
};
extern const Op<PhiloxAttrs> philox_op;

/// One block: four words for a counter and a key.
std::array<std::uint32_t, 4> philox_block(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);
/// A counter of 128 bits, low word first, `blocks` further on.
std::array<std::uint32_t, 4> philox_counter(std::array<std::uint32_t, 4> counter, std::uint64_t blocks);

/// Random words: `key` is u32[2], `counter` u32[4], low words first; see the op. The next call may begin at the counter
/// plus a quarter of the elements, rounded up.
Value philox(Value key, Value counter, std::vector<Dim> dims);
/// The key of stream number `stream` of a seed, as a constant.
Value philox_key(Builder& b, std::uint64_t seed, std::uint64_t stream);
/// The counter 0, as a constant.
Value philox_start(Builder& b);

/// Numbers low + (high - low) * u, u from 2^24 numbers in [0, 1), one word each, computed in f32 and then converted.
Value random_uniform(Value key, Value counter, std::vector<Dim> dims, DType dtype, double low = 0, double high = 1);
/// Numbers mean + scale * z, z standard normal by Box and Muller, two words each, computed in f32 and then converted.
Value random_normal(Value key, Value counter, std::vector<Dim> dims, DType dtype, double mean = 0, double scale = 1);

}  // namespace rlx
