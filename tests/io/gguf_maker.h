// GGUF files made by hand, any version and byte order, with a record of where their integers are.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "io/bounded.h"
#include "io/gguf/gguf.h"

namespace rlx::test {

/// Appends one field after another.
struct GgufMaker {
  std::uint32_t version = 3;
  bool big = false;
  std::string out = {};
  std::vector<Field> fields = {};

  GgufMaker& number(std::uint64_t value, std::size_t width) {
    fields.push_back({out.size(), width});
    std::string bytes(reinterpret_cast<const char*>(&value), width);
    if (big) std::ranges::reverse(bytes);
    out += bytes;
    return *this;
  }
  GgufMaker& u32(std::uint64_t value) { return number(value, 4); }
  GgufMaker& u64(std::uint64_t value) { return number(value, 8); }
  /// A length, count or extent: four bytes in version 1.
  GgufMaker& length(std::uint64_t value) { return number(value, version == 1 ? 4 : 8); }
  GgufMaker& text(std::string_view s) {
    length(s.size());
    out += s;
    return *this;
  }
  GgufMaker& header(std::uint64_t tensors, std::uint64_t keys) {
    out += "GGUF";
    return u32(version).length(tensors).length(keys);
  }
  GgufMaker& key(std::string_view name, GgufType type) { return text(name).u32(static_cast<std::uint32_t>(type)); }
  GgufMaker& tensor(std::string_view name, const std::vector<std::uint64_t>& extents, std::uint64_t type,
                    std::uint64_t offset) {
    text(name).u32(extents.size());
    for (const std::uint64_t e : extents) length(e);
    return u32(type).u64(offset);
  }
  GgufMaker& pad(std::size_t alignment = 32) {
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  GgufMaker& data(std::size_t bytes, char first = 1) {
    for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(first + static_cast<int>(i % 100));
    return *this;
  }
};

inline GgufFile open_gguf(const std::string& text) { return {bytes_of(text), "f"}; }

/// A file with one of everything: keys of all kinds, an f32 tensor [2,3] and a Q4_0 tensor [1,32].
inline GgufMaker small_gguf(std::uint32_t version = 3, bool big = false) {
  GgufMaker m{.version = version, .big = big};
  m.header(2, 5);
  m.key("general.architecture", GgufType::string).text("llama");
  m.key("n", GgufType::u32).u32(7);
  m.key("on", GgufType::boolean).number(1, 1);
  m.key("list", GgufType::array).u32(4).length(3).u32(1).u32(2).u32(3);
  m.key("words", GgufType::array).u32(8).length(3).text("a").text("").text("bc");
  m.tensor("w", {3, 2}, 0, 0);
  m.tensor("q", {32, 1}, 2, 32);
  m.pad();
  for (int i = 0; i < 6; ++i) {
    const float value = static_cast<float>(i) + 0.5f;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    m.u32(bits);
  }
  m.pad().number(0x3c00, 2).data(16).pad();
  return m;
}

}  // namespace rlx::test
