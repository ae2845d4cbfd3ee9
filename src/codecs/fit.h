// Scales that lose least: the searches that encoders share. All take a multiple of four elements, at most 256.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rlx {

/// The scale d for which sum w (x - d q)^2 is least over the tried ones, codes q being integers in [low, high]; it may
/// be negative. `w` is null or a weight for each element.
float fit_scale(const float* x, const float* w, int n, int low, int high);

/// Elements are scale * q + minimum.
struct Line {
  float scale = 0, minimum = 0;
};
/// The line for which sum w (x - scale q - minimum)^2 is least over the tried ones, codes q being integers in [0,
/// high].
Line fit_line(const float* x, const float* w, int n, int high);
/// The same among lines with a minimum of at most 0.
Line fit_line_below_zero(const float* x, const float* w, int n, int high);

/// The nearest codes to x / scale within [low, high]; 0, or the one nearest to it, when the scale is 0.
void round_codes(const float* x, int n, float scale, int low, int high, std::int8_t* codes);

/// Codes into a table of rising levels between -127 and 127: the nearest one to every integer.
class LevelTable {
 public:
  explicit constexpr LevelTable(const std::array<std::int8_t, 16>& levels) : levels_(levels) {
    for (int at = -128; at < 128; ++at) {
      std::uint8_t best = 0;
      for (std::uint8_t i = 1; i < 16; ++i) {
        if (distance(at, i) < distance(at, best)) best = i;
      }
      const auto place = static_cast<std::size_t>(at) + 128;
      nearest_[place] = best;
      level_at_[place] = levels[best];
    }
  }
  /// The scale d for which sum w (x - d level)^2 is least over the tried ones.
  float fit(const float* x, const float* w, int n) const;
  /// The codes nearest to x / scale.
  void round(const float* x, int n, float scale, std::uint8_t* codes) const;

 private:
  // The nearest integers of x / scale, plus 128.
  void places(const float* x, int n, float scale, std::uint8_t* at) const;

  constexpr int distance(int at, std::uint8_t code) const {
    const int apart = at - levels_[code];
    return apart < 0 ? -apart : apart;
  }

  std::array<std::int8_t, 16> levels_;
  std::array<std::uint8_t, 256> nearest_{};
  std::array<float, 256> level_at_{};
};

}  // namespace rlx
