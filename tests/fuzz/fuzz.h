// Calls a reader on the fuzzer's bytes: an Error is a fine answer, anything else ends the program.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/error.h"
#include "core/tensor.h"

namespace rlx::fuzz {

/// A copy at the end of an allocation of exactly this size, so that reads beyond it are seen.
inline Bytes copy(const std::uint8_t* data, std::size_t size) {
  Bytes b = Bytes::allocate(static_cast<Index>(size));
  if (size > 0) std::memcpy(const_cast<std::byte*>(b.data.data()), data, size);
  return b;
}

/// Reads every byte of a tensor.
inline void touch(const Tensor& t) {
  unsigned sum = 0;
  for (const std::byte b : t.bytes()) sum += std::to_integer<unsigned>(b);
  [[maybe_unused]] volatile unsigned sink = sum;
}

/// Calls `read`; a refusal is an answer. The result is what libFuzzer expects.
template <class Read>
int run(const Read& read) {
  try {
    read();
  } catch (const Error&) {
    return 0;
  }
  return 0;
}

}  // namespace rlx::fuzz
