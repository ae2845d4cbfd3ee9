// How a transform of one length is done: its factors and roots of unity, or a longer transform of a power of two.
#pragma once

#include <complex>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/index.h"

namespace rlx {

/// Transforms of one length in numbers of type R, float or double. Immutable, used by several threads at once.
template <class R>
class FftPlan {
 public:
  using Number = std::complex<R>;
  explicit FftPlan(Index length);

  Index length() const { return n_; }
  /// Bytes of work space that run() needs, aligned as numbers of f64 are.
  Index work_bytes() const;
  /// Transforms `x` in place, with exponents of sign -, or + when `inverse`; not scaled.
  void run(Number* x, void* work, bool inverse) const;

 private:
  void factors(Number* x, Number* work, bool inverse) const;
  void chirps(Number* x, std::complex<double>* work, bool inverse) const;

  Index n_;
  std::vector<Index> factors_;                     // their product is n_
  std::vector<Number> roots_;                      // e^(2 pi i k / n)
  std::shared_ptr<const FftPlan<double>> longer_;  // of a power of two, where n_ has a large prime factor
  // e^(-pi i k k / n), and the transform of its conjugate, laid around 0.
  std::vector<std::complex<double>> chirp_, filter_;
};
extern template class FftPlan<float>;
extern template class FftPlan<double>;

/// Plans by length.
template <class R>
class FftPlans {
 public:
  std::shared_ptr<const FftPlan<R>> find(Index length) {
    const std::lock_guard guard(lock_);
    std::shared_ptr<const FftPlan<R>>& plan = plans_[length];
    if (!plan) plan = std::make_shared<FftPlan<R>>(length);
    return plan;
  }

 private:
  std::mutex lock_;
  std::unordered_map<Index, std::shared_ptr<const FftPlan<R>>> plans_;
};

}  // namespace rlx
