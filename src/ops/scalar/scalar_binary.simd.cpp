// Binary rows, comparisons and selection over f32, compiled once per level.
#include "core/simd_math.h"
#include "ops/scalar/scalar.kernel.h"

namespace rlx::RLX_LEVEL {

static inline F32 add(F32 a, F32 b) { return a + b; }
static inline F32 sub(F32 a, F32 b) { return a - b; }
static inline F32 mul(F32 a, F32 b) { return a * b; }
static inline F32 div(F32 a, F32 b) { return a / b; }
static inline Mask not_equal(F32 a, F32 b) { return !equal(a, b); }
static inline Mask greater(F32 a, F32 b) { return less(b, a); }
static inline Mask greater_equal(F32 a, F32 b) { return less_equal(b, a); }

// Out stores a pack of what f gives: f32 for arithmetic, bytes for comparisons.
template <class Out, class F>
static inline void binary(const void* const* in, void* out, long n, F f) {
  const float *a = static_cast<const float*>(in[0]), *b = static_cast<const float*>(in[1]);
  Out* y = static_cast<Out*>(out);
  long i = 0;
  for (; i + F32::lanes <= n; i += F32::lanes) store(y + i, f(load(a + i), load(b + i)));
  const F32 one = splat(1.0f);
  if (i < n) store(y + i, f(load(a + i, n - i, one), load(b + i, n - i, one)), n - i);
}

static void select_f32(const void* const* in, void* out, long n) {
  const unsigned char* c = static_cast<const unsigned char*>(in[0]);
  const float *a = static_cast<const float*>(in[1]), *b = static_cast<const float*>(in[2]);
  float* y = static_cast<float*>(out);
  long i = 0;
  for (; i + F32::lanes <= n; i += F32::lanes) store(y + i, select(load_mask(c + i), load(a + i), load(b + i)));
  const F32 one = splat(1.0f);
  if (i < n) store(y + i, select(load_mask(c + i, n - i), load(a + i, n - i, one), load(b + i, n - i, one)), n - i);
}

// A row has a kernel when its function takes packs.
#define RLX_BINARY_KERNEL(Type, function)                                           \
  struct Type##Kernel {                                                             \
    template <class T>                                                              \
    static constexpr BlockKernel of() {                                             \
      if constexpr (requires(T v) { function(v, v); }) {                            \
        return [](const void* const* in, void* out, long n) {                       \
          binary<float>(in, out, n, [](auto a, auto b) { return function(a, b); }); \
        };                                                                          \
      } else {                                                                      \
        return nullptr;                                                             \
      }                                                                             \
    }                                                                               \
  };
RLX_BINARY_ROWS(RLX_BINARY_KERNEL)
#undef RLX_BINARY_KERNEL

#define RLX_BINARY_ENTRY(Type, function) Type##Kernel::of<F32>(),
#define RLX_COMPARE_ENTRY(Type, function)                                           \
  [](const void* const* in, void* out, long n) {                                    \
    binary<unsigned char>(in, out, n, [](F32 a, F32 b) { return function(a, b); }); \
  },
const BinaryKernels binary_kernels{
    {RLX_BINARY_ROWS(RLX_BINARY_ENTRY)}, {RLX_COMPARE_ROWS(RLX_COMPARE_ENTRY)}, select_f32};
#undef RLX_BINARY_ENTRY
#undef RLX_COMPARE_ENTRY

}  // namespace rlx::RLX_LEVEL
