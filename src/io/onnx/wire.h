// The wire format of protocol buffers, read without trust: every length and number is checked before it is used.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/index.h"

namespace rlx::onnx {

/// How a field is written.
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// One field of a message.
struct Field {
  std::uint32_t number = 0;
  Wire wire = Wire::varint;
  std::uint64_t value = 0;  // of a varint or a fixed number
  std::string_view bytes;   // of a string, a message or packed numbers
};

/// What all readers of one file share: its bytes and the name for messages.
struct WireFile {
  std::string_view bytes;
  std::string name;
  /// Throws Error "NAME, offset N: WHAT"; `at` lies inside the file.
  [[noreturn]] void fail_at(const char* at, std::string_view what) const;
};

/// Walks over the fields of one message.
class WireReader {
 public:
  WireReader(const WireFile& file, std::string_view message, const char* kind)
      : file_(&file), rest_(message), kind_(kind) {}

  /// Reads the next field; false at the end of the message. Throws Error for a field that leaves the message, a number
  /// of more than 64 bits, field number 0, and the group types, which ONNX does not use.
  bool next(Field& field);

  /// The current field as text: UTF-8 without zero bytes.
  std::string_view text(const Field& field, const char* what) const;
  /// The current field as bytes, or Error when it is written as a number.
  std::string_view bytes(const Field& field, const char* what) const;
  /// The current field as a number, or Error when it is written as bytes.
  Index integer(const Field& field, const char* what) const;
  float real(const Field& field, const char* what) const;
  /// Throws Error when `seen` is set, and sets it.
  void once(bool& seen, const char* what) const;
  [[noreturn]] void fail(std::string_view what) const;

 private:
  std::uint64_t varint();

  const WireFile* file_;
  std::string_view rest_;
  const char* kind_;
  const char* at_ = nullptr;  // where the current field begins
};

/// Calls `each` with every varint of a packed list. Throws Error when the bytes are no list of varints.
template <class F>
void each_varint(const WireFile& file, std::string_view list, F&& each);

/// The same over fixed numbers of type T.
template <class T, class F>
void each_fixed(const WireFile& file, std::string_view list, F&& each) {
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a position, not a text
  if (list.size() % sizeof(T) != 0) file.fail_at(list.data(), "a list of fixed numbers has a size that fits none");
  for (std::size_t i = 0; i < list.size(); i += sizeof(T)) {
    T v;
    std::memcpy(&v, list.data() + i, sizeof v);
    each(v);
  }
}

/// Reads a varint at `at`, which it moves; null and an unchanged `at` when the bytes end or hold more than 64 bits.
bool read_varint(const char*& at, const char* end, std::uint64_t& value);

template <class F>
void each_varint(const WireFile& file, std::string_view list, F&& each) {
  const char *at = list.data(), *end = at + list.size();
  while (at != end) {
    std::uint64_t value = 0;
    if (!read_varint(at, end, value)) file.fail_at(at, "a packed number is cut off or has more than 64 bits");
    each(value);
  }
}

}  // namespace rlx::onnx
