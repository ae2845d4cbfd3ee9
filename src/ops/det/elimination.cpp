// Elimination with the largest pivot of each column.
#include "ops/det/elimination.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace rlx {

namespace {

struct Factors {
  std::vector<double> lu;  // L below the diagonal, whose own is 1, and U
  std::vector<Index> order;
  double det = 1, smallest = 1, largest = 0;  // absolute values of pivots
};

Factors factored(const double* a, Index n) {
  Factors f{.lu = std::vector<double>(a, a + n * n), .order = std::vector<Index>(static_cast<std::size_t>(n))};
  std::iota(f.order.begin(), f.order.end(), Index{0});
  double* m = f.lu.data();
  for (Index k = 0; k < n; ++k) {
    Index pivot = k;
    for (Index i = k + 1; i < n; ++i) {
      if (std::fabs(m[i * n + k]) > std::fabs(m[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(m + k * n, m + (k + 1) * n, m + pivot * n);
      std::swap(f.order[static_cast<std::size_t>(k)], f.order[static_cast<std::size_t>(pivot)]);
      f.det = -f.det;
    }
    const double p = m[k * n + k], size = std::fabs(p);
    f.det *= p;
    f.smallest = k == 0 ? size : std::min(f.smallest, size);
    f.largest = std::max(f.largest, size);
    if (p == 0) continue;
    for (Index i = k + 1; i < n; ++i) {
      const double l = m[i * n + k] /= p;
      for (Index j = k + 1; j < n; ++j) m[i * n + j] -= l * m[k * n + j];
    }
  }
  return f;
}

// Column `c` of the inverse of the transpose, times the determinant: solves A^T y = det e_c, where P A = L U.
void solve_transposed(const Factors& f, Index n, Index c, double* out) {
  const double* m = f.lu.data();
  std::vector<double> y(static_cast<std::size_t>(n), 0);
  y[static_cast<std::size_t>(c)] = f.det;
  for (Index i = 0; i < n; ++i) {  // U^T z = b
    double v = y[static_cast<std::size_t>(i)];
    for (Index k = 0; k < i; ++k) v -= m[k * n + i] * y[static_cast<std::size_t>(k)];
    y[static_cast<std::size_t>(i)] = v / m[i * n + i];
  }
  for (Index i = n; i-- > 0;) {  // L^T w = z
    for (Index k = i + 1; k < n; ++k) y[static_cast<std::size_t>(i)] -= m[k * n + i] * y[static_cast<std::size_t>(k)];
  }
  for (Index i = 0; i < n; ++i) out[f.order[static_cast<std::size_t>(i)] * n + c] = y[static_cast<std::size_t>(i)];
}

}  // namespace

double eliminated(const double* a, Index n) { return factored(a, n).det; }

void cofactors_of(const double* a, Index n, double* out) {
  const Factors f = factored(a, n);
  if (f.smallest > 1e-8 * f.largest) {
    for (Index c = 0; c < n; ++c) solve_transposed(f, n, c, out);
    return;
  }
  std::vector<double> minor(static_cast<std::size_t>((n - 1) * (n - 1)));
  for (Index row = 0; row < n; ++row) {
    for (Index column = 0; column < n; ++column) {
      std::size_t k = 0;
      for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < n; ++j) {
          if (i != row && j != column) minor[k++] = a[i * n + j];
        }
      }
      const double d = eliminated(minor.data(), n - 1);
      out[row * n + column] = (row + column) % 2 == 0 ? d : -d;
    }
  }
}

}  // namespace rlx
