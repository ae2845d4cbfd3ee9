// Reader of ZIP archives: the directory, and the content of entries through zlib.
#include "io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "core/checked.h"
#include "core/error.h"
#include "core/quote.h"

namespace rlx {

namespace {

constexpr std::uint32_t local_signature = 0x04034b50, directory_signature = 0x02014b50, end_signature = 0x06054b50,
                        end64_signature = 0x06064b50, locator_signature = 0x07064b50;
constexpr Index local_size = 30, directory_size = 46, end_size = 22, end64_size = 56, locator_size = 20;
constexpr unsigned encrypted = 1, descriptor_follows = 8, known_flags = 1 | 2 | 4 | 8 | 0x800;
constexpr Index deflate_ratio = 1032;  // a match of 258 bytes takes at least two bits

}  // namespace

/// Fills a reader from the archive's directory.
struct ZipReader::Parser {
  ZipReader& zip;
  std::span<const std::byte> data;
  Index directory = 0, directory_end = 0, entries = 0;

  [[noreturn]] void bad(Index offset, const std::string& message) const {
    fail("'{}': offset {}: {}", zip.path_, offset, message);
  }

  template <class T>
  T get(Index offset) const {
    const auto size = static_cast<Index>(data.size());
    if (offset < 0 || offset > size || size - offset < static_cast<Index>(sizeof(T))) {
      bad(offset, fmt::format("{} bytes of a record are outside of the {} bytes of the file", sizeof(T), size));
    }
    T value;
    std::memcpy(&value, data.data() + offset, sizeof value);
    return value;
  }

  Index get_size(Index offset) const {
    const auto value = get<std::uint64_t>(offset);
    if (value > data.size()) bad(offset, fmt::format("{} is beyond the {} bytes of the file", value, data.size()));
    return static_cast<Index>(value);
  }

  std::string_view text(Index offset, Index count) const {
    return {reinterpret_cast<const char*>(data.data()) + offset, static_cast<std::size_t>(count)};
  }

  void find_directory() {
    const auto size = static_cast<Index>(data.size());
    const Index end = size - end_size;
    if (end < 0 || get<std::uint32_t>(end) != end_signature) {
      bad(std::max<Index>(end, 0), "no end record: no ZIP archive, a truncated one, or one with a comment");
    }
    if (get<std::uint16_t>(end + 20) != 0) bad(end + 20, "the end record states a comment, none is there");
    directory = get<std::uint32_t>(end + 16);
    directory_end = end;
    entries = get<std::uint16_t>(end + 10);
    Index total = get<std::uint16_t>(end + 8), bytes = get<std::uint32_t>(end + 12);
    std::uint32_t disks = get<std::uint32_t>(end + 4);
    if (directory + bytes != end) {  // there is something in between: the ZIP64 records
      const Index locator = end - locator_size;
      if (locator < 0 || get<std::uint32_t>(locator) != locator_signature) {
        bad(end + 12,
            fmt::format("a directory of {} bytes at offset {} does not end at the end record", bytes, directory));
      }
      const Index end64 = get_size(locator + 8);
      if (end64 + end64_size > locator || get<std::uint32_t>(end64) != end64_signature) {
        bad(locator + 8, fmt::format("no ZIP64 end record at offset {}", end64));
      }
      if (get_size(end64 + 4) != locator - end64 - 12) {
        bad(end64 + 4, fmt::format("a ZIP64 end record of {} bytes was expected", locator - end64 - 12));
      }
      if (get<std::uint32_t>(locator + 4) != 0 || get<std::uint32_t>(locator + 16) > 1) {
        bad(locator, "archives on several disks are not read");
      }
      disks = get<std::uint32_t>(end64 + 16) | get<std::uint32_t>(end64 + 20);
      total = get_size(end64 + 24);
      entries = get_size(end64 + 32);
      bytes = get_size(end64 + 40);
      directory = get_size(end64 + 48);
      directory_end = end64;
      if (directory + bytes != end64) {
        bad(end64 + 40,
            fmt::format("a directory of {} bytes at offset {} does not end at the end record", bytes, directory));
      }
    }
    if (disks != 0 || total != entries) bad(end + 4, "archives on several disks are not read");
    if (entries > zip_max_entries)
      bad(end + 10, fmt::format("{} entries, at most {} are allowed", entries, zip_max_entries));
    if (entries * directory_size > bytes) {
      bad(end + 10, fmt::format("{} entries do not fit into a directory of {} bytes", entries, bytes));
    }
  }

