// Fields of a model's description, and which of them have been read.
#include "models/fields.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace rlx {

namespace {

std::string short_text(const ModelFields::Value& value) {
  struct Text {
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(Index i) const { return std::to_string(i); }
    std::string operator()(double d) const { return fmt::format("{}", d); }
    std::string operator()(const std::string& s) const { return "\"" + s.substr(0, 40) + "\""; }
    std::string operator()(const std::vector<double>& v) const { return fmt::format("list of {} numbers", v.size()); }
    std::string operator()(const std::vector<std::string>& v) const {
      return fmt::format("list of {} texts", v.size());
    }
  };
  return std::visit(Text{}, value);
}

bool is_number(const JsonValue& v) {
  return v.kind() == JsonKind::integer || v.kind() == JsonKind::real || v.kind() == JsonKind::boolean;
}

}  // namespace

ModelFields ModelFields::from_json(const JsonDocument& document, std::string description) {
  ModelFields fields(std::move(description));
  for (const JsonMember member : document.root().members()) fields.add(std::string(member.key), member.value);
  return fields;
}

void ModelFields::add(const std::string& name, const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::null:
      nulls_.insert(name);
      return;
    case JsonKind::boolean:
      return set(name, value.as_bool());
    case JsonKind::integer:
      return set(name, value.as_index());
    case JsonKind::real:
      return set(name, value.as_double());
    case JsonKind::string:
      return set(name, std::string(value.as_string()));
    case JsonKind::object:
      for (const JsonMember member : value.members()) add(name + "." + std::string(member.key), member.value);
      return;
    case JsonKind::array:
      break;
  }
  std::vector<double> numbers;
  std::vector<std::string> texts;
  for (const JsonValue element : value.elements()) {
    if (is_number(element)) {
      numbers.push_back(element.kind() == JsonKind::boolean ? static_cast<double>(element.as_bool())
                                                            : element.as_double());
    } else {
      texts.push_back(element.is_string() ? std::string(element.as_string()) : element.describe());
    }
  }
  if (texts.empty()) return set(name, std::move(numbers));
  set(name, std::move(texts));
}

const ModelFields::Value& ModelFields::at(std::string_view name) const {
  const auto it = values_.find(name);
  require(it != values_.end(), "{}: {} is missing", description_, name);
  used_.insert(it->first);
  return it->second;
}

void ModelFields::fail_expected(std::string_view name, std::string_view expected) const {
  fail("{}: {} is {}, expected {}", description_, name, short_text(at(name)), expected);
}

bool ModelFields::is_list(std::string_view name) const {
  const auto it = values_.find(name);
  return it != values_.end() && (std::holds_alternative<std::vector<double>>(it->second) ||
                                 std::holds_alternative<std::vector<std::string>>(it->second));
}

Index ModelFields::integer(std::string_view name, Index low, Index high) const {
  const Value& v = at(name);
  std::optional<Index> number;
  if (const Index* i = std::get_if<Index>(&v)) number = *i;
  if (const auto* list = std::get_if<std::vector<double>>(&v); list && !list->empty()) {
    const double first = list->front();
    const bool same = std::ranges::all_of(*list, [&](double d) { return d == first; });
    if (same && std::fabs(first) < 1e15 && std::floor(first) == first) number = static_cast<Index>(first);
  }
  if (!number || *number < low || *number > high)
    fail_expected(name, fmt::format("an integer from {} to {}", low, high));
  return *number;
}

double ModelFields::real(std::string_view name) const {
  const Value& v = at(name);
  if (const Index* i = std::get_if<Index>(&v)) return static_cast<double>(*i);
  const double* d = std::get_if<double>(&v);
  if (!d || !std::isfinite(*d)) fail_expected(name, "a finite number");
  return *d;
}

bool ModelFields::boolean(std::string_view name) const {
  const bool* b = std::get_if<bool>(&at(name));
  if (!b) fail_expected(name, "true or false");
  return *b;
}

std::string ModelFields::text(std::string_view name) const {
  const auto* s = std::get_if<std::string>(&at(name));
  if (!s) fail_expected(name, "a text");
  return *s;
}

std::vector<double> ModelFields::reals(std::string_view name) const {
  const auto* v = std::get_if<std::vector<double>>(&at(name));
  if (!v) fail_expected(name, "a list of numbers");
  return *v;
}

std::vector<std::string> ModelFields::texts(std::string_view name) const {
  const Value& v = at(name);
  if (const auto* numbers = std::get_if<std::vector<double>>(&v); numbers && numbers->empty()) return {};
  const auto* texts = std::get_if<std::vector<std::string>>(&v);
  if (!texts) fail_expected(name, "a list of texts");
  return *texts;
}

void ModelFields::ignore(std::span<const std::string_view> names) const {
  for (const auto& [name, value] : values_) {
    const bool skipped = std::ranges::any_of(names, [&, &n = name](std::string_view i) {
      return i.ends_with('.') || i.ends_with('_') ? n.starts_with(i) : n == i;
    });
    if (skipped) used_.insert(name);
  }
}

std::vector<std::string> ModelFields::unread() const {
  std::vector<std::string> left;
  for (const auto& [name, value] : values_) {
    if (!used_.contains(name)) left.push_back(name);
  }
  return left;
}

}  // namespace rlx
