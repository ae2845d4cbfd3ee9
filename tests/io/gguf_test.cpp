// The GGUF reader: bytes by hand, files of the reference package, lookups, split models.
#include "io/gguf/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "codecs/codec.h"
#include "core/error.h"
#include "io/bounded.h"
#include "io/gguf/writer.h"
#include "io/gguf_maker.h"

namespace rlx::test {
namespace {

std::string golden(const std::string& name) { return fmt::format("{}/gguf/{}", RLX_TEST_DATA, name); }

/// Byte i of tensor k, as the script of the reference files makes it.
std::string pattern(std::size_t bytes, std::size_t k) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>((37 * i + 11 * k + 5) % 256);
  return out;
}

TEST(Gguf, ReadsBytesMadeByHandInEveryForm) {
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    for (const bool big : {false, true}) {
      SCOPED_TRACE(fmt::format("version {} big {}", version, big));
      const GgufFile f = open_gguf(small_gguf(version, big).out);
      EXPECT_EQ(f.form().version, version);
      EXPECT_EQ(f.form().big, big);
      ASSERT_EQ(f.key_count(), 5);
      EXPECT_EQ(f.key(0), "general.architecture");
      EXPECT_EQ(f.get<std::string>("general.architecture"), "llama");
      EXPECT_EQ(f.get<Index>("n"), 7);
      EXPECT_TRUE(f.get<bool>("on"));
      EXPECT_EQ(f.get<std::vector<Index>>("list"), (std::vector<Index>{1, 2, 3}));
      EXPECT_EQ(f.get<std::vector<std::string_view>>("words"), (std::vector<std::string_view>{"a", "", "bc"}));
      ASSERT_EQ(f.count(), 2);
      EXPECT_EQ(f.entry(0).name, "w");
      EXPECT_EQ(f.entry(0).shape, (std::vector<Index>{2, 3}));
      EXPECT_EQ(load<double>(f.at("w")), (std::vector<double>{0.5, 1.5, 2.5, 3.5, 4.5, 5.5}));
      const Tensor q = f.at("q");
      EXPECT_EQ(q.type().text(), "f32:q4_0@1[1,32]");
      EXPECT_EQ(load<double>(decode(q))[0], 1 - 8);   // the low nibble of byte 1 with scale 1
      EXPECT_EQ(load<double>(decode(q))[16], 0 - 8);  // its high nibble
      EXPECT_EQ(f.copies(), big ? 2 : 0);
      EXPECT_EQ(f.at("q").storage(), q.storage());
      EXPECT_EQ(f.copies(), big ? 2 : 0);
    }
  }
}

TEST(Gguf, TensorsShareTheBytesOfTheFile) {
  const Bytes bytes = bytes_of(small_gguf().out);
  const GgufFile f(bytes, "f");
  const auto* begin = bytes.data.data();
  const auto* w = static_cast<const std::byte*>(f.at("w").storage());
  EXPECT_TRUE(w > begin && w < begin + bytes.data.size());
  EXPECT_EQ(f.bytes("w").data.data(), w);
  EXPECT_EQ(f.copies(), 0);
}

