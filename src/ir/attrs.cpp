// Keys, text and parsing of attribute values.
#include "ir/attrs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/checked.h"

namespace rlx {

namespace {

constexpr Index small_tensor_bytes = 64;  // by content below, by storage above
constexpr Index inline_elements = 16;     // written into the text, if exactly representable there
constexpr Index inline_splat = 1024;      // of one value: bounded, so that no short text asks for much memory

void raw(std::string& out, const void* p, std::size_t n) { out.append(static_cast<const char*>(p), n); }

// Whether `element` printed as a number reads back to the same bits.
bool prints_exactly(DType type, std::uint64_t code) {
  if (is_complex(type)) return false;
  if (type == DType::boolean) return code <= 1;
  if (!is_float(type)) return true;
  const double v = decode_float(type, code);
  return encode_float(type, std::isnan(v) ? std::nan("") : v) == code && !(std::isinf(v) && bits(type) == 8);
}

std::string number(DType type, std::uint64_t code) {
  if (is_float(type)) {
    std::string s;
    attr::print(s, decode_float(type, code), nullptr);
    return s;
  }
  const Index n = extend_integer(type, code);
  return type == DType::u64 ? std::to_string(static_cast<std::uint64_t>(n)) : std::to_string(n);
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

}  // namespace

std::string ConstantSink::add(const Tensor& data) {
  std::vector<const void*> planes;
  for (std::size_t i = 0; i < data.type().plane_count(); ++i) planes.push_back(data.bytes(i).data());
  const auto [it, added] =
      names_.try_emplace({std::move(planes), data.type().text()}, "k" + std::to_string(names_.size()));
  if (added) tensors_.emplace(it->second, data);
  return it->second;
}

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 32 || c == 127) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + '"';
}

void AttrReader::skip() {
  while (position_ < text_.size() && std::string_view(" \n\t\r").find(text_[position_]) != std::string_view::npos) {
    ++position_;
  }
}

