// Codes of 2 to 8 bits with f32 scales and offsets of their groups, each in a plane of its own: the affine groups of
// MLX, and integers with zero points as GPTQ, AWQ and ONNX have them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "codecs/fit.h"
#include "codecs/plane_format.h"
#include "codecs/write.h"
#include "core/error.h"

namespace rlx {

namespace {

// What an element is, from the numbers of its group.
enum class Kind : std::uint8_t {
  line,     // scale * code + bias
  zero,     // (code - zero) * scale
  integer,  // scale * code, code signed
  moved,    // as zero, code signed
  ordered,  // as zero, with the group of each column in a plane: its columns need not be neighbours
};

template <Kind kind, int bits, Index group>
constexpr auto planes_of() {
  constexpr Plane codes{"codes", bits * group / 8}, scales{"scales", 4};
  if constexpr (kind == Kind::line) return std::array{codes, scales, Plane{"biases", 4}};
  if constexpr (kind == Kind::zero || kind == Kind::moved) return std::array{codes, scales, Plane{"zeros", 4}};
  if constexpr (kind == Kind::integer) return std::array{codes, scales};
  if constexpr (kind == Kind::ordered) {
    return std::array{codes, scales, Plane{"zeros", 4}, Plane{"groups", 4, Plane::Per::axis}};
  }
}

// mlx_b4_g64 and so on.
template <Kind kind, int bits, Index group>
constexpr auto name_of() {
  constexpr std::string_view start = kind == Kind::line      ? "mlx"
                                     : kind == Kind::zero    ? "zero"
                                     : kind == Kind::integer ? "int"
                                     : kind == Kind::moved   ? "int_zero"
                                                             : "gptq";
  std::array<char, start.size() + 8> text{};
  std::size_t at = 0;
  const auto put = [&](std::string_view part) {
    for (const char c : part) text[at++] = c;
  };
  put(start);
  put("_b");
  text[at++] = static_cast<char>('0' + bits);
  put("_g");
  if (group >= 100) text[at++] = static_cast<char>('0' + group / 100);
  text[at++] = static_cast<char>('0' + group / 10 % 10);
  text[at++] = static_cast<char>('0' + group % 10);
  return std::pair(text, at);
}

template <Kind kind, int bits, Index group>
struct Affine {
  static constexpr auto layout = planes_of<kind, bits, group>();
  static constexpr auto name = name_of<kind, bits, group>();
  static constexpr Encoding encoding{{name.first.data(), name.second}, group, layout};
  static constexpr Index code_bytes = bits * group / 8;
  static constexpr int high = (1 << bits) - 1;
  using Codes = std::array<std::uint8_t, group>;

  static void decode(const EncodedRows& from, float* to) {
    const Index blocks = from.rows * (from.columns / group);
    for (Index b = 0; b < blocks; ++b, to += group) {
      const Codes codes = unpack<bits, group>(from.planes[0] + b * code_bytes);
      const float scale = f32_at(from.planes[1], b);
      if constexpr (kind == Kind::integer) {
        for (std::size_t i = 0; i < group; ++i) to[i] = scale * value(codes[i]);
      } else {
        const float offset = f32_at(from.planes[2], b);
        for (std::size_t i = 0; i < group; ++i) {
          to[i] = kind == Kind::line ? scale * value(codes[i]) + offset : (value(codes[i]) - offset) * scale;
        }
      }
    }
  }

  static void encode(const float* from, Index rows, Index columns, const float* importance,
                     std::span<std::byte* const> planes) {
    const Index blocks = columns / group;
    for (Index b = 0; b < rows * blocks; ++b, from += group) {
      const float* weights = importance ? importance + b % blocks * group : nullptr;
      Codes codes;
      if constexpr (kind == Kind::integer) {
        const float scale = bits == 8 ? covering(from) : fit_scale(from, weights, group, -sign, sign - 1);
        round_to(from, 0, scale, codes);
        put_f32(planes[1], b, scale);
      } else {
        Line line = fit_line(from, weights, group, high);
        // Equal elements need a scale where the offset is counted in scales.
        if (kind != Kind::line && line.scale == 0) line.scale = std::fabs(line.minimum);
        // The element of code 0.
        const float origin = line.minimum + static_cast<float>(is_signed ? sign : 0) * line.scale;
        round_to(from, origin, line.scale, codes);
        put_f32(planes[1], b, line.scale);
        put_f32(planes[2], b, kind == Kind::line ? origin : line.scale == 0 ? 0 : -origin / line.scale);
      }
      pack<bits, group>(codes, planes[0] + b * code_bytes);
    }
  }