TEST(Gguf, ReadsEveryMetadataTypeTheReferenceWrites) {
  for (const char* name : {"little.gguf", "big.gguf", "split-00001-of-00003.gguf"}) {
    SCOPED_TRACE(name);
    const GgufFile f(golden(name));
    EXPECT_EQ(f.get<std::string>("general.name"), "gr\u00f6\u00dfe \U0001f600");
    EXPECT_EQ(f.get<int>("one.u8"), 200);
    EXPECT_EQ(f.get<int>("one.i8"), -100);
    EXPECT_EQ(f.get<int>("one.u16"), 60000);
    EXPECT_EQ(f.get<int>("one.i16"), -30000);
    EXPECT_EQ(f.get<std::uint32_t>("one.u32"), 4000000000u);
    EXPECT_EQ(f.get<Index>("one.i32"), -2000000000);
    EXPECT_EQ(f.get<float>("one.f32"), 1.5f);
    EXPECT_EQ(f.get<std::uint64_t>("one.u64"), (1ull << 63) + 5);
    EXPECT_EQ(f.get<Index>("one.i64"), -(Index{1} << 62));
    EXPECT_EQ(f.get<double>("one.f64"), -0.1);
    EXPECT_TRUE(f.get<bool>("one.boolean"));
    EXPECT_EQ(f.get<std::vector<int>>("array.i8"), (std::vector<int>{-100, 0, 1}));
    EXPECT_EQ(f.get<std::vector<std::uint64_t>>("array.u64"), (std::vector<std::uint64_t>{(1ull << 63) + 5, 0, 1}));
    EXPECT_EQ(f.get<std::vector<double>>("array.f32"), (std::vector<double>{1.5, 0, 1}));
    EXPECT_EQ(f.get<std::vector<double>>("array.f64"), (std::vector<double>{-0.1, 0, 1}));
    EXPECT_EQ(f.get<std::vector<double>>("array.i16"), (std::vector<double>{-30000, 0, 1}));
    EXPECT_EQ(f.get<std::vector<bool>>("array.boolean"), (std::vector<bool>{true, false, true}));
    EXPECT_EQ(f.get<std::vector<std::string>>("array.string"),
              (std::vector<std::string>{"", "a", "\u00fc\u00f1\u00ef", std::string(300, 'x')}));
    const std::vector<GgufValue> rows = f.value("array.array")->elements();
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].as<std::vector<int>>(), (std::vector<int>{1, 2}));
    EXPECT_EQ(rows[2].as<std::vector<int>>(), (std::vector<int>{4, 5, 6}));
  }
}

TEST(Gguf, ReadsEveryTensorTypeTheReferenceWrites) {
  for (const char* name : {"little.gguf", "big.gguf", "split-00002-of-00003.gguf"}) {
    SCOPED_TRACE(name);
    const GgufFile f(golden(name));
    const bool big = f.form().big;
    Index encoded = 0;
    for (Index i = 0; i < f.count(); ++i) {
      const GgufEntry e = f.entry(i);
      SCOPED_TRACE(e.name);
      if (e.name == "shape") {
        EXPECT_EQ(e.shape, (std::vector<Index>{2, 3, 4, 1}));
        EXPECT_EQ(load<double>(f.at(e.name))[23], 23);
        continue;
      }
      const bool plain = e.name.starts_with("plain.");
      encoded += plain ? 0 : 1;
      EXPECT_EQ(e.shape, (std::vector<Index>{plain ? 2 : 3, plain ? 3 : 2 * e.type->block}));
      const std::string want = pattern(static_cast<std::size_t>(e.bytes), static_cast<std::size_t>(i));
      if (plain) {
        EXPECT_EQ(std::string("plain.") + std::string(rlx::name(*e.type->dtype)), e.name);
      } else {
        EXPECT_EQ("blocks." + std::string(e.type->codec), e.name);
        if (find_codec(e.type->codec) == nullptr) continue;
      }
      EXPECT_EQ(text_of(f.at(e.name).plane()), want);
    }
    EXPECT_EQ(encoded, big ? 6 : f.parts() == 1 ? 25 : 0);
    EXPECT_EQ(f.alignment(), f.parts() == 1 && !big ? 64 : 32);
  }
}

TEST(Gguf, EveryTypeOfTheListIsThereOnce) {
  std::uint32_t next = 0;
  for (const GgufTensorType& t : gguf_tensor_types()) {
    EXPECT_GE(t.id, next);
    next = t.id + 1;
    EXPECT_EQ(find_gguf_type(t.id), &t);
    EXPECT_EQ(find_gguf_type(t.name), &t);
    EXPECT_EQ(t.dtype.has_value(), t.codec.empty());
    for (const GgufField& field : t.fields) EXPECT_LE(field.offset + field.width * field.count, t.bytes) << t.name;
    if (t.dtype) {
      EXPECT_EQ(&gguf_type_of(TensorType(*t.dtype, {2})), &t);
    } else if (const Codec* codec = find_codec(t.codec)) {
      const TensorType type = rlx_type_of(t, std::vector<Index>{3, 2 * t.block});
      EXPECT_EQ(type.encoding, codec->encoding);
      EXPECT_EQ(&gguf_type_of(type), &t);
    }
  }
  EXPECT_EQ(find_gguf_type("q4_k")->id, 12u);
  EXPECT_EQ(find_gguf_type("q4_9"), nullptr);
}

