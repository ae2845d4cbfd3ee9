// NumPy arrays: the header's dict literal, conversion to little-endian C order, archives.
#include "io/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/checked.h"
#include "core/error.h"
#include "core/quote.h"

namespace rlx {

namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct Name {
  std::string_view text;
  DType dtype;
};
constexpr std::array<Name, 13> descriptors{{
    {"b1", DType::boolean},
    {"i1", DType::i8},
    {"i2", DType::i16},
    {"i4", DType::i32},
    {"i8", DType::i64},
    {"u1", DType::u8},
    {"u2", DType::u16},
    {"u4", DType::u32},
    {"u8", DType::u64},
    {"f2", DType::f16},
    {"f4", DType::f32},
    {"f8", DType::f64},
    {"c8", DType::c64},
}};

/// Width of what a byte order applies to.
std::size_t unit(DType type) { return type == DType::c64 ? 4 : static_cast<std::size_t>(bits(type)) / 8; }

/// Reads the dict literal: three keys, each once; strings without escapes, True, False, and a tuple of whole numbers.
struct HeaderParser {
  std::string_view text;
  std::size_t start;  // offset of `text` in the file
  const std::string& what;
  std::size_t at = 0;

  [[noreturn]] void bad(std::size_t position, const std::string& message) const {
    fail("{}: offset {}: {}", what, start + position, message);
  }
  std::string found() const { return at < text.size() ? quote(text.substr(at, 16)) : "the end of the header"; }

  char peek() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r')) ++at;
    return at < text.size() ? text[at] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(at, fmt::format("expected '{}', found {}", c, found()));
  }

  std::string_view string(const char* of) {
    const char mark = peek();
    if (mark == '[') bad(at, fmt::format("{} is a list: structured arrays are not read", of));
    if (mark != '\'' && mark != '"') bad(at, fmt::format("expected {} as a string, found {}", of, found()));
    const std::size_t close = text.find(mark, at + 1);
    if (close == std::string_view::npos) bad(at, fmt::format("the string of {} is not closed", of));
    const std::string_view value = text.substr(at + 1, close - at - 1);
    if (value.find('\\') != std::string_view::npos) bad(at, fmt::format("an escape in {} {}", of, quote(value)));
    at = close + 1;
    return value;
  }

  bool boolean() {
    peek();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text.substr(at, word.size()) != word) continue;
      at += word.size();
      return value;
    }
    bad(at, fmt::format("expected True or False for fortran_order, found {}", found()));
  }

  Index extent() {
    peek();
    const std::size_t from = at;
    Checked value(0);
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
      value = value * Checked(10) + Checked(text[at++] - '0');
    const std::string_view digits = text.substr(from, at - from);
    if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) {
      at = from;
      bad(from, fmt::format("expected an extent of at least 0, found {}", found()));
    }
    if (value.overflowed()) bad(from, fmt::format("extent {} is above 2^63-1", quote(digits, 24)));
    if (at < text.size() && text[at] == 'L') ++at;  // as Python 2 wrote it
    return value.value("an extent");
  }

  std::vector<Index> shape() {
    const std::size_t from = (peek(), at);
    std::vector<Index> extents;
    bool comma = true;  // a tuple of one needs it
    expect('(');
    while (!accept(')')) {
      if (!extents.empty() && !comma) bad(at, fmt::format("expected ',' or ')', found {}", found()));
      if (static_cast<Index>(extents.size()) >= npy_max_rank)
        bad(from, fmt::format("more than {} dimensions", npy_max_rank));
      extents.push_back(extent());
      comma = accept(',');
    }
    if (extents.size() == 1 && !comma) bad(from, "the shape is a number in parentheses, expected a tuple");
    return extents;
  }

  void run(NpyHeader& header) {
    std::string_view descr;
    std::size_t descr_at = 0;
    bool seen[3] = {};
    constexpr std::string_view keys[] = {"descr", "fortran_order", "shape"};
    expect('{');
    while (!accept('}')) {
      const std::size_t from = (peek(), at);
      const std::string_view key = string("a key");
      const auto k = static_cast<std::size_t>(std::find(keys, keys + 3, key) - keys);
      if (k == 3) bad(from, fmt::format("unknown key {}, expected descr, fortran_order, shape", quote(key)));
      if (seen[k]) bad(from, fmt::format("key {} is there twice", quote(key)));
      seen[k] = true;
      expect(':');
      if (k == 0) descr_at = (peek(), at), descr = string("descr");
      if (k == 1) header.fortran = boolean();
      if (k == 2) header.shape = shape();
      if (!accept(',') && peek() != '}') bad(at, fmt::format("expected ',' or '}}', found {}", found()));
    }
    peek();
    if (at < text.size()) bad(at, fmt::format("expected the end of the header, found {}", found()));
    for (std::size_t k = 0; k < 3; ++k) {
      if (!seen[k]) bad(0, fmt::format("the header has no key {}", quote(keys[k])));
    }
    element(descr, descr_at, header);
  }

  void element(std::string_view descr, std::size_t position, NpyHeader& header) const {
    const char order = descr.empty() ? '\0' : descr[0];
    const std::string_view kind = descr.substr(descr.empty() ? 0 : 1);
    if (order != '<' && order != '>' && order != '|') {
      bad(position, fmt::format("descr {} has no byte order '<', '>' or '|'", quote(descr)));
    }
    if (kind == "V2" || kind == "V1") {
      bad(position,
          fmt::format("descr {} is raw bytes: bfloat16 and other types that NumPy lacks are stored so, and which "
                      "one it was is lost; store them as u2, u1 or f4",
                      quote(descr)));
    }
    if (kind.starts_with('O'))
      bad(position, fmt::format("descr {} is Python objects, which are never read", quote(descr)));
    for (const Name& n : descriptors) {
      if (n.text != kind) continue;
      if (order == '|' && unit(n.dtype) > 1)
        bad(position, fmt::format("descr {} leaves the byte order open", quote(descr)));
      header.dtype = n.dtype;
      header.big_endian = order == '>' && unit(n.dtype) > 1;
      return;
    }
    bad(position,
        fmt::format("element type {} is not read; known are b1, i1 to i8, u1 to u8, f2, f4, f8, c8", quote(descr)));
  }
};

