// The safetensors reader and writer: bytes by hand, files of the reference package, its verdicts, shards.
#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "io/bounded.h"

namespace rlx::test {
namespace {

std::string packed(const std::string& header, const std::string& data) {
  const std::uint64_t n = header.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + header + data;
}

SafetensorsFile parse(const std::string& file) { return {bytes_of(file), "f"}; }

TEST(Safetensors, ReadsBytesMadeByHand) {
  const SafetensorsFile f =
      parse(packed(R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]},)"
                   R"("w":{"data_offsets":[0,8],"shape":[2,2],"dtype":"I16"}}  )",
                   std::string("\1\0\2\0\3\0\xff\xff\7\10", 10)));
  ASSERT_EQ(f.count(), 2);
  EXPECT_EQ(f.entry(0).name, "w");
  EXPECT_EQ(f.entry(1).name, "b");
  EXPECT_EQ(f.entry(0).shape, (std::vector<Index>{2, 2}));
  EXPECT_EQ(f.entry(1).begin, 8);
  EXPECT_EQ(f.entry(1).end, 10);
  EXPECT_EQ(f.tensors().size(), 2u);
  EXPECT_EQ(load<double>(f.at("w")), (std::vector<double>{1, 2, 3, -1}));
  EXPECT_EQ(load<double>(f.at("b")), (std::vector<double>{7, 8}));
  EXPECT_EQ(f.metadata(), (std::map<std::string, std::string>{{"k", "v"}}));
  EXPECT_TRUE(f.contains("w") && !f.contains("x"));
  EXPECT_TRUE(refuses([&] { f.at("x"); }, "'f' has no tensor 'x'"));
  EXPECT_TRUE(refuses([&] { f.entry(2); }, "has 2 tensors, number 2 was asked for"));
}

TEST(Safetensors, TensorsShareTheBytesOfTheFile) {
  const Bytes bytes = bytes_of(packed(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "xy"));
  const SafetensorsFile f(bytes, "f");
  EXPECT_EQ(f.at("a").storage(), bytes.data.data() + bytes.data.size() - 2);
  EXPECT_EQ(f.copies(), 0);
}

TEST(Safetensors, MisalignedTensorsAreCopiedOnceAndCounted) {
  for (const int pad : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const std::string header =
        R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})" + std::string(static_cast<std::size_t>(pad), ' ');
    const SafetensorsFile f = parse(packed(header, std::string("\0\0\0\0\0\0\x04\x40", 8)));
    const bool aligned = (header.size() + 8) % 8 == 0;
    const Tensor a = f.at("a");
    Tensor b = f.at("a");
    EXPECT_EQ(load<double>(a), std::vector<double>{2.5});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.storage()) % 8, 0u);
    EXPECT_EQ(a.storage(), b.storage());
    EXPECT_EQ(f.copies(), aligned ? 0 : 1);
    b.mutable_bytes()[0] = std::byte{1};  // does not change what others see
    EXPECT_EQ(load<double>(f.at("a")), std::vector<double>{2.5});
  }
}

