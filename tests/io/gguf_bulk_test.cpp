// Hostile GGUF files in bulk: each is read or refused by an Error, within two seconds and a bound on memory, in a child
// process.
#include <gtest/gtest.h>

#include "core/error.h"
#include "io/bounded.h"
#include "io/gguf_maker.h"

namespace rlx::test {
namespace {

constexpr Index mebi = Index{1} << 20;

/// Uses all that an accepted file offers.
std::string use(const GgufFile& f, std::size_t size) {
  Index covered = 0;
  for (Index i = 0; i < f.key_count(); ++i) {
    const GgufValue v = f.value(i);
    if (f.value(f.key(i))->bytes().data() != v.bytes().data()) return "a key finds another value";
    if (v.describe().empty()) return "no description";
    if (v.is_array()) (void)v.elements();
  }
  for (const GgufEntry& e : f.tensors()) {
    if (f.entry(e.name).offset != e.offset) return "a name finds another tensor";
    covered += e.bytes;
    try {
      const Tensor t = f.at(e.name);
      if (static_cast<Index>(t.bytes().size()) != e.bytes) return "size of a tensor";
    } catch (const Error& error) {
      if (std::string_view(error.what()).find("not supported") == std::string_view::npos) return error.what();
    }
  }
  return covered < static_cast<Index>(size) ? "" : "tensors cover more than the file";
}

std::string check(const std::string& file) {
  try {
    return use(GgufFile(bytes_of(file), "mutant"), file.size());
  } catch (const Error& e) {
    const std::string_view text = e.what();
    return text.find("'mutant'") != text.npos ? "" : "the message is: " + std::string(text);
  }
}

std::vector<std::string> bases() {
  const std::string folder = fmt::format("{}/gguf/", RLX_TEST_DATA);
  return {small_gguf().out, small_gguf(1).out, small_gguf(3, true).out, read_text(folder + "little.gguf"),
          read_text(folder + "big.gguf")};
}

std::string run(Index count, const std::function<std::string(std::size_t)>& mutant) {
  return run_bounded(0, count, 64 * mebi, [&](Index i) { return check(mutant(static_cast<std::size_t>(i))); });
}

TEST(BulkGguf, TruncatedAtEveryByte) {
  for (const std::string& base : bases()) {
    EXPECT_EQ(check(base), "");
    EXPECT_EQ(run(static_cast<Index>(base.size()), [&](std::size_t i) { return base.substr(0, i); }), "");
  }
}

TEST(BulkGguf, OneFieldChanged) {
  for (const bool big : {false, true}) {
    const GgufMaker m = small_gguf(3, big);
    const auto count = static_cast<Index>(field_values * m.fields.size());
    EXPECT_EQ(run(count, [&](std::size_t i) { return change_field(m.out, m.fields, i); }), "");
    EXPECT_EQ(run(20'000,
                  [&](std::size_t i) {
                    return change_field(change_field(m.out, m.fields, i), m.fields, Random(i).below(1 << 20));
                  }),
              "");
  }
}

TEST(BulkGguf, RandomFlips) {
  for (const std::string& base : bases()) {
    EXPECT_EQ(run(8000, [&](std::size_t i) { return flip(base, i); }), "");
  }
}

TEST(BulkGguf, RandomPieces) {
  for (const std::string& base : bases()) {
    const std::size_t end = std::min<std::size_t>(base.size(), 2000);
    EXPECT_EQ(run(8000, [&](std::size_t i) { return splice(base, 0, end, i); }), "");
  }
}

/// Opens a large file whose memory must stay under twice its size and 64 MB; an empty `part` wants success.
std::string open_large(const std::string& file, std::string_view part) {
  const std::string path = make_folder() + "/a.gguf";
  write_text(path, file);
  const std::string wrong =
      run_bounded(0, 1, 2 * static_cast<Index>(file.size()) + 64 * mebi, [&](Index) -> std::string {
        try {
          const GgufFile f(path);
          return part.empty() ? "" : "it was accepted";
        } catch (const Error& e) {
          const std::string text = e.what();
          return !part.empty() && text.find(part) != text.npos && text.size() < 2000
                     ? ""
                     : "the message is: " + text.substr(0, 500);
        }
      });
  std::remove(path.c_str());
  return wrong;
}

TEST(BulkGguf, ManyTensors) {
  const auto many = [](Index n) {
    GgufMaker m{.version = 1};
    m.header(static_cast<std::uint64_t>(n), 0);
    for (Index i = 0; i < n; ++i) {
      m.fields.clear();
      m.tensor(fmt::format("{:x}", i), {1}, 24, static_cast<std::uint64_t>(i) * 32);
    }
    m.pad();
    m.out.resize(m.out.size() + static_cast<std::size_t>(n) * 32);
    return m.out;
  };
  EXPECT_EQ(open_large(many(gguf_max_tensors), ""), "");
  EXPECT_EQ(open_large(many(gguf_max_tensors + 1), "1048577 tensors, at most 1048576 are allowed"), "");
}

TEST(BulkGguf, LargeMetadata) {
  constexpr std::size_t large = 100'000'000;
  GgufMaker text;
  text.header(0, 1).key("k", GgufType::string).text(std::string(large, 'a'));
  EXPECT_EQ(open_large(text.out, ""), "");
  GgufMaker empty;
  empty.header(0, 1).key("k", GgufType::array).u32(8).length(large / 8);
  empty.out.resize(empty.out.size() + large);
  EXPECT_EQ(open_large(empty.out, ""), "");
  GgufMaker nested;
  nested.header(0, 1).key("k", GgufType::array).u32(9).length(large / 12);
  nested.out.resize(nested.out.size() + large);
  EXPECT_EQ(open_large(nested.out, ""), "");
  GgufMaker keys{.version = 1};
  keys.header(0, 65536);
  for (int i = 0; i < 65536; ++i) {
    keys.fields.clear();
    keys.key(std::to_string(i), GgufType::u8).number(0, 1);
  }
  EXPECT_EQ(open_large(keys.out, ""), "");
}

}  // namespace
}  // namespace rlx::test
