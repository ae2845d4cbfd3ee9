// Fuzzes ONNX models from the file to the result: import, compile, run. What changes is a part of the model, so that
// most mutants stay well formed.
#include <functional>
#include <string>

#include "fuzz.h"
#include "fuzz/onnx_mutator.h"
#include "fuzz/onnx_program.h"

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);  // NOLINT: libFuzzer's name

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  rlx::fuzz::run_model(rlx::fuzz::copy(data, size), std::hash<std::string_view>()(text));
  return 0;
}

// NOLINTNEXTLINE: libFuzzer's name
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string made = rlx::fuzz::OnnxMutator(seed)(text);
  if (seed % 64 == 0 || made == text || made.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(made.begin(), made.end(), data);
  return made.size();
}

// NOLINTNEXTLINE: libFuzzer's name
std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t size_a, const std::uint8_t* b,
                                      std::size_t size_b, std::uint8_t* out, std::size_t most, unsigned seed) {
  const std::string made = rlx::fuzz::OnnxMutator(seed).cross({reinterpret_cast<const char*>(a), size_a},
                                                              {reinterpret_cast<const char*>(b), size_b});
  if (made.size() > most) return 0;
  std::copy(made.begin(), made.end(), out);
  return made.size();
}
}
