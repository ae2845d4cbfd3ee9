// Fuzzes the npy reader: header, byte order, layout.
#include "io/npy.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  using namespace rlx;
  return fuzz::run([&] { fuzz::touch(parse_npy(fuzz::copy(data, size), "fuzz")); });
}
