// Fields of protocol buffer messages.
#include "io/onnx/wire.h"

#include <bit>

#include "core/error.h"
#include "core/quote.h"
#include "io/onnx/utf8.h"

namespace rlx::onnx {

static_assert(std::endian::native == std::endian::little, "fixed numbers are little-endian");

void WireFile::fail_at(const char* at, std::string_view what) const {
  rlx::fail("'{}', offset {}: {}", name, at - bytes.data(), what);
}

bool read_varint(const char*& at, const char* end, std::uint64_t& value) {
  const char* p = at;
  value = 0;
  for (int shift = 0; shift < 70 && p != end; shift += 7) {
    const auto byte = static_cast<unsigned char>(*p++);
    if (shift == 63 && byte > 1) return false;
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      at = p;
      return true;
    }
  }
  return false;
}

void WireReader::fail(std::string_view what) const {
  file_->fail_at(at_ ? at_ : rest_.data(), fmt::format("{}: {}", kind_, what));
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  const char* p = rest_.data();
  if (!read_varint(p, p + rest_.size(), value)) fail("a number is cut off or has more than 64 bits");
  rest_.remove_prefix(static_cast<std::size_t>(p - rest_.data()));
  return value;
}

bool WireReader::next(Field& field) {
  if (rest_.empty()) return false;
  at_ = rest_.data();
  const std::uint64_t key = varint();
  if (key >> 3 == 0 || key >> 32 != 0) fail(fmt::format("field key {} is not one", key));
  field.number = static_cast<std::uint32_t>(key >> 3);
  field.value = 0;
  field.bytes = {};
  std::uint64_t size = 0;
  switch (key & 7) {
    case 0:
      field.wire = Wire::varint;
      field.value = varint();
      return true;
    case 1:
      field.wire = Wire::fixed64;
      size = 8;
      break;
    case 2:
      field.wire = Wire::bytes;
      size = varint();
      break;
    case 5:
      field.wire = Wire::fixed32;
      size = 4;
      break;
    default:
      fail(fmt::format("field {} has the wire type {}, which ONNX does not use", field.number, key & 7));
  }
  if (size > rest_.size()) {
    fail(fmt::format("field {} has {} bytes, {} are left", field.number, size, rest_.size()));
  }
  field.bytes = rest_.substr(0, static_cast<std::size_t>(size));
  rest_.remove_prefix(field.bytes.size());
  if (field.wire != Wire::bytes) std::memcpy(&field.value, field.bytes.data(), field.bytes.size());
  return true;
}

std::string_view WireReader::bytes(const Field& field, const char* what) const {
  if (field.wire != Wire::bytes) fail(fmt::format("{} is a number, expected bytes", what));
  return field.bytes;
}

std::string_view WireReader::text(const Field& field, const char* what) const {
  const std::string_view s = bytes(field, what);
  if (!is_text(s)) fail(fmt::format("{} {} is not UTF-8, or holds a zero byte", what, quote(s)));
  return s;
}

Index WireReader::integer(const Field& field, const char* what) const {
  if (field.wire != Wire::varint) fail(fmt::format("{} is not written as an integer", what));
  return static_cast<Index>(field.value);
}

float WireReader::real(const Field& field, const char* what) const {
  if (field.wire != Wire::fixed32) fail(fmt::format("{} is not written as a 32-bit number", what));
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
}

void WireReader::once(bool& seen, const char* what) const {
  if (seen) fail(fmt::format("{} is there twice", what));
  seen = true;
}

}  // namespace rlx::onnx
