// Elimination of one matrix, in f64.
#pragma once

#include "core/index.h"

namespace rlx {

/// Determinant of a dense n x n matrix.
double eliminated(const double* a, Index n);
/// Its cofactors, n x n.
void cofactors_of(const double* a, Index n, double* out);

}  // namespace rlx
