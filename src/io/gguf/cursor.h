// Reads the fields of a GGUF header one after another, each checked against what is left of the file.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/index.h"

namespace rlx {

static_assert(std::endian::native == std::endian::little, "files are used without a copy: little-endian only");

/// How a file writes its numbers.
struct GgufForm {
  std::uint32_t version = 3;
  bool big = false;  // big-endian

  /// Bytes of a length or count: four in version 1, eight since.
  std::size_t length_bytes() const { return version == 1 ? 4 : 8; }
};

/// `width` bytes at `at` as an unsigned number.
inline std::uint64_t gguf_number(std::span<const std::byte> data, std::size_t at, std::size_t width, bool big) {
  std::uint64_t n = 0;
  if (!big) {
    std::memcpy(&n, data.data() + at, width);
    return n;
  }
  for (std::size_t i = 0; i < width; ++i) n = n << 8 | std::to_integer<std::uint64_t>(data[at + i]);
  return n;
}

/// A position in a file.
class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> data, GgufForm form, std::string_view path, std::size_t at = 0)
      : data_(data), form_(form), path_(path), at_(at) {}

  std::size_t position() const { return at_; }
  std::size_t left() const { return data_.size() - at_; }
  GgufForm form() const { return form_; }

  /// An unsigned number of `width` bytes.
  std::uint64_t number(std::size_t width, std::string_view what) {
    const std::size_t at = skip(width, what);
    return gguf_number(data_, at, width, form_.big);
  }
  std::uint32_t u32(std::string_view what) { return static_cast<std::uint32_t>(number(4, what)); }

  /// A length or count, of things that take at least `least` bytes each: no more than what is left can hold.
  std::size_t length(std::size_t least, std::string_view what) {
    const std::size_t begin = at_;
    const std::uint64_t n = number(form_.length_bytes(), what);
    if (n > left() / least) fail_at(begin, fmt::format("{} is {}, but only {} bytes follow", what, n, left()));
    return static_cast<std::size_t>(n);
  }
  /// A string with its length before it.
  std::string_view text(std::string_view what) {
    const std::size_t n = length(1, what);
    const std::size_t begin = skip(n, what);
    return {reinterpret_cast<const char*>(data_.data()) + begin, n};
  }
  /// Passes `n` bytes and returns where they begin.
  std::size_t skip(std::size_t n, std::string_view what) {
    if (n > left()) fail_at(at_, fmt::format("the file ends in {}: {} bytes are left of {}", what, left(), n));
    const std::size_t begin = at_;
    at_ += n;
    return begin;
  }
  [[noreturn]] void fail_at(std::size_t position, const std::string& message) const {
    fail("'{}': byte {}: {}", path_, position, message);
  }

 private:
  std::span<const std::byte> data_;
  GgufForm form_;
  std::string_view path_;
  std::size_t at_;
};

}  // namespace rlx
