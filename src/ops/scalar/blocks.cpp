// Finding block kernels, and those that call the C library or may fail: f64 functions, division and powers of integers,
// complex numbers.
#include "ops/scalar/blocks.h"

#include <unordered_map>

#include "core/num.h"
#include "ops/scalar/scalar.h"
#include "ops/scalar/scalar_integers.h"
#include "ops/scalar/scalar_parts.h"

namespace rlx {

namespace {

using Complex = std::complex<double>;

template <class T, class F>
void map1(const void* const* in, void* out, Index n, F f) {
  const T* x = static_cast<const T*>(in[0]);
  T* y = static_cast<T*>(out);
  for (Index i = 0; i < n; ++i) y[i] = f(x[i]);
}
template <class T, class F>
void map2(const void* const* in, void* out, Index n, F f) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  for (Index i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

// Complex numbers are stored in f32 and computed in f64.
using Stored = std::complex<float>;
Complex widened(Stored z) { return {z.real(), z.imag()}; }
Stored narrowed(Complex z) { return {static_cast<float>(z.real()), static_cast<float>(z.imag())}; }

template <class Row>
constexpr BlockKernel unary_f64() {
  if constexpr ((Row::domains & base::reals) == 0) {
    return nullptr;
  } else {
    return [](const void* const* in, void* out, long n) {
      map1<double>(in, out, n, [](double x) { return Row::value(Num<double>{x}).v; });
    };
  }
}
template <class Row>
constexpr BlockKernel unary_c64() {
  if constexpr ((Row::domains & base::complexes) == 0) {
    return nullptr;
  } else {
    return [](const void* const* in, void* out, long n) {
      map1<Stored>(in, out, n, [](Stored z) { return narrowed(Row::value(Num<Complex>{widened(z)}).v); });
    };
  }
}
template <class F>
void binary_c64(const void* const* in, void* out, long n, F f) {
  map2<Stored>(in, out, n, [f](Stored a, Stored b) { return narrowed(f(widened(a), widened(b))); });
}

#define RLX_ROW_F64(Type, function) unary_f64<base::Type>(),
#define RLX_ROW_C64(Type, function) unary_c64<base::Type>(),
constexpr BlockKernel unary_rows_f64[] = {RLX_UNARY_ROWS(RLX_ROW_F64)};
constexpr BlockKernel unary_rows_c64[] = {RLX_UNARY_ROWS(RLX_ROW_C64)};
#undef RLX_ROW_F64
#undef RLX_ROW_C64

// The rows of the list that have a kernel here, by their place in it.
enum BinaryRow {
#define RLX_PLACE(Type, function) place_##function,
  RLX_BINARY_ROWS(RLX_PLACE)
#undef RLX_PLACE
};

BlockKernel binary_f64(int row) {
  switch (row) {
    case place_pow:
      return [](const void* const* in, void* out, long n) {
        map2<double>(in, out, n, [](double a, double b) { return std::pow(a, b); });
      };
    case place_fmod:
      return [](const void* const* in, void* out, long n) {
        map2<double>(in, out, n, [](double a, double b) { return std::fmod(a, b); });
      };
    case place_atan2:
      return [](const void* const* in, void* out, long n) {
        map2<double>(in, out, n, [](double a, double b) { return std::atan2(a, b); });
      };
    default:
      return nullptr;
  }
}

BlockKernel binary_complex(int row) {
  switch (row) {
    case place_add:
      return [](const void* const* in, void* out, long n) {
        binary_c64(in, out, n, [](Complex a, Complex b) { return a + b; });
      };
    case place_sub:
      return [](const void* const* in, void* out, long n) {
        binary_c64(in, out, n, [](Complex a, Complex b) { return a - b; });
      };
    case place_mul:
      return [](const void* const* in, void* out, long n) {
        binary_c64(in, out, n, [](Complex a, Complex b) { return a * b; });
      };
    case place_div:
      return [](const void* const* in, void* out, long n) {
        binary_c64(in, out, n, [](Complex a, Complex b) { return a / b; });
      };
    default:
      return nullptr;
  }
}

// Integers that may fail are computed in 64 bits, as the reference does. Nothing is written before all are checked.
template <class T, class Check, class F>
void checked(const void* const* in, void* out, Index n, Check check, F f) {
  using Number = Num<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  for (Index i = 0; i < n; ++i) {
    if (!check(a[i], b[i])) f(Number{a[i]}, Number{b[i]});  // says why
  }
  map2<T>(in, out, n, [f](T x, T y) { return static_cast<T>(f(Number{x}, Number{y}).v); });
}

template <class T>
BlockKernel binary_whole(int row) {
  switch (row) {
    case place_div:
      return [](const void* const* in, void* out, long n) {
        checked<T>(in, out, n, [](T, T b) { return b != 0; }, [](auto a, auto b) { return detail::whole_div(a, b); });
      };
    case place_fmod:
      return [](const void* const* in, void* out, long n) {
        checked<T>(in, out, n, [](T, T b) { return b != 0; }, [](auto a, auto b) { return detail::whole_fmod(a, b); });
      };
    case place_pow:
      return [](const void* const* in, void* out, long n) {
        checked<T>(
            in, out, n, [](T a, T b) { return a != 0 || !(b < T(0)); },
            [](auto a, auto b) { return detail::whole_pow(a, b); });
      };
    default:
      return nullptr;
  }
}

BlockKernel failing_row(DType d, int row) {
  switch (d) {
    case DType::i8:
      return binary_whole<std::int8_t>(row);
    case DType::i16:
      return binary_whole<std::int16_t>(row);
    case DType::i32:
      return binary_whole<std::int32_t>(row);
    case DType::i64:
      return binary_whole<std::int64_t>(row);
    case DType::u8:
      return binary_whole<std::uint8_t>(row);
    case DType::u16:
      return binary_whole<std::uint16_t>(row);
    case DType::u32:
      return binary_whole<std::uint32_t>(row);
    case DType::u64:
      return binary_whole<std::uint64_t>(row);
    default:
      return nullptr;
  }
}

const PlainKernels* plain_kernels(DType d) {
  const WholeKernels& k = whole_kernels();
  switch (d) {
    case DType::i8:
      return &k.i8;
    case DType::i16:
      return &k.i16;
    case DType::i32:
      return &k.i32;
    case DType::i64:
      return &k.i64;
    case DType::u8:
      return &k.u8;
    case DType::u16:
      return &k.u16;
    case DType::u32:
      return &k.u32;
    case DType::u64:
      return &k.u64;
    case DType::boolean:
      return &k.boolean;
    case DType::f64:
      return &k.f64;
    default:
      return nullptr;
  }
}

// What an op of the folder is: the order of scalar_ops() is that of the lists of rows.
struct Place {
  enum Kind { unary, conj, binary, compare, flip, choose, foreign } kind = foreign;
  int row = 0;
};

Place place_of(const OpDef& op) {
  static const auto places = [] {
    std::unordered_map<const OpDef*, Place> all;
    const auto ops = scalar_ops();
    const auto add = [&](Place::Kind kind, int count) {
      for (int i = 0; i < count; ++i) {
        const std::size_t at = all.size();
        all[ops[at]] = {kind, i};
      }
    };
    add(Place::unary, unary_row_count);
    add(Place::conj, 1);
    add(Place::binary, binary_row_count);
    add(Place::compare, compare_row_count);
    add(Place::flip, 1);
    add(Place::choose, 1);
    ensure(all.size() == ops.size(), "every op of the folder is in one of the lists of rows");
    return all;
  }();
  const auto it = places.find(&op);
  return it == places.end() ? Place{} : it->second;
}

BlockKernel unary_block(DType d, int row) {
  if (d == DType::f32) return unary_kernels().f32[row];
  if (d == DType::f64) return unary_rows_f64[row];
  if (d == DType::c64) return unary_rows_c64[row];
  const PlainKernels* k = plain_kernels(d);
  return k ? k->unary[row] : nullptr;
}

BlockKernel binary_block(DType d, int row) {
  if (d == DType::f32) return binary_kernels().f32[row];
  if (d == DType::c64) return binary_complex(row);
  const PlainKernels* k = plain_kernels(d);
  if (k && k->binary[row]) return k->binary[row];
  return d == DType::f64 ? binary_f64(row) : failing_row(d, row);
}

BlockKernel select_block(DType d) {
  if (d == DType::f32) return binary_kernels().select_f32;
  switch (bits(d)) {
    case 8:
      return whole_kernels().select_1;
    case 16:
      return whole_kernels().select_2;
    case 32:
      return whole_kernels().select_4;
    case 64:
      return whole_kernels().select_8;
    default:
      return nullptr;
  }
}

}  // namespace

bool is_scalar_op(const OpDef& op) { return place_of(op).kind != Place::foreign; }

BlockKernel find_block(const OpDef& op, DType dtype) {
  const Place p = place_of(op);
  const PlainKernels* k = plain_kernels(dtype);
  switch (p.kind) {
    case Place::unary:
      return unary_block(dtype, p.row);
    case Place::binary:
      return binary_block(dtype, p.row);
    case Place::compare:
      return dtype == DType::f32 ? binary_kernels().compare_f32[p.row] : k ? k->compare[p.row] : nullptr;
    case Place::flip:
      return k ? k->flip : nullptr;
    case Place::choose:
      return select_block(dtype);
    case Place::conj:
      if (dtype != DType::c64) return nullptr;
      return [](const void* const* in, void* out, long n) {
        map1<Stored>(in, out, n, [](Stored z) { return std::conj(z); });
      };
    case Place::foreign:
      break;
  }
  return nullptr;
}

namespace {

// A number that counts what is done with it: a row read with it gives its cost.
struct Cost {
  int n = 1;
};
// clang-format off
Cost operator+(Cost a, Cost b) { return {a.n + b.n}; }
Cost operator*(Cost a, Cost b) { return {a.n + b.n}; }
Cost operator/(Cost a, Cost b) { return {a.n + b.n + 3}; }
Cost operator-(Cost a) { return a; }
Cost like(Cost, double) { return {0}; }
Cost less(Cost a, Cost b) { return {a.n + b.n}; }
Cost equal(Cost a, Cost b) { return {a.n + b.n}; }
Cost select(Cost c, Cost a, Cost b) { return {c.n + a.n + b.n}; }
Cost maximum(Cost a, Cost b) { return {a.n + b.n}; }
Cost minimum(Cost a, Cost b) { return {a.n + b.n}; }
#define RLX_COST(function, cost) Cost function(Cost a) { return {a.n + (cost)}; }
RLX_COST(abs, 0) RLX_COST(sign, 2) RLX_COST(round, 0) RLX_COST(floor, 0) RLX_COST(ceil, 0) RLX_COST(trunc, 0)
RLX_COST(sqrt, 4) RLX_COST(exp, 16) RLX_COST(expm1, 30) RLX_COST(log, 30) RLX_COST(log1p, 30) RLX_COST(sin, 40)
RLX_COST(cos, 40) RLX_COST(tan, 50) RLX_COST(atan, 40) RLX_COST(tanh, 40) RLX_COST(sigmoid, 24)
RLX_COST(softplus, 50) RLX_COST(erf, 60) RLX_COST(erfc, 60)
#undef RLX_COST
// clang-format on

}  // namespace

int block_cost(const OpDef& op) {
  const Place p = place_of(op);
  if (p.kind == Place::binary) return p.row == place_pow || p.row == place_atan2 ? 60 : p.row == place_fmod ? 20 : 1;
  if (p.kind != Place::unary) return 1;
#define RLX_ROW_COST(Type, function) base::Type::value(Cost{}).n,
  static const int costs[] = {RLX_UNARY_ROWS(RLX_ROW_COST)};
#undef RLX_ROW_COST
  return costs[p.row];
}

}  // namespace rlx
