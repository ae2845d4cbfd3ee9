// Tests and global functions.
#include <algorithm>
#include <ctime>

#include "core/error.h"
#include "text/template_calls.h"

namespace rlx::chat {

namespace {

Value text(Arguments& a, std::string s) { return a.in.arena().string(std::move(s)); }
std::string soft_text(Arguments& a, const Value& v) { return to_text(v, a.in.arena().limits().output_bytes); }
Value list(Arguments& a, std::vector<Value> items) { return a.in.arena().list(std::move(items)); }

template <bool (*predicate)(const Value&)>
Value test(Arguments& a) {
  a.done();
  return Value::of(predicate(a.self));
}
bool is_defined(const Value& v) { return !v.is(Kind::undefined); }
bool is_undefined(const Value& v) { return v.is(Kind::undefined); }
bool is_none(const Value& v) { return v.is(Kind::none); }
bool is_string(const Value& v) { return v.is(Kind::string); }
bool is_mapping(const Value& v) { return v.is(Kind::dict) && !v.dict->is_namespace; }
bool is_iterable(const Value& v) {
  return v.is(Kind::undefined) || v.is(Kind::string) || v.is(Kind::list) || is_mapping(v);
}
bool is_number(const Value& v) { return v.is_number(); }
bool is_integer(const Value& v) { return v.is(Kind::integer); }
bool is_float(const Value& v) { return v.is(Kind::real); }
bool is_boolean(const Value& v) { return v.is(Kind::boolean); }
bool is_true(const Value& v) { return v.is(Kind::boolean) && v.boolean; }
bool is_false(const Value& v) { return v.is(Kind::boolean) && !v.boolean; }
bool is_callable(const Value& v) { return v.is(Kind::callable); }

template <bool upper>
Value has_case(Arguments& a) {
  const Value s = text(a, soft_text(a, a.self));
  Arguments inner(a.in, a.what, s, {}, {});
  a.done();
  return find_method(s, upper ? "isupper" : "islower")(inner);
}

template <bool odd>
Value parity(Arguments& a) {
  a.done();
  require(a.self.is(Kind::integer) || a.self.is(Kind::boolean), "{} is neither odd nor even", kind_name(a.self));
  return Value::of((a.self.whole() % 2 != 0) == odd);
}
Value divisible(Arguments& a) {
  const Value by = a.need("num");
  a.done();
  require(a.self.is(Kind::integer) && by.is(Kind::integer) && by.integer != 0, "expected integers, the divisor not 0");
  return Value::of(by.integer == -1 || a.self.integer % by.integer == 0);
}
template <bool wanted>
Value equals(Arguments& a) {
  const Value other = a.need("other");
  a.done();
  return Value::of(equal(a.self, other) == wanted);
}
template <bool less, bool or_equal>
Value ordered(Arguments& a) {
  const Value other = a.need("other");
  a.done();
  const int order = compare(a.self, other);
  return Value::of((less ? order < 0 : order > 0) || (or_equal && order == 0));
}
Value is_in(Arguments& a) {
  const Value container = a.need("seq");
  a.done();
  return Value::of(contains(container, a.self));
}
Value same_as(Arguments& a) {
  const Value other = a.need("other");
  a.done();
  const bool container = a.self.is(Kind::list) || a.self.is(Kind::dict);
  if (a.self.kind != other.kind) return Value::of(false);
  return Value::of(container ? a.self.list == other.list : equal(a.self, other));
}

constexpr NamedNative tests[] = {{"!=", equals<false>},
                                 {"<", ordered<true, false>},
                                 {"<=", ordered<true, true>},
                                 {"==", equals<true>},
                                 {">", ordered<false, false>},
                                 {">=", ordered<false, true>},
                                 {"boolean", test<is_boolean>},
                                 {"callable", test<is_callable>},
                                 {"defined", test<is_defined>},
                                 {"divisibleby", divisible},
                                 {"eq", equals<true>},
                                 {"equalto", equals<true>},
                                 {"even", parity<false>},
                                 {"false", test<is_false>},
                                 {"float", test<is_float>},
                                 {"ge", ordered<false, true>},
                                 {"greaterthan", ordered<false, false>},
                                 {"gt", ordered<false, false>},
                                 {"in", is_in},
                                 {"integer", test<is_integer>},
                                 {"iterable", test<is_iterable>},
                                 {"le", ordered<true, true>},
                                 {"lessthan", ordered<true, false>},
                                 {"lower", has_case<false>},
                                 {"lt", ordered<true, false>},
                                 {"mapping", test<is_mapping>},
                                 {"ne", equals<false>},
                                 {"none", test<is_none>},
                                 {"number", test<is_number>},
                                 {"odd", parity<true>},
                                 {"sameas", same_as},
                                 {"sequence", test<is_iterable>},
                                 {"string", test<is_string>},
                                 {"true", test<is_true>},
                                 {"undefined", test<is_undefined>},
                                 {"upper", has_case<true>}};

Value range(Arguments& a) {
  std::vector<std::int64_t> n;
  for (const Value& v : a.rest_positional()) {
    require(v.is(Kind::integer) || v.is(Kind::boolean), "range: an argument is {}, expected an integer", kind_name(v));
    n.push_back(v.whole());
  }
  a.done();
  require(!n.empty() && n.size() <= 3, "range: {} arguments, expected 1 to 3", n.size());
  const std::int64_t begin = n.size() == 1 ? 0 : n[0], end = n.size() == 1 ? n[0] : n[1],
                     step = n.size() == 3 ? n[2] : 1;
  require(step != 0, "range: the step is 0, expected another number");
  constexpr std::int64_t most = 100'000;
  std::vector<Value> out;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end;) {
    require(static_cast<std::int64_t>(out.size()) < most, "range: more than {} numbers", most);
    out.push_back(Value::of(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return list(a, std::move(out));
}

template <bool is_namespace>
Value make_dict(Arguments& a) {
  const Value out = a.in.arena().dict();
  for (const Value& from : a.rest_positional()) {
    require(from.is(Kind::dict), "{}: an argument is {}, expected a mapping", a.what, kind_name(from));
    for (const auto& [key, value] : from.dict->items) a.in.arena().set(*out.dict, key, value);
  }
  for (const auto& [name, value] : a.rest_named()) a.in.arena().set(*out.dict, name, value);
  out.dict->is_namespace = is_namespace;
  return out;
}

Value raise_exception(Arguments& a) {
  const Value message = a.take_or("message", text(a, ""));
  a.done();
  fail("the template refuses: {}", to_text(message, 10'000));
}

Value strftime_now(Arguments& a) {
  const std::string format(a.need_string("format"));
  a.done();
  require(format.size() <= 200, "strftime_now: a format of {} bytes, at most 200 are supported", format.size());
  const auto now = static_cast<std::time_t>(a.in.now());
  std::tm parts{};
  localtime_r(&now, &parts);
  char buffer[2048];
  return text(a, std::string(buffer, std::strftime(buffer, sizeof buffer, format.c_str(), &parts)));
}

constexpr NamedNative functions[] = {{"dict", make_dict<false>},
                                     {"namespace", make_dict<true>},
                                     {"raise_exception", raise_exception},
                                     {"range", range},
                                     {"strftime_now", strftime_now}};

}  // namespace

Native find_in(std::span<const NamedNative> natives, std::string_view name) {
  const auto it = std::find_if(natives.begin(), natives.end(), [&](const NamedNative& n) { return n.name == name; });
  return it == natives.end() ? nullptr : it->native;
}

std::string names_of(std::span<const NamedNative> natives) {
  std::string out;
  for (const NamedNative& n : natives) out += out.empty() ? std::string(n.name) : ", " + std::string(n.name);
  return out;
}

Native find_test(std::string_view name) { return find_in(tests, name); }
Native find_function(std::string_view name) { return find_in(functions, name); }
std::string test_names() { return names_of(tests); }

}  // namespace rlx::chat