TEST(Safetensors, ReadsEveryTypeTheReferenceWrites) {
  struct Row {
    const char *name, *format;
    std::optional<DType> dtype;
    std::size_t bytes;
  };
  const Row rows[] = {{"bool", "BOOL", DType::boolean, 6},
                      {"uint8", "U8", DType::u8, 6},
                      {"int8", "I8", DType::i8, 6},
                      {"float8_e5m2", "F8_E5M2", DType::f8e5m2, 6},
                      {"float8_e4m3fn", "F8_E4M3", DType::f8e4m3, 6},
                      {"float8_e8m0fnu", "F8_E8M0", DType::e8m0, 6},
                      {"float8_e4m3fnuz", "F8_E4M3FNUZ", DType::f8e4m3fnuz, 6},
                      {"float8_e5m2fnuz", "F8_E5M2FNUZ", DType::f8e5m2fnuz, 6},
                      {"float4_e2m1fn_x2", "F4", {}, 3},
                      {"int16", "I16", DType::i16, 12},
                      {"uint16", "U16", DType::u16, 12},
                      {"float16", "F16", DType::f16, 12},
                      {"bfloat16", "BF16", DType::bf16, 12},
                      {"int32", "I32", DType::i32, 24},
                      {"uint32", "U32", DType::u32, 24},
                      {"float32", "F32", DType::f32, 24},
                      {"complex64", "C64", DType::c64, 48},
                      {"float64", "F64", DType::f64, 48},
                      {"int64", "I64", DType::i64, 48},
                      {"uint64", "U64", DType::u64, 48}};
  const SafetensorsFile f(data_file("all_types.safetensors"));
  EXPECT_EQ(f.count(), 23);
  for (std::size_t k = 0; k < std::size(rows); ++k) {
    const Row& r = rows[k];
    SCOPED_TRACE(r.name);
    const SafetensorsEntry e = f.find(r.name);
    EXPECT_EQ(e.format, r.format);
    EXPECT_EQ(e.dtype, r.dtype);
    std::string want;
    for (std::size_t i = 0; i < r.bytes; ++i) {
      want += static_cast<char>((37 * i + 11 * k + 5) % 256 & (e.dtype == DType::boolean ? 1 : 255));
    }
    EXPECT_EQ(text_of(f.bytes(r.name)), want);
    if (r.dtype) {
      const Tensor t = f.at(r.name);
      EXPECT_EQ(t.dtype(), *r.dtype);
      EXPECT_EQ(t.shape(), (std::vector<Index>{2, 3}));
      EXPECT_EQ(std::memcmp(t.bytes().data(), want.data(), want.size()), 0);
      EXPECT_EQ(safetensors_dtype(*r.dtype), r.format);
    } else {
      EXPECT_TRUE(
          refuses([&] { f.at(r.name); }, std::string("has dtype ") + r.format + ", which rlx has no element type for"));
    }
  }
  EXPECT_EQ(f.at("empty").shape(), (std::vector<Index>{0, 7}));
  EXPECT_EQ(load<double>(f.at("scalar")), std::vector<double>{2.5});
  EXPECT_EQ(load<double>(f.at("gr\u00f6\u00dfe \"q\"\n")), std::vector<double>{0x1234});
  EXPECT_EQ(f.metadata().at("note"), "tab\tand \u00fc \U0001f600");
}

TEST(Safetensors, AgreesWithTheVerdictsOfTheReference) {
  std::istringstream in(read_text(data_file("safetensors_verdicts.txt")));
  std::string line, hex, theirs, ours;
  const auto unhex = [](const std::string& digits) {
    std::string out;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
      out += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    return out;
  };
  std::getline(in, line);
  std::getline(in, line);
  const std::string base = unhex(line);
  std::size_t start = 0, end = 0;
  int accepted = 0, rejected = 0;
  while (in >> start >> end >> theirs >> ours >> hex) {
    const std::string file = base.substr(0, start) + unhex(hex == "-" ? "" : hex) + base.substr(base.size() - end);
    bool ok = true;
    std::string message;
    try {
      parse(file);
    } catch (const Error& e) {
      ok = false;
      message = e.what();
    }
    EXPECT_EQ(ok, ours == "a") << testing::PrintToString(file) << " " << message;
    EXPECT_TRUE(ok || message.find("'f'") != std::string::npos) << message;
    ++(ok ? accepted : rejected);
  }
  EXPECT_EQ(accepted, 105);
  EXPECT_EQ(rejected, 1198);
}

