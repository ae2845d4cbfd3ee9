// Hostile safetensors files in bulk: each is read rightly or refused by an Error, within two seconds and a bound on
// memory, in a child process.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/bounded.h"
#include "io/safetensors.h"

namespace rlx::test {
namespace {

constexpr Index mebi = Index{1} << 20;

std::string packed(const std::string& header, const std::string& data) {
  const std::uint64_t n = header.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + header + data;
}

std::size_t header_size(const std::string& file) {
  std::uint64_t n = 0;
  std::memcpy(&n, file.data(), 8);
  return static_cast<std::size_t>(n);
}

/// Compares an accepted file with what a general JSON reader finds in its header.
std::string compare(const SafetensorsFile& f, const std::string& file) {
  const std::size_t n = header_size(file);
  const auto tree = nlohmann::json::parse(file.substr(8, n));
  Index tensors = 0, covered = 0;
  for (const auto& [name, value] : tree.items()) {
    if (name == "__metadata__") continue;
    ++tensors;
    const SafetensorsEntry e = f.find(name);
    if (e.format != value["dtype"].get<std::string>()) return "dtype of " + name;
    if (e.shape != value["shape"].get<std::vector<Index>>()) return "shape of " + name;
    if (value["data_offsets"] != nlohmann::json{e.begin, e.end}) return "offsets of " + name;
    const auto size = static_cast<std::size_t>(e.end - e.begin);
    const std::string want = file.substr(8 + n + static_cast<std::size_t>(e.begin), size);
    if (text_of(f.bytes(name)) != want) return "bytes of " + name;
    if (e.dtype && std::memcmp(f.at(name).bytes().data(), want.data(), size) != 0) return "tensor " + name;
    covered += e.end - e.begin;
  }
  if (tensors != f.count()) return "number of tensors";
  return covered == static_cast<Index>(file.size() - 8 - n) ? "" : "coverage";
}

std::string check(const std::string& file) {
  try {
    return compare(SafetensorsFile(bytes_of(file), "mutant"), file);
  } catch (const Error& e) {
    const std::string_view text = e.what();
    const bool named = text.find("'mutant'") != text.npos && text.find_first_of("0123456789") != text.npos;
    return named ? "" : "the message is: " + std::string(text);
  }
}

/// A small file, one of the reference package, and one with many tensors.
std::vector<std::string> bases() {
  std::string header = "{", data;
  for (int i = 0; i < 40; ++i) {
    header += fmt::format("\"layer.{}.weight\":{{\"dtype\":\"F16\",\"shape\":[{},2],\"data_offsets\":[{},{}]}},", i, i,
                          data.size(), data.size() + static_cast<std::size_t>(i) * 4);
    data.append(static_cast<std::size_t>(i) * 4, static_cast<char>(i));
  }
  header.back() = '}';
  return {packed(R"({"__metadata__":{"k":"v"},"w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]},)"
                 R"("b":{"dtype":"U8","shape":[3],"data_offsets":[12,15]}})",
                 "123456789012345"),
          read_text(data_file("all_types.safetensors")), packed(header, data)};
}

std::string run(Index count, const std::function<std::string(std::size_t)>& mutant) {
  return run_bounded(0, count, 64 * mebi, [&](Index i) { return check(mutant(static_cast<std::size_t>(i))); });
}

TEST(BulkSafetensors, TruncatedAtEveryByte) {
  for (const std::string& base : bases()) {
    EXPECT_EQ(check(base), "");
    EXPECT_EQ(run(static_cast<Index>(base.size()), [&](std::size_t i) { return base.substr(0, i); }), "");
  }
}

TEST(BulkSafetensors, OneNumberChanged) {
  for (const std::string& base : bases()) {
    const std::size_t end = 8 + header_size(base);
    EXPECT_EQ(run(field_values, [&](std::size_t i) { return change_field(base, {{0, 8}}, i); }), "");
    EXPECT_EQ(run(6000,
                  [&](std::size_t i) {
                    std::string m = change_number(base, 8, end, i);
                    const std::uint64_t n = end - 8 + m.size() - base.size();
                    std::memcpy(m.data(), &n, 8);  // the length of the header stays right
                    return m;
                  }),
              "");
  }
}

TEST(BulkSafetensors, RandomFlips) {
  for (const std::string& base : bases()) {
    EXPECT_EQ(run(8000, [&](std::size_t i) { return flip(base, i); }), "");
  }
}

TEST(BulkSafetensors, RandomPieces) {
  for (const std::string& base : bases()) {
    const std::size_t end = 8 + header_size(base);
    EXPECT_EQ(run(4000,
                  [&](std::size_t i) {
                    std::string m = splice(base, 8, end, i);
                    const std::uint64_t n = end - 8 + m.size() - base.size();
                    std::memcpy(m.data(), &n, 8);
                    return m;
                  }),
              "");
  }
}