TEST(Gguf, BlocksAreSwappedFieldByField) {
  for (const GgufTensorType& t : gguf_tensor_types()) {
    SCOPED_TRACE(t.name);
    std::vector<std::byte> data(static_cast<std::size_t>(2 * t.bytes));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
    std::vector<std::byte> swapped = data;
    if (!t.swappable) {
      EXPECT_EQ(t.name, "IQ2_XXS");
      EXPECT_TRUE(refuses([&] { swap_blocks(t, swapped); }, "their form is not defined"));
      continue;
    }
    swap_blocks(t, swapped);
    std::vector<std::byte> want = data;
    for (std::size_t block = 0; block < 2; ++block) {
      for (const GgufField& f : t.fields) {
        for (std::size_t i = 0; i < f.count; ++i) {
          const std::size_t at = block * static_cast<std::size_t>(t.bytes) + f.offset + i * f.width;
          for (std::size_t k = 0; k < f.width; ++k) want[at + k] = data[at + f.width - 1 - k];
        }
      }
    }
    EXPECT_EQ(swapped, want);
    EXPECT_EQ(swapped == data, t.bytes == 1 || t.name == "MXFP4" || t.name == "NVFP4");
    swap_blocks(t, swapped);
    EXPECT_EQ(swapped, data);
  }
}

TEST(Gguf, LookupsOfTheDocumentation) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "rlx_gguf_lookups";
  std::filesystem::create_directories(folder);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  GgufMetadata m;
  m.set("llama.block_count", std::uint32_t{2});
  m.set("llama.attention.head_count_kv", std::uint32_t{3});
  m.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  write_gguf("model.gguf", m, {{"blk.0.attn_q.weight", Tensor(DType::f32, {4, 4})}});
  // clang-format off
