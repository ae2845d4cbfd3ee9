// Quoting of untrusted text.
#include "core/quote.h"

#include <fmt/core.h>

namespace rlx {

std::string quote(std::string_view text, std::size_t limit) {
  std::string out = "'";
  for (const char c : text.substr(0, limit)) {
    if (c < 0x20 || c > 0x7e || c == '\'' || c == '\\') {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '\'';
  if (text.size() > limit) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

}  // namespace rlx
