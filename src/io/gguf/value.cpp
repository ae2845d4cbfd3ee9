// Reading and printing metadata values.
#include "io/gguf/value.h"

#include <algorithm>
#include <bit>

#include "core/quote.h"

namespace rlx {

namespace {

constexpr std::string_view names[] = {"u8",      "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "boolean", "string", "array", "u64", "i64", "f64"};
constexpr std::size_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

bool is_signed(GgufType t) {
  return t == GgufType::i8 || t == GgufType::i16 || t == GgufType::i32 || t == GgufType::i64;
}

/// The least that a value can take in a file.
std::size_t least_bytes(GgufType type, GgufForm form) {
  if (type == GgufType::string) return form.length_bytes();
  if (type == GgufType::array) return 4 + form.length_bytes();
  return width(type);
}

}  // namespace

std::string_view name(GgufType type) { return names[static_cast<std::size_t>(type)]; }
std::size_t width(GgufType type) { return widths[static_cast<std::size_t>(type)]; }

GgufType read_gguf_type(GgufCursor& at, std::string_view what) {
  const std::size_t begin = at.position();
  const std::uint32_t n = at.u32(what);
  if (n >= gguf_type_count) {
    at.fail_at(begin, fmt::format("{} is {}, expected 0 to {}", what, n, gguf_type_count - 1));
  }
  return static_cast<GgufType>(n);
}

void skip_gguf_value(GgufCursor& at, GgufType type, int depth, GgufType* element, std::uint64_t* count,
                     std::size_t* begin) {
  if (begin != nullptr) *begin = at.position();
  if (type == GgufType::string) {
    at.text("the length of a string");
    return;
  }
  if (type == GgufType::boolean) {
    const std::size_t place = at.position();
    const std::uint64_t n = at.number(1, "a boolean");
    if (n > 1) at.fail_at(place, fmt::format("a boolean is {}, expected 0 or 1", n));
    return;
  }
  if (type != GgufType::array) {
    at.skip(width(type), "a value");
    return;
  }
  if (depth >= gguf_max_nesting) {
    at.fail_at(at.position(), fmt::format("arrays are nested more than {} deep", gguf_max_nesting));
  }
  const GgufType inner = read_gguf_type(at, "the type of the elements");
  const std::size_t n = at.length(least_bytes(inner, at.form()), "the length of an array");
  if (begin != nullptr) *begin = at.position();
  if (element != nullptr) *element = inner;
  if (count != nullptr) *count = n;
  if (width(inner) > 0 && inner != GgufType::boolean) {
    at.skip(n * width(inner), "an array");  // no overflow: length() has compared with what is left
    return;
  }
  for (std::size_t i = 0; i < n; ++i) skip_gguf_value(at, inner, depth + 1, nullptr, nullptr, nullptr);
}

std::vector<GgufValue> GgufValue::elements(Index most) const {
  if (!is_array()) fail_expected("an array");
  const std::uint64_t n = std::min(count_, static_cast<std::uint64_t>(std::max(most, Index{0})));
  std::vector<GgufValue> all;
  all.reserve(n);
  GgufCursor at = cursor();
  GgufValue e = *this;
  e.type_ = element_;
  e.count_ = 1;
  for (std::uint64_t i = 0; i < n; ++i) {
    skip_gguf_value(at, element_, 1, &e.element_, &e.count_, &e.begin_);
    all.push_back(e);
  }
  return all;
}

std::span<const std::byte> GgufValue::bytes() const {
  GgufCursor at = cursor();
  if (!is_array()) {
    skip_gguf_value(at, type_, 0, nullptr, nullptr, nullptr);
    return data_.subspan(begin_, at.position() - begin_);
  }
  const std::size_t head = 4 + form_.length_bytes();
  for (std::uint64_t i = 0; i < count_ && width(element_) == 0; ++i) {
    skip_gguf_value(at, element_, 1, nullptr, nullptr, nullptr);
  }
  at.skip(static_cast<std::size_t>(count_) * width(element_), "an array");
  return data_.subspan(begin_ - head, at.position() - begin_ + head);
}

std::string GgufValue::place() const { return fmt::format("'{}': metadata key {}", path_, quote(key_)); }

void GgufValue::fail_expected(std::string_view expected) const {
  fail("{} is {}, expected {}", place(), describe(), expected);
}

bool GgufValue::boolean() const {
  if (type_ != GgufType::boolean) fail_expected("a boolean");
  return code(0) != 0;
}

std::int64_t GgufValue::integer(std::int64_t low, std::int64_t high) const {
  if (!is_integer(type_)) fail_expected("an integer");
  std::uint64_t bits = code(0);
  if (!is_signed(type_)) {
    if (bits > static_cast<std::uint64_t>(high)) fail_expected(fmt::format("an integer from {} to {}", low, high));
    return static_cast<std::int64_t>(bits);
  }
  const auto shift = static_cast<unsigned>(64 - 8 * width(type_));
  const std::int64_t n = static_cast<std::int64_t>(bits << shift) >> shift;
  if (n < low || n > high) fail_expected(fmt::format("an integer from {} to {}", low, high));
  return n;
}

std::uint64_t GgufValue::natural(std::uint64_t high) const {
  if (!is_integer(type_)) fail_expected("an integer");
  const std::uint64_t bits = code(0);
  const bool negative = is_signed(type_) && (bits >> (8 * width(type_) - 1)) != 0;
  if (negative || bits > high) fail_expected(fmt::format("an integer from 0 to {}", high));
  return bits;
}

double GgufValue::number() const {
  if (type_ == GgufType::f32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(code(0))));
  if (type_ == GgufType::f64) return std::bit_cast<double>(code(0));
  if (!is_integer(type_)) fail_expected("a number");
  if (!is_signed(type_)) return static_cast<double>(code(0));
  return static_cast<double>(
      integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
}

std::string_view GgufValue::text_view() const {
  if (type_ != GgufType::string) fail_expected("a string");
  return cursor().text("a string");
}

std::string GgufValue::describe() const {
  if (is_array()) return fmt::format("an array of {} {}", count_, rlx::name(element_));
  const std::string_view type = rlx::name(type_);
  if (type_ == GgufType::string) return fmt::format("string {}", quote(text_view(), 40));
  if (type_ == GgufType::boolean) return fmt::format("boolean {}", boolean());
  if (is_float(type_)) return fmt::format("{} {}", type, number());
  if (is_signed(type_)) return fmt::format("{} {}", type, as<std::int64_t>());
  return fmt::format("{} {}", type, code(0));
}

}  // namespace rlx
