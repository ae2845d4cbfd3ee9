// Fuzzes tokenizer.json: whatever loads must encode and decode.
#include "text/tokenizer.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  using namespace rlx;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  return fuzz::run([&] {
    const Tokenizer t = Tokenizer::from_json(text);
    const std::vector<std::int32_t> ids =
        t.encode("It's <s>[CLS] 1234  Größe \xff\xe2\x82 e\u0301\n\n<|im_end|> 漢字\U0001F600");
    for (const std::int32_t id : ids) ensure(id >= 0 && id < t.vocab_size(), "an id is one of a token");
    Detokenizer stream(t);
    std::string joined;
    for (const std::int32_t id : ids) joined += stream.push(id);
    ensure(joined + stream.flush() == t.decode(ids), "streamed text is the whole text");
  });
}
