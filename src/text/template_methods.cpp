// Methods of strings, lists and mappings.
#include <utf8proc.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "text/template_calls.h"
#include "text/unicode.h"

namespace rlx::chat {

namespace {

// What Python's str.isspace holds for.
bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

bool is_cased(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

// Marks, modifiers and signs that may stand inside a word.
bool is_case_ignorable(char32_t c) {
  if (c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' || c == 0xA8 || c == 0xAD || c == 0xAF || c == 0xB4 ||
      c == 0xB7 || c == 0xB8 || c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027)
    return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return false;
  }
}

bool cased_follows(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!is_case_ignorable(c)) return is_cased(c);
  }
  return false;
}

void append_case(std::string& out, char32_t c, bool upper) {
  if (upper && c == 0xDF) {
    out += "SS";
  } else {
    const auto code = static_cast<utf8proc_int32_t>(c);
    append_utf8(out, static_cast<char32_t>(upper ? utf8proc_toupper(code) : utf8proc_tolower(code)));
  }
}

Value text(Arguments& a, std::string s) { return a.in.arena().string(std::move(s)); }

template <bool left, bool right>
Value strip(Arguments& a) {
  const Value chars = a.take_or("chars", Value::none());
  a.done();
  require(chars.is(Kind::none) || chars.is(Kind::string), "{}: the characters are {}, expected a string", a.what,
          kind_name(chars));
  return text(
      a, python_strip(a.self.text(), chars.is(Kind::string) ? std::optional(chars.text()) : std::nullopt, left, right));
}

template <bool upper>
Value change_case(Arguments& a) {
  a.done();
  return text(a, python_case(a.self.text(), upper));
}
Value title(Arguments& a) {
  a.done();
  return text(a, python_title(a.self.text(), false));
}
Value capitalize(Arguments& a) {
  a.done();
  return text(a, python_title(a.self.text(), true));
}

template <bool end>
Value starts_or_ends(Arguments& a) {
  const Value what = a.need(end ? "suffix" : "prefix");
  a.done();
  const auto one = [&](const Value& v) {
    require(v.is(Kind::string), "{}: the argument is {}, expected a string", a.what, kind_name(v));
    return end ? a.self.text().ends_with(v.text()) : a.self.text().starts_with(v.text());
  };
  if (what.is(Kind::list)) {
    return Value::of(std::any_of(what.list->items.begin(), what.list->items.end(), one));
  }
  return Value::of(one(what));
}

template <bool end>
Value remove_affix(Arguments& a) {
  const std::string_view what = a.need_string(end ? "suffix" : "prefix");
  a.done();
  std::string_view s = a.self.text();
  if (end ? s.ends_with(what) : s.starts_with(what)) end ? s.remove_suffix(what.size()) : s.remove_prefix(what.size());
  return text(a, std::string(s));
}

Value split_blanks(Arguments& a, std::int64_t most) {
  std::vector<Value> out;
  const std::string_view s = a.self.text();
  std::size_t begin = s.size();  // of the word being read
  for (std::size_t at = 0; at < s.size();) {
    const std::size_t here = at;
    const bool blank = is_python_space(next_code_point(s, at));
    if (begin == s.size() && !blank) {
      if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
        out.push_back(text(a, python_strip(s.substr(here), std::nullopt, false, true)));
        return a.in.arena().list(std::move(out));
      }
      begin = here;
    } else if (begin != s.size() && blank) {
      out.push_back(text(a, std::string(s.substr(begin, here - begin))));
      begin = s.size();
    }
  }
  if (begin != s.size()) out.push_back(text(a, std::string(s.substr(begin))));
  return a.in.arena().list(std::move(out));
}

template <bool from_right>
Value split(Arguments& a) {
  const Value separator = a.take_or("sep", Value::none());
  const std::int64_t most = a.integer_or("maxsplit", -1);
  a.done();
  if (separator.is(Kind::none)) {
    require(!from_right || most < 0, "{}: a limit without separator is not supported", a.what);
    return split_blanks(a, most);
  }
  require(separator.is(Kind::string) && !separator.text().empty(), "{}: the separator is {}, expected some text",
          a.what, separator.is(Kind::string) ? "empty" : kind_name(separator));
  std::string_view s = a.self.text();
  const std::string_view by = separator.text();
  std::vector<std::string_view> parts;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t at = from_right ? s.rfind(by) : s.find(by);
    if (at == std::string_view::npos) break;
    parts.push_back(from_right ? s.substr(at + by.size()) : s.substr(0, at));
    s = from_right ? s.substr(0, at) : s.substr(at + by.size());
  }
  parts.push_back(s);
  if (from_right) std::reverse(parts.begin(), parts.end());
  std::vector<Value> out;
  for (const std::string_view part : parts) out.push_back(text(a, std::string(part)));
  return a.in.arena().list(std::move(out));
}

