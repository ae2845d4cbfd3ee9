// Hostile npy and npz files in bulk: each is read rightly or refused by an Error, within two seconds and a bound on
// memory, in a child process.
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "io/bounded.h"
#include "io/npy.h"

namespace rlx::test {
namespace {

constexpr Index mebi = Index{1} << 20;

std::string named(const Error& e) {
  const std::string_view text = e.what();
  const bool ok = text.find("'mutant'") != text.npos && text.find_first_of("0123456789") != text.npos;
  return ok ? "" : "the message is: " + std::string(text);
}

std::string check_npy(const std::string& file) {
  try {
    const Bytes bytes = bytes_of(file);
    const Tensor t = parse_npy(bytes, "mutant");
    const NpyHeader h = parse_npy_header(bytes.data, "mutant");
    if (storage_bytes(t.dtype(), t.count()) != static_cast<Index>(file.size()) - h.begin) return "size";
    if (t.shape() != h.shape || t.dtype() != h.dtype) return "type";
    if (!h.fortran && !h.big_endian && std::memcmp(t.bytes().data(), file.data() + h.begin, t.bytes().size()) != 0) {
      return "bytes";
    }
    return "";
  } catch (const Error& e) {
    return named(e);
  }
}

std::vector<std::string> arrays() {
  return {read_text(data_file("v1.npy")), read_text(data_file("v2.npy")), read_text(data_file("v3.npy")),
          read_text(data_file("fortran.npy"))};
}

std::string run_npy(Index count, const std::function<std::string(std::size_t)>& mutant) {
  return run_bounded(0, count, 64 * mebi, [&](Index i) { return check_npy(mutant(static_cast<std::size_t>(i))); });
}

TEST(BulkNpy, TruncatedAtEveryByte) {
  for (const std::string& base : arrays()) {
    EXPECT_EQ(check_npy(base), "");
    EXPECT_EQ(run_npy(static_cast<Index>(base.size()), [&](std::size_t i) { return base.substr(0, i); }), "");
  }
}

TEST(BulkNpy, OneNumberChanged) {
  for (const std::string& base : arrays()) {
    const std::vector<Field> fields{{6, 1}, {7, 1}, {8, 2}, {8, 4}};
    EXPECT_EQ(run_npy(44, [&](std::size_t i) { return change_field(base, fields, i); }), "");
    EXPECT_EQ(run_npy(1500,
                      [&](std::size_t i) {
                        // The padding of the header takes up what the number grows.
                        std::string m = change_number(base, 12, 110, i);
                        const std::size_t pad = m.rfind("  \n", 128 + 24);
                        if (m.size() > base.size() && pad != m.npos)
                          m.erase(pad - (m.size() - base.size()), m.size() - base.size());
                        return m;
                      }),
              "");
  }
}

TEST(BulkNpy, RandomFlips) {
  for (const std::string& base : arrays()) {
    EXPECT_EQ(run_npy(4000, [&](std::size_t i) { return flip(base, i); }), "");
  }
}

TEST(BulkNpy, RandomFlipsOfTheHeader) {
  for (const std::string& base : arrays()) {
    EXPECT_EQ(run_npy(4000, [&](std::size_t i) { return flip(base.substr(0, 75), i) + base.substr(75); }), "");
  }
}

TEST(BulkNpy, RandomPieces) {
  for (const std::string& base : arrays()) {
    EXPECT_EQ(run_npy(2000, [&](std::size_t i) { return splice(base, 8, 80, i); }), "");
  }
}

/// Every array that a mutant still has must be the original one: names, sizes and content are told twice in an archive.
std::string check_npz(const std::string& file, const std::map<std::string, Tensor>& original) {
  try {
    const NpzFile f(bytes_of(file), "mutant");
    for (const std::string& name : f.names()) {
      Tensor t;
      try {
        t = f.at(name);
      } catch (const Error& e) {
        const std::string wrong = named(e);
        if (!wrong.empty()) return wrong;
        continue;
      }
      const auto it = original.find(name);
      if (it != original.end() && !identical(t, it->second)) return "content of " + name;
      if (it == original.end()) return "name " + name;
    }
    return "";
  } catch (const Error& e) {
    return named(e);
  }
}

struct Archive {
  std::string file;
  std::map<std::string, Tensor> arrays;
};

std::vector<Archive> archives() {
  std::vector<Archive> all;
  for (const char* name : {"streamed.npz", "zip64.npz"}) {
    all.push_back({read_text(data_file(name)), read_npz(data_file(name))});
  }
  const std::string path = make_folder() + "/a.npz";
  for (const bool compress : {false, true}) {
    std::map<std::string, Tensor> arrays{{"a", Tensor::of<double>(DType::f32, {3}, {1, 2, 3})},
                                         {"b", Tensor(DType::i16, {500})}};
    write_npz(path, arrays, compress);
    all.push_back({read_text(path), arrays});
  }
  return all;
}

std::string run_npz(const Archive& a, Index count, const std::function<std::string(std::size_t)>& mutant) {
  return run_bounded(0, count, 64 * mebi,
                     [&](Index i) { return check_npz(mutant(static_cast<std::size_t>(i)), a.arrays); });
}

TEST(BulkNpz, TruncatedAtEveryByte) {
  for (const Archive& a : archives()) {
    EXPECT_EQ(check_npz(a.file, a.arrays), "");
    EXPECT_EQ(run_npz(a, static_cast<Index>(a.file.size()), [&](std::size_t i) { return a.file.substr(0, i); }), "");
  }
}

/// The integer fields of all records, found by their signatures.
std::vector<Field> fields_of(const std::string& file) {
  struct Record {
    const char* signature;
    std::vector<Field> fields;
  };
  const Record records[] = {
      {"PK\3\4", {{4, 2}, {6, 2}, {8, 2}, {14, 4}, {18, 4}, {22, 4}, {26, 2}, {28, 2}}},
      {"PK\1\2", {{6, 2}, {8, 2}, {10, 2}, {16, 4}, {20, 4}, {24, 4}, {28, 2}, {30, 2}, {32, 2}, {34, 2}, {42, 4}}},
      {"PK\5\6", {{4, 2}, {6, 2}, {8, 2}, {10, 2}, {12, 4}, {16, 4}, {20, 2}}},
      {"PK\6\6", {{4, 8}, {16, 4}, {20, 4}, {24, 8}, {32, 8}, {40, 8}, {48, 8}}},
      {"PK\6\7", {{4, 4}, {8, 8}, {16, 4}}}};
  std::vector<Field> fields;
  for (const Record& r : records) {
    for (std::size_t at = file.find(r.signature); at != file.npos; at = file.find(r.signature, at + 4)) {
      for (const Field& f : r.fields) fields.push_back({at + f.offset, f.width});
    }
  }
  for (std::size_t at = file.find(std::string("\1\0\x10\0", 4)); at != file.npos;
       at = file.find(std::string("\1\0\x10\0", 4), at + 4)) {
    for (const Field& f : {Field{at, 2}, Field{at + 2, 2}, Field{at + 4, 8}, Field{at + 12, 8}}) fields.push_back(f);
  }
  return fields;
}

TEST(BulkNpz, OneFieldChanged) {
  for (const Archive& a : archives()) {
    const std::vector<Field> fields = fields_of(a.file);
    EXPECT_GE(fields.size(), 40u);
    const auto count = static_cast<Index>(fields.size() * field_values * 4);  // the last value is random
    EXPECT_EQ(run_npz(a, count, [&](std::size_t i) { return change_field(a.file, fields, i); }), "");
  }
}

TEST(BulkNpz, TwoFieldsChanged) {
  for (const Archive& a : archives()) {
    const std::vector<Field> fields = fields_of(a.file);
    EXPECT_EQ(run_npz(a, 5000,
                      [&](std::size_t i) {
                        Random random(i);
                        return change_field(change_field(a.file, fields, random.below(1 << 20)), fields,
                                            random.below(1 << 20));
                      }),
              "");
  }
}

TEST(BulkNpz, RandomFlips) {
  for (const Archive& a : archives()) {
    EXPECT_EQ(run_npz(a, 5000, [&](std::size_t i) { return flip(a.file, i); }), "");
  }
}

TEST(BulkNpz, ManyEntries) {
  // 1,048,576 empty entries, and one more: the directory of a file of about 90 MB.
  const std::string folder = make_folder();
  const auto put = [](std::string& out, std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) out += i < 8 ? static_cast<char>(value >> 8 * i & 255) : '\0';
  };
  for (const Index count : {zip_max_entries, zip_max_entries + 1}) {
    std::string local, directory;
    for (Index i = 0; i < count; ++i) {
      const std::string name = fmt::format("{:x}", i);
      put(directory, 0x02014b50, 4);
      directory.append(38, '\0');
      put(directory, local.size(), 4);
      directory[directory.size() - 18] = static_cast<char>(name.size());
      directory += name;
      put(local, 0x04034b50, 4);
      local.append(22, '\0');
      put(local, name.size(), 4);
      local += name;
    }
    std::string file = local + directory;
    put(file, 0x06064b50, 4);
    put(file, 44, 8);
    put(file, 0, 12);
    put(file, static_cast<std::uint64_t>(count), 8);
    put(file, static_cast<std::uint64_t>(count), 8);
    put(file, directory.size(), 8);
    put(file, local.size(), 8);
    put(file, 0x07064b50, 4);
    put(file, 0, 4);
    put(file, local.size() + directory.size(), 8);
    put(file, 1, 4);
    put(file, 0x06054b50, 4);
    put(file, 0xffffffff00000000, 8);
    put(file, 0xffffffffffffffff, 8);
    put(file, 0, 2);
    const std::string path = folder + "/a.npz";
    write_text(path, file);
    const auto size = static_cast<Index>(file.size());
    EXPECT_EQ(run_bounded(0, 1, 2 * size + 64 * mebi,
                          [&](Index) -> std::string {
                            try {
                              return NpzFile(path).names().empty() && count == zip_max_entries ? ""
                                                                                               : "wrongly accepted";
                            } catch (const Error& e) {
                              const std::string text = e.what();
                              return text.find("1048577 entries, at most 1048576") != text.npos ? "" : text;
                            }
                          }),
              "");
  }
}

TEST(BulkNpz, BombsTakeNoMoreThanTheyState) {
  // 48 MB of zeros in 50 kB are a valid array; the same content under a header that asks for less is refused early.
  const std::string path = make_folder() + "/a.npz";
  write_npz(path, {{"a", Tensor(DType::u8, {48 * mebi})}}, true);
  const auto size = static_cast<Index>(read_text(path).size());
  EXPECT_LT(size, 60'000);
  EXPECT_EQ(
      run_bounded(0, 1, 2 * size + 64 * mebi,
                  [&](Index) -> std::string { return read_npz(path).at("a").count() == 48 * mebi ? "" : "count"; }),
      "");
  AtomicFile out(path);
  ZipWriter zip(out);
  const std::string small = read_text(data_file("v1.npy"));
  const Tensor zeros(DType::u8, {400 * mebi});
  zip.add("a.npy", {std::as_bytes(std::span(small)), zeros.bytes()}, true);
  zip.finish();
  out.commit();
  // 400 MB of address space are asked for, but not touched: the header is looked at first.
  EXPECT_EQ(run_bounded(0, 1, 464 * mebi,
                        [&](Index) -> std::string {
                          try {
                            NpzFile(path).at("a");
                            return "it was accepted";
                          } catch (const Error& e) {
                            const std::string text = e.what();
                            return text.find("takes 96 bytes, 419430496 follow the header") != text.npos ? "" : text;
                          }
                        }),
            "");
}

}  // namespace
}  // namespace rlx::test
