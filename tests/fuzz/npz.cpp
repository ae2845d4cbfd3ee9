// Fuzzes the npz reader: archive directory, unpacking, arrays.
#include "fuzz.h"
#include "io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  using namespace rlx;
  return fuzz::run([&] {
    const NpzFile f(fuzz::copy(data, size), "fuzz");
    for (const std::string& name : f.names()) {
      fuzz::run([&] { fuzz::touch(f.at(name)); });
    }
  });
}