char AttrReader::peek() {
  skip();
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool AttrReader::take(std::string_view token) {
  skip();
  if (text_.substr(position_, token.size()) != token) return false;
  const std::size_t end = position_ + token.size();
  if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
  position_ = end;
  return true;
}

void AttrReader::need(std::string_view token) {
  if (!take(token)) fail("expected \"{}\" before \"{}\"", token, text_.substr(position_, 12));
}

std::string AttrReader::word() {
  skip();
  const std::size_t begin = position_;
  while (position_ < text_.size() && is_word(text_[position_])) ++position_;
  require(position_ > begin, "expected a name before \"{}\"", text_.substr(position_, 12));
  return std::string(text_.substr(begin, position_ - begin));
}

std::string AttrReader::quoted() {
  need("\"");
  std::string out;
  for (;; ++position_) {
    require(position_ < text_.size(), "string \"{}\" does not end", out.substr(0, 40));
    const char c = text_[position_];
    if (c == '"') break;
    if (c != '\\') {
      out += c;
      continue;
    }
    require(++position_ < text_.size(), "string \"{}\" does not end", out.substr(0, 40));
    const char e = text_[position_];
    if (e == 'n') {
      out += '\n';
    } else if (e == 't') {
      out += '\t';
    } else if (e == '"' || e == '\\') {
      out += e;
    } else {
      unsigned value = 0;
      const char* digits = text_.data() + position_ + 1;
      const bool room = e == 'x' && position_ + 2 < text_.size();
      require(room && std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2, "unknown escape \"\\{}\"", e);
      out += static_cast<char>(value);
      position_ += 2;
    }
  }
  ++position_;
  return out;
}

Dim AttrReader::dim() { return parse_dim(text_, position_, symbols_); }

Index AttrReader::integer() {
  skip();
  Index value = 0;
  const char* begin = text_.data() + position_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  require(error != std::errc::result_out_of_range, "integer \"{}\" is out of range", text_.substr(position_, 24));
  require(error == std::errc(), "expected an integer before \"{}\"", text_.substr(position_, 12));
  position_ += static_cast<std::size_t>(end - begin);
  return value;
}

std::uint64_t AttrReader::natural() {
  skip();
  std::uint64_t value = 0;
  const char* begin = text_.data() + position_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  require(error != std::errc::result_out_of_range, "number \"{}\" is out of range", text_.substr(position_, 24));
  require(error == std::errc(), "expected a natural number before \"{}\"", text_.substr(position_, 12));
  position_ += static_cast<std::size_t>(end - begin);
  return value;
}

double AttrReader::real() {
  skip();
  double value = 0;
  const char* begin = text_.data() + position_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  require(error != std::errc::result_out_of_range, "number \"{}\" is out of range", text_.substr(position_, 24));
  require(error == std::errc(), "expected a number before \"{}\"", text_.substr(position_, 12));
  position_ += static_cast<std::size_t>(end - begin);
  return value;
}

Tensor AttrReader::tensor() {
  if (take("@")) {
    const std::string name = word();
    const auto it = data_.find(name);
    require(it != data_.end(), "no data named \"@{}\" was given", name);
    return it->second;
  }
  const DType type = parse_dtype(word());
  std::vector<Index> shape;
  need("[");
  while (!take("]")) {
    if (!shape.empty()) need(",");
    shape.push_back(integer());
    require(shape.back() >= 0, "extent {} of a constant is negative", shape.back());
  }
  const Index count = checked_product(shape, "a constant");
  require(count <= inline_splat, "an inline constant has {} elements, at most {}", count, inline_splat);
  require(!is_complex(type), "constants of type {} are not written inline", name(type));
  std::vector<std::uint64_t> codes;
  need("(");
  while (!take(")")) {
    if (!codes.empty()) need(",");
    require(codes.size() < static_cast<std::size_t>(inline_elements), "an inline constant lists more than {} values",
            inline_elements);
    if (is_float(type)) {
      const double v = real();
      codes.push_back(encode_float(type, std::isnan(v) ? std::numeric_limits<double>::quiet_NaN() : v));
      const double kept = decode_float(type, codes.back());
      // What overflows or saturates has the code of infinity, unless it is no larger than what that code stands for.
      const bool clamped = codes.back() == encode_float(type, std::copysign(INFINITY, v));
      const bool fits = !std::isfinite(v) || !clamped || (std::isfinite(kept) && std::fabs(v) <= std::fabs(kept));
      require(fits, "{} is out of range for {}", v, name(type));
    } else if (type == DType::u64) {
      codes.push_back(natural());
    } else {
      const Index n = integer();
      codes.push_back(static_cast<std::uint64_t>(n));
      const bool fits = type == DType::boolean ? n == 0 || n == 1 : extend_integer(type, codes.back()) == n;
      require(fits, "{} is out of range for {}", n, name(type));
    }
  }
  require(static_cast<Index>(codes.size()) == count || codes.size() == 1, "constant {}{} lists {} values", name(type),
          text(shape), codes.size());
  Tensor t(type, shape);
  for (Index i = 0; i < count; ++i) t.set_code(i, codes[codes.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
  return t;
}

namespace attr {

void key(std::string& out, bool v) { out += v ? '\1' : '\0'; }
void key(std::string& out, Index v) { raw(out, &v, sizeof v); }
void key(std::string& out, double v) {
  if (std::isnan(v)) v = std::numeric_limits<double>::quiet_NaN();  // the text has one NaN
  raw(out, &v, sizeof v);
}
void key(std::string& out, const std::string& v) {
  key(out, static_cast<Index>(v.size()));
  out += v;
}
void key(std::string& out, DType v) { out += static_cast<char>(v); }
void key(std::string& out, const Dim& v) { key(out, v.text()); }
void key(std::string& out, const Tensor& v) {
  key(out, v.type().text());
  for (std::size_t i = 0; i < v.type().plane_count(); ++i) {
    const auto bytes = v.bytes(i);
    if (static_cast<Index>(bytes.size()) <= small_tensor_bytes) {
      raw(out, bytes.data(), bytes.size());
    } else {
      const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
      raw(out, &address, sizeof address);
    }
  }
}

void print(std::string& out, bool v, ConstantSink*) { out += v ? "true" : "false"; }
void print(std::string& out, Index v, ConstantSink*) { out += std::to_string(v); }
void print(std::string& out, double v, ConstantSink*) {
  if (std::isnan(v)) {
    out += "nan";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", v);
  }
}
void print(std::string& out, const std::string& v, ConstantSink*) { out += quote(v); }
void print(std::string& out, DType v, ConstantSink*) { out += name(v); }
void print(std::string& out, const Dim& v, ConstantSink*) { out += v.text(); }

void print(std::string& out, const Tensor& v, ConstantSink* sink) {
  const DType type = v.dtype();
  bool splat = !v.type().encoding && v.count() > 0;
  bool exact = splat;
  const std::uint64_t first = splat ? v.code(0) : 0;
  for (Index i = 0; splat && i < v.count(); ++i) {
    const std::uint64_t code = v.code(i);
    if (code != first) splat = false;
    if (i < inline_elements) exact = exact && prints_exactly(type, code);
  }
  const bool small = !v.type().encoding && v.count() <= inline_elements;
  if (!splat) {
    exact = small;
    for (Index i = 0; exact && i < v.count(); ++i) exact = prints_exactly(type, v.code(i));
  }
  if (exact && (splat || small) && v.count() <= inline_splat) {
    out += std::string(name(type)) + text(v.shape()) + "(";
    const Index listed = splat ? 1 : v.count();
    for (Index i = 0; i < listed; ++i) out += (i ? "," : "") + number(type, v.code(i));
    out += ')';
  } else {
    out += "@" + (sink ? sink->add(v) : std::string("data"));
  }
}

void parse(AttrReader& in, bool& v) {
  if (in.take("true")) {
    v = true;
  } else {
    in.need("false");
    v = false;
  }
}
void parse(AttrReader& in, Index& v) { v = in.integer(); }
void parse(AttrReader& in, double& v) { v = in.real(); }
void parse(AttrReader& in, std::string& v) { v = in.quoted(); }
void parse(AttrReader& in, DType& v) { v = parse_dtype(in.word()); }
void parse(AttrReader& in, Dim& v) { v = in.dim(); }
void parse(AttrReader& in, Tensor& v) { v = in.tensor(); }

}  // namespace attr

}  // namespace rlx
