// Named values of a model file (GGUF metadata, config.json) as one flat record that knows what has been read.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/json.h"

namespace rlx {

/// Fields of a model's description. Members of nested objects have dotted names, `rope_scaling.factor`; a null counts
/// as absent. Accessors throw Error that names file, field, value and what is expected.
class ModelFields {
 public:
  using Value = std::variant<bool, Index, double, std::string, std::vector<double>, std::vector<std::string>>;

  /// `description` heads all messages: a path.
  explicit ModelFields(std::string description) : description_(std::move(description)) {}
  /// The members of a JSON object.
  static ModelFields from_json(const JsonDocument& document, std::string description);

  const std::string& description() const { return description_; }
  void set(std::string name, Value value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  bool has(std::string_view name) const { return values_.contains(name); }
  /// Whether it is there, or there as null.
  bool stated(std::string_view name) const { return has(name) || nulls_.contains(name); }
  /// Whether `name` is a list.
  bool is_list(std::string_view name) const;

  /// An integer from `low` to `high`; a list of equal integers counts as one.
  Index integer(std::string_view name, Index low, Index high) const;
  /// An integer or real number, finite.
  double real(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::vector<double> reals(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;

  Index integer_or(std::string_view name, Index low, Index high, Index fallback) const {
    return has(name) ? integer(name, low, high) : fallback;
  }
  double real_or(std::string_view name, double fallback) const { return has(name) ? real(name) : fallback; }
  bool boolean_or(std::string_view name, bool fallback) const { return has(name) ? boolean(name) : fallback; }
  std::string text_or(std::string_view name, std::string_view fallback) const {
    return has(name) ? text(name) : std::string(fallback);
  }

  /// Throws Error: `FILE: NAME is VALUE, expected ...`.
  [[noreturn]] void fail_expected(std::string_view name, std::string_view expected) const;
  /// Counts these as read: whole names, and, where one ends in a dot or an underscore, all that begin so.
  void ignore(std::span<const std::string_view> names) const;
  /// Names that nothing has read, sorted.
  std::vector<std::string> unread() const;
  /// Names that have been read, sorted.
  std::vector<std::string> used() const { return {used_.begin(), used_.end()}; }

 private:
  const Value& at(std::string_view name) const;
  void add(const std::string& name, const JsonValue& value);

  std::string description_;
  std::map<std::string, Value, std::less<>> values_;
  std::set<std::string, std::less<>> nulls_;
  mutable std::set<std::string, std::less<>> used_;
};

}  // namespace rlx
