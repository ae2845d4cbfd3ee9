// Filters.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/error.h"
#include "text/template_calls.h"
#include "text/unicode.h"

namespace rlx::chat {

namespace {

Value text(Arguments& a, std::string s) { return a.in.arena().string(std::move(s)); }
std::string soft_text(Arguments& a, const Value& v) { return to_text(v, a.in.arena().limits().output_bytes); }
Value list(Arguments& a, std::vector<Value> items) { return a.in.arena().list(std::move(items)); }

Value trim(Arguments& a) {
  const Value chars = a.take_or("chars", Value::none());
  a.done();
  require(chars.is(Kind::none) || chars.is(Kind::string), "the characters are {}, expected a string", kind_name(chars));
  return text(a, python_strip(soft_text(a, a.self), chars.is(Kind::string) ? std::optional(chars.text()) : std::nullopt,
                              true, true));
}
template <bool upper>
Value change_case(Arguments& a) {
  a.done();
  return text(a, python_case(soft_text(a, a.self), upper));
}
Value capitalize(Arguments& a) {
  a.done();
  return text(a, python_title(soft_text(a, a.self), true));
}
// Words start after blanks, hyphens and opening brackets, unlike with the method.
Value title(Arguments& a) {
  a.done();
  std::string out;
  bool inside = false;
  for (const std::string& s = soft_text(a, a.self); const std::string_view c : characters(s)) {
    const bool breaks = c.size() == 1 && std::string_view("-([{< \t\n\r\f\v").find(c[0]) != std::string_view::npos;
    out += breaks ? std::string(c) : python_case(c, !inside);
    inside = !breaks;
  }
  return text(a, std::move(out));
}

Value length(Arguments& a) {
  a.done();
  switch (a.self.kind) {
    case Kind::undefined:
      return Value::of(std::int64_t{0});
    case Kind::string:
      return Value::of(static_cast<std::int64_t>(characters(a.self.text()).size()));
    case Kind::list:
      return Value::of(static_cast<std::int64_t>(a.self.list->items.size()));
    case Kind::dict:
      if (!a.self.dict->is_namespace) return Value::of(static_cast<std::int64_t>(a.self.dict->items.size()));
      break;
    default:
      break;
  }
  fail("{} has no length", kind_name(a.self));
}

Value tojson(Arguments& a) {
  const bool ascii = a.flag_or("ensure_ascii", false);
  const Value indent = a.take_or("indent", Value::none());
  const Value separators = a.take_or("separators", Value::none());
  const bool sorted = a.flag_or("sort_keys", false);
  a.done();
  require(!ascii, "ensure_ascii=true is not supported");
  require(indent.is(Kind::none) || (indent.is(Kind::integer) && indent.integer >= 0 && indent.integer <= 64),
          "the indentation is {}, expected none or 0 to 64", kind_name(indent));
  const bool lines = indent.is(Kind::integer);
  std::string_view item = lines ? "," : ", ", key = ": ";
  if (!separators.is(Kind::none)) {
    require(separators.is(Kind::list) && separators.list->items.size() == 2 &&
                separators.list->items[0].is(Kind::string) && separators.list->items[1].is(Kind::string),
            "the separators are {}, expected two strings", kind_name(separators));
    item = separators.list->items[0].text();
    key = separators.list->items[1].text();
  }
  return text(a, to_json(a.self, lines ? static_cast<int>(indent.integer) : -1, sorted, item, key,
                         a.in.arena().limits().output_bytes));
}

Value fall_back(Arguments& a) {
  const Value other = a.take_or("default_value", text(a, ""));
  const bool falsy = a.flag_or("boolean", false);
  a.done();
  return a.self.is(Kind::undefined) || (falsy && !truth(a.self)) ? other : a.self;
}

// item.path.to.it, where parts that are numbers are places.
Value walk_path(Arguments& a, Value item, std::string_view path) {
  while (true) {
    const std::size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    std::int64_t place = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), place);
    const bool number = !part.empty() && error == std::errc() && end == part.data() + part.size();
    item = get_item(a.in.arena(), item, number ? Value::of(place) : text(a, std::string(part)));
    if (dot == std::string_view::npos) return item;
    path = path.substr(dot + 1);
  }
}

Value attribute_of(Arguments& a, const Value& item, const Value& attribute) {
  if (attribute.is(Kind::string)) return walk_path(a, item, attribute.text());
  require(attribute.is(Kind::integer), "the attribute is {}, expected a string or an integer", kind_name(attribute));
  return get_item(a.in.arena(), item, attribute);
}

