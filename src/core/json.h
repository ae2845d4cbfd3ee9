// A read-only JSON document with bounds on depth, nodes and bytes, for files that cannot be trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/index.h"

namespace rlx {

struct JsonStorage;

/// What a text may hold at most; more is an Error. The defaults keep parsing within twice the text's size plus 64 MB.
struct JsonLimits {
  std::size_t bytes = std::size_t{256} << 20;      // of the whole text
  std::size_t token_bytes = std::size_t{2} << 20;  // of one string, number or run of blanks, as written
  std::size_t nodes = 2'500'000;                   // values and member names
  int depth = 64;                                  // of nested arrays and objects
};

enum class JsonKind : std::uint8_t { null, boolean, integer, real, string, array, object };

/// The kind in words, for messages: "null", "boolean", "integer", "real", "string", "array" or "object".
const char* json_kind_name(JsonKind kind);

/// One value of a document: cheap to copy, valid while a JsonDocument of the same text lives. Every accessor that does
/// not find what it asks for throws an Error with the value's path, such as `tokenizer.json: model.vocab is null,
/// expected object`.
class JsonValue {
 public:
  class Members;
  class Elements;

  JsonKind kind() const;
  bool is_null() const { return kind() == JsonKind::null; }
  bool is_string() const { return kind() == JsonKind::string; }
  bool is_array() const { return kind() == JsonKind::array; }
  bool is_object() const { return kind() == JsonKind::object; }

  /// The number of elements of an array or members of an object; an Error for any other kind.
  Index size() const;

  /// The member `key` of an object; an Error if it is missing. Takes time linear in the number of members.
  JsonValue at(std::string_view key) const;
  /// The member `key` of an object, if there is one; an Error if this is not an object.
  std::optional<JsonValue> find(std::string_view key) const;
  /// Element `i` of an array; an Error if it is out of range. Takes linear time: iterate `elements()` instead of
  /// counting.
  JsonValue at(Index i) const;

  bool as_bool() const;
  /// An integer written without fraction or exponent, from -2^63 to 2^63-1.
  Index as_index() const;
  /// An integer from `low` to `high`.
  Index as_index(Index low, Index high) const;
  /// An integer or real number.
  double as_double() const;
  /// The decoded string: valid UTF-8 that may contain NUL. Valid as long as the document.
  std::string_view as_string() const;

  /// The member `key`, or `fallback` if the object lacks it; a member of another kind, null too, is an Error.
  bool get_or(std::string_view key, bool fallback) const;
  Index get_or(std::string_view key, Index fallback) const;
  double get_or(std::string_view key, double fallback) const;
  std::string get_or(std::string_view key, const char* fallback) const;

  /// The members of an object, in file order, as pairs of name and value.
  Members members() const;
  /// The elements of an array, in order.
  Elements elements() const;

  /// Where this is in its document, for messages: `added_tokens[3].id`; the root is `the document`.
  std::string path() const;
  /// The value in short for messages: a scalar as JSON (strings cut at 40 bytes), else "array of 3" or "object of 2".
  std::string describe() const;
  /// Throws an Error: `NAME: PATH is VALUE, expected ...`.
  [[noreturn]] void fail_expected(std::string_view expected) const;

 private:
  friend class JsonDocument;
  JsonValue(const JsonStorage* storage, std::uint32_t node) : storage_(storage), node_(node) {}
  const JsonStorage* storage_;
  std::uint32_t node_;
};

struct JsonMember {
  std::string_view key;
  JsonValue value;
};

/// A range over an object's members.
class JsonValue::Members {
 public:
  class Iterator {
   public:
    JsonMember operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return node_ == other.node_; }

   private:
    friend class Members;
    Iterator(const JsonStorage* storage, std::uint32_t node) : storage_(storage), node_(node) {}
    const JsonStorage* storage_;
    std::uint32_t node_;
  };
  Iterator begin() const { return {storage_, begin_}; }
  Iterator end() const { return {storage_, end_}; }

 private:
  friend class JsonValue;
  Members(const JsonStorage* s, std::uint32_t b, std::uint32_t e) : storage_(s), begin_(b), end_(e) {}
  const JsonStorage* storage_;
  std::uint32_t begin_, end_;
};

/// A range over an array's elements.
class JsonValue::Elements {
 public:
  class Iterator {
   public:
    JsonValue operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return node_ == other.node_; }

   private:
    friend class Elements;
    Iterator(const JsonStorage* storage, std::uint32_t node) : storage_(storage), node_(node) {}
    const JsonStorage* storage_;
    std::uint32_t node_;
  };
  Iterator begin() const { return {storage_, begin_}; }
  Iterator end() const { return {storage_, end_}; }

 private:
  friend class JsonValue;
  Elements(const JsonStorage* s, std::uint32_t b, std::uint32_t e) : storage_(s), begin_(b), end_(e) {}
  const JsonStorage* storage_;
  std::uint32_t begin_, end_;
};

/// A parsed text. Copies share the same values.
class JsonDocument {
 public:
  /// Parses `text` (RFC 8259, UTF-8; no byte order mark, no comments, no NaN). Errors: a syntax error or a limit, with
  /// the byte offset and what was expected; a name that an object holds twice; a number too large for a double. `name`
  /// heads all messages.
  static JsonDocument parse(std::string_view text, std::string_view name = "json", const JsonLimits& limits = {});

  JsonValue root() const { return {storage_.get(), 0}; }
  JsonValue at(std::string_view key) const { return root().at(key); }
  std::optional<JsonValue> find(std::string_view key) const { return root().find(key); }

 private:
  explicit JsonDocument(std::shared_ptr<const JsonStorage> storage) : storage_(std::move(storage)) {}
  std::shared_ptr<const JsonStorage> storage_;
};

}  // namespace rlx