  /// The values of the ZIP64 field among the extra fields: takes the place of each size that is saturated, in order.
  void zip64(Index at, Index count, std::span<std::uint64_t* const> sizes) const {
    std::size_t wanted = 0;
    for (const std::uint64_t* s : sizes) wanted += *s == 0xffffffff;
    if (wanted == 0) return;
    for (const Index stop = at + count; stop - at >= 4;) {
      const Index id = get<std::uint16_t>(at), length = get<std::uint16_t>(at + 2);
      if (length > stop - at - 4)
        bad(at + 2, fmt::format("an extra field of {} bytes, {} are left", length, stop - at - 4));
      if (id == 1) {
        Index from = at + 4;
        for (std::uint64_t* s : sizes) {
          if (*s != 0xffffffff) continue;
          if (from + 8 > at + 4 + length) bad(at + 2, fmt::format("a ZIP64 field of {} bytes is too short", length));
          *s = get<std::uint64_t>(from);
          from += 8;
        }
        return;
      }
      at += 4 + length;
    }
    bad(at, "a size of 4294967295 without ZIP64 field");
  }

  Index read_entry(Index at) {
    if (directory_end - at < directory_size || get<std::uint32_t>(at) != directory_signature) {
      bad(at, fmt::format("no directory entry {} of {}", zip.rows_.size(), entries));
    }
    const unsigned flags = get<std::uint16_t>(at + 8), method = get<std::uint16_t>(at + 10);
    const Index name = get<std::uint16_t>(at + 28), extra = get<std::uint16_t>(at + 30),
                note = get<std::uint16_t>(at + 32);
    const Index next = at + directory_size + name + extra + note;
    if (next > directory_end)
      bad(at + 28, fmt::format("a directory entry ends at {}, the directory at {}", next, directory_end));
    const std::string_view label = text(at + directory_size, name);
    if (label.empty() ||
        std::any_of(label.begin(), label.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
      bad(at + directory_size, fmt::format("the entry name {} is empty or has control characters", quote(label)));
    }
    if ((flags & encrypted) != 0 || (flags & ~known_flags) != 0) {
      bad(at + 8, fmt::format("entry {} has flags {:#x}: encrypted or of an unknown kind", quote(label), flags));
    }
    if (method != 0 && method != 8) {
      bad(at + 10, fmt::format("entry {} has method {}, 0 (stored) and 8 (deflated) are read", quote(label), method));
    }
    if (get<std::uint16_t>(at + 34) != 0) bad(at + 34, "archives on several disks are not read");
    std::uint64_t stored = get<std::uint32_t>(at + 20), size = get<std::uint32_t>(at + 24),
                  local = get<std::uint32_t>(at + 42);
    std::uint64_t* const sizes[] = {&size, &stored, &local};
    zip64(at + directory_size + name, extra, sizes);
    const auto room = static_cast<std::uint64_t>(directory);
    if (local > room || stored > room || size / (deflate_ratio + 1) > stored) {
      bad(at + 20,
          fmt::format("entry {} states {} bytes at offset {}, unpacked {}: not possible in an archive of {} bytes",
                      quote(label), stored, local, size, data.size()));
    }
    if (method == 0 && stored != size) {
      bad(at + 20, fmt::format("entry {} is stored with {} bytes for {}", quote(label), stored, size));
    }
    zip.rows_.push_back({static_cast<Index>(local), static_cast<Index>(stored), static_cast<Index>(size),
                         get<std::uint32_t>(at + 16), 0, method == 8, (flags & descriptor_follows) != 0});
    zip.names_.add(label);
    return next;
  }

  /// The header before the content must say what the directory says.
  void check_local(std::size_t i) {
    Row& r = zip.rows_[i];
    const std::string_view label = zip.names_[i];
    const Index at = r.local;
    if (get<std::uint32_t>(at) != local_signature) bad(at, fmt::format("no local header of entry {}", quote(label)));
    const Index name = get<std::uint16_t>(at + 26), extra = get<std::uint16_t>(at + 28);
    r.begin = static_cast<std::uint32_t>(local_size + name + extra);
    if (at + r.begin > directory)
      bad(at + 26, fmt::format("the local header of entry {} runs into the directory", quote(label)));
    if (text(at + local_size, name) != label) {
      bad(at + local_size,
          fmt::format("the local name {} differs from {}", quote(text(at + local_size, name)), quote(label)));
    }
    if ((get<std::uint16_t>(at + 8) == 8) != r.deflated ||
        ((get<std::uint16_t>(at + 6) & descriptor_follows) != 0) != r.descriptor) {
      bad(at + 6, fmt::format("flags or method of entry {} differ from the directory", quote(label)));
    }
    if (r.descriptor) return;  // the sizes stand behind the content
    std::uint64_t stored = get<std::uint32_t>(at + 18), size = get<std::uint32_t>(at + 22);
    std::uint64_t* const sizes[] = {&size, &stored};
    zip64(at + local_size + name, extra, sizes);
    if (stored != static_cast<std::uint64_t>(r.stored) || size != static_cast<std::uint64_t>(r.size) ||
        get<std::uint32_t>(at + 14) != r.crc) {
      bad(at + 14, fmt::format("sizes or CRC of entry {} differ from the directory", quote(label)));
    }
  }

  void check_layout() {
    std::vector<std::uint32_t> order(zip.rows_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return zip.rows_[a].local < zip.rows_[b].local; });
    for (std::size_t k = 0; k < order.size(); ++k) {
      check_local(order[k]);
      const Row& r = zip.rows_[order[k]];
      const Index limit = k + 1 < order.size() ? zip.rows_[order[k + 1]].local : directory;
      const Index end = (Checked(r.local) + Checked(r.begin) + Checked(r.stored)).value("a ZIP entry");
      if (end > limit) {
        bad(r.local,
            fmt::format("entry {} ends at {}, what follows begins at {}", quote(zip.names_[order[k]]), end, limit));
      }
    }
  }