Value join(Arguments& a) {
  const Value separator = a.take_or("d", text(a, ""));
  const Value attribute = a.take_or("attribute", Value::none());
  a.done();
  const std::string between = soft_text(a, separator);
  std::string out;
  bool first = true;
  for (const Value& item : elements(a.in.arena(), a.self)) {
    if (!first) out += between;
    first = false;
    const std::string part = soft_text(a, attribute.is(Kind::none) ? item : attribute_of(a, item, attribute));
    a.in.arena().charge(part.size() + between.size());
    out += part;
  }
  return text(a, std::move(out));
}

Value replace(Arguments& a) {
  const Value from = a.need("old"), to = a.need("new");
  const Value most = a.take_or("count", Value::none());
  a.done();
  return text(a, python_replace(a.in.arena(), soft_text(a, a.self), soft_text(a, from), soft_text(a, to),
                                most.is(Kind::none) ? -1 : most.whole()));
}

template <bool last>
Value end_item(Arguments& a) {
  a.done();
  const std::vector<Value> items = elements(a.in.arena(), a.self);
  return items.empty() ? Value{} : last ? items.back() : items.front();
}

// How select and its relatives test an item: by a named test with arguments, or by its truth.
bool passes(Arguments& a, const Value& item, const std::optional<Value>& test, const std::vector<Value>& rest) {
  if (!test) return truth(item);
  require(test->is(Kind::string), "the test is {}, expected its name", kind_name(*test));
  Arguments inner(a.in, test->text(), item, rest, {});
  return a.in.apply_test(test->text(), inner);
}

template <bool by_attribute, bool wanted>
Value select(Arguments& a) {
  std::optional<Value> attribute;
  if (by_attribute) attribute = a.need("attribute");
  const std::optional<Value> test = a.take("test");
  const std::vector<Value> rest = a.rest_positional();
  a.done();
  std::vector<Value> out;
  for (const Value& item : elements(a.in.arena(), a.self)) {
    a.in.arena().step();
    if (passes(a, by_attribute ? attribute_of(a, item, *attribute) : item, test, rest) == wanted) out.push_back(item);
  }
  return list(a, std::move(out));
}

Value map(Arguments& a) {
  std::vector<Value> out;
  std::vector<std::pair<std::string_view, Value>> named = a.rest_named();
  const auto by_name = [&](std::string_view name) -> std::optional<Value> {
    const auto it = std::find_if(named.begin(), named.end(), [&](const auto& n) { return n.first == name; });
    if (it == named.end()) return std::nullopt;
    const Value v = it->second;
    named.erase(it);
    return v;
  };
  std::vector<Value> rest = a.rest_positional();
  const std::vector<Value> items = elements(a.in.arena(), a.self);
  if (rest.empty()) {
    const std::optional<Value> attribute = by_name("attribute"), fallback = by_name("default");
    require(attribute.has_value() && named.empty(), "expected an attribute or the name of a filter");
    for (const Value& item : items) {
      a.in.arena().step();
      const Value v = attribute_of(a, item, *attribute);
      out.push_back(v.is(Kind::undefined) && fallback ? *fallback : v);
    }
    return list(a, std::move(out));
  }
  require(rest[0].is(Kind::string), "the filter is {}, expected its name", kind_name(rest[0]));
  for (const Value& item : items) {
    a.in.arena().step();
    Arguments inner(a.in, rest[0].text(), item, {rest.begin() + 1, rest.end()}, named);
    out.push_back(a.in.apply_filter(rest[0].text(), inner));
  }
  return list(a, std::move(out));
}

Value to_list(Arguments& a) {
  a.done();
  return list(a, elements(a.in.arena(), a.self));
}
Value to_string(Arguments& a) {
  a.done();
  return text(a, soft_text(a, a.self));
}

std::optional<double> parse_real(std::string_view s) {
  const std::string trimmed = python_strip(s, std::nullopt, true, true);
  if (trimmed.empty() || trimmed.find_first_not_of("0123456789+-.eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double v = std::strtod(trimmed.c_str(), &end);
  return *end == 0 ? std::optional(v) : std::nullopt;
}

Value to_integer(Arguments& a) {
  const Value fallback = a.take_or("default", Value::of(std::int64_t{0}));
  const std::int64_t base = a.integer_or("base", 10);
  a.done();
  require(base == 10, "the base is {}, expected 10", base);
  if (a.self.is(Kind::integer) || a.self.is(Kind::boolean)) return Value::of(a.self.whole());
  std::optional<double> v;
  if (a.self.is(Kind::string)) {
    std::string s = python_strip(a.self.text(), std::nullopt, true, true);
    if (s.starts_with('+')) s.erase(0, 1);
    std::int64_t whole = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), whole);
    if (!s.empty() && error == std::errc() && end == s.data() + s.size()) return Value::of(whole);
    v = parse_real(s);
  } else if (a.self.is(Kind::real)) {
    v = a.self.real;
  }
  if (!v || !std::isfinite(*v)) return fallback;
  require(std::abs(*v) < 9e18, "the integer {} does not fit 64 bits", *v);
  return Value::of(static_cast<std::int64_t>(*v));
}

