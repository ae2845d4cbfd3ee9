// The JSON document: flat nodes in text order, filled from nlohmann's event parser; nothing here recurses.
#include "core/json.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.h"

namespace rlx {

namespace {

// Scalars take one node. A container is followed by its content, an object's as name node, value, name node, value.
struct Node {
  JsonKind kind = JsonKind::null;
  std::uint32_t size = 0;  // string: bytes; array, object: number of elements or members
  union {
    std::int64_t integer = 0;
    double real;
    std::uint64_t place;  // string: offset in the bytes; array, object: the node after the last of the content
  };
};
static_assert(sizeof(Node) == 16);

constexpr std::uint32_t chunk_bits = 12;  // nodes are kept in chunks, so that growing never copies

}  // namespace

struct JsonStorage {
  std::string name;
  std::string bytes;  // all strings, one after the other
  std::vector<std::unique_ptr<Node[]>> chunks;
  std::uint32_t count = 0;

  Node& operator[](std::uint32_t i) { return chunks[i >> chunk_bits][i & ((1u << chunk_bits) - 1)]; }
  const Node& operator[](std::uint32_t i) const { return chunks[i >> chunk_bits][i & ((1u << chunk_bits) - 1)]; }

  Node& add(JsonKind kind) {
    if ((count >> chunk_bits) == chunks.size())
      chunks.push_back(std::make_unique<Node[]>(std::size_t{1} << chunk_bits));
    Node& node = (*this)[count++];
    node.kind = kind;
    return node;
  }
  std::string_view text(const Node& node) const { return std::string_view(bytes).substr(node.place, node.size); }
  std::uint32_t next(std::uint32_t i) const {
    const Node& node = (*this)[i];
    const bool container = node.kind == JsonKind::array || node.kind == JsonKind::object;
    return container ? static_cast<std::uint32_t>(node.place) : i + 1;
  }
};

namespace {

std::string quoted(std::string_view text) {
  constexpr std::size_t most = 40;
  std::string out = "\"";
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  // A cut inside a character would leave invalid UTF-8 in the message.
  if (text.size() > most) {
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
    out += "…";
  }
  return out + "\"";
}

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Bounds every token and the depth before the parser sees the text: its buffers grow with the longest token.
void check_extent(std::string_view text, std::string_view name, const JsonLimits& limits) {
  require(text.size() <= limits.bytes, "{}: {} bytes, at most {} are read", name, text.size(), limits.bytes);
  int depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    const char c = text[i++];
    if (c == '"') {
      for (; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      i = std::min(i + 1, text.size());
    } else if (c == '[' || c == '{') {
      require(++depth <= limits.depth, "{}: byte {}: nesting deeper than {}, the most that is read", name, start,
              limits.depth);
    } else if (c == ']' || c == '}') {
      --depth;
    } else if ((c >= '0' && c <= '9') || c == '-') {
      while (i < text.size() && std::string_view("0123456789+-.eE").find(text[i]) != std::string_view::npos) ++i;
    } else if (is_blank(c)) {
      while (i < text.size() && is_blank(text[i])) ++i;
    }
    require(i - start <= limits.token_bytes, "{}: byte {}: a token of {} bytes, at most {} are read", name, start,
            i - start, limits.token_bytes);
  }
}

// The events of nlohmann's parser, written down as nodes. A false return stops the parser.
class Builder {
 public:
  Builder(JsonStorage& storage, const JsonLimits& limits) : s_(storage), limits_(limits) {}

