// Codes into a table of levels as integers times scales.
#pragma once

#include <array>

#include "codecs/blocks32/integers.h"

namespace rlx::iq4 {

inline constexpr std::array<std::int8_t, 16> levels{-127, -104, -83, -65, -49, -35, -22, -10,
                                                    1,    13,   25,  38,  53,  69,  89,  113};

inline constexpr IntegerForm iq4_nl{.bits = 4,
                                    .block = 32,
                                    .group = 32,
                                    .values = levels.data(),
                                    .take = [](const std::uint8_t* block, IntegerBlock& to) {
                                      to.scale = blocks32::half_bits(block);
                                      blocks32::take_nibbles(block + 2, to.codes);
                                    }};
inline constexpr IntegerForm iq4_xs{.bits = 4,
                                    .block = 256,
                                    .group = 32,
                                    .values = levels.data(),
                                    .grouped = true,
                                    .take = [](const std::uint8_t* block, IntegerBlock& to) {
                                      to.scale = blocks32::half_bits(block);
                                      const int high = blocks32::half_bits(block + 2);
                                      for (int group = 0; group < 8; ++group) {
                                        const int low = block[4 + group / 2] >> 4 * (group % 2) & 15;
                                        to.scales[group] =
                                            static_cast<std::int8_t>((low | (high >> 2 * group & 3) << 4) - 32);
                                        blocks32::take_nibbles(block + 8 + 16 * group, to.codes + 32 * group);
                                      }
                                    }};

}  // namespace rlx::iq4
