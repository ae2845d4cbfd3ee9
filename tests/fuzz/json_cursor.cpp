// Fuzzes the JSON tokens: any value, then every string of it decoded.
#include "io/json_cursor.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  using namespace rlx;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::run([&] {
    JsonCursor in(text, "fuzz");
    in.skip_value(64);
    in.finish();
  });
  return fuzz::run([&] {
    JsonCursor in(text, "fuzz");
    const JsonString s = in.string();
    ensure(s.text().size() <= s.raw.size(), "a decoded string grows");
  });
}
