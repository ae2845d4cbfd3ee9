// Values: ownership, comparison, and their texts.
#include "text/template_value.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "text/unicode.h"

namespace rlx::chat {

namespace {

constexpr int most_depth = 60;

void check_depth(int depth) { require(depth < most_depth, "values nested deeper than {}", most_depth); }

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

// Writes values into one string, which may not grow beyond a limit.
class Writer {
 public:
  explicit Writer(std::size_t most) : most_(most) {}

  void put(std::string_view text) {
    require(out.size() + text.size() <= most_, "a text of more than {} bytes", most_);
    out += text;
  }

  void repr_string(std::string_view text) {
    const bool single = text.find('\'') == std::string_view::npos || text.find('"') != std::string_view::npos;
    const char quote = single ? '\'' : '"';
    std::string s(1, quote);
    for (std::size_t at = 0; at < text.size();) {
      const char32_t c = next_code_point(text, at);
      if (c == static_cast<char32_t>(quote) || c == '\\') {
        s += '\\';
        s += static_cast<char>(c);
      } else if (c == '\n') {
        s += "\\n";
      } else if (c == '\r') {
        s += "\\r";
      } else if (c == '\t') {
        s += "\\t";
      } else if (is_printable(c)) {
        append_utf8(s, c);
      } else {
        const auto code = static_cast<unsigned>(c);
        s += c < 0x100     ? fmt::format("\\x{:02x}", code)
             : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                           : fmt::format("\\U{:08x}", code);
      }
    }
    put(s + quote);
  }

  void repr(const Value& v, int depth) {
    check_depth(depth);
    switch (v.kind) {
      case Kind::undefined:
        return put("Undefined");
      case Kind::none:
        return put("None");
      case Kind::boolean:
        return put(v.boolean ? "True" : "False");
      case Kind::integer:
        return put(fmt::format("{}", v.integer));
      case Kind::real:
        return put(real_text(v.real));
      case Kind::string:
        return repr_string(v.text());
      case Kind::callable:
        fail("a function cannot be printed");
      case Kind::list:
        put(v.list->tuple ? "(" : "[");
        for (std::size_t i = 0; i < v.list->items.size(); ++i) {
          if (i > 0) put(", ");
          repr(v.list->items[i], depth + 1);
        }
        if (v.list->tuple && v.list->items.size() == 1) put(",");
        return put(v.list->tuple ? ")" : "]");
      case Kind::dict:
        require(!v.dict->is_namespace, "a namespace cannot be printed");
        put("{");
        for (std::size_t i = 0; i < v.dict->items.size(); ++i) {
          if (i > 0) put(", ");
          repr_string(*v.dict->items[i].first);
          put(": ");
          repr(v.dict->items[i].second, depth + 1);
        }
        return put("}");
    }
  }

  void json_string(std::string_view text) {
    std::string s = "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        s += '\\';
        s += c;
      } else if (byte >= 0x20) {
        s += c;
      } else {
        switch (c) {
          case '\n':
            s += "\\n";
            break;
          case '\r':
            s += "\\r";
            break;
          case '\t':
            s += "\\t";
            break;
          case '\b':
            s += "\\b";
            break;
          case '\f':
            s += "\\f";
            break;
          default:
            s += fmt::format("\\u{:04x}", byte);
        }
      }
    }
    put(s + '"');
  }

  std::string out;

 private:
  std::size_t most_;
};

struct JsonStyle {
  int indent;
  bool sort_keys;
  std::string_view item_separator, key_separator;
};

void write_json(Writer& w, const Value& v, const JsonStyle& style, int depth);

template <class Count, class Item>
void write_container(Writer& w, const char* brackets, Count count, const JsonStyle& style, int depth, Item item) {
  w.put(std::string_view(brackets, 1));
  const auto line = [&](int levels) {
    if (style.indent >= 0) w.put("\n" + std::string(static_cast<std::size_t>(style.indent * levels), ' '));
  };
  for (Count i = 0; i < count; ++i) {
    if (i > 0) w.put(style.item_separator);
    line(depth + 1);
    item(i);
  }
  if (count > 0) line(depth);
  w.put(std::string_view(brackets + 1, 1));
}