 private:
  static constexpr bool is_signed = kind == Kind::integer || kind == Kind::moved;
  static constexpr int sign = 1 << (bits - 1);

  static float value(std::uint8_t code) { return static_cast<float>(is_signed ? (code ^ sign) - sign : code); }

  static float covering(const float* from) {
    float largest = 0;
    for (Index i = 0; i < group; ++i) largest = std::max(largest, std::fabs(from[i]));
    return largest / static_cast<float>(sign - 1);
  }

  static void round_to(const float* from, float origin, float scale, Codes& codes) {
    constexpr auto lowest = static_cast<float>(is_signed ? -sign : 0), highest = lowest + static_cast<float>(high);
    const float inverse = scale == 0 ? 0 : 1 / scale;
    for (std::size_t i = 0; i < group; ++i) {
      codes[i] = static_cast<std::uint8_t>(nearest_within((from[i] - origin) * inverse, lowest, highest) & high);
    }
  }
};

// The columns of a group lie anywhere; the plane `groups` holds the group of every column as i32.
template <int bits, Index group>
struct Ordered : Affine<Kind::ordered, bits, group> {
  static void decode(const EncodedRows& from, float* to) {
    // The scales of a part of a row begin at its first block.
    const Index before = from.first / group, blocks = from.columns / group;
    const Index groups = (from.whole == 0 ? from.columns : from.whole) / group;
    for (Index b = 0; b < from.rows * blocks; ++b) {
      const auto codes = unpack<bits, group>(from.planes[0] + b * (bits * group / 8));
      for (Index i = 0; i < group; ++i) {
        std::int32_t chosen = 0;
        std::memcpy(&chosen, from.planes[3] + 4 * (b % blocks * group + i), sizeof chosen);
        require(0 <= chosen && chosen < groups, "the group of column {} is {}, expected 0 to {}",
                from.first + b % blocks * group + i, chosen, groups - 1);
        const Index at = b / blocks * blocks + chosen - before;
        const auto code = static_cast<float>(codes[static_cast<std::size_t>(i)]);
        *to++ = (code - f32_at(from.planes[2], at)) * f32_at(from.planes[1], at);
      }
    }
  }
};

constexpr std::string_view mlx = "MLX, affine quantisation: codes from the low bits on, scale * code + bias";
constexpr std::string_view zeros = "integers with zero points, (code - zero) * scale, as in GPTQ, AWQ and ONNX";
constexpr std::string_view integers = "integers with scales of blocks, two's complement, scale * code";
constexpr std::string_view ordered = "GPTQ with a group index: (code - zero) * scale, numbers of the column's group";

template <Kind kind, int bits, Index group>
constexpr Codec codec(std::string_view source) {
  using Format = Affine<kind, bits, group>;
  return {.encoding = &Format::encoding, .source = source, .decode = Format::decode, .encode = Format::encode};
}
template <int bits, Index group>
constexpr Codec ordered_codec() {
  using Format = Ordered<bits, group>;
  return {.encoding = &Format::encoding, .source = ordered, .decode = Format::decode};
}

template <Index group>
constexpr auto codecs_of() {
  return std::array{codec<Kind::line, 2, group>(mlx),
                    codec<Kind::line, 3, group>(mlx),
                    codec<Kind::line, 4, group>(mlx),
                    codec<Kind::line, 5, group>(mlx),
                    codec<Kind::line, 6, group>(mlx),
                    codec<Kind::line, 8, group>(mlx),
                    codec<Kind::zero, 4, group>(zeros),
                    codec<Kind::zero, 8, group>(zeros),
                    codec<Kind::moved, 8, group>(zeros),
                    codec<Kind::integer, 4, group>(integers),
                    codec<Kind::integer, 8, group>(integers),
                    ordered_codec<4, group>(),
                    ordered_codec<8, group>()};
}

template <std::size_t n>
constexpr auto joined(const std::array<Codec, n>& a, const std::array<Codec, n>& b, const std::array<Codec, n>& c) {
  std::array<Codec, 3 * n> all{};
  for (std::size_t i = 0; i < n; ++i) all[i] = a[i], all[n + i] = b[i], all[2 * n + i] = c[i];
  return all;
}

constexpr auto codecs = joined(codecs_of<32>(), codecs_of<64>(), codecs_of<128>());

}  // namespace

std::span<const Codec> affine_codecs() { return codecs; }

}  // namespace rlx
