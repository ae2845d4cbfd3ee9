// Fuzzes the GGUF reader: header, layout, every value, every tensor, and the copy that the writer would make of it.
#include "io/gguf/gguf.h"

#include "fuzz.h"
#include "io/gguf/quantize.h"

namespace {

using namespace rlx;

void touch(const GgufValue& v) {
  ensure(!v.describe().empty(), "a value has a description");
  if (!v.is_array()) return;
  for (const GgufValue& e : v.elements()) touch(e);
}

void touch(const GgufFile& f, const GgufEntry& e) {
  ensure(f.entry(e.name).offset == e.offset, "a name finds another tensor");
  try {
    fuzz::touch(f.at(e.name));
  } catch (const Error& no_codec) {  // or no form in this byte order
    ensure(no_codec.what()[0] != 0, "an error says what it is about");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  return fuzz::run([&] {
    const GgufFile f(fuzz::copy(data, size), "fuzz");
    Index covered = 0;
    for (Index i = 0; i < f.key_count(); ++i) {
      const GgufValue v = f.value(i);
      ensure(f.value(f.key(i))->bytes().data() == v.bytes().data(), "a key finds another value");
      touch(v);
    }
    for (const GgufEntry& e : f.tensors()) {
      covered += e.bytes;
      touch(f, e);
    }
    ensure(covered < static_cast<Index>(size), "tensors cover more than the file");
    const GgufMetadata copy(f);
    ensure(copy.count() <= f.key_count(), "a copy has no more keys");
    (void)gguf_mix_facts(f);
  });
}
