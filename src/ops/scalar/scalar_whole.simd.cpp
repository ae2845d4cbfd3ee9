// Rows over integers, bool and f64 that are plain C++ arithmetic, compiled once per level: the compiler makes vectors
// of these loops.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")  // at -O2 g++ leaves loops of unknown length as they are
#endif
#include "ops/scalar/scalar.kernel.h"

namespace rlx::RLX_LEVEL {

// A number of type T; integers are computed unsigned, where wrapping is defined.
template <class T>
struct Plain {
  T v;
};
template <class T>
inline constexpr bool is_real = false;
template <>
inline constexpr bool is_real<double> = true;
template <class T>
inline constexpr bool is_signed = T(-1) < T(0);

template <class T>
struct WideOf {
  using Type = unsigned long long;
};
template <>
struct WideOf<double> {
  using Type = double;
};
template <class T>
using Wide = typename WideOf<T>::Type;

// clang-format off
template <class T> static Plain<T> like(Plain<T>, double c) { return {static_cast<T>(c)}; }
template <class T> static bool less(Plain<T> a, Plain<T> b) { return a.v < b.v; }
template <class T> static bool equal(Plain<T> a, Plain<T> b) { return a.v == b.v; }
template <class T> static bool not_equal(Plain<T> a, Plain<T> b) { return !(a.v == b.v); }
template <class T> static bool less_equal(Plain<T> a, Plain<T> b) { return a.v <= b.v; }
template <class T> static bool greater(Plain<T> a, Plain<T> b) { return a.v > b.v; }
template <class T> static bool greater_equal(Plain<T> a, Plain<T> b) { return a.v >= b.v; }
template <class T> static Plain<T> select(bool c, Plain<T> a, Plain<T> b) { return c ? a : b; }
template <class T> static Plain<T> add(Plain<T> a, Plain<T> b) {
  return {static_cast<T>(static_cast<Wide<T>>(a.v) + static_cast<Wide<T>>(b.v))};
}
template <class T> static Plain<T> sub(Plain<T> a, Plain<T> b) {
  return {static_cast<T>(static_cast<Wide<T>>(a.v) - static_cast<Wide<T>>(b.v))};
}
template <class T> static Plain<T> mul(Plain<T> a, Plain<T> b) {
  return {static_cast<T>(static_cast<Wide<T>>(a.v) * static_cast<Wide<T>>(b.v))};
}
template <class T> static Plain<T> operator-(Plain<T> a) { return {static_cast<T>(-static_cast<Wide<T>>(a.v))}; }
static Plain<double> div(Plain<double> a, Plain<double> b) { return {a.v / b.v}; }
// clang-format on

template <class T>
static Plain<T> maximum(Plain<T> a, Plain<T> b) {
  return a.v < b.v || !(b.v == b.v) ? b : a;
}
template <class T>
static Plain<T> minimum(Plain<T> a, Plain<T> b) {
  return b.v < a.v || !(b.v == b.v) ? b : a;
}
template <class T>
  requires(!is_real<T>)
static Plain<T> abs(Plain<T> a) {
  return a.v < T(0) ? -a : a;
}
template <class T>
  requires(!is_real<T>)
static Plain<T> sign(Plain<T> a) {
  return {static_cast<T>((a.v > T(0)) - (a.v < T(0)))};
}
template <class T>
  requires(!is_real<T>)
static Plain<T> bitwise_and(Plain<T> a, Plain<T> b) {
  return {static_cast<T>(a.v & b.v)};
}
template <class T>
  requires(!is_real<T>)
static Plain<T> bitwise_or(Plain<T> a, Plain<T> b) {
  return {static_cast<T>(a.v | b.v)};
}
template <class T>
  requires(!is_real<T>)
static Plain<T> bitwise_xor(Plain<T> a, Plain<T> b) {
  return {static_cast<T>(a.v ^ b.v)};
}
template <class T>
  requires(!is_real<T>)
static Plain<T> shift_left(Plain<T> a, Plain<T> b) {
  return {static_cast<T>(static_cast<unsigned long long>(a.v)
                         << (static_cast<unsigned long long>(b.v) & (8 * sizeof(T) - 1)))};
}
template <class T>
  requires(!is_real<T>)
static Plain<T> shift_right(Plain<T> a, Plain<T> b) {
  return {static_cast<T>(a.v >> (static_cast<unsigned long long>(b.v) & (8 * sizeof(T) - 1)))};
}

template <class T, class Out, class F>
static inline void map1(const void* const* in, void* out, long n, F f) {
  const T* a = static_cast<const T*>(in[0]);
  Out* y = static_cast<Out*>(out);
  for (long i = 0; i < n; ++i) y[i] = f(a[i]);
}
template <class T, class Out, class F>
static inline void map2(const void* const* in, void* out, long n, F f) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  Out* y = static_cast<Out*>(out);
  for (long i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

template <class Row, class T>
static constexpr BlockKernel unary_of() {
  if constexpr ((Row::domains & integers) != 0 && !is_real<T>) {
    return [](const void* const* in, void* out, long n) {
      map1<T, T>(in, out, n, [](T x) { return Row::value(Plain<T>{x}).v; });
    };
  } else {
    return nullptr;
  }
}

#define RLX_BINARY_KERNEL(Type, function)                                                        \
  struct Type##Kernel {                                                                          \
    template <class T>                                                                           \
    static constexpr BlockKernel of() {                                                          \
      if constexpr (requires(Plain<T> v) { function(v, v); }) {                                  \
        return [](const void* const* in, void* out, long n) {                                    \
          map2<T, T>(in, out, n, [](T a, T b) { return function(Plain<T>{a}, Plain<T>{b}).v; }); \
        };                                                                                       \
      } else {                                                                                   \
        return nullptr;                                                                          \
      }                                                                                          \
    }                                                                                            \
  };
RLX_BINARY_ROWS(RLX_BINARY_KERNEL)
#undef RLX_BINARY_KERNEL

template <class T>
static constexpr BlockKernel flip_of() {
  if constexpr (is_real<T>) {
    return nullptr;
  } else {
    return [](const void* const* in, void* out, long n) {
      map1<T, T>(in, out, n, [](T x) { return static_cast<T>(~x); });
    };
  }
}

#define RLX_UNARY_ENTRY(Type, function) unary_of<Type, T>(),
#define RLX_BINARY_ENTRY(Type, function) Type##Kernel::template of<T>(),
#define RLX_COMPARE_ENTRY(Type, function)                                                                            \
  [](const void* const* in, void* out, long n) {                                                                     \
    map2<T, unsigned char>(in, out, n,                                                                               \
                           [](T a, T b) { return static_cast<unsigned char>(function(Plain<T>{a}, Plain<T>{b})); }); \
  },
template <class T>
static constexpr PlainKernels plain() {
  return {{RLX_UNARY_ROWS(RLX_UNARY_ENTRY)},
          {RLX_BINARY_ROWS(RLX_BINARY_ENTRY)},
          {RLX_COMPARE_ROWS(RLX_COMPARE_ENTRY)},
          flip_of<T>()};
}
#undef RLX_UNARY_ENTRY
#undef RLX_BINARY_ENTRY
#undef RLX_COMPARE_ENTRY

// Of bools: any byte but 0 is true; results are 0 or 1.
template <class F>
static inline void truth(const void* const* in, void* out, long n, F f) {
  map2<unsigned char, unsigned char>(in, out, n, [f](unsigned char a, unsigned char b) { return f(a != 0, b != 0); });
}
#define RLX_NO_KERNEL(Type, function) nullptr,
#define RLX_TRUTH_ENTRY(Type, function)                                                                                \
  [](const void* const* in, void* out, long n) {                                                                       \
    truth(in, out, n,                                                                                                  \
          [](bool a, bool b) -> unsigned char { return function(Plain<unsigned char>{a}, Plain<unsigned char>{b}); }); \
  },
#define RLX_TRUTH_ROW(Type, function) Type##Truth,
static constexpr BlockKernel AddTruth = nullptr, SubTruth = nullptr, MulTruth = nullptr, DivTruth = nullptr,
                             MaximumTruth = nullptr, MinimumTruth = nullptr, PowTruth = nullptr, FmodTruth = nullptr,
                             Atan2Truth = nullptr, ShiftLeftTruth = nullptr, ShiftRightTruth = nullptr;
static constexpr BlockKernel AndTruth = [](const void* const* in, void* out, long n) {
  truth(in, out, n, [](bool a, bool b) -> unsigned char { return a & b; });
};
static constexpr BlockKernel OrTruth = [](const void* const* in, void* out, long n) {
  truth(in, out, n, [](bool a, bool b) -> unsigned char { return a | b; });
};
static constexpr BlockKernel XorTruth = [](const void* const* in, void* out, long n) {
  truth(in, out, n, [](bool a, bool b) -> unsigned char { return a ^ b; });
};
static constexpr PlainKernels truths() {
  return {{RLX_UNARY_ROWS(RLX_NO_KERNEL)},
          {RLX_BINARY_ROWS(RLX_TRUTH_ROW)},
          {RLX_COMPARE_ROWS(RLX_TRUTH_ENTRY)},
          [](const void* const* in, void* out, long n) {
            map1<unsigned char, unsigned char>(in, out, n, [](unsigned char x) -> unsigned char { return x == 0; });
          }};
}
#undef RLX_NO_KERNEL
#undef RLX_TRUTH_ENTRY
#undef RLX_TRUTH_ROW

template <class T>
static void choose(const void* const* in, void* out, long n) {
  const unsigned char* c = static_cast<const unsigned char*>(in[0]);
  const T *a = static_cast<const T*>(in[1]), *b = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  for (long i = 0; i < n; ++i) {
    const T x = a[i], z = b[i];  // both are read: no branch
    y[i] = c[i] != 0 ? x : z;
  }
}

const WholeKernels whole_kernels{.i8 = plain<signed char>(),
                                 .i16 = plain<short>(),
                                 .i32 = plain<int>(),
                                 .i64 = plain<long>(),
                                 .u8 = plain<unsigned char>(),
                                 .u16 = plain<unsigned short>(),
                                 .u32 = plain<unsigned>(),
                                 .u64 = plain<unsigned long>(),
                                 .boolean = truths(),
                                 .f64 = plain<double>(),
                                 .select_1 = choose<unsigned char>,
                                 .select_2 = choose<unsigned short>,
                                 .select_4 = choose<unsigned>,
                                 .select_8 = choose<unsigned long>};

}  // namespace rlx::RLX_LEVEL
