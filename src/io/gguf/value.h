// Values of the metadata of a GGUF file: views of the mapped bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/gguf/cursor.h"

namespace rlx {

/// Types of metadata values, with the numbers that files hold.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
inline constexpr std::uint32_t gguf_type_count = 13;

/// `u8`, `string`, …
std::string_view name(GgufType type);
/// Bytes of a number or boolean; 0 for strings and arrays, whose size varies.
std::size_t width(GgufType type);
inline bool is_integer(GgufType t) { return t < GgufType::f32 || t == GgufType::u64 || t == GgufType::i64; }
inline bool is_float(GgufType t) { return t == GgufType::f32 || t == GgufType::f64; }

/// Arrays nest at most so deep.
inline constexpr int gguf_max_nesting = 8;

/// A value, cheap to copy, valid as long as the file object or a copy of it. Accessors that do not find what they ask
/// for throw Error with the file, the key, what is there and what was expected.
class GgufValue {
 public:
  GgufType type() const { return type_; }
  bool is_array() const { return type_ == GgufType::array; }
  /// Type of the elements of an array.
  GgufType element_type() const { return element_; }
  /// Elements of an array; 1 for all else.
  Index count() const { return static_cast<Index>(count_); }
  /// The elements of an array, the first `most` of them.
  std::vector<GgufValue> elements(Index most = std::numeric_limits<Index>::max()) const;

  /// The value as T: bool, an integer type (from any integer type, when the number fits), a float type (from floats and
  /// integers), std::string_view or std::string (the bytes as they are), or a std::vector of those (from an array).
  template <class T>
  T as() const;

  /// What stands there, for messages: `u32 7`, `an array of 3 string`.
  std::string describe() const;
  /// `'FILE': metadata key KEY`.
  std::string place() const;

  /// The bytes of the value in the file, without the type; arrays with element type and length.
  std::span<const std::byte> bytes() const;
  GgufForm form() const { return form_; }

 private:
  friend class GgufFile;
  friend struct GgufPart;

  [[noreturn]] void fail_expected(std::string_view expected) const;
  bool boolean() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  std::uint64_t natural(std::uint64_t high) const;
  double number() const;
  std::string_view text_view() const;
  GgufCursor cursor() const { return {data_, form_, path_, begin_}; }
  std::uint64_t code(std::size_t i) const {
    return gguf_number(data_, begin_ + i * width(type_), width(type_), form_.big);
  }

  std::span<const std::byte> data_;  // the whole file
  std::string_view path_, key_;
  GgufForm form_;
  GgufType type_ = GgufType::u8, element_ = GgufType::u8;
  std::size_t begin_ = 0;  // of the scalar, of the length of the string, of the first element
  std::uint64_t count_ = 1;
};

namespace detail {
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
}  // namespace detail

template <class T>
T GgufValue::as() const {
  if constexpr (detail::is_vector<T>) {
    if (!is_array()) fail_expected("an array");
    T all;
    all.reserve(count_);
    GgufValue e = *this;
    e.type_ = element_;
    e.count_ = 1;
    GgufCursor at = cursor();
    if (element_ == GgufType::array && count_ > 0) fail_expected("an array of single values");
    for (std::uint64_t i = 0; i < count_; ++i) {
      e.begin_ = at.position();
      all.push_back(e.as<typename T::value_type>());
      if (element_ == GgufType::string) {
        at.text("a string");
      } else {
        at.skip(width(element_), "an element");
      }
    }
    return all;
  } else if constexpr (std::is_same_v<T, bool>) {
    return boolean();
  } else if constexpr (std::is_same_v<T, std::string_view> || std::is_same_v<T, std::string>) {
    return T(text_view());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(number());
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(natural(std::numeric_limits<T>::max()));
  } else {
    static_assert(std::is_integral_v<T>);
    return static_cast<T>(integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
}

/// Passes a value of `type`, checking all of it: lengths, booleans, types and depth of arrays. Fills the fields that a
/// view needs.
void skip_gguf_value(GgufCursor& at, GgufType type, int depth, GgufType* element, std::uint64_t* count,
                     std::size_t* begin);
/// The type a file's number stands for.
GgufType read_gguf_type(GgufCursor& at, std::string_view what);

}  // namespace rlx
