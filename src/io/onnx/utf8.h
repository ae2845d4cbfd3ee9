// Whether bytes are text.
#pragma once

#include <string_view>

namespace rlx::onnx {

/// UTF-8 (no surrogates, no overlong forms, nothing above U+10FFFF) without zero bytes.
inline bool is_text(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  for (std::size_t i = 0; i < s.size();) {
    const unsigned char c = byte(i);
    const std::size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (c == 0 || length == 0 || length > s.size() - i) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    if (length > 2) {
      const unsigned char second = byte(i + 1);
      if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f)) return false;
      if ((c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f)) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace rlx::onnx