Value to_real(Arguments& a) {
  const Value fallback = a.take_or("default", Value::of(0.0));
  a.done();
  if (a.self.is_number()) return Value::of(a.self.number());
  const std::optional<double> v = a.self.is(Kind::string) ? parse_real(a.self.text()) : std::nullopt;
  return v ? Value::of(*v) : fallback;
}

Value items(Arguments& a) {
  a.done();
  if (a.self.is(Kind::undefined)) return list(a, {});
  require(a.self.is(Kind::dict) && !a.self.dict->is_namespace, "{} has no items, expected a mapping",
          kind_name(a.self));
  Arguments inner(a.in, "items", a.self, {}, {});
  return find_method(a.self, "items")(inner);
}

Value reverse(Arguments& a) {
  a.done();
  if (a.self.is(Kind::string)) {
    std::string out;
    const std::vector<std::string_view> chars = characters(a.self.text());
    for (auto it = chars.rbegin(); it != chars.rend(); ++it) out += *it;
    return text(a, std::move(out));
  }
  std::vector<Value> out = elements(a.in.arena(), a.self);
  std::reverse(out.begin(), out.end());
  return list(a, std::move(out));
}

Value without_case(Arguments& a, const Value& v, bool case_sensitive) {
  return v.is(Kind::string) && !case_sensitive ? text(a, python_case(v.text(), false)) : v;
}

Value sort(Arguments& a) {
  const bool backwards = a.flag_or("reverse", false), case_sensitive = a.flag_or("case_sensitive", false);
  const Value attribute = a.take_or("attribute", Value::none());
  a.done();
  struct Keyed {
    Value key, item;
    std::size_t place;  // equal ones stay in their order
  };
  std::vector<Keyed> keyed;
  for (const Value& item : elements(a.in.arena(), a.self)) {
    const Value key = attribute.is(Kind::none) ? item : attribute_of(a, item, attribute);
    keyed.push_back({without_case(a, key, case_sensitive), item, keyed.size()});
  }
  for (std::size_t i = 1; i < keyed.size(); ++i) compare(keyed[i - 1].key, keyed[i].key);  // all have an order
  std::sort(keyed.begin(), keyed.end(), [&](const Keyed& x, const Keyed& y) {
    const int order = compare(x.key, y.key);
    return order == 0 ? x.place < y.place : backwards ? order > 0 : order < 0;
  });
  std::vector<Value> out;
  for (const Keyed& k : keyed) out.push_back(k.item);
  return list(a, std::move(out));
}

Value dictsort(Arguments& a) {
  const bool case_sensitive = a.flag_or("case_sensitive", false);
  const Value by = a.take_or("by", text(a, "key"));
  const bool backwards = a.flag_or("reverse", false);
  a.done();
  require(by.is(Kind::string) && (by.text() == "key" || by.text() == "value"), "by is not \"key\" or \"value\"");
  Arguments pairs(a.in, "items", a.self, {}, {});
  const Value all = items(pairs);
  Arguments inner(a.in, a.what, all, {},
                  {{"reverse", Value::of(backwards)},
                   {"case_sensitive", Value::of(case_sensitive)},
                   {"attribute", Value::of(std::int64_t{by.text() == "key" ? 0 : 1})}});
  return sort(inner);
}

Value unique(Arguments& a) {
  const bool case_sensitive = a.flag_or("case_sensitive", false);
  const Value attribute = a.take_or("attribute", Value::none());
  a.done();
  std::vector<Value> out, seen;
  for (const Value& item : elements(a.in.arena(), a.self)) {
    const Value key =
        without_case(a, attribute.is(Kind::none) ? item : attribute_of(a, item, attribute), case_sensitive);
    for (std::size_t i = 0; i < seen.size(); i += 16) a.in.arena().step();
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& v) { return equal(v, key); })) continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return list(a, std::move(out));
}

template <int direction>
Value extreme(Arguments& a) {
  const bool case_sensitive = a.flag_or("case_sensitive", false);
  const Value attribute = a.take_or("attribute", Value::none());
  a.done();
  Value best, best_key;
  bool any = false;
  for (const Value& item : elements(a.in.arena(), a.self)) {
    const Value key =
        without_case(a, attribute.is(Kind::none) ? item : attribute_of(a, item, attribute), case_sensitive);
    if (any && compare(key, best_key) * direction <= 0) continue;
    best = item;
    best_key = key;
    any = true;
  }
  return best;
}