  bool null() {
    return scalar(JsonKind::null, [](Node&) {});
  }
  bool boolean(bool value) {
    return scalar(JsonKind::boolean, [&](Node& n) { n.integer = value; });
  }
  bool number_integer(std::int64_t value) {
    return scalar(JsonKind::integer, [&](Node& n) { n.integer = value; });
  }
  bool number_unsigned(std::uint64_t value) {
    if (std::in_range<std::int64_t>(value)) return number_integer(static_cast<std::int64_t>(value));
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(double value, const std::string&) {
    return scalar(JsonKind::real, [&](Node& n) { n.real = value; });
  }
  bool string(const std::string& value) {
    return scalar(JsonKind::string, [&](Node& n) { place_text(n, value); });
  }
  bool key(const std::string& value) {
    ++s_[open_.back()].size;
    return add(JsonKind::string, [&](Node& n) { place_text(n, value); });
  }
  bool binary(const nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return start(JsonKind::object); }
  bool start_array(std::size_t) { return start(JsonKind::array); }
  bool end_array() {
    s_[open_.back()].place = s_.count;
    open_.pop_back();
    return true;
  }
  bool end_object() {
    const std::uint32_t object = open_.back();
    end_array();
    return check_names(object);
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& problem) {
    // The parser's text is "[id] where: while doing - what; last read: 'x'; expected y"; a long token in it is cut out.
    std::string what = problem.what();
    const std::size_t dash = what.find(" - ");
    what = what.substr(dash == std::string::npos ? what.find("] ") + 2 : dash + 3);
    const std::size_t read = what.find("; last read: '"), expected = what.rfind("; expected ");
    if (read != std::string::npos) {
      const bool tail = expected != std::string::npos && expected > read;
      what = what.substr(0, read) + (tail ? what.substr(expected) : std::string());
    }
    if (what.size() > 200) what.resize(200);
    error_ = fmt::format("byte {}: {}", position > 0 ? position - 1 : 0, what);
    return false;
  }

  std::uint32_t open_node() const { return open_.empty() ? 0 : open_.back(); }
  const std::string& error() const { return error_; }

 private:
  template <class Fill>
  bool add(JsonKind kind, Fill fill) {
    if (s_.count >= limits_.nodes) {
      error_ = fmt::format("more than {} values, the most that are read", limits_.nodes);
      return false;
    }
    fill(s_.add(kind));
    return true;
  }
  template <class Fill>
  bool scalar(JsonKind kind, Fill fill) {
    if (!open_.empty() && s_[open_.back()].kind == JsonKind::array) ++s_[open_.back()].size;
    return add(kind, fill);
  }
  bool start(JsonKind kind) {
    const std::uint32_t node = s_.count;
    if (!scalar(kind, [](Node&) {})) return false;
    open_.push_back(node);
    return true;
  }
  void place_text(Node& node, const std::string& text) {
    node.place = s_.bytes.size();
    node.size = static_cast<std::uint32_t>(text.size());
    s_.bytes += text;
  }

  // Sorted by hash, then compared, so that no choice of names costs more than n log n comparisons.
  bool check_names(std::uint32_t object) {
    const std::uint32_t members = s_[object].size;
    if (members < 2) return true;
    constexpr int index_bits = 24;  // enough for every node that the limits allow
    constexpr std::uint64_t mask = (std::uint64_t{1} << index_bits) - 1;
    std::vector<std::uint64_t> order;
    order.reserve(members);
    for (std::uint32_t i = object + 1; i < s_.count; i = s_.next(i + 1)) {
      const std::uint64_t hash = std::hash<std::string_view>{}(s_.text(s_[i]));
      order.push_back((hash & ~mask) | (i - object));
    }
    const auto name = [&](std::uint64_t entry) {
      return s_.text(s_[object + static_cast<std::uint32_t>(entry & mask)]);
    };
    std::sort(order.begin(), order.end(),
              [&](std::uint64_t a, std::uint64_t b) { return (a & ~mask) != (b & ~mask) ? a < b : name(a) < name(b); });
    const auto twice = std::adjacent_find(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
      return (a & ~mask) == (b & ~mask) && name(a) == name(b);
    });
    if (twice == order.end()) return true;
    error_ = fmt::format("an object holds {} twice, expected distinct names", quoted(name(*twice)));
    return false;
  }

  JsonStorage& s_;
  JsonLimits limits_;
  std::vector<std::uint32_t> open_;  // containers that have not ended
  std::string error_;
};

}  // namespace

JsonDocument JsonDocument::parse(std::string_view text, std::string_view name, const JsonLimits& limits) {
  ensure(limits.nodes < (std::size_t{1} << 24) && limits.bytes < (std::size_t{1} << 32), "json limits fit the nodes");
  check_extent(text, name, limits);
  auto storage = std::make_shared<JsonStorage>();
  storage->name = name;
  storage->bytes.reserve(text.size());  // decoding never lengthens a string: one allocation, no growth
  Builder builder(*storage, limits);
  const bool ok = nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder,
                                            nlohmann::json::input_format_t::json, /*strict=*/true);
  require(ok, "{}: {}", name, builder.error());
  return JsonDocument(std::move(storage));
}

const char* json_kind_name(JsonKind kind) {
  switch (kind) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return "boolean";
    case JsonKind::integer:
      return "integer";
    case JsonKind::real:
      return "real";
    case JsonKind::string:
      return "string";
    case JsonKind::array:
      return "array";
    case JsonKind::object:
      return "object";
  }
  return "unknown";
}

JsonKind JsonValue::kind() const { return (*storage_)[node_].kind; }

