// rlx inspect of GGUF files: metadata, tensors, totals.
#include "cli/gguf.h"

#include <fmt/format.h>

#include <map>

#include "cli/cli.h"
#include "codecs/codec.h"
#include "core/error.h"
#include "core/quote.h"
#include "io/gguf/gguf.h"

namespace rlx::cli {

namespace {

constexpr Index listed_elements = 64;  // of an array, in the JSON of a whole file

std::string number(const GgufValue& v) {
  if (is_float(v.type()))
    return v.type() == GgufType::f32 ? fmt::format("{}", v.as<float>()) : fmt::format("{}", v.as<double>());
  if (v.type() == GgufType::boolean) return v.as<bool>() ? "true" : "false";
  return v.type() == GgufType::u64 ? fmt::format("{}", v.as<std::uint64_t>()) : fmt::format("{}", v.as<Index>());
}

std::string json_value(const GgufValue& v) {
  if (v.type() == GgufType::string) return json_string(v.as<std::string_view>());
  if (is_float(v.type())) return json_number(v.as<double>());
  if (!v.is_array()) return number(v);
  std::string out = "[";
  for (const GgufValue& e : v.elements()) out += (out.size() > 1 ? "," : "") + json_value(e);
  return out + "]";
}

/// `text` cut to `width` columns.
std::string cut(std::string_view text, std::size_t width) {
  std::string out = fit(text.substr(0, 8 * width), width);
  out.resize(out.find_last_not_of(' ') + 1);
  return out;
}

/// One line of at most `width` columns.
std::string short_value(const GgufValue& v, std::size_t width) {
  if (v.type() == GgufType::string) return cut(v.as<std::string_view>(), width);
  if (!v.is_array()) return number(v);
  std::string out;
  for (const GgufValue& e : v.elements(static_cast<Index>(width))) {
    const std::string value = e.is_array()                   ? "[" + grouped(e.count()) + "]"
                              : e.type() == GgufType::string ? '"' + cut(e.as<std::string_view>(), width) + '"'
                                                             : number(e);
    out += (out.empty() ? "" : ", ") + value;
    if (out.size() > 8 * width) break;
  }
  return cut(out, width);
}

std::string type_of(const GgufValue& v) {
  const std::string_view type = rlx::name(v.type());
  return v.is_array() ? fmt::format("{} x {}", grouped(v.count()), rlx::name(v.element_type())) : std::string(type);
}

/// What is stored in one type.
struct Total {
  Index tensors = 0, bytes = 0;
  double elements = 0;
  double bits() const { return elements > 0 ? 8 * static_cast<double>(bytes) / elements : 0; }

  void add(const GgufEntry& e) {
    ++tensors;
    bytes += e.bytes;
    const Index blocks = e.bytes / e.type->bytes;
    elements += static_cast<double>(blocks) * static_cast<double>(e.type->block);
  }
};

struct Totals {
  std::map<std::uint32_t, Total> types;
  Total all;