Bytes swapped(const Bytes& in, std::size_t width) {
  Bytes out = Bytes::allocate(static_cast<Index>(in.data.size()));
  auto* to = const_cast<std::byte*>(out.data.data());
  for (std::size_t i = 0; i < in.data.size(); i += width) {
    std::reverse_copy(in.data.data() + i, in.data.data() + i + width, to + i);
  }
  return out;
}

/// Transposes in tiles over the first axis (contiguous in the source) and the last (contiguous in the result).
template <class T>
void to_c_order(const std::byte* from, std::byte* to, const std::vector<Index>& shape) {
  constexpr Index tile = 32;
  const std::size_t rank = shape.size();
  std::vector<Index> source(rank), target(rank);  // strides in elements
  Index step = 1;
  for (std::size_t k = 0; k < rank; ++k) source[k] = step, step *= shape[k];
  step = 1;
  for (std::size_t k = rank; k-- > 0;) target[k] = step, step *= shape[k];
  const Index rows = shape.front(), columns = shape.back(), across = source.back(), down = target.front();
  std::vector<Index> middle(rank, 0);  // the axes between
  for (Index a = 0, b = 0;;) {
    for (Index i0 = 0; i0 < rows; i0 += tile) {
      for (Index j0 = 0; j0 < columns; j0 += tile) {
        for (Index i = i0; i < std::min(rows, i0 + tile); ++i) {
          for (Index j = j0; j < std::min(columns, j0 + tile); ++j) {
            std::memcpy(to + static_cast<std::size_t>(b + i * down + j) * sizeof(T),
                        from + static_cast<std::size_t>(a + i + j * across) * sizeof(T), sizeof(T));
          }
        }
      }
    }
    std::size_t k = rank - 2;
    for (; k > 0; --k) {
      a += source[k], b += target[k];
      if (++middle[k] < shape[k]) break;
      a -= source[k] * shape[k], b -= target[k] * shape[k];
      middle[k] = 0;
    }
    if (k == 0) return;
  }
}

Bytes in_c_order(const Bytes& in, DType type, std::vector<Index> shape) {
  std::erase(shape, 1);
  if (shape.size() < 2 || in.data.empty()) return in;
  Bytes out = Bytes::allocate(static_cast<Index>(in.data.size()));
  auto* to = const_cast<std::byte*>(out.data.data());
  switch (bits(type)) {
    case 8:
      to_c_order<std::uint8_t>(in.data.data(), to, shape);
      break;
    case 16:
      to_c_order<std::uint16_t>(in.data.data(), to, shape);
      break;
    case 32:
      to_c_order<std::uint32_t>(in.data.data(), to, shape);
      break;
    default:
      to_c_order<std::uint64_t>(in.data.data(), to, shape);
  }
  return out;
}

