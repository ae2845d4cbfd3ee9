// Fuzzes the safetensors reader: header, layout, every tensor.
#include "io/safetensors.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  using namespace rlx;
  return fuzz::run([&] {
    const SafetensorsFile f(fuzz::copy(data, size), "fuzz");
    Index covered = 0;
    for (const SafetensorsEntry& e : f.tensors()) {
      ensure(f.find(e.name).begin == e.begin || e.begin == e.end, "a name finds another tensor");
      covered += e.end - e.begin;
      if (e.dtype) fuzz::touch(f.at(e.name));
    }
    ensure(covered < static_cast<Index>(size), "tensors cover more than the file");
  });
}