TEST(Safetensors, MessagesNameThePlaceAndTheValue) {
  const auto header = [](const std::string& text, const std::string& data, std::string_view part) {
    return refuses([&] { parse(packed(text, data)); }, part);
  };
  const std::string a = R"({"a":{"dtype":"U8","shape":)";
  EXPECT_TRUE(refuses([] { parse("1234567"); }, "'f' has 7 bytes"));
  EXPECT_TRUE(refuses([] { parse(std::string("\1\xe1\xf5\5\0\0\0\0{", 9)); },
                      "states a header of 100000001 bytes at offset 0"));
  EXPECT_TRUE(refuses([] { parse(std::string("\3\0\0\0\0\0\0\0{}", 10)); },
                      "states a header of 3 bytes at offset 0, but only 2 follow"));
  EXPECT_TRUE(header("[]", "", "header of 'f': byte 0: expected '{' as first byte, found '[]'"));
  EXPECT_TRUE(header("{\"a\":" + std::string(1000, '['), "", "byte 5: expected '{', found '[[["));
  EXPECT_TRUE(header(a + R"([1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", "x",
                     "tensor 'a' is there twice"));
  EXPECT_TRUE(header(a + R"([2],"data_offsets":[0,1]}})", "x",
                     "byte 1: tensor 'a' of dtype U8 needs 2 bytes, its data_offsets [0, 1] hold 1"));
  EXPECT_TRUE(header(a + R"([1],"data_offsets":[1,0]}})", "x", "data_offsets [1, 0], expected begin <= end <= 1"));
  EXPECT_TRUE(
      header(a + R"([1],"data_offsets":[0,9223372036854775807]}})", "x", "data_offsets [0, 9223372036854775807]"));
  EXPECT_TRUE(
      header(a + R"([1],"data_offsets":[1,2]}})", "xy", "tensor 'a' begins at data offset 1, expected 0 (a hole)"));
  EXPECT_TRUE(
      header(a + R"([1],"data_offsets":[0,1]}})", "xy", "the tensors end at data offset 1, the file holds 2 bytes"));
  EXPECT_TRUE(header(a + R"([4294967296,4294967296],"data_offsets":[0,1]}})", "x",
                     "the shape of tensor 'a' overflows 63 bits"));
  EXPECT_TRUE(header(a + R"([-1],"data_offsets":[0,1]}})", "x",
                     "byte 28: an extent must be a whole number of at least 0, found '-1]"));
  EXPECT_TRUE(header(R"({"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}})", "x",
                     "tensor 'a' has the unknown dtype 'Q4', known are BOOL"));
  EXPECT_TRUE(header(R"({"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})", "x",
                     "dtype F4 has 4 bits, which fill no whole bytes"));
  EXPECT_TRUE(header(R"({"a":{"dtype":"U8","shape":[1]}})", "x", "tensor 'a' has no field 'data_offsets'"));
  EXPECT_TRUE(header(a + R"([1],"extra":1}})", "x", "tensor 'a' has the unknown field 'extra'"));
  EXPECT_TRUE(header(R"({"__metadata__":{"k":1}})", "", "expected a string, found '1}}'"));
  EXPECT_TRUE(header(R"({"__metadata__":{"k":"\ud800"}})", "", "lone surrogate"));
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_TRUE(header(a + "[" + ones + "],\"data_offsets\":[0,1]}}", "x", "tensor 'a' has more than 64 dimensions"));
}

TEST(Safetensors, RoundTripOfEveryType) {
  const std::string path = make_folder() + "/a.safetensors";
  std::map<std::string, Tensor> tensors;
  Random random(1);
  for (const DType type : all_dtypes()) {
    if (bits(type) < 8) continue;
    Tensor t(type, {3, 5});
    for (Index i = 0; i < t.count(); ++i) t.set_code(i, random.next());
    tensors.emplace(name(type), t);
  }
  tensors.emplace("none", Tensor(DType::f32, {4, 0}));
  tensors.emplace("one", Tensor::scalar(DType::bf16, 1.5));
  tensors.emplace("quote\" back\\ tab\t \u00fc", Tensor::scalar(DType::i64, -7));
  const std::map<std::string, std::string> metadata{{"a", "b\n\"\\"}, {"", ""}};
  write_safetensors(path, tensors, metadata);
  for (const FileMode mode : {FileMode::map, FileMode::read}) {
    const SafetensorsFile f(path, mode);
    EXPECT_EQ(f.count(), static_cast<Index>(tensors.size()));
    EXPECT_EQ(f.metadata(), metadata);
    for (const auto& [key, tensor] : tensors) EXPECT_TRUE(identical(f.at(key), tensor)) << key;
    EXPECT_EQ(f.copies(), 0);
  }
}

