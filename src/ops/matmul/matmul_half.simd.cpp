// Products of f16 and bf16, compiled once per level.
#include "core/simd_float.h"
#include "ops/matmul/matmul_elements.h"

namespace rlx::RLX_LEVEL {

namespace {

template <class Stored>
float from(Bits16 h) {
  return widen(__builtin_bit_cast(Stored, h));
}
// Sums rounded to halves, a bias added to these, and rounded again; or only the first.
template <class Stored>
void all_to(const float* sums, const float* bias, Bits16* to, Index n) {
  auto* const halves = reinterpret_cast<Stored*>(to);
  Index j = 0;
  for (; j + F32::lanes <= n; j += F32::lanes) {
    store(halves + j, load(sums + j));
    if (bias) store(halves + j, load(halves + j) + load(bias + j));
  }
  for (; j < n; ++j) {
    narrow(sums[j], halves[j]);
    if (bias) narrow(widen(halves[j]) + bias[j], halves[j]);
  }
}
// Sums rounded to halves, and a bias added to these.
template <class Stored>
void all_to_wide(const float* sums, const float* bias, float* to, Index n) {
  Stored halves[F32::lanes];
  Index j = 0;
  for (; j + F32::lanes <= n; j += F32::lanes) {
    store(halves, load(sums + j));
    store(to + j, load(halves) + load(bias + j));
  }
  for (; j < n; ++j) {
    narrow(sums[j], halves[0]);
    to[j] = widen(halves[0]) + bias[j];
  }
}

// A sum, rounded; the first n lanes are wanted.
template <class Stored>
void one_to(F32 sum, Bits16* to, Index n) {
  auto* const halves = reinterpret_cast<Stored*>(to);
  n >= F32::lanes ? store(halves, sum) : store(halves, sum, n);
}

// What both halves have in common: sums in f32.
struct Half : FloatTile {
  using P = F32;
  using In = Bits16;
  using Out = Bits16;
  using Sum = float;
  static constexpr bool copies_left = true, sums_are_results = false;
};

// Halves as f32 on the left; on the right when they are loaded.
template <class Stored>
struct Widened : Half {
  using Left = float;
  using Right = Bits16;
  static constexpr Index step = 1;
  static constexpr bool plain_right = true;
  static F32 splat(const float* a) { return RLX_LEVEL::splat(*a); }
  static F32 load(const Bits16* b) { return RLX_LEVEL::load(reinterpret_cast<const Stored*>(b)); }
  static F32 multiply_add(F32 x, F32 y, F32 sum) { return fma(x, y, sum); }
  static float left(const Bits16* a, Index, Index) { return from<Stored>(*a); }
  static Bits16 right(const Bits16* b, Index, Index) { return *b; }
  static void left_row(const Bits16* a, Index n, float* to) {
    Index k = 0;
    for (; k + F32::lanes <= n; k += F32::lanes) store(to + k, load(a + k));
    for (; k < n; ++k) to[k] = from<Stored>(a[k]);
  }
  static void round(F32 sum, Bits16* to, Index n) { one_to<Stored>(sum, to, n); }
  static void results(const float* sums, const float* bias, Bits16* to, Index n) { all_to<Stored>(sums, bias, to, n); }
  static void wide_results(const float* sums, const float* bias, float* to, Index n) {
    all_to_wide<Stored>(sums, bias, to, n);
  }
};

#if defined(__F16C__)
using F16 = Widened<StoredF16>;
#else
// The level has no instruction that widens: it is done once, when a panel is packed.
struct F16 : Widened<StoredF16> {
  using Right = float;
  static constexpr bool plain_right = false;
  static float right(const Bits16* b, Index, Index) { return from<StoredF16>(*b); }
  static F32 load(const float* b) { return RLX_LEVEL::load(b); }
};
#endif

#if defined(__AVX512BF16__)

// Pairs of adjacent inner indices: one instruction adds both products to a sum.
struct Bf16 : Half {
  using Left = Bits32;
  using Right = Bits32;
  static constexpr Index step = 2;
  static constexpr bool plain_right = false;
  struct Pairs {
    __m512i v;
  };
  static Bits32 join(const Bits16* x, Index stride, Index n) {
    return n > 1 ? x[0] | static_cast<Bits32>(x[stride]) << 16 : x[0];
  }
  static Bits32 left(const Bits16* a, Index stride, Index n) { return join(a, stride, n); }
  static Bits32 right(const Bits16* b, Index stride, Index n) { return join(b, stride, n); }
  static void left_row(const Bits16* a, Index n, Bits32* to) {
    __builtin_memcpy(to, a, static_cast<Bits64>(n) * sizeof *a);
    if (n % 2) to[n / 2] = a[n - 1];
  }
  static bool in_place(Index row_stride, Index inner) { return row_stride % 2 == 0 && inner % 2 == 0; }
  static Pairs splat(const Bits32* a) {
    int pair;
    __builtin_memcpy(&pair, reinterpret_cast<const char*>(a), sizeof pair);
    return {_mm512_set1_epi32(pair)};
  }
  static Pairs load(const Bits32* b) { return {_mm512_loadu_si512(b)}; }
  static F32 multiply_add(Pairs x, Pairs y, F32 sum) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(x.v), reinterpret_cast<__m512bh>(y.v))};
  }
  static void round(F32 sum, Bits16* to, Index n) { one_to<StoredBF16>(sum, to, n); }
  static void results(const float* sums, const float* bias, Bits16* to, Index n) {
    all_to<StoredBF16>(sums, bias, to, n);
  }
  static void wide_results(const float* sums, const float* bias, float* to, Index n) {
    all_to_wide<StoredBF16>(sums, bias, to, n);
  }
};

#else
using Bf16 = Widened<StoredBF16>;
#endif

}  // namespace

const MatmulKernel matmul_f16 = kernel_of<F16>;
const MatmulKernel matmul_bf16 = kernel_of<Bf16>;

}  // namespace rlx::RLX_LEVEL
