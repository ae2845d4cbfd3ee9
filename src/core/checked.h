// The one type of size arithmetic: any overflow is remembered and becomes an Error when the value is taken.
#pragma once

#include <string_view>

#include "core/index.h"

namespace rlx {

/// A 64-bit signed integer whose +, -, * cannot wrap unseen. `value(what)` throws Error naming `what` after an
/// overflow.
class Checked {
 public:
  constexpr Checked(Index value) : value_(value) {}

  friend constexpr Checked operator+(Checked a, Checked b) {
    Checked r(0);
    r.overflow_ = __builtin_add_overflow(a.value_, b.value_, &r.value_) || a.overflow_ || b.overflow_;
    return r;
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    Checked r(0);
    r.overflow_ = __builtin_sub_overflow(a.value_, b.value_, &r.value_) || a.overflow_ || b.overflow_;
    return r;
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    Checked r(0);
    r.overflow_ = __builtin_mul_overflow(a.value_, b.value_, &r.value_) || a.overflow_ || b.overflow_;
    return r;
  }

  constexpr bool overflowed() const { return overflow_; }
  /// The number; throws Error "size of WHAT overflows 63 bits" after an overflow.
  Index value(std::string_view what) const;

 private:
  Index value_;
  bool overflow_ = false;
};

/// Product of non-negative extents. A zero anywhere gives 0 even when the other factors would overflow together;
/// a negative extent or an overflow throws Error naming `what`.
template <class Range>
Index checked_product(const Range& extents, std::string_view what);

namespace detail {
[[noreturn]] void negative_extent(Index extent, std::string_view what);
}

template <class Range>
Index checked_product(const Range& extents, std::string_view what) {
  Checked n(1);
  bool zero = false;
  for (const Index e : extents) {
    if (e < 0) detail::negative_extent(e, what);
    if (e == 0) zero = true;
    n = n * Checked(e);
  }
  return zero ? 0 : n.value(what);
}

}  // namespace rlx