Value splitlines(Arguments& a) {
  a.done();
  std::vector<Value> out;
  const std::string_view s = a.self.text();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < s.size();) {
    const std::size_t here = at;
    const char32_t c = next_code_point(s, at);
    if (!((c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029)) continue;
    out.push_back(text(a, std::string(s.substr(begin, here - begin))));
    if (c == '\r' && at < s.size() && s[at] == '\n') ++at;
    begin = at;
  }
  if (begin < s.size()) out.push_back(text(a, std::string(s.substr(begin))));
  return a.in.arena().list(std::move(out));
}

Value replace(Arguments& a) {
  const std::string_view from = a.need_string("old"), to = a.need_string("new");
  const std::int64_t most = a.integer_or("count", -1);
  a.done();
  return text(a, python_replace(a.in.arena(), a.self.text(), from, to, most));
}

template <bool from_right>
Value find(Arguments& a) {
  const std::string_view what = a.need_string("sub");
  a.done();
  const std::string_view s = a.self.text();
  const std::size_t at = from_right ? s.rfind(what) : s.find(what);
  if (at == std::string_view::npos) return Value::of(std::int64_t{-1});
  return Value::of(static_cast<std::int64_t>(characters(s.substr(0, at)).size()));
}

Value count(Arguments& a) {
  const Value what = a.need("what");
  a.done();
  std::int64_t n = 0;
  if (a.self.is(Kind::list)) {
    for (const Value& v : a.self.list->items) n += equal(v, what) ? 1 : 0;
    return Value::of(n);
  }
  require(what.is(Kind::string), "{}: the argument is {}, expected a string", a.what, kind_name(what));
  const std::string_view s = a.self.text(), sub = what.text();
  if (sub.empty()) return Value::of(static_cast<std::int64_t>(characters(s).size()) + 1);
  for (std::size_t at = 0; (at = s.find(sub, at)) != std::string_view::npos; at += sub.size()) ++n;
  return Value::of(n);
}

Value join(Arguments& a) {
  const std::vector<Value> parts = elements(a.in.arena(), a.need("iterable"));
  a.done();
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    require(parts[i].is(Kind::string), "{}: element {} is {}, expected a string", a.what, i, kind_name(parts[i]));
    if (i > 0) out += a.self.text();
    a.in.arena().charge(a.self.text().size() + parts[i].text().size());
    out += parts[i].text();
  }
  return text(a, std::move(out));
}

template <class Predicate>
Value all_characters(Arguments& a, Predicate predicate) {
  a.done();
  const std::string_view s = a.self.text();
  bool all = !s.empty();
  for (std::size_t at = 0; all && at < s.size();) all = predicate(next_code_point(s, at));
  return Value::of(all);
}

bool is_letter(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND; }

Value is_digit(Arguments& a) { return all_characters(a, is_decimal); }
Value is_alpha(Arguments& a) { return all_characters(a, is_letter); }
Value is_alnum(Arguments& a) {
  return all_characters(a, [](char32_t c) { return is_letter(c) || is_decimal(c); });
}
Value is_space(Arguments& a) { return all_characters(a, is_python_space); }

template <bool upper>
Value is_case(Arguments& a) {
  a.done();
  const std::string_view s = a.self.text();
  bool cased = false;
  for (std::size_t at = 0; at < s.size();) {
    const char32_t c = next_code_point(s, at);
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    if (category == (upper ? UTF8PROC_CATEGORY_LL : UTF8PROC_CATEGORY_LU) || category == UTF8PROC_CATEGORY_LT)
      return Value::of(false);
    cased = cased || is_cased(c);
  }
  return Value::of(cased);
}

Value list_index(Arguments& a) {
  const Value what = a.need("value");
  a.done();
  for (std::size_t i = 0; i < a.self.list->items.size(); ++i) {
    if (equal(a.self.list->items[i], what)) return Value::of(static_cast<std::int64_t>(i));
  }
  fail("{}: the value is not in the list", a.what);
}

Value copy(Arguments& a) {
  a.done();
  if (a.self.is(Kind::list)) return a.in.arena().list(a.self.list->items);
  const Value out = a.in.arena().dict();
  a.in.arena().charge(a.self.dict->items.size() * 2 * sizeof(Value));
  out.dict->items = a.self.dict->items;
  return out;
}

template <bool keys, bool values>
Value dict_parts(Arguments& a) {
  a.done();
  std::vector<Value> out;
  for (const auto& [key, value] : a.self.dict->items) {
    Value name = Value::of(Kind::string);
    name.string = key;
    out.push_back(keys && values ? a.in.arena().list({name, value}, true) : keys ? name : value);
  }
  return a.in.arena().list(std::move(out));
}

Value dict_get(Arguments& a) {
  const Value key = a.need("key"), fallback = a.take_or("default", Value::none());
  a.done();
  const Value* found = key.is(Kind::string) ? a.self.dict->find(key.text()) : nullptr;
  return found == nullptr ? fallback : *found;
}

Value forbidden(Arguments& a) { fail("{} changes a value, which templates may not do", a.what); }