  void run() {
    find_directory();
    zip.rows_.reserve(static_cast<std::size_t>(entries));
    Index at = directory;
    for (Index i = 0; i < entries; ++i) at = read_entry(at);
    if (at != directory_end) bad(at, fmt::format("{} bytes follow the last directory entry", directory_end - at));
    if (const auto twice = zip.names_.seal())
      fail("'{}': entry {} is there twice", zip.path_, quote(zip.names_[*twice]));
    check_layout();
  }
};

ZipReader::ZipReader(Bytes file, const std::string& name) : path_(name), file_(std::move(file)) {
  Parser{*this, file_.data}.run();
}

ZipEntry ZipReader::entry(Index i) const {
  ensure(i >= 0 && i < count(), "archive entry out of range");
  const auto k = static_cast<std::size_t>(i);
  const Row& r = rows_[k];
  return {names_[k], r.local + r.begin, r.stored, r.size, r.crc, r.deflated};
}

namespace {

/// An inflate stream over one entry.
class Inflater {
 public:
  Inflater(std::span<const std::byte> in, std::string what) : in_(in), what_(std::move(what)) {
    ensure(inflateInit2(&stream_, -MAX_WBITS) == Z_OK, "zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Unpacks exactly out.size() bytes.
  void read(std::span<std::byte> out) {
    while (!out.empty()) {
      const std::size_t got = step(out);
      require(got > 0, "{} is damaged: {} bytes are missing", what_, out.size());
      out = out.subspan(got);
    }
  }
  /// The stream must end here, with its input.
  void finish() {
    std::byte extra{};
    require(step({&extra, 1}) == 0, "{} is longer than stated", what_);
    require(ended_, "{} is damaged: its end is missing", what_);
    require(in_.empty() && stream_.avail_in == 0, "{} is damaged: {} bytes follow its end", what_,
            in_.size() + stream_.avail_in);
  }

 private:
  std::size_t step(std::span<std::byte> out) {
    constexpr std::size_t piece = std::size_t{1} << 30;
    const std::size_t room = std::min(out.size(), piece);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(room);
    while (!ended_ && stream_.avail_out == room) {
      if (stream_.avail_in == 0 && !in_.empty()) {
        const std::size_t n = std::min(in_.size(), piece);
        stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in_.data()));
        stream_.avail_in = static_cast<uInt>(n);
        in_ = in_.subspan(n);
      }
      const int code = inflate(&stream_, Z_NO_FLUSH);
      ended_ = code == Z_STREAM_END;
      if (code == Z_BUF_ERROR && in_.empty()) break;
      require(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR, "{} is damaged: {}", what_,
              stream_.msg != nullptr ? stream_.msg : "the deflate stream is invalid");
    }
    return room - stream_.avail_out;
  }