const GgufFile file("model.gguf");
const auto layers = file.get<Index>("llama.block_count");                  // must be there, any integer type
const auto base = file.get_or<float>("llama.rope.freq_base", 10000.0f);    // may be missing
const auto heads = file.get_each<Index>("llama.attention.head_count_kv", layers);  // one number, or one a layer
const auto words = file.get<std::vector<std::string_view>>("tokenizer.ggml.tokens");  // views of the file
const Tensor w = file.at("blk.0.attn_q.weight");                            // f32:q4_0@1[576,576]
  // clang-format on
  EXPECT_EQ(layers, 2);
  EXPECT_EQ(base, 10000.0f);
  EXPECT_EQ(heads, (std::vector<Index>{3, 3}));
  EXPECT_EQ(words, (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(w.shape(), (std::vector<Index>{4, 4}));
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

TEST(Gguf, LookupsSayWhatTheyFound) {
  const GgufFile f(golden("little.gguf"));
  const auto says = [&](const std::function<void()>& call, const std::string& part) { return refuses(call, part); };
  EXPECT_TRUE(says([&] { f.get<Index>("llama.block_count"); }, "metadata key 'llama.block_count' is missing"));
  EXPECT_TRUE(says([&] { f.get<Index>("general.name"); }, "metadata key 'general.name' is string 'gr"));
  EXPECT_TRUE(says([&] { f.get<Index>("general.name"); }, "expected an integer"));
  EXPECT_TRUE(says([&] { f.get<Index>("one.f32"); }, "is f32 1.5, expected an integer"));
  EXPECT_TRUE(says([&] { f.get<std::string>("one.u8"); }, "is u8 200, expected a string"));
  EXPECT_TRUE(says([&] { f.get<bool>("one.u8"); }, "is u8 200, expected a boolean"));
  EXPECT_TRUE(says([&] { f.get<double>("one.boolean"); }, "is boolean true, expected a number"));
  EXPECT_TRUE(says([&] { f.get<std::int8_t>("one.u8"); }, "is u8 200, expected an integer from -128 to 127"));
  EXPECT_TRUE(says([&] { f.get<std::uint32_t>("one.i8"); }, "is i8 -100, expected an integer from 0 to 4294967295"));
  EXPECT_TRUE(says([&] { f.get<Index>("one.u64"); }, "is u64 9223372036854775813, expected an integer from"));
  EXPECT_TRUE(says([&] { f.get<std::vector<int>>("one.i8"); }, "is i8 -100, expected an array"));
  EXPECT_TRUE(says([&] { f.get<Index>("array.i8"); }, "is an array of 3 i8, expected an integer"));
  EXPECT_TRUE(says([&] { f.get<std::vector<int>>("array.array"); }, "expected an array of single values"));
  EXPECT_TRUE(says([&] { f.find<Index>("general.name"); }, "expected an integer"));
  EXPECT_FALSE(f.find<Index>("none").has_value());
  EXPECT_EQ(f.get_or<Index>("none", 5), 5);
  EXPECT_EQ(f.get_or<Index>("one.u8", 5), 200);
  EXPECT_EQ(f.get_each<Index>("one.u8", 2), (std::vector<Index>{200, 200}));
  EXPECT_EQ(f.get_each<Index>("array.i8", 3), (std::vector<Index>{-100, 0, 1}));
  EXPECT_TRUE(says([&] { f.get_each<Index>("array.i8", 4); }, "is an array of 3 i8, expected 4 elements"));
  EXPECT_TRUE(says([&] { f.at("none"); }, "has no tensor 'none'"));
  EXPECT_TRUE(says([&] { f.entry(Index{99}); }, "number 99 was asked for"));
}

TEST(Gguf, AnyFileOfASplitModelOpensAllOfThem) {
  for (Index i = 0; i < 3; ++i) {
    const GgufFile f(golden(gguf_split_name("split", i, 3)));
    EXPECT_EQ(f.parts(), 3);
    EXPECT_EQ(f.count(), 9);
    EXPECT_EQ(f.entry("shape").part, 2);
    EXPECT_EQ(f.entry(Index{0}).part, 0);
    EXPECT_EQ(f.get<Index>("split.no"), 0);
    EXPECT_TRUE(f.part_path(2).ends_with("split-00003-of-00003.gguf"));
  }
}

TEST(Gguf, MisalignedTensorsAreCopiedOnce) {
  GgufMaker m;
  m.header(2, 1).key("general.alignment", GgufType::u32).u32(1);
  m.tensor("a", {1}, 24, 0).tensor("b", {2}, 0, 1).data(1).u32(0x3f800000).u32(0x40000000);
  const GgufFile f = open_gguf(m.out);
  const Tensor b = f.at("b");
  EXPECT_EQ(load<double>(b), (std::vector<double>{1, 2}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.storage()) % 4, 0u);
  EXPECT_EQ(f.at("b").storage(), b.storage());
}

TEST(Gguf, ManyStringsAreFoundQuickly) {
  GgufMaker m;
  constexpr int n = 256'000;
  m.header(0, 1).key("tokenizer.ggml.tokens", GgufType::array).u32(8).length(n);
  for (int i = 0; i < n; ++i) m.text("token" + std::to_string(i));
  const GgufFile f = open_gguf(m.out);
  const auto words = f.get<std::vector<std::string_view>>("tokenizer.ggml.tokens");
  ASSERT_EQ(words.size(), static_cast<std::size_t>(n));
  EXPECT_EQ(words[n - 1], "token255999");
}

}  // namespace
}  // namespace rlx::test
