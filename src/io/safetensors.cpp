// Reader of safetensors files: header, layout check, tensors over the mapping.
#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <tuple>

#include "core/checked.h"
#include "core/error.h"
#include "core/quote.h"

namespace rlx {

static_assert(std::endian::native == std::endian::little, "files are used without a copy: little-endian only");

namespace {

struct Format {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};

constexpr std::array<Format, 22> formats{{
    {"BOOL", 8, DType::boolean},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"U8", 8, DType::u8},
    {"I8", 8, DType::i8},
    {"F8_E5M2", 8, DType::f8e5m2},
    {"F8_E4M3", 8, DType::f8e4m3},
    {"F8_E8M0", 8, DType::e8m0},
    {"F8_E4M3FNUZ", 8, DType::f8e4m3fnuz},
    {"F8_E5M2FNUZ", 8, DType::f8e5m2fnuz},
    {"I16", 16, DType::i16},
    {"U16", 16, DType::u16},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"I32", 32, DType::i32},
    {"U32", 32, DType::u32},
    {"F32", 32, DType::f32},
    {"C64", 64, DType::c64},
    {"F64", 64, DType::f64},
    {"I64", 64, DType::i64},
    {"U64", 64, DType::u64},
}};

/// Alignment that loads of the elements need.
std::size_t alignment(DType type) {
  return type == DType::c64 ? 4 : static_cast<std::size_t>(std::max(8, bits(type))) / 8;
}

std::string format_names() {
  std::string all;
  for (const Format& f : formats) all += (all.empty() ? "" : ", ") + std::string(f.name);
  return all;
}

}  // namespace

std::string_view safetensors_dtype(DType type) {
  for (const Format& f : formats) {
    if (f.dtype == type) return f.name;
  }
  fail("safetensors has no element type {}", name(type));
}

/// Fills a file object from its header.
struct SafetensorsFile::Parser {
  SafetensorsFile& file;
  JsonCursor in;
  bool metadata_seen = false;

  explicit Parser(SafetensorsFile& f) : file(f), in(f.header_, fmt::format("header of '{}'", f.path_)) {}

  void run() {
    if (file.header_.empty() || file.header_[0] != '{') {
      in.fail_at(0, fmt::format("expected '{{' as first byte, found {}", quote(file.header_.substr(0, 8))));
    }
    in.expect('{');
    if (!in.accept('}')) {
      do {
        in.peek();
        const std::size_t position = in.position();
        const JsonString key = in.string();
        in.expect(':');
        if (key.raw == "__metadata__" || (key.escaped && key.text() == "__metadata__")) {
          metadata(position);
        } else {
          tensor(key, position);
        }
      } while (in.accept(','));
      in.expect('}');
    }
    in.finish();
    if (const auto twice = file.names_.seal()) {
      fail("header of '{}': tensor {} is there twice", file.path_, quote(file.names_[*twice]));
    }
  }

  void metadata(std::size_t position) {
    if (metadata_seen) in.fail_at(position, "__metadata__ is there twice");
    metadata_seen = true;
    if (in.accept_null()) return;
    in.expect('{');
    if (in.accept('}')) return;
    do {
      in.peek();
      const std::size_t at = in.position();
      std::string key = in.string().text();
      in.expect(':');
      const JsonString value = in.string();
      if (static_cast<Index>(file.metadata_.size()) >= safetensors_max_metadata) {
        in.fail_at(at, fmt::format("more than {} metadata entries", safetensors_max_metadata));
      }
      const auto [it, fresh] = file.metadata_.try_emplace(std::move(key));
      if (!fresh) in.fail_at(at, fmt::format("metadata key {} is there twice", quote(it->first)));
      it->second = value.text();
    } while (in.accept(','));
    in.expect('}');
  }

