// Fuzzes chat templates: parsing, then rendering a short conversation.
#include "text/chat_template.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  using namespace rlx;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  return fuzz::run([&] {
    const ChatMessage messages[] = {{"system", "be brief"}, {"user", "hi"}, {"assistant", "yes"}};
    ChatOptions options;
    options.tools = R"([{"name": "f", "parameters": {"x": [1, 2.5, null]}}])";
    options.now = 0;
    ChatTemplate(text).render(messages, options);
  });
}