  z_stream stream_{};
  std::span<const std::byte> in_;
  std::string what_;
  bool ended_ = false;
};

}  // namespace

Bytes ZipReader::content(const ZipEntry& entry, Index head,
                         const std::function<void(std::span<const std::byte>)>& check) const {
  const std::string what = fmt::format("'{}': entry {} at offset {}", path_, quote(entry.name), entry.begin);
  const Bytes stored = slice(file_, entry.begin, entry.stored);
  Bytes bytes = stored;
  if (!entry.deflated) {
    check(bytes.data.first(static_cast<std::size_t>(std::min(head, entry.size))));
  } else {
    bytes = Bytes::allocate(entry.size);
    const std::span<std::byte> out(const_cast<std::byte*>(bytes.data.data()), bytes.data.size());
    const auto first = static_cast<std::size_t>(std::min(head, entry.size));
    Inflater in(stored.data, what);
    in.read(out.first(first));
    check(out.first(first));
    in.read(out.subspan(first));
    in.finish();
  }
  const auto crc =
      static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data.data()), bytes.data.size()));
  require(crc == entry.crc, "{} is damaged: its CRC is {:08x}, {:08x} is stated", what, crc, entry.crc);
  return bytes;
}

namespace {

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string deflate_all(const std::vector<std::span<const std::byte>>& parts) {
  z_stream stream{};
  ensure(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
         "zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, deflateEnd);
  std::string out, buffer(1 << 16, '\0');
  const auto run = [&](int flush) {
    int code = Z_OK;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      code = deflate(&stream, flush);
      out.append(buffer, 0, buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    return code;
  };
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const std::size_t n = std::min(part.size(), std::size_t{1} << 30);
      stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(part.data()));
      stream.avail_in = static_cast<uInt>(n);
      run(Z_NO_FLUSH);
      part = part.subspan(n);
    }
  }
  ensure(run(Z_FINISH) == Z_STREAM_END, "zlib does not finish");
  return out;
}

/// The fields that a local header and a directory entry share, from the needed version to the CRC.
void put_common(std::string& out, std::uint32_t crc, bool deflated, bool zip64) {
  put<std::uint16_t>(out, zip64 ? 45 : 20);
  put<std::uint16_t>(out, 0x800);  // the name is UTF-8
  put<std::uint16_t>(out, deflated ? 8 : 0);
  put<std::uint16_t>(out, 0);
  put<std::uint16_t>(out, 1 << 5 | 1);  // 1 January 1980
  put<std::uint32_t>(out, crc);
}

}  // namespace

