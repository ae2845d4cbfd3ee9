// GGUF files that lie: each is refused by an Error that names the place and the value.
#include <gtest/gtest.h>

#include <filesystem>

#include "codecs/codec.h"
#include "core/error.h"
#include "io/bounded.h"
#include "io/gguf_maker.h"

namespace rlx::test {
namespace {

bool refused(const std::string& file, std::string_view part) {
  return refuses([&] { open_gguf(file); }, part);
}

constexpr std::uint64_t int_max = (std::uint64_t{1} << 63) - 1, all_ones = ~std::uint64_t{0};

/// A file with one key, whose value the caller appends.
GgufMaker one_key(std::string_view name, GgufType type) {
  GgufMaker m;
  m.header(0, 1).key(name, type);
  return m;
}

/// A file with one tensor and `bytes` of data.
std::string one_tensor(const std::vector<std::uint64_t>& extents, std::uint64_t type, std::uint64_t offset,
                       std::size_t bytes = 256) {
  GgufMaker m;
  m.header(1, 0).tensor("t", extents, type, offset).pad().data(bytes);
  return m.out;
}

TEST(GgufHostile, I1_MagicAndVersions) {
  EXPECT_TRUE(refused("GGML" + small_gguf().out.substr(4), "begins with 'GGML', expected 'GGUF'"));
  EXPECT_TRUE(refused("FUGG" + small_gguf().out.substr(4), "begins with 'FUGG'"));
  for (const std::uint32_t version : {0u, 4u, 65536u, 0xffffffffu}) {
    GgufMaker m{.version = version};
    m.header(0, 0);
    EXPECT_TRUE(refused(m.out, fmt::format("byte 4: version {}, expected 1 to 3", version)));
  }
  // A swapped version turns the byte order of all that follows.
  GgufMaker m;
  m.header(0, 0);
  std::swap(m.out[4], m.out[7]);
  EXPECT_TRUE(open_gguf(m.out).form().big);
  m.out[8] = 1;  // 1 tensor in one byte order, 2^56 in the other
  EXPECT_TRUE(refused(m.out, "the number of tensors is 72057594037927936"));
}

TEST(GgufHostile, I1_ShortFiles) {
  EXPECT_TRUE(refused("", "the first four bytes"));
  EXPECT_TRUE(refused("GGUF", "the file ends in the version"));
  EXPECT_TRUE(refused(small_gguf().out.substr(0, 23), "the number of tensors is 2, but only 7 bytes follow"));
  const std::string path = make_folder() + "/empty.gguf";
  write_text(path, "");
  EXPECT_TRUE(refuses([&] { const GgufFile f(path); }, "is empty"));
}

TEST(GgufHostile, I1_TruncatedAtEveryByte) {
  for (const std::uint32_t version : {1u, 3u}) {
    const std::string file = small_gguf(version).out;
    const std::size_t needed = file.size() - 14;  // without the last padding: 18 bytes of the block of 32
    for (std::size_t n = 0; n < file.size(); ++n) {
      if (n < needed) {
        EXPECT_TRUE(refused(file.substr(0, n), "'f'")) << n;
      } else {
        EXPECT_EQ(open_gguf(file.substr(0, n)).count(), 2);
      }
    }
  }
}

TEST(GgufHostile, I2_Counts) {
  const std::uint64_t counts[] = {all_ones,           int_max,        int_max + 1,
                                  all_ones / 48,      all_ones / 368, all_ones / 368 - 1,
                                  all_ones / 368 + 1, 1'000'000'000,  std::uint64_t{1} << 60};
  for (const std::uint64_t n : counts) {
    GgufMaker tensors, keys;
    tensors.header(n, 0).data(100);
    keys.header(0, n).data(100);
    EXPECT_TRUE(refused(tensors.out, fmt::format("the number of tensors is {}, but only", n)));
    EXPECT_TRUE(refused(keys.out, fmt::format("the number of metadata keys is {}, but only 100", n)));
  }
  GgufMaker keys;
  keys.header(0, 65537);
  for (int i = 0; i < 65537; ++i) keys.key(std::to_string(i), GgufType::u8).number(0, 1);
  EXPECT_TRUE(refused(keys.out, "65537 metadata keys, at most 65536 are allowed"));
}

TEST(GgufHostile, I3_Keys) {
  const auto key = [](std::string_view name) { return one_key(name, GgufType::u8).number(0, 1).out; };
  EXPECT_TRUE(refused(key(""), "a metadata key of 0 bytes, expected 1 to 65535"));
  EXPECT_EQ(open_gguf(key(std::string(65535, 'a'))).key_count(), 1);
  EXPECT_TRUE(refused(key(std::string(65536, 'a')), "a metadata key of 65536 bytes"));
  EXPECT_TRUE(refused(key(std::string_view("a\0b", 3)), "metadata key 'a\\x00b' is no UTF-8 text without zero bytes"));
  EXPECT_TRUE(refused(key("a\xc3"), "is no UTF-8 text"));
  EXPECT_TRUE(refused(key("\xed\xa0\x80"), "is no UTF-8 text"));
  for (const std::uint64_t n : {int_max + 1, std::uint64_t{1000}, all_ones}) {
    GgufMaker m;
    m.header(0, 1).length(n).data(50);
    EXPECT_TRUE(refused(m.out, fmt::format("the length of a metadata key is {}, but only 50", n)));
  }
  GgufMaker twice;
  twice.header(0, 2).key("a", GgufType::u8).number(0, 1).key("a", GgufType::u8).number(1, 1);
  EXPECT_TRUE(refused(twice.out, "metadata key 'a' is there twice"));
}

TEST(GgufHostile, I3_TensorNames) {
  const auto named = [](std::string_view name) {
    GgufMaker m;
    return m.header(1, 0).tensor(name, {1}, 0, 0).pad().data(4).out;
  };
  EXPECT_TRUE(refused(named(""), "a tensor name of 0 bytes, expected 1 to 63"));
  EXPECT_EQ(open_gguf(named(std::string(63, 'a'))).count(), 1);
  EXPECT_TRUE(refused(named(std::string(64, 'a')), "a tensor name of 64 bytes"));
  EXPECT_TRUE(refused(named(std::string_view("\0", 1)), "is no UTF-8 text"));
  GgufMaker m;
  m.header(2, 0).tensor("a", {1}, 0, 0).tensor("a", {1}, 0, 32).pad().data(64);
  EXPECT_TRUE(refused(m.out, "tensor 'a' is there twice"));
}

TEST(GgufHostile, I4_ValueTypes) {
  for (const std::uint64_t type : {std::uint64_t{13}, std::uint64_t{1} << 31, std::uint64_t{0xffffffff}}) {
    GgufMaker m;
    m.header(0, 1).text("k").u32(type).data(20);
    EXPECT_TRUE(refused(m.out, fmt::format("the type of a value is {}, expected 0 to 12", type)));
    EXPECT_TRUE(refused(one_key("k", GgufType::array).u32(type).length(1).data(20).out,
                        fmt::format("the type of the elements is {}, expected 0 to 12", type)));
    EXPECT_TRUE(refused(one_key("k", GgufType::array).u32(type).length(0).out, "the type of the elements"));
  }
  EXPECT_TRUE(refused(one_key("k", GgufType::boolean).number(2, 1).out, "a boolean is 2, expected 0 or 1"));
  EXPECT_TRUE(refused(one_key("k", GgufType::array).u32(7).length(2).number(1, 1).number(255, 1).out,
                      "a boolean is 255, expected 0 or 1"));
}

TEST(GgufHostile, I4_NestedArrays) {
  const auto nested = [](int depth) {
    GgufMaker m = one_key("k", GgufType::array);
    for (int i = 1; i < depth; ++i) m.u32(9).length(1);
    return m.u32(0).length(1).number(5, 1).out;
  };
  const GgufFile f = open_gguf(nested(gguf_max_nesting));
  GgufValue v = *f.value("k");
  for (int i = 1; i < gguf_max_nesting; ++i) v = v.elements().at(0);
  EXPECT_EQ(v.as<std::vector<int>>(), std::vector<int>{5});
  EXPECT_TRUE(refused(nested(gguf_max_nesting + 1), "arrays are nested more than 8 deep"));
  EXPECT_TRUE(refused(nested(100'000), "arrays are nested more than 8 deep"));
}

TEST(GgufHostile, I4_ArrayLengths) {
  EXPECT_TRUE(refused(one_key("k", GgufType::array).u32(7).length(std::uint64_t{1} << 60).data(64).out,
                      "the length of an array is 1152921504606846976, but only 64"));
  for (const std::uint64_t type : {0u, 4u, 8u, 9u, 10u, 12u}) {
    for (const std::uint64_t n : {std::uint64_t{65}, std::uint64_t{1} << 61, all_ones / 8 + 2, all_ones}) {
      EXPECT_TRUE(refused(one_key("k", GgufType::array).u32(type).length(n).data(64).out,
                          fmt::format("the length of an array is {}", n)));
    }
  }
  GgufMaker m = one_key("k", GgufType::array);
  m.u32(8).length(3).text("a").text("b").length(9).data(8);
  EXPECT_TRUE(refused(m.out, "the length of a string is 9, but only 8 bytes follow"));
}

TEST(GgufHostile, I5_Alignments) {
  const auto aligned = [](std::uint64_t n) { return one_key("general.alignment", GgufType::u32).u32(n).out; };
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 31, std::uint64_t{1} << 25}) {
    EXPECT_TRUE(refused(aligned(n), fmt::format("metadata key 'general.alignment' is u32 {}, expected a power", n)));
  }
  EXPECT_EQ(open_gguf(aligned(1)).alignment(), 1);
  EXPECT_EQ(open_gguf(aligned(4096)).alignment(), 4096);
  EXPECT_TRUE(refused(one_key("general.alignment", GgufType::i32).u32(32).out, "is i32 32, expected a power of two"));
  EXPECT_TRUE(refused(one_key("general.alignment", GgufType::u64).u64(32).out, "is u64 32, expected a power of two"));
  EXPECT_TRUE(refused(one_key("general.alignment", GgufType::string).text("32").out, "is string '32', expected"));
}

TEST(GgufHostile, I6_Extents) {
  EXPECT_TRUE(refused(one_tensor({}, 0, 0), "tensor 't' has 0 extents, expected 1 to 4"));
  EXPECT_TRUE(refused(one_tensor({1, 1, 1, 1, 1}, 0, 0), "has 5 extents, expected 1 to 4"));
  GgufMaker m;
  m.header(1, 0).text("t").u32(std::uint64_t{1} << 31).data(100);
  EXPECT_TRUE(refused(m.out, "has 2147483648 extents"));
  EXPECT_TRUE(refused(one_tensor({int_max, 2, 1, 1}, 0, 0), "size of a tensor overflows 63 bits"));
  // 2^64-16 bytes, which padding to 32 turns into 0.
  EXPECT_TRUE(refused(one_tensor({4, (1 << 30) - 1, (1 << 30) + 1, 1}, 0, 0), "size of a tensor overflows 63 bits"));
  EXPECT_TRUE(refused(one_tensor({all_ones / 4}, 0, 0), "size of a tensor overflows 63 bits"));
  EXPECT_TRUE(refused(one_tensor({(std::uint64_t{1} << 42) + 1, 1 << 18}, 0, 0), "bytes from data offset 0, but only"));
  EXPECT_TRUE(refused(one_tensor({(std::uint64_t{1} << 42) + 1, 1 << 21}, 0, 0), "size of a tensor overflows 63 bits"));
  EXPECT_TRUE(refused(one_tensor({4, 0}, 0, 0), "has the extent 0, expected 1 to 2^63-1"));
  EXPECT_TRUE(refused(one_tensor({all_ones}, 0, 0), "has the extent 18446744073709551615"));
  EXPECT_TRUE(refused(one_tensor({255}, 12, 0), "of type Q4_K has rows of 255 elements, expected a multiple of 256"));
  EXPECT_TRUE(refused(one_tensor({16, 2}, 2, 0), "of type Q4_0 has rows of 16 elements, expected a multiple of 32"));
}

TEST(GgufHostile, I6_Types) {
  for (const std::uint64_t type :
       {4ull, 5ull, 31ull, 32ull, 33ull, 36ull, 37ull, 38ull, 43ull, 0x7fffffffull, 0x80000000ull, 0xffffffffull}) {
    EXPECT_TRUE(refused(one_tensor({256}, type, 0), fmt::format("tensor 't' has the unknown type {}", type)));
  }
}

TEST(GgufHostile, I7_Offsets) {
  EXPECT_TRUE(refused(one_tensor({4}, 0, 1), "has the data offset 1, expected 0"));
  EXPECT_TRUE(refused(one_tensor({4}, 0, std::uint64_t{1} << 40), "has the data offset 1099511627776, expected 0"));
  EXPECT_TRUE(refused(one_tensor({4}, 0, all_ones - 31), "has the data offset 18446744073709551584, expected 0"));
  const auto two = [](std::uint64_t a, std::uint64_t b, std::size_t bytes) {
    GgufMaker m;
    return m.header(2, 0).tensor("a", {4}, 0, a).tensor("b", {4}, 0, b).pad().data(bytes).out;
  };
  EXPECT_EQ(open_gguf(two(0, 32, 48)).count(), 2);
  EXPECT_TRUE(refused(two(0, 0, 64), "tensor 'b' has the data offset 0, expected 32"));
  EXPECT_TRUE(refused(two(0, 16, 64), "tensor 'b' has the data offset 16, expected 32"));
  EXPECT_TRUE(refused(two(0, 64, 128), "tensor 'b' has the data offset 64, expected 32"));
  EXPECT_TRUE(refused(two(32, 0, 64), "tensor 'a' has the data offset 32, expected 0"));
  EXPECT_TRUE(refused(two(0, 32, 47), "tensor 'b' of type F32 takes 16 bytes from data offset 32, but only 15"));
  EXPECT_TRUE(refused(two(0, 32, 20), "but only 0 are left"));
  GgufMaker m;
  m.header(1, 0).tensor("t", {1}, 0, 0);
  EXPECT_TRUE(refused(m.out, "the data begins at byte 64, but the file has"));
}

/// The bytes of one file of a split model with one tensor.
std::string split_part(std::string_view tensor, std::uint64_t number, std::uint64_t count, std::uint64_t tensors) {
  GgufMaker m;
  m.header(1, 3).key("split.no", GgufType::u16).number(number, 2);
  m.key("split.count", GgufType::u16).number(count, 2).key("split.tensors.count", GgufType::i32).u32(tensors);
  return m.tensor(tensor, {1}, 0, 0).pad().data(4).out;
}

TEST(GgufHostile, I8_SplitModels) {
  const std::string folder = make_folder(), first = folder + "/m-00001-of-00002.gguf",
                    second = folder + "/m-00002-of-00002.gguf";
  const auto opens = [&](const std::string& path) { return [path] { const GgufFile f(path); }; };
  write_text(first, split_part("a", 0, 2, 2));
  EXPECT_TRUE(refuses(opens(first), "m-00002-of-00002.gguf', named by"));
  write_text(second, split_part("b", 1, 2, 2));
  EXPECT_EQ(GgufFile(second).count(), 2);
  write_text(second, split_part("b", 0, 2, 2));
  EXPECT_TRUE(refuses(opens(first), "says that it is file 1 of 2"));
  write_text(second, split_part("b", 1, 3, 2));
  EXPECT_TRUE(refuses(opens(first), "says that it is file 2 of 3"));
  EXPECT_TRUE(refuses(opens(second), "its name was expected to end in '-00002-of-00003.gguf'"));
  write_text(second, split_part("a", 1, 2, 2));
  EXPECT_TRUE(refuses(opens(first), "tensor 'a' is there twice"));
  write_text(second, split_part("b", 1, 2, 2));
  write_text(first, split_part("a", 0, 2, 3));
  EXPECT_TRUE(refuses(opens(first), "states 3 tensors in 2 files, but they hold 2"));
  write_text(first, split_part("a", 2, 2, 2));
  EXPECT_TRUE(refuses(opens(first), "'split.no' is 2, expected 0 to 1"));
  write_text(first, split_part("a", 0, 65535, 2));
  EXPECT_TRUE(refuses(opens(first), "'split.count' is 65535, expected 0 to 10000"));
  write_text(folder + "/m.gguf", split_part("a", 0, 2, 2));
  EXPECT_TRUE(refuses(opens(folder + "/m.gguf"), "its name was expected to end in '-00001-of-00002.gguf'"));
  EXPECT_TRUE(refused(split_part("a", 0, 2, 2), "is file 1 of a model of 2 files, which are found by their path only"));
}

TEST(GgufHostile, I8_SplitModelsStayInTheirFolder) {
  const std::string folder = make_folder(), other = make_folder();
  write_text(folder + "/m-00001-of-00002.gguf", split_part("a", 0, 2, 2));
  write_text(other + "/b.gguf", split_part("b", 1, 2, 2));
  std::filesystem::create_symlink(other + "/b.gguf", folder + "/m-00002-of-00002.gguf");
  EXPECT_TRUE(refuses([&] { const GgufFile f(folder + "/m-00001-of-00002.gguf"); }, "outside of its folder"));
}

TEST(GgufHostile, I9_BlocksOfAllOnes) {
  Index decoded = 0;
  for (const GgufTensorType& t : gguf_tensor_types()) {
    if (t.dtype || find_codec(t.codec) == nullptr) continue;
    SCOPED_TRACE(t.name);
    GgufMaker m;
    m.header(1, 0).tensor("t", {static_cast<std::uint64_t>(2 * t.block), 3}, t.id, 0).pad();
    m.out.append(static_cast<std::size_t>(6 * t.bytes), '\xff');
    EXPECT_EQ(decode(open_gguf(m.out).at("t")).count(), 6 * t.block);
    ++decoded;
  }
  EXPECT_GE(decoded, 1);
}

TEST(GgufHostile, OneFieldChanged) {
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    for (const bool big : {false, true}) {
      const GgufMaker m = small_gguf(version, big);
      std::size_t accepted = 0;
      for (std::size_t i = 0; i < field_values * m.fields.size(); ++i) {
        const std::string file = change_field(m.out, m.fields, i);
        try {
          const GgufFile f = open_gguf(file);
          for (const GgufEntry& e : f.tensors()) (void)f.at(e.name);
          ++accepted;
        } catch (const Error& e) {
          EXPECT_NE(std::string_view(e.what()).find("'f'"), std::string_view::npos) << e.what();
        }
      }
      EXPECT_GT(accepted, 0u);  // values that may be anything
    }
  }
}

}  // namespace
}  // namespace rlx::test
