// Encoders of the blocks of 256 codes in groups: a scale for every group, those on the grid of the block's scale, then
// the codes for the scales as they are stored.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "codecs/fit.h"
#include "codecs/k_quants/formats.h"
#include "codecs/write.h"

namespace rlx::k_quants {

namespace {

using Codes = std::array<std::int8_t, 256>;

std::uint8_t byte(int bits) { return static_cast<std::uint8_t>(bits); }

const float* part(const float* importance, int at) { return importance ? importance + at : nullptr; }

// Lines of the groups on the grid: a code of scale and of minimum for each, and the codes of the elements.
template <int groups>
struct Lines {
  std::array<int, groups> scale{}, minimum{};
  Codes codes{};
};

// The codes for the lines with d and dmin.
template <int groups>
void round_lines(Lines<groups>& lines, const float* from, int high, float d, float m) {
  constexpr int width = 256 / groups;
  for (std::size_t g = 0; g < groups; ++g) {
    const float scale = d * static_cast<float>(lines.scale[g]), minimum = m * static_cast<float>(lines.minimum[g]);
    std::array<float, width> above;
    for (std::size_t i = 0; i < width; ++i) above[i] = from[width * g + i] + minimum;
    round_codes(above.data(), width, scale, 0, high, lines.codes.data() + width * g);
  }
}

// The d and dmin that are best for the codes: elements are d a - m b with a = scale * code, b = minimum.
template <int groups>
std::array<float, 2> refit(const Lines<groups>& lines, const float* from, const float* importance) {
  constexpr std::size_t width = 256 / groups;
  float aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
  for (std::size_t i = 0; i < 256; ++i) {
    const auto a = static_cast<float>(lines.scale[i / width] * lines.codes[i]);
    const auto b = static_cast<float>(lines.minimum[i / width]);
    const float w = importance ? importance[i] : 1;
    aa += w * a * a;
    ab += w * a * b;
    bb += w * b * b;
    ax += w * a * from[i];
    bx += w * b * from[i];
  }
  const float determinant = aa * bb - ab * ab;
  if (!(determinant > 1e-4F * aa * bb)) return {0, 0};
  return {(ax * bb - bx * ab) / determinant, (ax * ab - bx * aa) / determinant};
}

// Writes d and dmin.
template <int groups>
Lines<groups> fit_lines(const float* from, const float* importance, int high, int steps, std::uint8_t* d_and_m) {
  constexpr int width = 256 / groups;
  std::array<Line, groups> lines;
  Line largest;
  for (int g = 0; g < groups; ++g) {
    Line& line = lines[static_cast<std::size_t>(g)];
    line = fit_line_below_zero(from + width * g, part(importance, width * g), width, high);
    largest = {std::max(largest.scale, line.scale), std::max(largest.minimum, -line.minimum)};
  }
  const auto top = static_cast<float>(steps);
  float d = put_half(largest.scale / top, d_and_m), m = put_half(largest.minimum / top, d_and_m + 2);
  Lines<groups> out;
  for (std::size_t g = 0; g < groups; ++g) {
    out.scale[g] = d == 0 ? 0 : nearest_within(lines[g].scale / d, 0, top);
    out.minimum[g] = m == 0 ? 0 : nearest_within(-lines[g].minimum / m, 0, top);
  }
  round_lines(out, from, high, d, m);
  if (const auto [better_d, better_m] = refit(out, from, importance); better_d > 0 && better_m > 0) {
    d = put_half(better_d, d_and_m);
    m = put_half(better_m, d_and_m + 2);
    round_lines(out, from, high, d, m);
  }
  return out;
}

// The 12 bytes that group_scale reads.
void put_group_scales(const Lines<8>& lines, std::uint8_t* s) {
  for (std::size_t g = 0; g < 4; ++g) {
    s[g] = byte(lines.scale[g] | lines.scale[g + 4] >> 4 << 6);
    s[g + 4] = byte(lines.minimum[g] | lines.minimum[g + 4] >> 4 << 6);
    s[g + 8] = byte((lines.scale[g + 4] & 15) | (lines.minimum[g + 4] & 15) << 4);
  }
}

// Four bits of every code, in bytes of two groups of 32.
void put_low_nibbles(const Codes& codes, std::uint8_t* q) {
  for (std::size_t pair = 0; pair < 4; ++pair) {
    for (std::size_t i = 0; i < 32; ++i) {
      q[32 * pair + i] = byte((codes[64 * pair + i] & 15) | (codes[64 * pair + 32 + i] & 15) << 4);
    }
  }
}

// Two bits of every code, in halves of 32 bytes with four codes each.
void put_low_pairs(const Codes& codes, std::uint8_t* q) {
  for (std::size_t i = 0; i < 64; ++i) {
    const std::int8_t* c = codes.data() + 128 * (i / 32) + i % 32;
    q[i] = byte((c[0] & 3) | (c[32] & 3) << 2 | (c[64] & 3) << 4 | (c[96] & 3) << 6);
  }
}

// Signed scales of 16 groups, of which the one furthest from 0 is the lowest step, and the codes. Writes d.
struct Scales {
  std::array<int, 16> steps{};
  Codes codes{};
};
Scales fit_scales(const float* from, const float* importance, int low, int lowest_step, std::uint8_t* d_at) {
  std::array<float, 16> scales;
  float extreme = 0;
  for (std::size_t g = 0; g < 16; ++g) {
    const int at = 16 * static_cast<int>(g);
    scales[g] = fit_scale(from + at, part(importance, at), 16, low, -low - 1);
    extreme = std::fabs(scales[g]) > std::fabs(extreme) ? scales[g] : extreme;
  }
  const auto bottom = static_cast<float>(lowest_step);
  const float d = put_half(extreme / bottom, d_at);
  Scales out;
  for (std::size_t g = 0; g < 16; ++g) {
    out.steps[g] = d == 0 ? 0 : nearest_within(scales[g] / d, bottom, -bottom - 1);
    round_codes(from + 16 * g, 16, d * static_cast<float>(out.steps[g]), low, -low - 1, out.codes.data() + 16 * g);
  }
  for (std::int8_t& code : out.codes) code = static_cast<std::int8_t>(code - low);
  return out;
}

}  // namespace

void Q2K::encode(const float* from, const float* importance, std::uint8_t* block) {
  const auto lines = fit_lines<16>(from, importance, 3, 15, block + 80);
  for (std::size_t g = 0; g < 16; ++g) block[g] = byte(lines.scale[g] | lines.minimum[g] << 4);
  put_low_pairs(lines.codes, block + 16);
}

void Q3K::encode(const float* from, const float* importance, std::uint8_t* block) {
  const Scales scales = fit_scales(from, importance, -4, -32, block + 108);
  std::fill_n(block, 32, std::uint8_t{0});
  for (std::size_t i = 0; i < 256; ++i) block[i % 32] = byte(block[i % 32] | scales.codes[i] >> 2 << i / 32);
  put_low_pairs(scales.codes, block + 32);
  std::uint8_t* s = block + 96;
  std::fill_n(s, 12, std::uint8_t{0});
  for (std::size_t g = 0; g < 16; ++g) {
    const int step = scales.steps[g] + 32;
    s[g % 8] = byte(s[g % 8] | (step & 15) << 4 * (g / 8));
    s[8 + g % 4] = byte(s[8 + g % 4] | step >> 4 << 2 * (g / 4));
  }
}

void Q4K::encode(const float* from, const float* importance, std::uint8_t* block) {
  const auto lines = fit_lines<8>(from, importance, 15, 63, block);
  put_group_scales(lines, block + 4);
  put_low_nibbles(lines.codes, block + 16);
}

void Q5K::encode(const float* from, const float* importance, std::uint8_t* block) {
  const auto lines = fit_lines<8>(from, importance, 31, 63, block);
  put_group_scales(lines, block + 4);
  std::fill_n(block + 16, 32, std::uint8_t{0});
  for (std::size_t i = 0; i < 256; ++i) {
    block[16 + i % 32] = byte(block[16 + i % 32] | lines.codes[i] >> 4 << i / 32);
  }
  put_low_nibbles(lines.codes, block + 48);
}

void Q6K::encode(const float* from, const float* importance, std::uint8_t* block) {
  const Scales scales = fit_scales(from, importance, -32, -128, block + 208);
  for (std::size_t i = 0; i < 64; ++i) {
    // Byte i % 32 of a half of the block holds the high bits of four codes; the low bits lie in two bytes.
    const std::int8_t* c = scales.codes.data() + 128 * (i / 32) + i % 32;
    std::uint8_t* low = block + 64 * (i / 32) + i % 32;
    low[0] = byte((c[0] & 15) | (c[64] & 15) << 4);
    low[32] = byte((c[32] & 15) | (c[96] & 15) << 4);
    block[128 + i] = byte(c[0] >> 4 | c[32] >> 4 << 2 | c[64] >> 4 << 4 | c[96] >> 4 << 6);
  }
  for (std::size_t g = 0; g < 16; ++g) block[192 + g] = byte(scales.steps[g]);
}

void Q8K::encode(const float* from, const float*, std::uint8_t* block) {
  float extreme = 0;
  for (int i = 0; i < elements; ++i) extreme = std::max(extreme, std::fabs(from[i]));
  const float d = extreme / 127, inverse = d == 0 ? 0 : 1 / d;
  const auto bits = std::bit_cast<std::uint32_t>(d);
  for (int i = 0; i < 4; ++i) block[i] = static_cast<std::uint8_t>(bits >> 8 * i);
  for (int group = 0; group < 16; ++group) {
    int sum = 0;
    for (int i = 16 * group; i < 16 * group + 16; ++i) {
      const int code = nearest_within(from[i] * inverse, -127, 127);
      block[4 + i] = byte(code);
      sum += code;
    }
    block[260 + 2 * group] = byte(sum);
    block[261 + 2 * group] = byte(sum >> 8);
  }
}

}  // namespace rlx::k_quants