void write_json(Writer& w, const Value& v, const JsonStyle& style, int depth) {
  check_depth(depth);
  switch (v.kind) {
    case Kind::undefined:
      fail("an undefined value has no JSON form");
    case Kind::callable:
      fail("a function has no JSON form");
    case Kind::none:
      return w.put("null");
    case Kind::boolean:
      return w.put(v.boolean ? "true" : "false");
    case Kind::integer:
      return w.put(fmt::format("{}", v.integer));
    case Kind::real:
      if (std::isnan(v.real)) return w.put("NaN");
      if (std::isinf(v.real)) return w.put(v.real > 0 ? "Infinity" : "-Infinity");
      return w.put(real_text(v.real));
    case Kind::string:
      return w.json_string(v.text());
    case Kind::list:
      return write_container(w, "[]", v.list->items.size(), style, depth,
                             [&](std::size_t i) { write_json(w, v.list->items[i], style, depth + 1); });
    case Kind::dict: {
      require(!v.dict->is_namespace, "a namespace has no JSON form");
      std::vector<std::pair<const std::string*, Value>> items = v.dict->items;
      if (style.sort_keys) {
        std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return *a.first < *b.first; });
      }
      return write_container(w, "{}", items.size(), style, depth, [&](std::size_t i) {
        w.json_string(*items[i].first);
        w.put(style.key_separator);
        write_json(w, items[i].second, style, depth + 1);
      });
    }
  }
}

int sign(auto a, auto b) { return a < b ? -1 : b < a ? 1 : 0; }

// Shared lists can stand for far more values than there are: the walk is counted.
class Comparison {
 public:
  bool equal(const Value& a, const Value& b, int depth) {
    count(depth);
    if (a.is_number() && b.is_number()) {
      if (a.is(Kind::real) || b.is(Kind::real)) return a.number() == b.number();
      return a.whole() == b.whole();
    }
    if (a.kind != b.kind) return false;
    const auto same = [&](const Value& x, const Value& y) { return equal(x, y, depth + 1); };
    switch (a.kind) {
      case Kind::string:
        return *a.string == *b.string;
      case Kind::list:
        return a.list->tuple == b.list->tuple &&
               std::equal(a.list->items.begin(), a.list->items.end(), b.list->items.begin(), b.list->items.end(), same);
      case Kind::dict:
        if (a.dict == b.dict) return true;
        if (a.dict->is_namespace || b.dict->is_namespace || a.dict->items.size() != b.dict->items.size()) return false;
        return std::all_of(a.dict->items.begin(), a.dict->items.end(), [&](const auto& item) {
          const Value* other = b.dict->find(*item.first);
          return other != nullptr && same(item.second, *other);
        });
      case Kind::callable:
        return a.callable == b.callable;
      default:
        return true;  // undefined, none
    }
  }

  int compare(const Value& a, const Value& b, int depth) {
    count(depth);
    if (a.is_number() && b.is_number()) {
      if (a.is(Kind::real) || b.is(Kind::real)) return sign(a.number(), b.number());
      return sign(a.whole(), b.whole());
    }
    if (a.is(Kind::string) && b.is(Kind::string)) return sign(a.text(), b.text());
    require(a.is(Kind::list) && b.is(Kind::list), "{} and {} have no order", kind_name(a), kind_name(b));
    const std::vector<Value>&x = a.list->items, &y = b.list->items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i], depth + 1)) return compare(x[i], y[i], depth + 1);
    }
    return sign(x.size(), y.size());
  }

 private:
  void count(int depth) {
    constexpr int most_pairs = 1'000'000;
    check_depth(depth);
    require(++pairs_ <= most_pairs, "a comparison of more than {} values", most_pairs);
  }
  int pairs_ = 0;
};

}  // namespace

double Value::number() const { return kind == Kind::real ? real : static_cast<double>(whole()); }

Value* Dict::find(std::string_view key) {
  for (auto& [name, value] : items) {
    if (*name == key) return &value;
  }
  return nullptr;
}

Value Arena::string(std::string text) {
  charge(text.size() + sizeof(std::string));
  Value v = Value::of(Kind::string);
  v.string = &strings_.emplace_back(std::move(text));
  return v;
}

Value Arena::list(std::vector<Value> items, bool tuple) {
  charge(items.size() * sizeof(Value) + sizeof(List));
  return Value::of(&lists_.emplace_back(List{std::move(items), tuple}));
}

Value Arena::dict() {
  charge(sizeof(Dict));
  return Value::of(&dicts_.emplace_back());
}

void Arena::set(Dict& dict, const std::string* key, Value value) {
  if (Value* known = dict.find(*key)) {
    *known = value;
    return;
  }
  charge(2 * sizeof(Value));
  dict.items.emplace_back(key, value);
}

void Arena::charge(std::size_t bytes) {
  require(bytes <= limits_.memory_bytes - bytes_, "the template takes more than {} bytes of memory",
          limits_.memory_bytes);
  bytes_ += bytes;
}