  void tensor(const JsonString& name, std::size_t position) {
    if (file.rows_.size() >= static_cast<std::size_t>(safetensors_max_tensors)) {
      in.fail_at(position, fmt::format("more than {} tensors", safetensors_max_tensors));
    }
    Row row;
    Checked count(1);
    bool dtype = false, shape = false, offsets = false;
    in.expect('{');
    do {
      in.peek();
      const std::size_t at = in.position();
      const JsonString key = in.string();
      const std::string field = key.raw.size() <= 64 ? key.text() : std::string(key.raw);
      in.expect(':');
      bool& seen = field == "dtype" ? dtype : field == "shape" ? shape : offsets;
      if (&seen == &offsets && field != "data_offsets") {
        in.fail_at(at, fmt::format("tensor {} has the unknown field {}", quote(name.raw), quote(field)));
      }
      if (seen) in.fail_at(at, fmt::format("tensor {} has the field {} twice", quote(name.raw), quote(field)));
      seen = true;
      if (&seen == &dtype) {
        row.format = format(name);
      } else if (&seen == &shape) {
        count = extents(row, name);
      } else {
        range(row, name);
      }
    } while (in.accept(','));
    in.expect('}');
    if (!dtype || !shape || !offsets) {
      in.fail_at(position, fmt::format("tensor {} has no field '{}'", quote(name.raw),
                                       !dtype   ? "dtype"
                                       : !shape ? "shape"
                                                : "data_offsets"));
    }
    check_size(row, count, name, position);
    file.rows_.push_back(row);
    file.names_.add(name);
  }

  std::uint8_t format(const JsonString& name) {
    in.peek();
    const std::size_t at = in.position();
    const JsonString value = in.string();
    const std::string text = value.raw.size() <= 80 ? value.text() : std::string(value.raw);
    for (std::size_t i = 0; i < formats.size(); ++i) {
      if (formats[i].name == text) return static_cast<std::uint8_t>(i);
    }
    in.fail_at(at, fmt::format("tensor {} has the unknown dtype {}, known are {}", quote(name.raw), quote(text),
                               format_names()));
  }

  Checked extents(Row& row, const JsonString& name) {
    in.expect('[');
    row.shape = static_cast<std::uint32_t>(in.position());
    Checked count(1);
    if (in.accept(']')) return count;
    do {
      if (row.rank >= safetensors_max_rank) {
        in.fail_at(in.position(),
                   fmt::format("tensor {} has more than {} dimensions", quote(name.raw), safetensors_max_rank));
      }
      ++row.rank;
      count = count * Checked(in.natural("an extent"));
    } while (in.accept(','));
    in.expect(']');
    return count;
  }

  void range(Row& row, const JsonString& name) {
    in.expect('[');
    const std::size_t at = in.position();
    row.begin = in.natural("a data offset");
    in.expect(',');
    row.end = in.natural("a data offset");
    in.expect(']');
    const auto size = static_cast<Index>(file.data_.data.size());
    if (row.begin > row.end || row.end > size) {
      in.fail_at(at, fmt::format("tensor {} has data_offsets [{}, {}], expected begin <= end <= {}", quote(name.raw),
                                 row.begin, row.end, size));
    }
  }

  void check_size(const Row& row, Checked count, const JsonString& name, std::size_t position) const {
    const Format& f = formats[row.format];
    const Checked width = count * Checked(f.bits);
    if (width.overflowed()) {
      in.fail_at(position, fmt::format("the shape of tensor {} overflows 63 bits", quote(name.raw)));
    }
    const Index total = width.value("a tensor");
    if (total % 8 != 0) {
      in.fail_at(position, fmt::format("tensor {} of dtype {} has {} bits, which fill no whole bytes", quote(name.raw),
                                       f.name, total));
    }
    if (total / 8 != row.end - row.begin) {
      in.fail_at(position, fmt::format("tensor {} of dtype {} needs {} bytes, its data_offsets [{}, {}] hold {}",
                                       quote(name.raw), f.name, total / 8, row.begin, row.end, row.end - row.begin));
    }
  }

