// Packs that matmul has beside those of core/simd.h and simd_f64.h: unsigned integers, complex numbers.
#pragma once

#include "core/simd_f64.h"

namespace rlx::RLX_LEVEL {

/// The tile of sums that the registers of a level hold beside operands: `rows` rows of `vectors` packs of floats.
struct FloatTile {
#if defined(__AVX512F__)
  static constexpr int vectors = 4, rows = 6;
#elif defined(__AVX2__)
  static constexpr int vectors = 2, rows = 6;
#else
  static constexpr int vectors = 2, rows = 4;
#endif
};

using Bits8 = unsigned char;
using Bits16 = unsigned short;
using Bits32 = unsigned int;
using Bits64 = unsigned long;

/// Unsigned integers as wide as a pack of f32, in the compiler's own vectors; they wrap.
template <class T>
struct Wrapping {
  static constexpr Index bytes = F32::lanes * 4, lanes = bytes / Index{sizeof(T)};
  using Vector [[gnu::vector_size(bytes)]] = T;
  Vector v;
};
template <class T>
inline Wrapping<T> splat_bits(T x) {
  return {typename Wrapping<T>::Vector{} + x};
}
template <class T>
inline Wrapping<T> load_bits(const T* p) {
  Wrapping<T> a;
  __builtin_memcpy(&a.v, p, sizeof a.v);
  return a;
}
inline Wrapping<Bits32> load(const Bits32* p) { return load_bits(p); }
inline Wrapping<Bits64> load(const Bits64* p) { return load_bits(p); }
template <class T>
inline void store(T* p, Wrapping<T> a) {
  __builtin_memcpy(p, &a.v, sizeof a.v);
}
template <class T>
inline Wrapping<T> fma(Wrapping<T> a, Wrapping<T> b, Wrapping<T> c) {
  return {a.v * b.v + c.v};
}

/// Two f32 in memory.
struct Complex32 {
  float re, im;
};
/// A complex number in f64, a pack of one.
struct Complex {
  static constexpr Index lanes = 1;
  double re, im;
};
inline Complex load(const Complex* p) { return *p; }
inline void store(Complex* p, Complex a) { *p = a; }
inline Complex fma(Complex a, Complex b, Complex c) {
  return {c.re + (a.re * b.re - a.im * b.im), c.im + (a.re * b.im + a.im * b.re)};
}

/// The first n lanes, 0 < n < lanes; the others are 0.
template <class P, class T>
inline P load_first(const T* p, Index n) {
  T all[P::lanes] = {};
  for (Index i = 0; i < n; ++i) all[i] = p[i];
  return load(all);
}
template <>
inline F32 load_first<F32, float>(const float* p, Index n) {
  return load(p, n, F32{});
}
template <class P, class T>
inline void store_first(T* p, P a, Index n) {
  T all[P::lanes];
  store(all, a);
  for (Index i = 0; i < n; ++i) p[i] = all[i];
}
inline void store_first(float* p, F32 a, Index n) { store(p, a, n); }

}  // namespace rlx::RLX_LEVEL