  explicit Totals(const GgufFile& f) {
    for (const GgufEntry& e : f.tensors()) {
      types[e.type->id].add(e);
      all.add(e);
    }
  }
};

bool readable(const GgufTensorType& t) { return t.dtype || find_codec(t.codec) != nullptr; }

std::string plain(const GgufFile& f, const GgufView& view) {
  const GgufForm form = f.form();
  std::string out =
      fmt::format("GGUF model\n  version        {}\n  byte order     {}\n  files          {}\n  alignment      {}\n",
                  form.version, form.big ? "big-endian" : "little-endian", f.parts(), f.alignment());
  out += fmt::format("metadata: {} keys\n", grouped(f.key_count()));
  std::size_t width = 0;
  for (Index i = 0; i < f.key_count(); ++i) width = std::max(width, std::min<std::size_t>(f.key(i).size(), 48));
  for (Index i = 0; i < f.key_count(); ++i) {
    const GgufValue v = f.value(i);
    out += fmt::format("  {}  {:<16} {}\n", fit(f.key(i), width), type_of(v), short_value(v, 60));
  }
  const Totals totals(f);
  out += fmt::format("weights: {} tensors, {} bytes, {:.2f} bits each\n", grouped(f.count()), grouped(totals.all.bytes),
                     totals.all.bits());
  out += fmt::format("  {:<8} {:>8} {:>18} {:>18} {:>7}\n", "type", "tensors", "weights", "bytes", "bits");
  for (const auto& [id, t] : totals.types) {
    const GgufTensorType& type = *find_gguf_type(id);
    out += fmt::format("  {:<8} {:>8} {:>18} {:>18} {:>7.2f}{}\n", type.name, grouped(t.tensors),
                       grouped(static_cast<Index>(t.elements)), grouped(t.bytes), t.bits(),
                       readable(type) ? "" : "  no codec");
  }
  if (!view.tensors) return out;
  std::size_t name_width = 0;
  for (const GgufEntry& e : f.tensors()) name_width = std::max(name_width, e.name.size());
  for (const GgufEntry& e : f.tensors()) {
    out += fmt::format("  {}  {:<8} {:<18} {:>14}\n", fit(e.name, name_width), e.type->name, text(e.shape),
                       grouped(e.bytes));
  }
  return out;
}

std::string json(const GgufFile& f, const std::string& path) {
  const Totals totals(f);
  std::string out = fmt::format(
      "{{\"path\":{},\"kind\":\"GGUF "
      "model\",\"version\":{},\"byte_order\":\"{}\",\"files\":{},\"alignment\":{},\"metadata\":[",
      json_string(path), f.form().version, f.form().big ? "big" : "little", f.parts(), f.alignment());
  for (Index i = 0; i < f.key_count(); ++i) {
    const GgufValue v = f.value(i);
    out +=
        fmt::format("{}\n{{\"key\":{},\"type\":\"{}\"", i > 0 ? "," : "", json_string(f.key(i)), rlx::name(v.type()));
    if (v.is_array())
      out += fmt::format(",\"element_type\":\"{}\",\"count\":{}", rlx::name(v.element_type()), v.count());
    if (!v.is_array() || v.count() <= listed_elements) out += ",\"value\":" + json_value(v);
    out += "}";
  }
  out += fmt::format("],\"weight_bytes\":{},\"bits_per_weight\":{},\"types\":[", totals.all.bytes,
                     json_number(totals.all.bits()));
  bool first = true;
  for (const auto& [id, t] : totals.types) {
    out += fmt::format("{}\n{{\"type\":\"{}\",\"tensors\":{},\"elements\":{},\"bytes\":{},\"codec\":{}}}",
                       first ? "" : ",", find_gguf_type(id)->name, t.tensors, static_cast<Index>(t.elements), t.bytes,
                       readable(*find_gguf_type(id)));
    first = false;
  }
  out += "],\"weights\":[";
  for (Index i = 0; i < f.count(); ++i) {
    const GgufEntry e = f.entry(i);
    out += fmt::format("{}\n{{\"name\":{},\"type\":\"{}\",\"shape\":{},\"bytes\":{},\"file\":{}}}", i > 0 ? "," : "",
                       json_string(e.name), e.type->name, text(e.shape), e.bytes, e.part);
  }
  return out + "]}\n";
}

std::string one_key(const GgufFile& f, const GgufView& view) {
  const std::optional<GgufValue> v = f.value(view.key);
  require(v.has_value(), "'{}': metadata key {} is missing", f.path(), quote(view.key));
  if (view.json) return json_value(*v) + "\n";
  if (v->type() == GgufType::string) return std::string(v->as<std::string_view>()) + "\n";
  if (!v->is_array()) return number(*v) + "\n";
  std::string out;
  for (const GgufValue& e : v->elements()) out += json_value(e) + "\n";
  return out;
}

}  // namespace

std::string show_gguf(const std::string& path, const GgufView& view) {
  const GgufFile f(path);
  if (!view.key.empty()) return one_key(f, view);
  return view.json ? json(f, path) : plain(f, view);
}

}  // namespace rlx::cli
