// Kernels of reduce, compiled once per level. A pack has 32 accumulators at every level: the same order of additions,
// and the same bits, whatever the width of registers.
#include "core/simd_float.h"
#include "ops/reduce/reduce.kernel.h"

namespace rlx::RLX_LEVEL {

#if defined(__AVX512F__)
static constexpr int register_bytes = 64;
#elif defined(__AVX2__)
static constexpr int register_bytes = 32;
#else
static constexpr int register_bytes = 16;
#endif

static constexpr int lanes = 32;

template <class A>
struct Vector {
  static constexpr int pack_bytes = lanes * int{sizeof(A)};
  static constexpr int bytes = pack_bytes < register_bytes ? pack_bytes : register_bytes;
  typedef A type __attribute__((vector_size(bytes)));  // NOLINT(modernize-use-using)
  static constexpr int count = pack_bytes / bytes;
  static constexpr int each = bytes / int{sizeof(A)};
};

template <class A>
struct Pack {
  typename Vector<A>::type v[Vector<A>::count];
};

struct Add {
  template <class V>
  static void into(V& a, const V& b) {
    a = static_cast<V>(a + b);
  }
};
struct Multiply {
  template <class V>
  static void into(V& a, const V& b) {
    a = static_cast<V>(a * b);
  }
  // As int the product would overflow.
  static void into(unsigned short& a, const unsigned short& b) { a = static_cast<unsigned short>(1u * a * b); }
};
// Equal elements: the first stays. A NaN is taken, and then stays.
struct Larger {
  template <class V>
  static void into(V& a, const V& b) {
    a = ((b > a) | (b != b)) ? b : a;  // NOLINT(misc-redundant-expression): NaN alone
  }
};
struct Smaller {
  template <class V>
  static void into(V& a, const V& b) {
    a = ((b < a) | (b != b)) ? b : a;  // NOLINT(misc-redundant-expression): NaN alone
  }
};

template <class A>
constexpr bool is_float = static_cast<A>(0.5) != A(0);
template <class A>
constexpr bool is_signed = static_cast<A>(-1) < A(1);

template <class A, class Op>
struct Start;
template <class A>
struct Start<A, Add> {
  static constexpr A value = 0;
};
template <class A>
struct Start<A, Multiply> {
  static constexpr A value = 1;
};
template <class A>
constexpr A least() {
  if constexpr (is_float<A>) {
    return -static_cast<A>(__builtin_inf());
  } else if constexpr (is_signed<A>) {
    return static_cast<A>(A(1) << (sizeof(A) * 8 - 1));
  } else {
    return 0;
  }
}
template <class A>
struct Start<A, Larger> {
  static constexpr A value = least<A>();
};
template <class A>
constexpr A greatest() {
  if constexpr (is_float<A>) {
    return static_cast<A>(__builtin_inf());
  } else {
    return static_cast<A>(~least<A>());
  }
}
template <class A>
struct Start<A, Smaller> {
  static constexpr A value = greatest<A>();
};

// An element as a number: f32 for half types.
template <class S>
static S number(S x) {
  return x;
}
static float number(StoredF16 x) { return widen(x); }
static float number(StoredBF16 x) { return widen(x); }

// 32 consecutive elements.
template <class A, class S>
static void load(const S* x, Pack<A>& p) {
  typedef S From __attribute__((vector_size(sizeof(S) * Vector<A>::each)));  // NOLINT(modernize-use-using)
#pragma GCC unroll 16
  for (int i = 0; i < Vector<A>::count; ++i) {
    From from;
    __builtin_memcpy(&from, x + i * Vector<A>::each, sizeof from);
    p.v[i] = __builtin_convertvector(from, typename Vector<A>::type);
  }
}
#if defined(__AVX512F__)
// g++ 12 takes the general form apart.
static void load(const float* x, Pack<double>& p) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) p.v[i] = _mm512_cvtps_pd(_mm256_loadu_ps(x + 8 * i));
}
#endif
// Accumulators from and to memory.
template <class A>
static void take(const A* from, Pack<A>& p) {
#pragma GCC unroll 16
  for (int i = 0; i < Vector<A>::count; ++i) __builtin_memcpy(&p.v[i], from + i * Vector<A>::each, sizeof p.v[i]);
}
template <class A>
static void put(const Pack<A>& p, A* to) {
#pragma GCC unroll 16
  for (int i = 0; i < Vector<A>::count; ++i) __builtin_memcpy(to + i * Vector<A>::each, &p.v[i], sizeof p.v[i]);
}
template <class A>
static void load(const StoredF16* x, Pack<A>& p) {
  float all[lanes];
#if defined(__F16C__)
  for (int i = 0; i < lanes; i += 8) {
    _mm256_storeu_ps(all + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
#else
  for (int i = 0; i < lanes; ++i) all[i] = widen(x[i]);
#endif
  load(all, p);
}
template <class A>
static void load(const StoredBF16* x, Pack<A>& p) {
  typedef unsigned short Half __attribute__((vector_size(register_bytes / 2)));  // NOLINT(modernize-use-using)
  typedef unsigned Full __attribute__((vector_size(register_bytes)));            // NOLINT(modernize-use-using)
  constexpr int each = register_bytes / 4;
  float all[lanes];
  for (int i = 0; i < lanes; i += each) {
    Half half;
    __builtin_memcpy(&half, x + i, sizeof half);
    const Full full = __builtin_convertvector(half, Full) << 16;
    __builtin_memcpy(all + i, &full, sizeof full);
  }
  load(all, p);
}

// The first n < 32 elements; the others change no accumulator.
template <class A, class Op, class S>
static void load(const S* x, Index n, Pack<A>& p) {
  A all[lanes];
  for (int i = 0; i < lanes; ++i) all[i] = i < n ? static_cast<A>(number(x[i])) : Start<A, Op>::value;
  __builtin_memcpy(&p, all, sizeof all);
}

template <class A, class Op>
static void start(Pack<A>& p) {
#pragma GCC unroll 16
  for (int i = 0; i < Vector<A>::count; ++i) p.v[i] = Start<A, Op>::value - typename Vector<A>::type{};
}

template <class A, class Op>
static void join(Pack<A>& p, const Pack<A>& with) {
#pragma GCC unroll 16
  for (int i = 0; i < Vector<A>::count; ++i) Op::into(p.v[i], with.v[i]);
}

// Halves are joined until one accumulator is left; whole registers first.
template <class A, class Op>
static A fold(Pack<A>& p) {
  for (int half = Vector<A>::count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) Op::into(p.v[i], p.v[i + half]);
  }
  A all[Vector<A>::each];
  __builtin_memcpy(all, &p.v[0], sizeof all);
  for (int half = Vector<A>::each / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) Op::into(all[i], all[i + half]);
  }
  return all[0];
}

