// The parser of a GGUF file's header.
#include "io/gguf/part.h"

#include <algorithm>
#include <bit>

#include "core/checked.h"
#include "core/quote.h"
#include "io/gguf/gguf.h"
#include "io/onnx/utf8.h"

namespace rlx {

namespace {

constexpr std::string_view magic = "GGUF";

/// A key or tensor name of 1 to `most` bytes.
std::string_view name_text(GgufCursor& at, Index most, std::string_view what) {
  const std::size_t begin = at.position();
  const std::string_view text = at.text(fmt::format("the length of a {}", what));
  if (text.empty() || static_cast<Index>(text.size()) > most) {
    at.fail_at(begin, fmt::format("a {} of {} bytes, expected 1 to {}", what, text.size(), most));
  }
  if (!onnx::is_text(text)) {
    at.fail_at(begin, fmt::format("{} {} is no UTF-8 text without zero bytes", what, quote(text)));
  }
  return text;
}

}  // namespace

void GgufPart::parse(NameTable& names, std::vector<GgufRow>& rows, std::uint32_t number) {
  GgufCursor at = cursor();
  parse_form(at);
  at = cursor(at.position());
  constexpr std::size_t least_tensor = 4 + 1 + 4 + 4 + 4 + 8, least_key = 4 + 1 + 4 + 1;
  const std::size_t begin = at.position();
  const std::size_t tensor_count = at.length(least_tensor, "the number of tensors");
  const std::size_t key_count = at.length(least_key, "the number of metadata keys");
  if (static_cast<Index>(key_count) > gguf_max_keys) {
    at.fail_at(begin, fmt::format("{} metadata keys, at most {} are allowed", key_count, gguf_max_keys));
  }
  if (static_cast<Index>(tensor_count + rows.size()) > gguf_max_tensors) {
    at.fail_at(begin, fmt::format("{} tensors, at most {} are allowed", tensor_count + rows.size(), gguf_max_tensors));
  }
  parse_keys(at, key_count);
  parse_alignment();
  const std::size_t first = rows.size();
  parse_tensors(at, tensor_count, names, rows, number);
  const Checked end = Checked(static_cast<Index>(at.position())) + Checked(alignment - 1);
  data = end.value("a GGUF header") / alignment * alignment;
  tensors = static_cast<Index>(tensor_count);
  check_layout(names, rows, first);
}

void GgufPart::parse_form(GgufCursor& at) {
  const std::size_t begin = at.skip(magic.size(), "the first four bytes");
  const std::string_view found(reinterpret_cast<const char*>(file.data.data()) + begin, magic.size());
  if (found != magic) at.fail_at(0, fmt::format("the file begins with {}, expected 'GGUF'", quote(found)));
  const std::size_t place = at.skip(4, "the version");
  for (const bool big : {false, true}) {
    const std::uint64_t version = gguf_number(file.data, place, 4, big);
    if (version < 1 || version > 3) continue;
    form = {.version = static_cast<std::uint32_t>(version), .big = big};
    return;
  }
  at.fail_at(place,
             fmt::format("version {}, expected 1 to 3 in either byte order", gguf_number(file.data, place, 4, false)));
}

void GgufPart::parse_keys(GgufCursor& at, std::size_t count) {
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    keys.add(name_text(at, gguf_max_key_bytes, "metadata key"));
    Entry e{.type = read_gguf_type(at, "the type of a value")};
    skip_gguf_value(at, e.type, 0, &e.element, &e.count, &e.begin);
    values.push_back(e);
  }
  if (const auto twice = keys.seal()) fail("'{}': metadata key {} is there twice", path, quote(keys[*twice]));
}

void GgufPart::parse_alignment() {
  const auto i = keys.find("general.alignment");
  if (!i) return;
  const GgufValue v = value(*i);
  const bool right = v.type() == GgufType::u32;
  const Index n = right ? v.as<Index>() : 0;
  require(right && n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n)) && n <= gguf_max_alignment,
          "{} is {}, expected a power of two from 1 to {} of type u32", v.place(), v.describe(), gguf_max_alignment);
  alignment = n;
}

