// How a transform of one length is done: its factors and roots of unity, or a longer transform of a power of two.
#pragma once

#include <complex>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/index.h"

namespace rlx {

/// Transforms of one length, computed in f64. Immutable, used by several threads at once.
class FftPlan {
 public:
  using Number = std::complex<double>;
  explicit FftPlan(Index length);

  Index length() const { return n_; }
  /// Numbers of work space that run() needs.
  Index work() const;
  /// Transforms `x` in place, with exponents of sign -, or + when `inverse`; not scaled.
  void run(Number* x, Number* work, bool inverse) const;

 private:
  void factors(Number* x, Number* work, bool inverse) const;
  void chirps(Number* x, Number* work, bool inverse) const;

  Index n_;
  std::vector<Index> factors_;             // ascending; their product is n_
  std::vector<Number> roots_;              // e^(-2 pi i k / n)
  std::shared_ptr<const FftPlan> longer_;  // of a power of two, where n_ has a large prime factor
  std::vector<Number> chirp_, filter_;     // e^(-pi i k k / n); the transform of its conjugate around 0
};

/// Plans by length.
class FftPlans {
 public:
  std::shared_ptr<const FftPlan> find(Index length);

 private:
  std::mutex lock_;
  std::unordered_map<Index, std::shared_ptr<const FftPlan>> plans_;
};

}  // namespace rlx
