// Formats whose elements are small integers times scales, as kernels of integer products see them.
#pragma once

#include <cstdint>

#include "core/index.h"

namespace rlx {

/// One block, taken apart. Bits of scales are f16 or, where the form says so, bf16.
struct IntegerBlock {
  std::uint8_t codes[256];
  std::uint16_t scale, minimum;        // of the block
  std::int8_t scales[16], minima[16];  // of its groups, where the form has such
};

/// An element is scale * value + minimum, where value is code - bias, or values[code]. Groups of `group` neighbours
/// share a scale and a minimum: those of the block, or, with `grouped`, those times the group's own integers.
struct IntegerForm {
  int bits = 0;     // of a code: 2, 3, 4, 5, 6 or 8
  Index block = 0;  // elements: 32, or 256 with `grouped`
  Index group = 0;  // 16 or 32
  int bias = 0;     // 0 or a power of two
  const std::int8_t* values = nullptr;
  bool grouped = false;
  bool has_minimum = false;
  bool is_bfloat = false;  // scales are bf16
  /// Takes a block apart.
  void (*take)(const std::uint8_t* block, IntegerBlock& to) = nullptr;
};

}  // namespace rlx