void GgufPart::parse_tensors(GgufCursor& at, std::size_t count, NameTable& names, std::vector<GgufRow>& rows,
                             std::uint32_t number) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = name_text(at, gguf_max_name_bytes, "tensor name");
    names.add(name);
    GgufRow row = parse_tensor(at, name);
    row.part = number;
    rows.push_back(row);
  }
}

GgufRow GgufPart::parse_tensor(GgufCursor& at, std::string_view name) const {
  GgufRow row{.extents = at.position()};
  const std::uint32_t rank = at.u32("the number of extents");
  if (rank < 1 || rank > gguf_max_rank) {
    at.fail_at(row.extents,
               fmt::format("tensor {} has {} extents, expected 1 to {}", quote(name), rank, gguf_max_rank));
  }
  Index row_size = 0;
  for (std::uint32_t k = 0; k < rank; ++k) {
    const std::size_t place = at.position();
    const std::uint64_t n = at.number(form.length_bytes(), "an extent");
    if (n < 1 || n > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) {
      at.fail_at(place, fmt::format("tensor {} has the extent {}, expected 1 to 2^63-1", quote(name), n));
    }
    if (k == 0) row_size = static_cast<Index>(n);
  }
  const std::size_t place = at.position();
  row.type = at.u32("the type of a tensor");
  const GgufTensorType* type = find_gguf_type(row.type);
  if (type == nullptr) {
    at.fail_at(place, fmt::format("tensor {} has the unknown type {}", quote(name), row.type));
  }
  if (row_size % type->block != 0) {
    at.fail_at(place, fmt::format("tensor {} of type {} has rows of {} elements, expected a multiple of {}",
                                  quote(name), type->name, row_size, type->block));
  }
  row.offset = at.number(8, "the offset of a tensor");
  return row;
}

std::vector<Index> GgufPart::shape(const GgufRow& row) const {
  GgufCursor at = cursor(row.extents);
  std::vector<Index> extents(at.u32("the number of extents"));
  for (Index& e : extents) e = static_cast<Index>(at.number(form.length_bytes(), "an extent"));
  std::ranges::reverse(extents);
  return extents;
}

/// Tensors follow each other in the order of the header, each at the next multiple of the alignment: no overlap, no
/// hole, and nothing outside of the file.
void GgufPart::check_layout(const NameTable& names, const std::vector<GgufRow>& rows, std::size_t first) const {
  const auto size = static_cast<Index>(file.data.size());
  if (first < rows.size()) {
    require(data <= size, "'{}': the data begins at byte {}, but the file has {}", path, data, size);
  }
  Checked next(0);
  for (std::size_t i = first; i < rows.size(); ++i) {
    const GgufRow& row = rows[i];
    const GgufTensorType& type = *find_gguf_type(row.type);
    const Index begin = next.value("a GGUF file");
    if (row.offset != static_cast<std::uint64_t>(begin)) {
      fail("'{}': tensor {} has the data offset {}, expected {} (tensors follow each other, aligned to {})", path,
           quote(names[i]), row.offset, begin, alignment);
    }
    Index bytes = 0;
    try {
      bytes = type.size(shape(row));
    } catch (const Error& e) {
      fail("'{}': byte {}: tensor {}: {}", path, row.extents, quote(names[i]), e.what());
    }
    if (bytes > size - data - begin) {
      fail("'{}': tensor {} of type {} takes {} bytes from data offset {}, but only {} are left of the file", path,
           quote(names[i]), type.name, bytes, begin, std::max(Index{0}, size - data - begin));
    }
    next = Checked((begin + bytes + alignment - 1) / alignment * alignment);  // inside: size + alignment is small
  }
}

GgufValue GgufPart::value(std::size_t i) const {
  const Entry& e = values[i];
  GgufValue v;
  v.data_ = file.data;
  v.path_ = path;
  v.key_ = keys[i];
  v.form_ = form;
  v.type_ = e.type;
  v.element_ = e.element;
  v.begin_ = e.begin;
  v.count_ = e.count;
  return v;
}

}  // namespace rlx
