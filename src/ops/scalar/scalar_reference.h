// Reference loops of elementwise ops: load in the widest number of the class, apply, round once.
#pragma once

#include "core/error.h"
#include "core/num.h"
#include "core/walk.h"
#include "ir/op.h"
#include "ops/scalar/rows.h"

namespace rlx::detail {

using Complex = std::complex<double>;

template <class T>
constexpr unsigned domain_of() {
  if constexpr (std::is_same_v<T, Complex>) {
    return base::complexes;
  } else {
    return std::is_integral_v<T> ? base::integers : base::reals;
  }
}

/// Calls f.template operator()<T>() with the number type that element type `d` is computed in, if `domains` has it.
template <unsigned domains, class F>
void visit_domain(DType d, F f) {
  if constexpr ((domains & base::complexes) != 0) {
    if (is_complex(d)) return f.template operator()<Complex>();
  }
  if constexpr ((domains & base::integers) != 0) {
    if (is_signed_integer(d)) return f.template operator()<std::int64_t>();
    if (is_unsigned_integer(d) || d == DType::boolean) return f.template operator()<std::uint64_t>();
  }
  if constexpr ((domains & base::reals) != 0) {
    if (is_float(d)) return f.template operator()<double>();
  }
  fail("no reference for element type {}", name(d));
}

/// out[i] = f(a[i]).
template <class T, class F>
void map1(const RefArgs& r, F f) {
  std::vector<T> x = load<T>(r.in[0]);
  for (T& v : x) v = f(v);
  store(r.out[0], x);
}

/// out[i] = f(a[i], b[i]) with broadcasting; R is the number type of the result.
template <class T, class R, class F>
void map2(const RefArgs& r, F f) {
  const std::vector<T> a = load<T>(r.in[0]), b = load<T>(r.in[1]);
  const auto& shape = r.out[0].shape();
  std::vector<R> y(static_cast<std::size_t>(r.out[0].count()));
  std::size_t i = 0;
  walk<2>(shape, {broadcast_strides(r.in[0].shape(), shape), broadcast_strides(r.in[1].shape(), shape)},
          [&](const auto& at) { y[i++] = f(a[static_cast<std::size_t>(at[0])], b[static_cast<std::size_t>(at[1])]); });
  store(r.out[0], y);
}

}  // namespace rlx::detail
