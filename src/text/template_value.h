// The values of chat templates, as Python sees them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"

namespace rlx::chat {

struct List;
struct Dict;
struct Callable;

enum class Kind : std::uint8_t { undefined, none, boolean, integer, real, string, list, dict, callable };

/// A value; what it points to belongs to an Arena.
struct Value {
  Kind kind = Kind::undefined;
  union {
    bool boolean;
    std::int64_t integer = 0;
    double real;
    const std::string* string;
    List* list;
    Dict* dict;
    const Callable* callable;
  };

  bool is(Kind k) const { return kind == k; }
  bool is_number() const { return kind == Kind::integer || kind == Kind::real || kind == Kind::boolean; }
  std::string_view text() const { return *string; }
  /// A number of any kind.
  double number() const;
  /// An integer or boolean.
  std::int64_t whole() const { return kind == Kind::boolean ? (boolean ? 1 : 0) : integer; }

  static Value none() { return of(Kind::none); }
  static Value of(Kind k) {
    Value v;
    v.kind = k;
    return v;
  }
  static Value of(bool b) {
    Value v = of(Kind::boolean);
    v.boolean = b;
    return v;
  }
  static Value of(std::int64_t i) {
    Value v = of(Kind::integer);
    v.integer = i;
    return v;
  }
  static Value of(double r) {
    Value v = of(Kind::real);
    v.real = r;
    return v;
  }
  static Value of(List* l) {
    Value v = of(Kind::list);
    v.list = l;
    return v;
  }
  static Value of(Dict* d) {
    Value v = of(Kind::dict);
    v.dict = d;
    return v;
  }
  static Value of(const Callable* c) {
    Value v = of(Kind::callable);
    v.callable = c;
    return v;
  }
};

struct List {
  std::vector<Value> items;
  bool tuple = false;
};

/// In order of insertion; keys are strings.
struct Dict {
  std::vector<std::pair<const std::string*, Value>> items;
  bool is_namespace = false;

  Value* find(std::string_view key);
};

/// What a rendering may use.
struct TemplateLimits {
  std::size_t source_bytes = std::size_t{1} << 20;
  std::size_t output_bytes = std::size_t{32} << 20;
  std::size_t memory_bytes = std::size_t{256} << 20;  // of all values that are made, freed or not
  std::size_t steps = 4'000'000;                      // nodes that are evaluated
  int depth = 150;                                    // of nested expressions, statements and calls
};

/// Owns all values of a rendering, so that cycles are harmless, and counts what they take.
class Arena {
 public:
  explicit Arena(const TemplateLimits& limits) : limits_(limits) {}

  Value string(std::string text);
  Value list(std::vector<Value> items, bool tuple = false);
  Value dict();
  void set(Dict& dict, const std::string* key, Value value);
  void set(Dict& dict, std::string_view key, Value value) { set(dict, string(std::string(key)).string, value); }
  /// Counts memory that is about to be taken; an Error beyond the limit.
  void charge(std::size_t bytes);
  /// Counts a step; an Error beyond the limit.
  void step() { work_steps(1); }
  /// Counts what walking over a value takes.
  void work(const Value& v);
  const TemplateLimits& limits() const { return limits_; }

  /// A copy of a JSON value.
  Value from_json(const JsonValue& value);

 private:
  void work_steps(std::size_t count);

  TemplateLimits limits_;
  std::deque<std::string> strings_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::size_t bytes_ = 0, steps_ = 0;
};

/// Python's bool(v).
bool truth(const Value& v);
/// Python's a == b. An Error for values that are nested too deep or take too long, as with all that walk into values.
bool equal(const Value& a, const Value& b);
/// -1, 0 or 1; an Error where Python cannot order the two.
int compare(const Value& a, const Value& b);
/// Whether `item` is in `container`, a string, list or dict.
bool contains(const Value& container, const Value& item);
/// Python's str(v): strings as they are, nothing for undefined.
std::string to_text(const Value& v, std::size_t most_bytes);
/// Python's json.dumps with ensure_ascii=False; indent < 0: on one line.
std::string to_json(const Value& v, int indent, bool sort_keys, std::string_view item_separator,
                    std::string_view key_separator, std::size_t most_bytes);
/// What a value is called in messages: "a string".
const char* kind_name(const Value& v);
/// A float as Python prints it.
std::string real_text(double v);

}  // namespace rlx::chat
