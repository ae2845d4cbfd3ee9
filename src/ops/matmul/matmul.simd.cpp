// Products of f32 and f64, and the table of all; compiled once per level.
#include "ops/matmul/matmul_elements.h"

namespace rlx::RLX_LEVEL {

namespace {

// Sums, operands and results of one type, in packs with a fused multiply-add (v2: without).
template <class Pack, class T>
struct Plain : FloatTile {
  using P = Pack;
  using In = T;
  using Out = T;
  using Left = T;
  using Right = T;
  using Sum = T;
  static constexpr Index step = 1;
  static constexpr bool copies_left = false, plain_right = true, sums_are_results = true;
  static T left(const T* a, Index, Index) { return *a; }
  static T right(const T* b, Index, Index) { return *b; }
  static P splat(const T* a) { return RLX_LEVEL::splat(*a); }
  static P load(const T* b) { return RLX_LEVEL::load(b); }
  static P multiply_add(P x, P y, P sum) { return fma(x, y, sum); }
  static T result(T sum) { return sum; }
};

}  // namespace

const MatmulKernels matmul_kernels{
    .f32 = kernel_of<Plain<F32, float>>,
    .f64 = kernel_of<Plain<F64, double>>,
    .f16 = matmul_f16,
    .bf16 = matmul_bf16,
    .bits8 = matmul_bits8,
    .bits16 = matmul_bits16,
    .bits32 = matmul_bits32,
    .bits64 = matmul_bits64,
    .c64 = matmul_c64,
};

}  // namespace rlx::RLX_LEVEL
