// Transforms by the factors of the length, and by Bluestein's convolution where a factor is large.
#include "ops/fft/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rlx {

namespace {

constexpr Index largest_factor = 64;  // of a direct sum

// e^(2 pi i k / n).
std::complex<double> root(Index k, Index n) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

template <class R>
std::complex<R> times(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Times i, or -i.
template <class R>
std::complex<R> turned(std::complex<R> a, bool back) {
  return back ? std::complex<R>(a.imag(), -a.real()) : std::complex<R>(-a.imag(), a.real());
}

std::vector<Index> factors_of(Index n) {
  std::vector<Index> all;
  for (; n % 4 == 0; n /= 4) all.push_back(4);
  if (n % 2 == 0) {
    n /= 2;
    all.insert(all.begin(), 2);
  }
  for (Index p = 3; p * p <= n; p += 2) {
    for (; n % p == 0; n /= p) all.push_back(p);
  }
  if (n > 1) all.push_back(n);
  return all;
}

// The transform of p numbers, p being 2, 4 or odd, in place. `apart` is n / p, for the roots.
template <class R>
void butterfly(std::complex<R>* a, Index p, const std::complex<R>* roots, Index apart, bool inverse) {
  using Number = std::complex<R>;
  if (p == 2) {
    const Number sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
    return;
  }
  if (p == 4) {
    const Number even = a[0] + a[2], odd = a[1] + a[3], other = a[0] - a[2], turn = turned(a[1] - a[3], !inverse);
    a[0] = even + odd;
    a[1] = other + turn;
    a[2] = even - odd;
    a[3] = other - turn;
    return;
  }
  Number sums[largest_factor / 2 + 1], differences[largest_factor / 2 + 1];
  const Number first = a[0];
  Number all = first;
  for (Index j = 1; 2 * j < p; ++j) {
    sums[j] = a[j] + a[p - j];
    differences[j] = a[j] - a[p - j];
    all += sums[j];
  }
  a[0] = all;
  for (Index k = 1; 2 * k < p; ++k) {
    Number even = first, odd = 0;
    for (Index j = 1; 2 * j < p; ++j) {
      const Number w = roots[j * k % p * apart];
      even += w.real() * sums[j];
      odd += (inverse ? w.imag() : -w.imag()) * differences[j];
    }
    const Number turn = turned(odd, false);
    a[k] = even + turn;
    a[p - k] = even - turn;
  }
}

}  // namespace

template <class R>
FftPlan<R>::FftPlan(Index length) : n_(length), factors_(factors_of(length)) {
  if (!factors_.empty() && std::ranges::max(factors_) > largest_factor) {
    Index size = 1;
    while (size < 2 * n_ - 1) size *= 2;
    longer_ = std::make_shared<FftPlan<double>>(size);
    filter_.assign(static_cast<std::size_t>(size), 0);
    for (Index k = 0, square = 0; k < n_; square = (square + 2 * k + 1) % (2 * n_), ++k) {  // k * k modulo 2n
      const std::complex<double> c = root(square, 2 * n_);
      chirp_.push_back(std::conj(c));
      filter_[static_cast<std::size_t>(k)] = c;
      if (k > 0) filter_[static_cast<std::size_t>(size - k)] = c;
    }
    std::vector<std::complex<double>> space(static_cast<std::size_t>(size));
    longer_->run(filter_.data(), space.data(), false);
    return;
  }
  for (Index k = 0; k < n_; ++k) roots_.push_back(Number(root(k, n_)));
}

template <class R>
Index FftPlan<R>::work_bytes() const {
  return longer_ ? 2 * longer_->length() * Index{sizeof(std::complex<double>)} : n_ * Index{sizeof(Number)};
}

template <class R>
void FftPlan<R>::run(Number* x, void* work, bool inverse) const {
  if (n_ <= 1) return;
  if (longer_) {
    chirps(x, static_cast<std::complex<double>*>(work), inverse);
  } else {
    factors(x, static_cast<Number*>(work), inverse);
  }
}

// One pass a factor p (Stockham): `parts` transforms, each of p * behind numbers, become p times as many of `behind`
// numbers; number j of a transform of p is turned by its place.
template <class R>
void FftPlan<R>::factors(Number* x, Number* work, bool inverse) const {
  Number *from = x, *to = work;
  Index parts = 1;
  for (const Index p : factors_) {
    const Index behind = n_ / (parts * p);
    for (Index k = 0; k < parts; ++k) {
      for (Index i = 0; i < behind; ++i) {
        Number values[largest_factor];
        for (Index j = 0; j < p; ++j) values[j] = from[i + behind * (j + p * k)];
        butterfly(values, p, roots_.data(), n_ / p, inverse);
        to[i + behind * k] = values[0];
        for (Index j = 1; j < p; ++j) {
          const Number w = roots_[static_cast<std::size_t>(j * parts * i)];
          to[i + behind * (k + parts * j)] = i == 0 ? values[j] : times(values[j], inverse ? w : std::conj(w));
        }
      }
    }
    std::swap(from, to);
    parts *= p;
  }
  if (from != x) std::copy_n(from, n_, x);
}

template <class R>
void FftPlan<R>::chirps(Number* x, std::complex<double>* work, bool inverse) const {
  const Index size = longer_->length();
  // The inverse is the conjugate of the transform of the conjugates.
  const auto seen = [&](std::complex<double> v) { return inverse ? std::conj(v) : v; };
  std::fill_n(work, size, std::complex<double>(0));
  for (Index k = 0; k < n_; ++k) {
    work[k] = times(seen(std::complex<double>(x[k])), chirp_[static_cast<std::size_t>(k)]);
  }
  longer_->run(work, work + size, false);
  for (Index k = 0; k < size; ++k) work[k] = times(work[k], filter_[static_cast<std::size_t>(k)]);
  longer_->run(work, work + size, true);
  const double scale = 1 / static_cast<double>(size);
  for (Index k = 0; k < n_; ++k) x[k] = Number(seen(times(work[k] * scale, chirp_[static_cast<std::size_t>(k)])));
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace rlx