/// Opens a file of about 100 MB whose memory must stay under twice its size and 64 MB.
std::string open_large(const std::string& header, std::string_view part) {
  const std::string path = make_folder() + "/a.safetensors";
  write_text(path, packed(header, ""));
  const auto size = static_cast<Index>(header.size() + 8);
  const std::string wrong = run_bounded(0, 1, 2 * size + 64 * mebi, [&](Index) -> std::string {
    try {
      const SafetensorsFile f(path);
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

constexpr std::size_t large = 99'999'000;

/// `piece(i)` for i = 0, 1, … until the text is large, without the last comma.
std::string repeat(std::string text, Index most, const std::function<std::string(Index)>& piece) {
  text.reserve(large + 1000);
  for (Index i = 0; i < most && text.size() < large; ++i) text += piece(i);
  text.pop_back();
  return text;
}

const char* const nothing = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";

TEST(BulkSafetensors, LargeNames) {
  EXPECT_EQ(open_large("{\"" + std::string(large, 'a') + "\":" + std::string(nothing, 47) + "}", ""), "");
  EXPECT_EQ(open_large("{\"\\n" + std::string(large - 100, 'a') + "\":" + std::string(nothing, 47) + "}", ""), "");
  EXPECT_EQ(open_large("{\"" + std::string(large, 'a'), "the string that starts here is not closed"), "");
}

TEST(BulkSafetensors, ManyTensors) {
  const auto name = [](Index i) { return fmt::format("\"\\n{:x}\":{}", i * 0x9e3779b9 % (1 << 30), nothing); };
  EXPECT_EQ(open_large(repeat("{", safetensors_max_tensors, name) + "}", ""), "");
  EXPECT_EQ(open_large(repeat("{", safetensors_max_tensors + 1, name) + "}", "more than 1048576 tensors"), "");
}

TEST(BulkSafetensors, ManyEqualNames) {
  EXPECT_EQ(
      open_large(repeat("{", safetensors_max_tensors, [](Index) { return std::string("\"a\":") + nothing; }) + "}",
                 "tensor 'a' is there twice"),
      "");
}

TEST(BulkSafetensors, LargeMetadata) {
  const auto entry = [](Index i) { return fmt::format("\"{:x}\":\"\",", i); };
  EXPECT_EQ(open_large(repeat("{\"__metadata__\":{", 1 << 30, entry) + "}}", "more than 65536 metadata entries"), "");
  EXPECT_EQ(open_large("{\"__metadata__\":{\"a\":\"" + std::string(large - 100, 'b') + "\"}}", ""), "");
  EXPECT_EQ(open_large("{\"__metadata__\":{\"" + std::string(large / 2 - 100, 'b') + "\":\"" +
                           std::string(large / 2 - 100, 'b') + "\"}}",
                       ""),
            "");
}

TEST(BulkSafetensors, DeepAndWide) {
  EXPECT_EQ(open_large("{\"a\":" + std::string(large, '['), "expected '{', found '[[["), "");
  EXPECT_EQ(open_large(repeat("{\"a\":", 1 << 30, [](Index) { return "{\"a\":"; }), "unknown field 'a'"), "");
  EXPECT_EQ(open_large(repeat("{\"a\":{\"shape\":[", 1 << 30, [](Index) { return "1,"; }), "more than 64 dimensions"),
            "");
  EXPECT_EQ(open_large("{\"a\":{\"shape\":[" + std::string(large, '9'), "is above 2^63-1"), "");
  EXPECT_EQ(open_large("{" + std::string(large, ' ') + "}", ""), "");
  EXPECT_EQ(open_large("{}" + std::string(large, '\0'), "expected the end, found"), "");
}

TEST(BulkSafetensors, LargeIndex) {
  const std::string folder = make_folder(), path = folder + "/model.safetensors.index.json";
  const auto refused = [&](const std::string& text, std::string_view part) {
    write_text(path, text);
    const auto size = static_cast<Index>(text.size());
    return run_bounded(0, 1, 2 * size + 64 * mebi, [&](Index) -> std::string {
      try {
        const SafetensorsModel m(folder);
        return "it was accepted";
      } catch (const Error& e) {
        const std::string message = e.what();
        return message.find(part) != message.npos ? "" : "the message is: " + message;
      }
    });
  };
  std::string names = "{\"weight_map\":{", shards = names;
  for (Index i = 0; i < safetensors_max_tensors; ++i) names += fmt::format("\"{:x}\":\"none\",", i);
  for (Index i = 0; i < 20'000; ++i) shards += fmt::format("\"{:x}\":\"{}\",", i, i);
  EXPECT_EQ(refused(names + "\"x\":\"none\"}}", "more than 1048576 tensors"), "");
  names.pop_back();
  EXPECT_EQ(refused(names + "}}", "No such file or directory"), "");
  EXPECT_EQ(refused(shards, "more than 10000 files"), "");
  EXPECT_EQ(refused("{\"x\":" + std::string(static_cast<std::size_t>(safetensors_max_index), '['),
                    "at most 67108864 are allowed"),
            "");
}

}  // namespace
}  // namespace rlx::test
