// What tests of executables share: options that check everything, values, messages of errors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "runtime/executable.h"

namespace rlx::test {

/// Poisoned memory, checked plans.
inline const ExecutableOptions careful{.poison = true, .check = true};

/// start, start + step, …, over again after 23 elements.
inline Tensor ramp(std::vector<Index> shape, double start = -1, double step = 0.37, DType dtype = DType::f32) {
  Tensor t(dtype, std::move(shape));
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = start + step * static_cast<double>(i % 23);
  store<double>(t, v);
  return t;
}

/// The message of the Error that `f` throws, or "no error".
inline std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace rlx::test