constexpr NamedNative string_methods[] = {{"strip", strip<true, true>},
                                          {"lstrip", strip<true, false>},
                                          {"rstrip", strip<false, true>},
                                          {"upper", change_case<true>},
                                          {"lower", change_case<false>},
                                          {"title", title},
                                          {"capitalize", capitalize},
                                          {"startswith", starts_or_ends<false>},
                                          {"endswith", starts_or_ends<true>},
                                          {"removeprefix", remove_affix<false>},
                                          {"removesuffix", remove_affix<true>},
                                          {"split", split<false>},
                                          {"rsplit", split<true>},
                                          {"splitlines", splitlines},
                                          {"replace", replace},
                                          {"find", find<false>},
                                          {"rfind", find<true>},
                                          {"count", count},
                                          {"join", join},
                                          {"isdigit", is_digit},
                                          {"isalpha", is_alpha},
                                          {"isalnum", is_alnum},
                                          {"isspace", is_space},
                                          {"isupper", is_case<true>},
                                          {"islower", is_case<false>}};
constexpr std::string_view other_string_methods[] = {
    "casefold",  "center",       "encode",     "expandtabs",  "format",    "format_map", "index",     "isascii",
    "isdecimal", "isidentifier", "isnumeric",  "isprintable", "istitle",   "ljust",      "maketrans", "partition",
    "rindex",    "rjust",        "rpartition", "swapcase",    "translate", "zfill"};
constexpr NamedNative list_methods[] = {{"index", list_index}, {"count", count},      {"copy", copy},
                                        {"append", forbidden}, {"extend", forbidden}, {"insert", forbidden},
                                        {"pop", forbidden},    {"remove", forbidden}, {"clear", forbidden},
                                        {"sort", forbidden},   {"reverse", forbidden}};
constexpr NamedNative dict_methods[] = {{"items", dict_parts<true, true>},
                                        {"keys", dict_parts<true, false>},
                                        {"values", dict_parts<false, true>},
                                        {"get", dict_get},
                                        {"copy", copy},
                                        {"update", forbidden},
                                        {"pop", forbidden},
                                        {"popitem", forbidden},
                                        {"clear", forbidden},
                                        {"setdefault", forbidden}};

}  // namespace

Native find_method(const Value& self, std::string_view name) {
  switch (self.kind) {
    case Kind::string: {
      const bool other = std::find(std::begin(other_string_methods), std::end(other_string_methods), name) !=
                         std::end(other_string_methods);
      require(!other, "the method {} of strings is not supported", name);
      return find_in(string_methods, name);
    }
    case Kind::list:
      return find_in(list_methods, name);
    case Kind::dict:
      return self.dict->is_namespace ? nullptr : find_in(dict_methods, name);
    default:
      return nullptr;
  }
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    next_code_point(text, at);
    out.push_back(text.substr(begin, at - begin));
  }
  return out;
}

std::string python_strip(std::string_view text, std::optional<std::string_view> chars, bool left, bool right) {
  const auto drops = [&](std::string_view part, char32_t c) {
    return chars ? chars->find(part) != std::string_view::npos : is_python_space(c);
  };
  while (left && !text.empty()) {
    std::size_t at = 0;
    const char32_t c = next_code_point(text, at);
    if (!drops(text.substr(0, at), c)) break;
    text.remove_prefix(at);
  }
  while (right && !text.empty()) {
    const char32_t c = previous_code_point(text, text.size());
    std::size_t size = 1;
    while (size < text.size() && (static_cast<unsigned char>(text[text.size() - size]) & 0xC0) == 0x80) ++size;
    if (!drops(text.substr(text.size() - size), c)) break;
    text.remove_suffix(size);
  }
  return std::string(text);
}

std::string python_case(std::string_view text, bool upper) {
  std::string out;
  bool inside = false;  // a word: a cased letter came before, with nothing but marks between
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!upper && c == 0x3A3 && inside && !cased_follows(text.substr(at))) {
      append_utf8(out, 0x3C2);  // the sigma that ends a word
    } else {
      append_case(out, c, upper);
    }
    inside = is_cased(c) || (inside && is_case_ignorable(c));
  }
  return out;
}

std::string python_title(std::string_view text, bool only_first) {
  std::string out;
  bool inside = false;  // a word
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    append_case(out, c, !inside);
    inside = only_first || is_cased(c);
  }
  return out;
}

std::string python_replace(Arena& arena, std::string_view text, std::string_view from, std::string_view to,
                           std::int64_t most) {
  std::string out;
  std::int64_t n = 0;
  std::size_t at = 0;
  const auto more = [&] { return most < 0 || n < most; };
  if (from.empty()) {  // before each character and at the end
    for (const std::string_view c : characters(text)) {
      arena.charge(to.size() + c.size());
      if (more()) out += to;
      ++n;
      out += c;
    }
    return more() ? out + std::string(to) : out;
  }
  for (std::size_t found = 0; more() && (found = text.find(from, at)) != std::string_view::npos; ++n) {
    arena.charge(found - at + to.size());
    out += text.substr(at, found - at);
    out += to;
    at = found + from.size();
  }
  out += text.substr(at);
  return out;
}

}  // namespace rlx::chat