  /// Offsets must follow each other without hole and overlap and end where the file ends.
  void check_layout() {
    auto& rows = file.rows_;
    file.order_.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) file.order_[i] = static_cast<std::uint32_t>(i);
    std::sort(file.order_.begin(), file.order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tie(rows[a].begin, rows[a].end, a) < std::tie(rows[b].begin, rows[b].end, b);
    });
    Index next = 0;
    for (const std::uint32_t i : file.order_) {
      if (rows[i].begin != next) {  // the message costs more than the test
        fail("header of '{}': tensor {} begins at data offset {}, expected {} ({})", file.path_, quote(file.names_[i]),
             rows[i].begin, next, rows[i].begin < next ? "an overlap" : "a hole");
      }
      next = rows[i].end;
    }
    const auto size = static_cast<Index>(file.data_.data.size());
    require(next == size, "header of '{}': the tensors end at data offset {}, the file holds {} bytes of data",
            file.path_, next, size);
  }
};

SafetensorsFile::SafetensorsFile(const std::string& path, FileMode mode)
    : SafetensorsFile(MappedFile(path, mode).bytes(), path) {}

SafetensorsFile::SafetensorsFile(const Bytes& file, const std::string& name)
    : path_(name), copies_(std::make_shared<SharedCopies>()) {
  const auto size = static_cast<Index>(file.data.size());
  require(size >= 8, "'{}' has {} bytes, a safetensors file starts with 8 bytes of header length", path_, size);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data.data(), 8);
  require(length <= static_cast<std::uint64_t>(safetensors_max_header),
          "'{}' states a header of {} bytes at offset 0, at most {} are allowed", path_, length,
          safetensors_max_header);
  const auto header = static_cast<Index>(length);
  require(header <= size - 8, "'{}' states a header of {} bytes at offset 0, but only {} follow", path_, header,
          size - 8);
  data_ = slice(file, 8 + header, size - 8 - header);
  header_ = {reinterpret_cast<const char*>(file.data.data()) + 8, static_cast<std::size_t>(header)};
  Parser parser(*this);
  parser.run();
  parser.check_layout();
}

std::size_t SafetensorsFile::row(std::string_view name) const {
  const auto i = names_.find(name);
  require(i.has_value(), "'{}' has no tensor {}", path_, quote(name));
  return *i;
}

SafetensorsEntry SafetensorsFile::describe(std::size_t i) const {
  const Row& r = rows_[i];
  SafetensorsEntry e{names_[i], formats[r.format].name, formats[r.format].dtype, {}, r.begin, r.end};
  JsonCursor in(header_.substr(r.shape), path_);
  for (int k = 0; k < r.rank; ++k) {
    if (k > 0) in.expect(',');
    e.shape.push_back(in.natural("an extent"));
  }
  return e;
}

SafetensorsEntry SafetensorsFile::entry(Index i) const {
  require(i >= 0 && i < count(), "'{}' has {} tensors, number {} was asked for", path_, count(), i);
  return describe(order_[static_cast<std::size_t>(i)]);
}

std::vector<SafetensorsEntry> SafetensorsFile::tensors() const {
  std::vector<SafetensorsEntry> all;
  all.reserve(order_.size());
  for (const std::uint32_t i : order_) all.push_back(describe(i));
  return all;
}

SafetensorsEntry SafetensorsFile::find(std::string_view name) const { return describe(row(name)); }

Bytes SafetensorsFile::bytes(std::string_view name) const {
  const Row& r = rows_[row(name)];
  return slice(data_, r.begin, r.end - r.begin);
}

Index SafetensorsFile::copies() const { return copies_->made(); }

Tensor SafetensorsFile::at(std::string_view name) const {
  const std::size_t i = row(name);
  const SafetensorsEntry e = describe(i);
  require(e.dtype.has_value(), "tensor {} of '{}' has dtype {}, which rlx has no element type for", quote(name), path_,
          e.format);
  Bytes bytes = slice(data_, e.begin, e.end - e.begin);
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data.data());
  if (address % alignment(*e.dtype) != 0 && !bytes.data.empty()) {
    bytes = copies_->get(i, bytes, [](std::span<std::byte>) {});
  }
  return {TensorType(*e.dtype, std::vector<Dim>(e.shape.begin(), e.shape.end())), {std::move(bytes)}};
}

}  // namespace rlx
