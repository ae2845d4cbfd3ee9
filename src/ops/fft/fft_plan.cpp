// Transforms by the factors of the length, and by Bluestein's convolution where a factor is large.
#include "ops/fft/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rlx {

namespace {

using Number = FftPlan::Number;

constexpr Index largest_factor = 64;  // of a direct sum

// e^(-2 pi i k / n) for k in [0, n).
Number root(Index k, Index n) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

Number times(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

std::vector<Index> factors_of(Index n) {
  std::vector<Index> all;
  for (; n % 4 == 0; n /= 4) all.push_back(4);
  for (Index p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) all.push_back(p);
  }
  if (n > 1) all.push_back(n);
  return all;
}

}  // namespace

FftPlan::FftPlan(Index length) : n_(length), factors_(factors_of(length)) {
  roots_.reserve(static_cast<std::size_t>(n_));
  for (Index k = 0; k < n_; ++k) roots_.push_back(root(k, n_));
  if (factors_.empty() || std::ranges::max(factors_) <= largest_factor) return;
  Index size = 1;
  while (size < 2 * n_ - 1) size *= 2;
  longer_ = std::make_shared<FftPlan>(size);
  filter_.assign(static_cast<std::size_t>(size), 0);
  for (Index k = 0, square = 0; k < n_; square = (square + 2 * k + 1) % (2 * n_), ++k) {  // k * k modulo 2n
    chirp_.push_back(root(square, 2 * n_));
    filter_[static_cast<std::size_t>(k)] = std::conj(chirp_.back());
    if (k > 0) filter_[static_cast<std::size_t>(size - k)] = std::conj(chirp_.back());
  }
  std::vector<Number> space(static_cast<std::size_t>(longer_->work()));
  longer_->run(filter_.data(), space.data(), false);
}

Index FftPlan::work() const { return longer_ ? longer_->length() + longer_->work() : n_; }

void FftPlan::run(Number* x, Number* work, bool inverse) const {
  if (n_ <= 1) return;
  if (longer_) {
    chirps(x, work, inverse);
  } else {
    factors(x, work, inverse);
  }
}

// One pass a factor p (Stockham): after it, each of the n / (done * p) parts holds transforms of done * p numbers,
// which lie `parts` apart; each is made of p transforms of `done` numbers.
void FftPlan::factors(Number* x, Number* work, bool inverse) const {
  Number *from = x, *to = work;
  Index done = 1;
  for (const Index p : factors_) {
    const Index parts = n_ / (done * p);
    for (Index j = 0; j < done; ++j) {
      for (Index q = 0; q < parts; ++q) {
        const Number* in = from + j * parts * p + q;
        Number values[largest_factor];
        for (Index i = 0; i < p; ++i) {
          const Number w = roots_[static_cast<std::size_t>(j * i * parts % n_)];
          values[i] = times(in[i * parts], inverse ? std::conj(w) : w);
        }
        for (Index k = 0; k < p; ++k) {
          Number sum = values[0];
          for (Index i = 1; i < p; ++i) {
            const Number w = roots_[static_cast<std::size_t>(i * k % p * (n_ / p))];
            sum += times(values[i], inverse ? std::conj(w) : w);
          }
          to[(j + k * done) * parts + q] = sum;
        }
      }
    }
    std::swap(from, to);
    done *= p;
  }
  if (from != x) std::copy_n(from, n_, x);
}

void FftPlan::chirps(Number* x, Number* work, bool inverse) const {
  const Index size = longer_->length();
  const auto turned = [&](Number v) { return inverse ? std::conj(v) : v; };  // the inverse is that of the conjugates
  std::fill_n(work, size, Number(0));
  for (Index k = 0; k < n_; ++k) work[k] = times(turned(x[k]), chirp_[static_cast<std::size_t>(k)]);
  longer_->run(work, work + size, false);
  for (Index k = 0; k < size; ++k) work[k] = times(work[k], filter_[static_cast<std::size_t>(k)]);
  longer_->run(work, work + size, true);
  const double scale = 1 / static_cast<double>(size);
  for (Index k = 0; k < n_; ++k) x[k] = turned(times(work[k] * scale, chirp_[static_cast<std::size_t>(k)]));
}

std::shared_ptr<const FftPlan> FftPlans::find(Index length) {
  const std::lock_guard guard(lock_);
  std::shared_ptr<const FftPlan>& plan = plans_[length];
  if (!plan) plan = std::make_shared<FftPlan>(length);
  return plan;
}

}  // namespace rlx