// Calls f(x) for every coordinate of the walk.
template <class S, class F>
static void every(const S* x, const ReduceWalk& walk, F f) {
  if (walk.rank == 0) return f(x);
  for (int d = 0; d < walk.rank; ++d) {
    if (walk.size[d] == 0) return;
  }
  if (walk.rank == 1) {
    for (Index i = 0; i < walk.size[0]; ++i) f(x + i * walk.stride[0]);
    return;
  }
  Index at[16] = {};
  for (;;) {
    f(x);
    int d = walk.rank;
    for (;;) {
      if (d == 0) return;
      --d;
      x += walk.stride[d];
      if (++at[d] < walk.size[d]) break;
      x -= walk.stride[d] * walk.size[d];
      at[d] = 0;
    }
  }
}

template <class S, class A, class Op>
static void rows(const void* from, const ReduceWalk& walk, Index run, void* to, Index count, Index step) {
  const S* x = static_cast<const S*>(from);
  A* out = static_cast<A*>(to);
  const bool few = run < lanes;
  constexpr Index ahead = Index{2048} / Index{sizeof(S)};  // elements to fetch ahead of those that are read
  for (Index r = 0; r < count; ++r, x += step) {
    if (few) {  // one after the other
      A total = Start<A, Op>::value;
      every(x, walk, [&](const S* row) {
        for (Index i = 0; i < run; ++i) Op::into(total, static_cast<A>(number(row[i])));
      });
      out[r] = total;
      continue;
    }
    Pack<A> total, next;
    start<A, Op>(total);
    every(x, walk, [&](const S* row) {
      Index i = 0;
      for (; i + lanes <= run; i += lanes) {
        __builtin_prefetch(row + i + ahead);
        load(row + i, next);
        join<A, Op>(total, next);
      }
      if (i < run) {
        load<A, Op>(row + i, run - i, next);
        join<A, Op>(total, next);
      }
    });
    out[r] = fold<A, Op>(total);
  }
}