void Arena::work_steps(std::size_t count) {
  steps_ += count;
  require(steps_ <= limits_.steps, "the template takes more than {} steps", limits_.steps);
}

void Arena::work(const Value& v) {
  if (v.is(Kind::string)) work_steps(1 + v.text().size() / 256);
  if (v.is(Kind::list)) work_steps(1 + v.list->items.size() / 8);
  if (v.is(Kind::dict)) work_steps(1 + v.dict->items.size() / 8);
}

Value Arena::from_json(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::null:
      return Value::none();
    case JsonKind::boolean:
      return Value::of(value.as_bool());
    case JsonKind::integer:
      return Value::of(std::int64_t{value.as_index()});
    case JsonKind::real:
      return Value::of(value.as_double());
    case JsonKind::string:
      return string(std::string(value.as_string()));
    case JsonKind::array: {
      std::vector<Value> items;
      for (const JsonValue& item : value.elements()) items.push_back(from_json(item));
      return list(std::move(items));
    }
    case JsonKind::object: {
      const Value out = dict();
      for (const JsonMember& m : value.members()) {  // names differ: no search is needed
        charge(2 * sizeof(Value));
        out.dict->items.emplace_back(string(std::string(m.key)).string, from_json(m.value));
      }
      return out;
    }
  }
  return {};
}

bool truth(const Value& v) {
  switch (v.kind) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return v.boolean;
    case Kind::integer:
      return v.integer != 0;
    case Kind::real:
      return v.real != 0;
    case Kind::string:
      return !v.string->empty();
    case Kind::list:
      return !v.list->items.empty();
    case Kind::dict:
      return v.dict->is_namespace || !v.dict->items.empty();
    case Kind::callable:
      return true;
  }
  return false;
}

bool equal(const Value& a, const Value& b) { return Comparison().equal(a, b, 0); }

int compare(const Value& a, const Value& b) { return Comparison().compare(a, b, 0); }

bool contains(const Value& container, const Value& item) {
  switch (container.kind) {
    case Kind::undefined:
      return false;
    case Kind::string:
      require(item.is(Kind::string), "a string can hold a string, not {}", kind_name(item));
      return container.text().find(item.text()) != std::string_view::npos;
    case Kind::list:
      return std::any_of(container.list->items.begin(), container.list->items.end(),
                         [&](const Value& v) { return equal(v, item); });
    case Kind::dict:
      return item.is(Kind::string) && container.dict->find(item.text()) != nullptr;
    default:
      fail("{} holds nothing, expected a string, list or mapping", kind_name(container));
  }
}

std::string to_text(const Value& v, std::size_t most_bytes) {
  if (v.is(Kind::string)) return *v.string;
  if (v.is(Kind::undefined)) return "";
  Writer w(most_bytes);
  w.repr(v, 0);
  return std::move(w.out);
}

std::string to_json(const Value& v, int indent, bool sort_keys, std::string_view item_separator,
                    std::string_view key_separator, std::size_t most_bytes) {
  Writer w(most_bytes);
  write_json(w, v, {indent, sort_keys, item_separator, key_separator}, 0);
  return std::move(w.out);
}

const char* kind_name(const Value& v) {
  switch (v.kind) {
    case Kind::undefined:
      return "an undefined value";
    case Kind::none:
      return "none";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::real:
      return "a float";
    case Kind::string:
      return "a string";
    case Kind::list:
      return "a list";
    case Kind::dict:
      return v.dict->is_namespace ? "a namespace" : "a mapping";
    case Kind::callable:
      return "a function";
  }
  return "a value";
}

std::string real_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  const double size = std::abs(v);
  if (v == 0 || (size >= 1e-4 && size < 1e16)) {
    // The shortest digits, without an exponent.
    std::string text = fmt::format("{}", v);
    if (text.find('e') != std::string::npos) {
      for (int digits = 0; digits < 30; ++digits) {
        text = fmt::format("{:.{}f}", v, digits);
        if (std::strtod(text.c_str(), nullptr) == v) break;
      }
    }
    return text.find('.') == std::string::npos ? text + ".0" : text;
  }
  std::string text = fmt::format("{}", v);
  if (text.find('e') != std::string::npos) return text;
  for (int digits = 0; digits < 18; ++digits) {
    text = fmt::format("{:.{}e}", v, digits);
    if (std::strtod(text.c_str(), nullptr) == v) break;
  }
  return text;
}

}  // namespace rlx::chat
