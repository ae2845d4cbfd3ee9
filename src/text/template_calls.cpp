// Arguments of calls, and the elements and parts of values.
#include "text/template_calls.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "text/unicode.h"

namespace rlx::chat {

std::optional<Value> Arguments::take(std::string_view name) {
  if (next_ < positional_.size()) return positional_[next_++];
  const auto it = std::find_if(named_.begin(), named_.end(), [&](const auto& n) { return n.first == name; });
  if (it == named_.end()) return std::nullopt;
  const Value v = it->second;
  named_.erase(it);
  return v;
}

Value Arguments::need(std::string_view name) {
  const std::optional<Value> v = take(name);
  require(v.has_value(), "{}: the argument {} is missing", what, name);
  return *v;
}

std::string_view Arguments::need_string(std::string_view name) {
  const Value v = need(name);
  require(v.is(Kind::string), "{}: the argument {} is {}, expected a string", what, name, kind_name(v));
  return v.text();
}

std::int64_t Arguments::integer_or(std::string_view name, std::int64_t fallback) {
  const Value v = take_or(name, Value::of(fallback));
  require(v.is(Kind::integer) || v.is(Kind::boolean), "{}: the argument {} is {}, expected an integer", what, name,
          kind_name(v));
  return v.whole();
}

bool Arguments::flag_or(std::string_view name, bool fallback) { return truth(take_or(name, Value::of(fallback))); }

void Arguments::done() const {
  require(next_ == positional_.size(), "{}: more arguments than it takes", what);
  require(named_.empty(), "{}: the argument {} is not supported", what, named_.empty() ? "" : named_[0].first);
}

std::vector<Value> Arguments::rest_positional() {
  std::vector<Value> out(positional_.begin() + static_cast<std::ptrdiff_t>(next_), positional_.end());
  next_ = positional_.size();
  return out;
}

std::vector<Value> elements(Arena& arena, const Value& v) {
  switch (v.kind) {
    case Kind::undefined:
      return {};
    case Kind::list:
      arena.charge(v.list->items.size() * sizeof(Value) / 16);
      return v.list->items;
    case Kind::string: {
      std::vector<Value> out;
      for (const std::string_view c : characters(v.text())) out.push_back(arena.string(std::string(c)));
      return out;
    }
    case Kind::dict:
      if (!v.dict->is_namespace) {
        std::vector<Value> out;
        for (const auto& [key, value] : v.dict->items) {
          Value name = Value::of(Kind::string);
          name.string = key;
          out.push_back(name);
        }
        return out;
      }
      break;
    default:
      break;
  }
  fail("{} has no elements, expected a list, mapping or string", kind_name(v));
}

Value get_item(Arena& arena, const Value& object, const Value& key) {
  switch (object.kind) {
    case Kind::undefined:
      fail("a part of an undefined value is asked for");
    case Kind::dict: {
      const Value* found = key.is(Kind::string) ? object.dict->find(key.text()) : nullptr;
      return found == nullptr ? Value{} : *found;
    }
    case Kind::list: {
      if (!key.is(Kind::integer) && !key.is(Kind::boolean)) return {};
      const auto size = static_cast<std::int64_t>(object.list->items.size());
      const std::int64_t i = key.whole() < 0 ? key.whole() + size : key.whole();
      return i < 0 || i >= size ? Value{} : object.list->items[static_cast<std::size_t>(i)];
    }
    case Kind::string: {
      if (!key.is(Kind::integer) && !key.is(Kind::boolean)) return {};
      const std::vector<std::string_view> chars = characters(object.text());
      const auto size = static_cast<std::int64_t>(chars.size());
      const std::int64_t i = key.whole() < 0 ? key.whole() + size : key.whole();
      return i < 0 || i >= size ? Value{} : arena.string(std::string(chars[static_cast<std::size_t>(i)]));
    }
    default:
      return {};
  }
}

}  // namespace rlx::chat