Value sum(Arguments& a) {
  const Value attribute = a.take_or("attribute", Value::none());
  const Value start = a.take_or("start", Value::of(std::int64_t{0}));
  a.done();
  Value total = start;
  for (const Value& item : elements(a.in.arena(), a.self)) {
    const Value v = attribute.is(Kind::none) ? item : attribute_of(a, item, attribute);
    require(v.is_number() && total.is_number(), "{} cannot be added, expected numbers", kind_name(v));
    std::int64_t whole = 0;
    if (v.is(Kind::real) || total.is(Kind::real)) {
      total = Value::of(total.number() + v.number());
    } else {
      require(!__builtin_add_overflow(total.whole(), v.whole(), &whole), "the sum does not fit 64 bits");
      total = Value::of(whole);
    }
  }
  return total;
}

Value absolute(Arguments& a) {
  a.done();
  require(a.self.is_number(), "{} has no absolute value", kind_name(a.self));
  if (a.self.is(Kind::real)) return Value::of(std::abs(a.self.real));
  require(a.self.whole() != std::numeric_limits<std::int64_t>::min(), "the absolute value does not fit 64 bits");
  return Value::of(std::int64_t{std::abs(a.self.whole())});
}

Value round(Arguments& a) {
  const std::int64_t digits = a.integer_or("precision", 0);
  const Value method = a.take_or("method", text(a, "common"));
  a.done();
  require(a.self.is_number(), "{} cannot be rounded", kind_name(a.self));
  require(method.is(Kind::string) && method.text() == "common" && digits >= 0 && digits <= 15,
          "only the method \"common\" with 0 to 15 digits is supported");
  if (!a.self.is(Kind::real)) return Value::of(a.self.whole());
  // Printing rounds the exact value, ties to even, as Python does.
  const std::string digits_of = fmt::format("{:.{}f}", a.self.number(), digits);
  return Value::of(std::strtod(digits_of.c_str(), nullptr));
}

Value indent(Arguments& a) {
  const Value width = a.take_or("width", Value::of(std::int64_t{4}));
  const bool first = a.flag_or("first", false), blank = a.flag_or("blank", false);
  a.done();
  const bool spaces = width.is(Kind::integer) && width.integer >= 0 && width.integer <= 1000;
  require(spaces || width.is(Kind::string), "the width is {}, expected 0 to 1000 or a string", kind_name(width));
  const std::string step = spaces ? std::string(static_cast<std::size_t>(width.integer), ' ') : *width.string;
  std::string out = first ? step : "";
  const std::string s = soft_text(a, a.self);
  for (std::size_t i = 0; i < s.size(); ++i) {
    out += s[i];
    const bool empty_line = i + 1 == s.size() || s[i + 1] == '\n';
    if (s[i] != '\n' || (empty_line && !blank)) continue;
    a.in.arena().charge(step.size());
    out += step;
  }
  return text(a, std::move(out));
}

Value same(Arguments& a) {
  a.done();
  return a.self;
}

constexpr NamedNative filters[] = {{"abs", absolute},
                                   {"capitalize", capitalize},
                                   {"count", length},
                                   {"d", fall_back},
                                   {"default", fall_back},
                                   {"dictsort", dictsort},
                                   {"first", end_item<false>},
                                   {"float", to_real},
                                   {"indent", indent},
                                   {"int", to_integer},
                                   {"items", items},
                                   {"join", join},
                                   {"last", end_item<true>},
                                   {"length", length},
                                   {"list", to_list},
                                   {"lower", change_case<false>},
                                   {"map", map},
                                   {"max", extreme<1>},
                                   {"min", extreme<-1>},
                                   {"reject", select<false, false>},
                                   {"rejectattr", select<true, false>},
                                   {"replace", replace},
                                   {"reverse", reverse},
                                   {"round", round},
                                   {"safe", same},
                                   {"select", select<false, true>},
                                   {"selectattr", select<true, true>},
                                   {"sort", sort},
                                   {"string", to_string},
                                   {"sum", sum},
                                   {"title", title},
                                   {"tojson", tojson},
                                   {"trim", trim},
                                   {"unique", unique},
                                   {"upper", change_case<true>}};

}  // namespace

Native find_filter(std::string_view name) { return find_in(filters, name); }
std::string filter_names() { return names_of(filters); }

}  // namespace rlx::chat