std::string header_text(const Tensor& tensor, const std::string& what) {
  const auto* n =
      std::find_if(descriptors.begin(), descriptors.end(), [&](const Name& d) { return d.dtype == tensor.dtype(); });
  require(!tensor.type().encoding && n != descriptors.end(), "{} is {}, which NumPy has no element type for", what,
          tensor.type().text());
  require(tensor.rank() <= npy_max_rank, "{} has {} dimensions, at most {} are allowed", what, tensor.rank(),
          npy_max_rank);
  std::string shape;
  for (const Index e : tensor.shape()) shape += fmt::format("{}, ", e);
  if (tensor.rank() > 1) shape.pop_back(), shape.pop_back();
  if (tensor.rank() == 1) shape.pop_back();
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 unit(tensor.dtype()) == 1 ? '|' : '<', n->text, shape);
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string head(magic);
  head += {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return head + text;
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> data, const std::string& what) {
  const std::string_view file(reinterpret_cast<const char*>(data.data()), data.size());
  require(file.starts_with(magic), "{}: offset 0: expected the magic '\\x93NUMPY', found {}", what,
          quote(file.substr(0, magic.size())));
  require(file.size() >= 10, "{}: offset 6: the file ends inside the header, after {} bytes", what, file.size());
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(file[i])); };
  const std::size_t major = byte(6);
  require(major >= 1 && major <= 3 && byte(7) == 0, "{}: offset 6: format version {}.{}, known are 1.0, 2.0, 3.0", what,
          major, byte(7));
  const std::size_t start = major == 1 ? 10 : 12;
  require(file.size() >= start, "{}: offset 8: the file ends inside the header, after {} bytes", what, file.size());
  std::size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  require(length <= static_cast<std::size_t>(npy_max_header),
          "{}: offset 8: a header of {} bytes, at most {} are allowed", what, length, npy_max_header);
  require(length <= file.size() - start, "{}: offset 8: a header of {} bytes, {} follow", what, length,
          file.size() - start);
  NpyHeader header;
  HeaderParser{file.substr(start, length), start, what}.run(header);
  header.begin = static_cast<Index>(start + length);
  const std::string array = fmt::format("the array of {}", what);
  header.bytes = (Checked(checked_product(header.shape, array)) * Checked(bits(header.dtype) / 8)).value(array);
  return header;
}

namespace {

void check_size(const NpyHeader& header, Index size, const std::string& what) {
  require(header.bytes == size - header.begin, "{}: an array of {}{} takes {} bytes, {} follow the header at offset {}",
          what, name(header.dtype), text(header.shape), header.bytes, size - header.begin, header.begin);
}

Tensor parse_array(const Bytes& file, const std::string& what) {
  const NpyHeader header = parse_npy_header(file.data, what);
  check_size(header, static_cast<Index>(file.data.size()), what);
  Bytes bytes = slice(file, header.begin, header.bytes);
  const std::size_t width = unit(header.dtype);
  if (header.big_endian) bytes = swapped(bytes, width);
  if (header.fortran) bytes = in_c_order(bytes, header.dtype, header.shape);
  if (reinterpret_cast<std::uintptr_t>(bytes.data.data()) % width != 0) {
    const Bytes copy = Bytes::allocate(header.bytes);
    if (header.bytes > 0) std::memcpy(const_cast<std::byte*>(copy.data.data()), bytes.data.data(), bytes.data.size());
    bytes = copy;
  }
  return {TensorType(header.dtype, std::vector<Dim>(header.shape.begin(), header.shape.end())), {std::move(bytes)}};
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Tensor parse_npy(const Bytes& file, const std::string& name) { return parse_array(file, fmt::format("'{}'", name)); }

Tensor read_npy(const std::string& path, FileMode mode) { return parse_npy(MappedFile(path, mode).bytes(), path); }

void write_npy(const std::string& path, const Tensor& tensor) {
  const std::string header = header_text(tensor, "the tensor");
  AtomicFile file(path);
  file.write(header);
  file.write(tensor.bytes());
  file.commit();
}

NpzFile::NpzFile(const std::string& path, FileMode mode) : NpzFile(MappedFile(path, mode).bytes(), path) {}

NpzFile::NpzFile(Bytes file, const std::string& name) : path_(name), zip_(std::move(file), name) {}

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> all;
  for (Index i = 0; i < zip_.count(); ++i) {
    const std::string_view name = zip_.entry(i).name;
    if (name.ends_with(".npy")) all.emplace_back(name.substr(0, name.size() - 4));
  }
  return all;
}

bool NpzFile::contains(std::string_view name) const { return zip_.find(std::string(name) + ".npy").has_value(); }

ZipEntry NpzFile::entry(std::string_view name) const {
  const auto i = zip_.find(std::string(name) + ".npy");
  require(i.has_value(), "'{}' has no array {}", path_, quote(name));
  return zip_.entry(static_cast<Index>(*i));
}

Index NpzFile::unpacked_bytes(std::string_view name) const { return entry(name).size; }

Tensor NpzFile::at(std::string_view name) const {
  const ZipEntry e = entry(name);
  const std::string what = fmt::format("'{}': array {}", path_, quote(name));
  return parse_array(
      zip_.content(e, npy_max_header + 12,
                   [&](std::span<const std::byte> head) { check_size(parse_npy_header(head, what), e.size, what); }),
      what);
}

std::map<std::string, Tensor> read_npz(const std::string& path, FileMode mode) {
  const NpzFile file(path, mode);
  std::map<std::string, Tensor> all;
  for (const std::string& name : file.names()) all.emplace(name, file.at(name));
  return all;
}

void write_npz(const std::string& path, const std::map<std::string, Tensor>& tensors, bool compress) {
  AtomicFile file(path);
  ZipWriter zip(file);
  for (const auto& [name, tensor] : tensors) {
    const std::string header = header_text(tensor, fmt::format("array {}", quote(name)));
    zip.add(name + ".npy", {as_bytes(header), tensor.bytes()}, compress);
  }
  zip.finish();
  file.commit();
}

}  // namespace rlx