void ZipWriter::add(const std::string& name, const std::vector<std::span<const std::byte>>& parts, bool deflate) {
  require(!name.empty() && name.size() < 0xffff, "an archive entry name of {} bytes, 1 to 65534 are allowed",
          name.size());
  Row row{name, static_cast<std::uint64_t>(out_.size()), 0, 0, 0, deflate};
  uLong crc = 0;
  for (const auto& part : parts) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
    row.size += part.size();
  }
  row.crc = static_cast<std::uint32_t>(crc);
  const std::string packed = deflate ? deflate_all(parts) : std::string();
  row.stored = deflate ? packed.size() : row.size;
  const bool large = std::max(row.stored, row.size) >= zip64_from_;
  std::string extra;
  if (large) {
    put<std::uint16_t>(extra, 1);
    put<std::uint16_t>(extra, 16);
    put(extra, row.size);
    put(extra, row.stored);
  }
  if (!deflate) {  // a field of zeros moves the content to a multiple of 64, so that it can be used in place
    const std::uint64_t begin = row.local + 30 + name.size() + extra.size() + 4;
    const auto gap = static_cast<std::uint16_t>((64 - begin % 64) % 64);
    put<std::uint16_t>(extra, 0xd935);
    put<std::uint16_t>(extra, gap);
    extra.append(gap, '\0');
  }
  std::string header;
  put(header, local_signature);
  put_common(header, row.crc, deflate, large);
  put(header, large ? 0xffffffff : static_cast<std::uint32_t>(row.stored));
  put(header, large ? 0xffffffff : static_cast<std::uint32_t>(row.size));
  put(header, static_cast<std::uint16_t>(name.size()));
  put(header, static_cast<std::uint16_t>(extra.size()));
  out_.write(header + name + extra);
  if (deflate) {
    out_.write(packed);
  } else {
    for (const auto& part : parts) out_.write(part);
  }
  rows_.push_back(std::move(row));
}

void ZipWriter::finish() {
  require(static_cast<Index>(rows_.size()) <= zip_max_entries, "{} archive entries, at most {} are allowed",
          rows_.size(), zip_max_entries);
  const auto begin = static_cast<std::uint64_t>(out_.size());
  for (const Row& r : rows_) {
    const bool large = std::max({r.stored, r.size, r.local}) >= zip64_from_;
    std::string entry;
    put(entry, directory_signature);
    put<std::uint16_t>(entry, 3 << 8 | 45);  // made on Unix
    put_common(entry, r.crc, r.deflated, large);
    put(entry, large ? 0xffffffff : static_cast<std::uint32_t>(r.stored));
    put(entry, large ? 0xffffffff : static_cast<std::uint32_t>(r.size));
    put(entry, static_cast<std::uint16_t>(r.name.size()));
    put<std::uint16_t>(entry, large ? 28 : 0);
    put<std::uint32_t>(entry, 0);               // note, disk
    put<std::uint16_t>(entry, 0);               // internal attributes
    put<std::uint32_t>(entry, 0100644u << 16);  // a regular file, rw-r--r--
    put(entry, large ? 0xffffffff : static_cast<std::uint32_t>(r.local));
    entry += r.name;
    if (large) {
      put<std::uint16_t>(entry, 1);
      put<std::uint16_t>(entry, 24);
      put(entry, r.size);
      put(entry, r.stored);
      put(entry, r.local);
    }
    out_.write(entry);
  }
  const auto end = static_cast<std::uint64_t>(out_.size());
  const bool large = end >= zip64_from_ || rows_.size() >= 0xffff;
  std::string tail;
  if (large) {
    put(tail, end64_signature);
    put<std::uint64_t>(tail, 44);
    put<std::uint16_t>(tail, 3 << 8 | 45);
    put<std::uint16_t>(tail, 45);
    put<std::uint64_t>(tail, 0);  // disks
    put<std::uint64_t>(tail, rows_.size());
    put<std::uint64_t>(tail, rows_.size());
    put<std::uint64_t>(tail, end - begin);
    put<std::uint64_t>(tail, begin);
    put(tail, locator_signature);
    put<std::uint32_t>(tail, 0);
    put<std::uint64_t>(tail, end);
    put<std::uint32_t>(tail, 1);
  }
  const std::uint16_t count = large ? 0xffff : static_cast<std::uint16_t>(rows_.size());
  put(tail, end_signature);
  put<std::uint32_t>(tail, 0);  // disks
  put(tail, count);
  put(tail, count);
  put(tail, large ? 0xffffffff : static_cast<std::uint32_t>(end - begin));
  put(tail, large ? 0xffffffff : static_cast<std::uint32_t>(begin));
  put<std::uint16_t>(tail, 0);  // comment
  out_.write(tail);
}

}  // namespace rlx
