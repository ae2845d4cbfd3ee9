// The same as serve.h for convolutions: reads lines `N C H W CO KERNEL STRIDE PADDING GROUPS SECONDS`, square kernels
// and two axes, of f32.
#pragma once

#include "serve.h"

namespace bench {

/// A convolution of [n, c, h, w] by [co, c / groups, kernel, kernel], with a bias a channel and relu behind it.
struct ConvRequest {
  long n = 1, c = 1, h = 1, w = 1, co = 1, kernel = 1, stride = 1, padding = 0, groups = 1;
  long out(long in) const { return (in + 2 * padding - kernel) / stride + 1; }
  std::string text() const {
    std::string all;
    for (const long v : {n, c, h, w, co, kernel, stride, padding, groups}) all += std::to_string(v) + " ";
    return all;
  }
};

/// Serves standard input until it ends; answers as serve.h says.
inline int serve_conv(const std::function<Work(const ConvRequest&)>& prepare) {
  ConvRequest r;
  double budget = 0;
  while (std::cin >> r.n >> r.c >> r.h >> r.w >> r.co >> r.kernel >> r.stride >> r.padding >> r.groups >> budget) {
    answer([&] { return prepare(r); }, budget);
  }
  return 0;
}

}  // namespace bench
