// The functions, filters, tests and methods of chat templates.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template_parser.h"
#include "text/template_value.h"

namespace rlx::chat {

struct Scope;
class Interpreter;

/// The arguments of a call. A native function takes those it knows; the rest is an Error.
class Arguments {
 public:
  Arguments(Interpreter& interpreter, std::string_view called, Value works_on, std::vector<Value> positional,
            std::vector<std::pair<std::string_view, Value>> named)
      : in(interpreter), what(called), self(works_on), positional_(std::move(positional)), named_(std::move(named)) {}

  /// The next argument by place, or the one of this name.
  std::optional<Value> take(std::string_view name);
  Value take_or(std::string_view name, Value fallback) { return take(name).value_or(fallback); }
  /// An Error if the argument is missing.
  Value need(std::string_view name);
  std::string_view need_string(std::string_view name);
  std::int64_t integer_or(std::string_view name, std::int64_t fallback);
  bool flag_or(std::string_view name, bool fallback);
  /// An Error for arguments that nothing took.
  void done() const;
  /// All remaining arguments, for functions that pass them on.
  std::vector<Value> rest_positional();
  std::vector<std::pair<std::string_view, Value>> rest_named() { return std::exchange(named_, {}); }

  Interpreter& in;
  std::string_view what;  // what is called, for messages
  Value self;             // what the filter, test or method works on

 private:
  std::vector<Value> positional_;
  std::size_t next_ = 0;
  std::vector<std::pair<std::string_view, Value>> named_;
};

using Native = Value (*)(Arguments&);

struct NamedNative {
  std::string_view name;
  Native native;
};
/// The entry of that name, or nullptr; and all names, for messages.
Native find_in(std::span<const NamedNative> natives, std::string_view name);
std::string names_of(std::span<const NamedNative> natives);

/// A function value: a macro with the scope it stands in, or a native function with what it is bound to.
struct Callable {
  std::string_view name;
  Native native = nullptr;
  Value self;
  const Node* macro = nullptr;
  Scope* scope = nullptr;
};

/// What natives need of the evaluation.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  virtual Arena& arena() = 0;
  /// Applies a filter or test by name to `args.self`; an Error if there is none.
  virtual Value apply_filter(std::string_view name, Arguments& args) = 0;
  virtual bool apply_test(std::string_view name, Arguments& args) = 0;
  /// The time that strftime_now prints, in seconds since 1970.
  virtual std::int64_t now() const = 0;
};

/// nullptr if there is none of that name.
Native find_filter(std::string_view name);
Native find_test(std::string_view name);
Native find_function(std::string_view name);
Native find_method(const Value& self, std::string_view name);
/// All names, for messages.
std::string filter_names();
std::string test_names();

/// The elements of a list, keys of a mapping, characters of a string; none of an undefined value, else an Error.
std::vector<Value> elements(Arena& arena, const Value& v);
/// object[key] and object.key without methods: undefined where there is none; an Error if `object` is undefined.
Value get_item(Arena& arena, const Value& object, const Value& key);
/// The characters of valid UTF-8.
std::vector<std::string_view> characters(std::string_view text);

// Methods of strings that filters share.
std::string python_strip(std::string_view text, std::optional<std::string_view> characters, bool left, bool right);
std::string python_case(std::string_view text, bool upper);
std::string python_title(std::string_view text, bool only_first);
std::string python_replace(Arena& arena, std::string_view text, std::string_view from, std::string_view to,
                           std::int64_t most);

}  // namespace rlx::chat
