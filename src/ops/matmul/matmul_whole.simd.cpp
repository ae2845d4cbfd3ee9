// Products of integers and of complex numbers, compiled once per level.
#include "ops/matmul/matmul_elements.h"

namespace rlx::RLX_LEVEL {

namespace {

// Integers of T's width, summed in S, which is T or 32 bits wide.
template <class T, class S>
struct Whole {
  using P = Wrapping<S>;
  using In = T;
  using Out = T;
  using Left = S;
  using Right = S;
  using Sum = S;
  static constexpr int vectors = 2, rows = 4;
  static constexpr Index step = 1;
  static constexpr bool sums_are_results = sizeof(T) == sizeof(S);
  static constexpr bool copies_left = !sums_are_results, plain_right = sums_are_results;
  static S left(const T* a, Index, Index) { return *a; }
  static S right(const T* b, Index, Index) { return *b; }
  static P splat(const S* a) { return splat_bits(*a); }
  static P load(const S* b) { return RLX_LEVEL::load(b); }
  static P multiply_add(P x, P y, P sum) { return fma(x, y, sum); }
  static T result(S sum) { return static_cast<T>(sum); }
};

struct ComplexProduct {
  using P = Complex;
  using In = Complex32;
  using Out = Complex32;
  using Left = Complex;
  using Right = Complex;
  using Sum = Complex;
  static constexpr int vectors = 2, rows = 2;
  static constexpr Index step = 1;
  static constexpr bool copies_left = true, plain_right = false, sums_are_results = false;
  static Complex left(const Complex32* a, Index, Index) { return {a->re, a->im}; }
  static Complex right(const Complex32* b, Index, Index) { return {b->re, b->im}; }
  static P splat(const Complex* a) { return *a; }
  static P load(const Complex* b) { return *b; }
  static P multiply_add(P x, P y, P sum) { return fma(x, y, sum); }
  static Complex32 result(Complex sum) { return {static_cast<float>(sum.re), static_cast<float>(sum.im)}; }
};

}  // namespace

const MatmulKernel matmul_bits8 = kernel_of<Whole<Bits8, Bits32>>;
const MatmulKernel matmul_bits16 = kernel_of<Whole<Bits16, Bits32>>;
const MatmulKernel matmul_bits32 = kernel_of<Whole<Bits32, Bits32>>;
const MatmulKernel matmul_bits64 = kernel_of<Whole<Bits64, Bits64>>;
const MatmulKernel matmul_c64 = kernel_of<ComplexProduct>;

}  // namespace rlx::RLX_LEVEL