TEST(Safetensors, TheWriterRefusesWhatTheFormatLacks) {
  const std::string folder = make_folder(), path = folder + "/a";
  const Tensor t = Tensor::scalar(DType::f32, 1);
  EXPECT_TRUE(
      refuses([&] { write_safetensors(path, {{"a", Tensor(DType::i4, {2})}}); }, "safetensors has no element type i4"));
  EXPECT_TRUE(refuses([&] { write_safetensors(path, {{"__metadata__", t}}); }, "cannot be called '__metadata__'"));
  EXPECT_TRUE(refuses([&] { write_safetensors(path, {{"\xff", t}}); }, "tensor name '\\xff': byte 1: invalid UTF-8"));
  EXPECT_TRUE(refuses([&] { write_safetensors(path, {}, {{"a", "\xc3"}}); }, "metadata value '\\xc3'"));
  EXPECT_TRUE(
      refuses([&] { write_safetensors(path, {{"a", t.reshaped(std::vector<Index>(65, 1))}}); }, "has 65 dimensions"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  write_safetensors(path, {});
  EXPECT_EQ(SafetensorsFile(path).count(), 0);
}

class Shards : public testing::Test {
 protected:
  void SetUp() override {
    folder = make_folder();
    write_safetensors(folder + "/m-1.safetensors",
                      {{"a", Tensor::scalar(DType::f32, 1)}, {"b", Tensor::scalar(DType::f32, 2)}});
    write_safetensors(folder + "/m-2.safetensors",
                      {{"c", Tensor::scalar(DType::f32, 3)}, {"a", Tensor::scalar(DType::f32, 4)}});
  }
  std::string index(const std::string& text) const {
    const std::string path = folder + "/model.safetensors.index.json";
    write_text(path, text);
    return path;
  }
  bool refused(const std::string& text, std::string_view part) const {
    return refuses([&] { SafetensorsModel m(index(text)); }, part);
  }
  std::string folder;
};

TEST_F(Shards, AreJoinedByTheIndex) {
  const std::string path = index(R"({"metadata":{"total_size":12,"x":[{"y":[1.5e3,null,true,"z"]}]},"weight_map":)"
                                 R"({"a":"m-1.safetensors","\u0063":"m-2.safetensors"}})");
  for (const std::string& p : {path, folder}) {
    const SafetensorsModel m(p);
    EXPECT_EQ(m.names(), (std::vector<std::string>{"a", "c"}));
    EXPECT_EQ(load<double>(m.at("a")), std::vector<double>{1});
    EXPECT_EQ(load<double>(m.at("c")), std::vector<double>{3});
    EXPECT_EQ(m.files().size(), 2u);
    EXPECT_FALSE(m.contains("b"));  // the index leaves it out
    EXPECT_TRUE(refuses([&] { m.at("b"); }, "index.json' has no tensor 'b'"));
    EXPECT_EQ(m.find("c").format, "F32");
  }
  const SafetensorsModel one(folder + "/m-1.safetensors");
  EXPECT_EQ(one.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(load<double>(one.at("b")), std::vector<double>{2});
}

TEST_F(Shards, BadIndicesAreRefused) {
  EXPECT_TRUE(refused(R"({"weight_map":{"a":"../m-1.safetensors"}})", "names the file '../m-1.safetensors'"));
  EXPECT_TRUE(refused(R"({"weight_map":{"a":"/etc/passwd"}})", "names the file '/etc/passwd'"));
  EXPECT_TRUE(refused(R"({"weight_map":{"a":"m-1.safetensors\u0000"}})", "'m-1.safetensors\\x00'"));
  EXPECT_TRUE(refused(R"({"weight_map":{"a":"m-3.safetensors"}})", "No such file or directory"));
  EXPECT_TRUE(refused(R"({"weight_map":{"x":"m-1.safetensors"}})", "says that tensor 'x' is in"));
  EXPECT_TRUE(
      refused(R"({"weight_map":{"a":"m-1.safetensors","\u0061":"m-2.safetensors"}})", "tensor 'a' is there twice"));
  EXPECT_TRUE(refused(R"({"weight_map":{},"weight_map":{}})", "weight_map is there twice"));
  EXPECT_TRUE(refused(R"({})", "the index has no weight_map"));
  EXPECT_TRUE(refused(R"({"weight_map":{"a":1}})", "byte 19: expected a string, found '1}}'"));
  EXPECT_TRUE(refused(R"({"weight_map":[]})", "expected '{', found '[]}'"));
  EXPECT_TRUE(refused("{\"metadata\":" + std::string(100000, '['), "nested more than 16 levels deep"));
  EXPECT_TRUE(refused(R"({"metadata":1e,"weight_map":{}})", "expected a value, found '1e,"));
  EXPECT_TRUE(refused(R"({"weight_map":{}} x)", "expected the end, found 'x'"));
  EXPECT_TRUE(refused(R"({"weight_map":{"a":")" + std::string(2000, 'a') + "\"}}", "a file name of 2000 bytes"));
  EXPECT_TRUE(refuses([&] { SafetensorsModel m(make_folder()); },
                      "has neither model.safetensors.index.json nor model.safetensors"));
}

}  // namespace
}  // namespace rlx::test
