// fft: discrete Fourier transforms of any length.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct FftAttrs {
  bool inverse = false;  // the exponent's sign is +
  static void fields(auto& a, auto&& f) { f("inverse", a.inverse); }
};
extern const Op<FftAttrs> fft_op;

/// The transform along the last axis but one of numbers whose real and imaginary parts lie along the last; nothing is
/// divided by the length.
Value fft(Value x, bool inverse = false);

}  // namespace rlx
