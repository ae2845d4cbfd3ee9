// An ONNX model as a tree of fields that can be changed: lists of numbers are written out one by one.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/onnx/wire.h"

namespace rlx::fuzz {

/// What a message of the format is. `none`: a number, a text or bytes.
enum class Kind : std::uint8_t {
  none,
  model,
  graph,
  node,
  attribute,
  tensor,
  value,
  type,
  tensor_type,
  shape,
  dim,
  opset,
  function,
};

/// What field `number` of a message holds.
inline Kind inside(Kind kind, std::uint32_t number) {
  struct Row {
    Kind outer;
    std::uint32_t number;
    Kind inner;
  };
  static constexpr Row rows[] = {
      {Kind::model, 7, Kind::graph},         {Kind::model, 8, Kind::opset},      {Kind::model, 25, Kind::function},
      {Kind::graph, 1, Kind::node},          {Kind::graph, 5, Kind::tensor},     {Kind::graph, 11, Kind::value},
      {Kind::graph, 12, Kind::value},        {Kind::graph, 13, Kind::value},     {Kind::node, 5, Kind::attribute},
      {Kind::attribute, 5, Kind::tensor},    {Kind::attribute, 6, Kind::graph},  {Kind::attribute, 11, Kind::graph},
      {Kind::value, 2, Kind::type},          {Kind::type, 1, Kind::tensor_type}, {Kind::tensor_type, 2, Kind::shape},
      {Kind::shape, 1, Kind::dim},           {Kind::function, 7, Kind::node},    {Kind::function, 9, Kind::opset},
      {Kind::function, 11, Kind::attribute},
  };
  for (const Row& r : rows) {
    if (r.outer == kind && r.number == number) return r.inner;
  }
  return Kind::none;
}

/// How the elements of a packed list are written, if field `number` is one.
inline std::optional<onnx::Wire> packed(Kind kind, std::uint32_t number) {
  if (kind == Kind::attribute && number == 7) return onnx::Wire::fixed32;
  if (kind == Kind::attribute && number == 8) return onnx::Wire::varint;
  if (kind == Kind::tensor && (number == 1 || number == 5 || number == 7 || number == 11)) return onnx::Wire::varint;
  if (kind == Kind::tensor && number == 4) return onnx::Wire::fixed32;
  if (kind == Kind::tensor && number == 10) return onnx::Wire::fixed64;
  return std::nullopt;
}

struct Message;

struct Part {
  std::uint32_t number = 0;
  onnx::Wire wire = onnx::Wire::varint;
  std::uint64_t value = 0;
  std::string bytes;
  std::vector<Message> message;  // one, when the field is a message; a vector because the type is incomplete here
};

struct Message {
  Kind kind = Kind::none;
  std::vector<Part> parts;

  /// The first field of this number, or null.
  Part* find(std::uint32_t number) {
    for (Part& p : parts) {
      if (p.number == number) return &p;
    }
    return nullptr;
  }
  std::string text(std::uint32_t number) {
    const Part* p = find(number);
    return p ? p->bytes : "";
  }
  void set(std::uint32_t number, std::uint64_t value) {
    Part* p = find(number);
    if (!p) p = &parts.emplace_back();
    *p = {number, onnx::Wire::varint, value, {}, {}};
  }
  void set(std::uint32_t number, std::string_view bytes) {
    Part* p = find(number);
    if (!p) p = &parts.emplace_back();
    *p = {number, onnx::Wire::bytes, 0, std::string(bytes), {}};
  }
  void erase(std::uint32_t number) {
    std::erase_if(parts, [&](const Part& p) { return p.number == number; });
  }
};

/// The fields of a message; nothing where the bytes are none, or nest deeper than `depth`.
inline std::optional<Message> parse(std::string_view text, Kind kind, int depth = 12) {
  Message m{kind, {}};
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    std::uint64_t key = 0, value = 0;
    if (!onnx::read_varint(at, end, key) || key >> 3 == 0 || key >> 3 > 100000) return std::nullopt;
    Part p{static_cast<std::uint32_t>(key >> 3), static_cast<onnx::Wire>(key & 7), 0, {}, {}};
    std::size_t size = p.wire == onnx::Wire::fixed64 ? 8 : 4;
    if (p.wire == onnx::Wire::varint) {
      if (!onnx::read_varint(at, end, p.value)) return std::nullopt;
      m.parts.push_back(std::move(p));
      continue;
    }
    if (p.wire == onnx::Wire::bytes) {
      if (!onnx::read_varint(at, end, value)) return std::nullopt;
      size = value;
    } else if (p.wire != onnx::Wire::fixed64 && p.wire != onnx::Wire::fixed32) {
      return std::nullopt;
    }
    if (size > static_cast<std::size_t>(end - at)) return std::nullopt;
    const std::string_view bytes(at, size);
    at += size;
    const auto list = packed(kind, p.number);
    if (p.wire == onnx::Wire::bytes && list) {
      const char *next = bytes.data(), *last = next + bytes.size();
      while (next != last) {
        Part element{p.number, *list, 0, {}, {}};
        const std::ptrdiff_t width = *list == onnx::Wire::fixed64 ? 8 : 4;
        if (*list == onnx::Wire::varint) {
          if (!onnx::read_varint(next, last, element.value)) return std::nullopt;
        } else {
          if (last - next < width) return std::nullopt;
          element.bytes.assign(next, next + width);
          next += width;
        }
        m.parts.push_back(std::move(element));
      }
      continue;
    }
    const Kind inner = p.wire == onnx::Wire::bytes ? inside(kind, p.number) : Kind::none;
    if (inner != Kind::none) {
      auto parsed = depth > 0 ? parse(bytes, inner, depth - 1) : std::nullopt;
      if (!parsed) return std::nullopt;
      p.message.push_back(std::move(*parsed));
    } else {
      p.bytes = bytes;
    }
    m.parts.push_back(std::move(p));
  }
  return m;
}

inline void put(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7F));
  out += static_cast<char>(value);
}

/// The bytes of a message.
inline std::string written(const Message& m) {
  std::string out;
  for (const Part& p : m.parts) {
    put(out, std::uint64_t{p.number} << 3 | static_cast<std::uint64_t>(p.wire));
    if (p.wire == onnx::Wire::varint) {
      put(out, p.value);
    } else {
      const std::string bytes = p.message.empty() ? p.bytes : written(p.message[0]);
      if (p.wire == onnx::Wire::bytes) put(out, bytes.size());
      out += bytes;
    }
  }
  return out;
}

/// Calls `f` with a message and all messages inside of it, outermost first.
template <class F>
void each_message(Message& m, const F& f) {
  f(m);
  for (Part& p : m.parts) {
    if (!p.message.empty()) each_message(p.message[0], f);
  }
}

}  // namespace rlx::fuzz