// Joins out[c] with elements c of some rows, one row after the other, and fetches as many elements of `next_count`
// rows, which need not be in one page of memory with what was read before.
template <class S, class A, class Op>
static void join_rows(const S* const* rows, int row_count, const S* const* next_rows, int next_count, A* out,
                      Index count) {
  Pack<A> total, next;
  Index c = 0;
  for (; c + lanes <= count; c += lanes) {
    for (int r = 0; r < next_count; ++r) {
      for (unsigned long at = 0; at < lanes * sizeof(S); at += 64) {
        __builtin_prefetch(reinterpret_cast<const char*>(next_rows[r] + c) + at, 0, 2);
      }
    }
    take(out + c, total);
    for (int r = 0; r < row_count; ++r) {
      load(rows[r] + c, next);
      join<A, Op>(total, next);
    }
    put(total, out + c);
  }
  if (c == count) return;
  const auto bytes = static_cast<unsigned long>(count - c) * sizeof(A);
  start<A, Op>(total);
  __builtin_memcpy(&total, out + c, bytes);
  for (int r = 0; r < row_count; ++r) {
    load<A, Op>(rows[r] + c, count - c, next);
    join<A, Op>(total, next);
  }
  __builtin_memcpy(out + c, &total, bytes);
}

template <class S, class A, class Op>
static void columns(const void* from, const ReduceWalk& walk, void* to, Index count) {
  A* const out = static_cast<A*>(to);
  for (Index c = 0; c < count; ++c) out[c] = Start<A, Op>::value;
  constexpr int most = 8;  // accumulators are loaded and stored once for so many rows
  const S* rows[2 * most];
  int n = 0;
  every(static_cast<const S*>(from), walk, [&](const S* row) {
    rows[n++] = row;
    if (n < 2 * most) return;
    join_rows<S, A, Op>(rows, most, rows + most, most, out, count);
    for (int r = 0; r < most; ++r) rows[r] = rows[most + r];
    n = most;
  });
  join_rows<S, A, Op>(rows, n, nullptr, 0, out, count);
}

template <class S, class A, class Op>
static constexpr ReduceKernel kernel{rows<S, A, Op>, columns<S, A, Op>};

const ReduceKernels reduce_kernels{{
    {kernel<double, double, Add>, kernel<double, double, Multiply>, kernel<double, double, Larger>,
     kernel<double, double, Smaller>},
    {kernel<float, double, Add>, kernel<float, double, Multiply>, kernel<float, float, Larger>,
     kernel<float, float, Smaller>},
    {kernel<StoredF16, double, Add>, kernel<StoredF16, double, Multiply>, kernel<StoredF16, float, Larger>,
     kernel<StoredF16, float, Smaller>},
    {kernel<StoredBF16, double, Add>, kernel<StoredBF16, double, Multiply>, kernel<StoredBF16, float, Larger>,
     kernel<StoredBF16, float, Smaller>},
#define RLX_INTEGERS(S, U) {kernel<U, U, Add>, kernel<U, U, Multiply>, kernel<S, S, Larger>, kernel<S, S, Smaller>}
    RLX_INTEGERS(long, unsigned long),
    RLX_INTEGERS(int, unsigned),
    RLX_INTEGERS(short, unsigned short),
    RLX_INTEGERS(signed char, unsigned char),
    RLX_INTEGERS(unsigned long, unsigned long),
    RLX_INTEGERS(unsigned, unsigned),
    RLX_INTEGERS(unsigned short, unsigned short),
    RLX_INTEGERS(unsigned char, unsigned char),
#undef RLX_INTEGERS
}};

}  // namespace rlx::RLX_LEVEL
