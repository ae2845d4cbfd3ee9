// Squares of packs: as many rows as lanes, to columns. Level-only, as simd.h.
#pragma once

#include "core/simd.h"

namespace rlx::RLX_LEVEL {

/// v[i] lane j becomes v[j] lane i.
#if defined(__AVX512F__)

[[gnu::always_inline]] inline void turn(F32 (&v)[16]) {
  __m512 a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(v[i].v, v[i + 1].v);
    a[i + 1] = _mm512_unpackhi_ps(v[i].v, v[i + 1].v);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    const auto joined = [&](int p, int q, bool high) {
      const __m512d l = _mm512_castps_pd(a[i + p]), r = _mm512_castps_pd(a[i + q]);
      return _mm512_castpd_ps(high ? _mm512_unpackhi_pd(l, r) : _mm512_unpacklo_pd(l, r));
    };
    b[i] = joined(0, 2, false);
    b[i + 1] = joined(0, 2, true);
    b[i + 2] = joined(1, 3, false);
    b[i + 3] = joined(1, 3, true);
  }
#pragma GCC unroll 16
  for (int c = 0; c < 4; ++c) {
    const __m512 low = _mm512_shuffle_f32x4(b[c], b[4 + c], 0x44),
                 high = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0x44);
    const __m512 low2 = _mm512_shuffle_f32x4(b[c], b[4 + c], 0xEE);
    const __m512 high2 = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0xEE);
    v[c].v = _mm512_shuffle_f32x4(low, high, 0x88);
    v[4 + c].v = _mm512_shuffle_f32x4(low, high, 0xDD);
    v[8 + c].v = _mm512_shuffle_f32x4(low2, high2, 0x88);
    v[12 + c].v = _mm512_shuffle_f32x4(low2, high2, 0xDD);
  }
}

#elif defined(__AVX2__)

[[gnu::always_inline]] inline void turn(F32 (&v)[8]) {
  __m256 a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(v[i].v, v[i + 1].v);
    a[i + 1] = _mm256_unpackhi_ps(v[i].v, v[i + 1].v);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xEE);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
  }
#pragma GCC unroll 8
  for (int c = 0; c < 4; ++c) {
    v[c].v = _mm256_permute2f128_ps(b[c], b[4 + c], 0x20);
    v[4 + c].v = _mm256_permute2f128_ps(b[c], b[4 + c], 0x31);
  }
}

#else

[[gnu::always_inline]] inline void turn(F32 (&v)[4]) { _MM_TRANSPOSE4_PS(v[0].v, v[1].v, v[2].v, v[3].v); }

#endif

}  // namespace rlx::RLX_LEVEL