Index JsonValue::size() const {
  if (!is_array() && !is_object()) fail_expected("array or object");
  return (*storage_)[node_].size;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  for (const JsonMember& m : members()) {
    if (m.key == key) return m.value;
  }
  return std::nullopt;
}

JsonValue JsonValue::at(std::string_view key) const {
  const std::optional<JsonValue> value = find(key);
  if (!value) fail("{}: {} has no member {}", storage_->name, path(), quoted(key));
  return *value;
}

JsonValue JsonValue::at(Index i) const {
  const Elements range = elements();
  require(i >= 0 && i < size(), "{}: element {} is out of range for {}, an array of {}", storage_->name, i, path(),
          size());
  auto it = range.begin();
  for (Index k = 0; k < i; ++k) ++it;
  return *it;
}

bool JsonValue::as_bool() const {
  if (kind() != JsonKind::boolean) fail_expected("true or false");
  return (*storage_)[node_].integer != 0;
}

Index JsonValue::as_index() const {
  if (kind() != JsonKind::integer) fail_expected("an integer");
  return (*storage_)[node_].integer;
}

Index JsonValue::as_index(Index low, Index high) const {
  if (kind() != JsonKind::integer || as_index() < low || as_index() > high) {
    fail_expected(fmt::format("an integer from {} to {}", low, high));
  }
  return as_index();
}

double JsonValue::as_double() const {
  if (kind() == JsonKind::integer) return static_cast<double>((*storage_)[node_].integer);
  if (kind() != JsonKind::real) fail_expected("a number");
  return (*storage_)[node_].real;
}

std::string_view JsonValue::as_string() const {
  if (kind() != JsonKind::string) fail_expected("a string");
  return storage_->text((*storage_)[node_]);
}

bool JsonValue::get_or(std::string_view key, bool fallback) const {
  const auto value = find(key);
  return value ? value->as_bool() : fallback;
}

Index JsonValue::get_or(std::string_view key, Index fallback) const {
  const auto value = find(key);
  return value ? value->as_index() : fallback;
}

double JsonValue::get_or(std::string_view key, double fallback) const {
  const auto value = find(key);
  return value ? value->as_double() : fallback;
}

std::string JsonValue::get_or(std::string_view key, const char* fallback) const {
  const auto value = find(key);
  return value ? std::string(value->as_string()) : std::string(fallback);
}

JsonValue::Members JsonValue::members() const {
  if (!is_object()) fail_expected("an object");
  return {storage_, node_ + 1, storage_->next(node_)};
}

JsonValue::Elements JsonValue::elements() const {
  if (!is_array()) fail_expected("an array");
  return {storage_, node_ + 1, storage_->next(node_)};
}

JsonMember JsonValue::Members::Iterator::operator*() const {
  return {storage_->text((*storage_)[node_]), JsonValue(storage_, node_ + 1)};
}

JsonValue::Members::Iterator& JsonValue::Members::Iterator::operator++() {
  node_ = storage_->next(node_ + 1);
  return *this;
}

JsonValue JsonValue::Elements::Iterator::operator*() const { return {storage_, node_}; }

JsonValue::Elements::Iterator& JsonValue::Elements::Iterator::operator++() {
  node_ = storage_->next(node_);
  return *this;
}

std::string JsonValue::path() const {
  if (node_ == 0) return "the document";
  std::string out;
  for (std::uint32_t at = 0; at != node_;) {
    const bool object = (*storage_)[at].kind == JsonKind::object;
    std::uint32_t child = at + 1, count = 0;
    const auto value = [&] { return object ? child + 1 : child; };
    for (; storage_->next(value()) <= node_; ++count) child = storage_->next(value());
    if (object) {
      if (!out.empty()) out += '.';
      out += storage_->text((*storage_)[child]).substr(0, 100);
    } else {
      out += fmt::format("[{}]", count);
    }
    at = value();
  }
  return out;
}

std::string JsonValue::describe() const {
  const Node& node = (*storage_)[node_];
  switch (node.kind) {
    case JsonKind::boolean:
      return node.integer != 0 ? "true" : "false";
    case JsonKind::integer:
      return fmt::format("{}", node.integer);
    case JsonKind::real:
      return fmt::format("{}", node.real);
    case JsonKind::string:
      return quoted(storage_->text(node));
    case JsonKind::array:
    case JsonKind::object:
      return fmt::format("{} of {}", json_kind_name(node.kind), node.size);
    case JsonKind::null:
      break;
  }
  return "null";
}

void JsonValue::fail_expected(std::string_view expected) const {
  fail("{}: {} is {}, expected {}", storage_->name, path(), describe(), expected);
}

}  // namespace rlx
