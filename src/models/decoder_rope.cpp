// Frequencies of rotary embeddings under all kinds of scaling.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "models/decoder_config.h"

namespace rlx {

std::string_view rope_scaling_name(RopeScaling scaling) {
  static constexpr std::array<std::string_view, 6> names{"none", "linear", "ntk", "yarn", "llama3", "longrope"};
  return names[static_cast<std::size_t>(scaling)];
}

namespace {

using Frequencies = std::vector<double>;

Frequencies plain(double theta, Index dims) {
  Frequencies f;
  for (Index i = 0; i < dims; i += 2) f.push_back(std::pow(theta, -static_cast<double>(i) / static_cast<double>(dims)));
  return f;
}

Frequencies divided_by(Frequencies f, const std::vector<double>& factors) {
  require(factors.size() == f.size(), "{} factors of rotary frequencies are given, expected {}", factors.size(),
          f.size());
  for (std::size_t i = 0; i < f.size(); ++i) f[i] /= factors[i];
  return f;
}

Frequencies linear(const RopeConfig& r, Index) {
  return divided_by(plain(r.theta, r.dims), Frequencies(static_cast<std::size_t>(r.dims / 2), r.factor));
}

Frequencies ntk(const RopeConfig& r, Index context) {
  const auto dims = static_cast<double>(r.dims);
  if (context <= r.original) return plain(r.theta, r.dims);
  const double longer = static_cast<double>(context) / static_cast<double>(r.original);
  require(r.dims > 2, "ntk scaling needs more than one rotated pair");
  return plain(r.theta * std::pow(r.factor * longer - (r.factor - 1), dims / (dims - 2)), r.dims);
}

Frequencies yarn(const RopeConfig& r, Index) {
  const auto dims = static_cast<double>(r.dims);
  // The pair that turns `turns` times within the positions of the first training.
  const auto pair = [&](double turns) {
    const double wavelength = static_cast<double>(r.original) / (turns * 2 * std::numbers::pi);
    return dims * std::log(wavelength) / (2 * std::log(r.theta));
  };
  double low = pair(r.beta_fast), high = pair(r.beta_slow);
  if (r.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1);
  if (low == high) high += 0.001;
  Frequencies f = plain(r.theta, r.dims);
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double slow = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    f[i] = f[i] / r.factor * slow + f[i] * (1 - slow);
  }
  return f;
}

Frequencies llama3(const RopeConfig& r, Index) {
  const auto original = static_cast<double>(r.original);
  Frequencies f = plain(r.theta, r.dims);
  for (double& x : f) {
    const double wavelength = 2 * std::numbers::pi / x;
    const double smooth = (original / wavelength - r.low_factor) / (r.high_factor - r.low_factor);
    if (wavelength > original / r.low_factor) {
      x /= r.factor;
    } else if (wavelength >= original / r.high_factor) {
      x = (1 - smooth) * x / r.factor + smooth * x;
    }
  }
  return f;
}

Frequencies longrope(const RopeConfig& r, Index context) {
  return divided_by(plain(r.theta, r.dims), context > r.original ? r.long_factors : r.short_factors);
}

}  // namespace

std::vector<double> rope_frequencies(const RopeConfig& rope, Index context) {
  struct Row {
    RopeScaling scaling;
    Frequencies (*function)(const RopeConfig&, Index);
  };
  static constexpr std::array<Row, 5> rows{{{RopeScaling::linear, linear},
                                            {RopeScaling::ntk, ntk},
                                            {RopeScaling::yarn, yarn},
                                            {RopeScaling::llama3, llama3},
                                            {RopeScaling::longrope, longrope}}};
  for (const Row& row : rows) {
    if (row.scaling == rope.scaling) return row.function(rope, context);
  }
  return plain(rope.theta, rope.dims);
}

}  // namespace rlx
