// ONNX files that lie: each is refused by an Error that says why, or read rightly, without more memory than the file.
#include "io/onnx_hostile.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

std::string bounded(const std::string& bytes, std::string_view part) { return import_bounded(bytes, part, 128); }

NodeText simple(const std::string& op, std::vector<std::string> attributes = {}) {
  return {op, {"x"}, {"y"}, std::move(attributes)};
}

// --- external data ---

/// A folder with `secret` outside of the model's folder `home`, which holds model.onnx and weights.
struct Folder {
  std::string root = make_folder(), home = root + "/home";
  Folder() {
    fs::create_directory(home);
    write_text(root + "/secret", "12345678");
    write_text(home + "/weights", "\1\2\3\4\5\6\7\10");
  }
  Graph import(const std::vector<std::pair<std::string, std::string>>& entries) const {
    const NodeText add{"Add", {"x", "w"}, {"y"}, {}};
    write_text(home + "/model.onnx",
               one_node(add, {external_tensor("w", 2, {8}, entries)}, 17, {value_info("x", 2, {8})}));
    return import_onnx(home + "/model.onnx");
  }
  bool refused_at(const std::string& location, std::string_view part) const {
    return refuses([&] { import({{"location", location}}); }, part);
  }
};

TEST(OnnxHostile, ExternalDataStaysInTheFolder) {
  const Folder f;
  EXPECT_EQ(f.import({{"location", "weights"}}).outputs.size(), 1u);
  for (const std::string location : {"../secret", "a/../../secret", "./weights", "..", ".", "/etc/passwd", "C:\\secret",
                                     "/dev/zero", "/proc/self/mem", "sub/weights"}) {
    EXPECT_TRUE(f.refused_at(location, "a plain file name in the same folder was expected")) << location;
  }
  EXPECT_TRUE(f.refused_at(std::string("weights\0x", 9), "is not UTF-8, or holds a zero byte"));
  EXPECT_TRUE(f.refused_at("none", "No such file or directory"));
  EXPECT_TRUE(refuses([&] { f.import({{"offset", "0"}}); }, "external data without a location"));
}

TEST(OnnxHostile, ExternalDataIsARegularFile) {
  const Folder f;
  fs::create_symlink("../secret", f.home + "/link");
  EXPECT_TRUE(f.refused_at("link", "is a link to"));
  fs::create_symlink("weights", f.home + "/inner");
  EXPECT_EQ(f.import({{"location", "inner"}}).outputs.size(), 1u);
  fs::create_symlink("/dev/zero", f.home + "/zero");
  EXPECT_TRUE(f.refused_at("zero", "is a link to"));
  ::mkfifo((f.home + "/fifo").c_str(), 0600);
  EXPECT_TRUE(f.refused_at("fifo", "is a FIFO"));
  fs::create_directory(f.home + "/folder");
  EXPECT_TRUE(f.refused_at("folder", "is a directory"));
  fs::create_hard_link(f.home + "/weights", f.home + "/hard");  // a file of the folder like any other
  EXPECT_EQ(f.import({{"location", "hard"}}).outputs.size(), 1u);
  write_text(f.home + "/empty", "");
  EXPECT_TRUE(f.refused_at("empty", "is empty"));
}

TEST(OnnxHostile, ExternalDataLiesInItsFile) {
  const Folder f;
  const auto at = [&](const std::string& offset, const std::string& length) {
    return f.import({{"location", "weights"}, {"offset", offset}, {"length", length}});
  };
  EXPECT_EQ(at("0", "8").outputs.size(), 1u);
  const auto no = [&](const std::string& offset, const std::string& length, std::string_view part) {
    EXPECT_TRUE(refuses([&] { at(offset, length); }, part)) << offset << ' ' << length;
  };
  no("1", "8", "8 bytes of external data at offset 1, the file 'weights' has 8");
  no("-1", "8", "offset of external data is '-1', expected a decimal number");
  no("0", "-1", "length of external data is '-1', expected a decimal number");
  no("0", "1000000000000000000", "needs 8 bytes, its external data states 1000000000000000000");
  no("9223372036854775807", "8", "at offset 9223372036854775807");
  no("18446744073709551615", "8", "which overflows 63 bits");
  no("0x0", "8", "expected a decimal number");
  no(" 0", "8", "expected a decimal number");
  no("0", "7", "states 7");
  EXPECT_TRUE(refuses([&] { f.import({{"location", "weights"}, {"location", "weights"}}); }, "has 'location' twice"));
}

TEST(OnnxHostile, TwoTensorsMayShareARange) {
  const Folder f;
  GraphText g;
  g.nodes = {{"Add", {"a", "b"}, {"y"}, {}}};
  for (const char* name : {"a", "b"})
    g.initializers.push_back(external_tensor(name, 2, {8}, {{"location", "weights"}}));
  g.outputs = {bytes_field(1, "y")};
  write_text(f.home + "/model.onnx", model(g));
  const auto y = evaluate(import_onnx(f.home + "/model.onnx"), std::vector<Tensor>{});
  EXPECT_EQ(load<double>(y[0]), (std::vector<double>{2, 4, 6, 8, 10, 12, 14, 16}));
}

// --- tensors ---

std::string with_tensor(const std::string& tensor) { return one_node({"Add", {"x", "w"}, {"y"}, {}}, {tensor}); }

TEST(OnnxHostile, TensorsHoldWhatTheyState) {
  const std::string six(24, '\0');
  EXPECT_EQ(import_text(with_tensor(raw_tensor("w", 1, {2, 3}, six))).outputs.size(), 1u);
  EXPECT_TRUE(refused(with_tensor(raw_tensor("w", 1, {2, 4}, six)), "needs 32 bytes, its raw_data holds 24"));
  EXPECT_TRUE(refused(with_tensor(raw_tensor("w", 1, {2, 3}, six) + bytes_field(4, six)),
                      "has raw_data and elements of another kind"));
  EXPECT_TRUE(refused(with_tensor(raw_tensor("w", 1, {-1, 3}, six)), "negative"));
  EXPECT_TRUE(refused(with_tensor(raw_tensor("w", 1, {1ll << 40, 1ll << 40}, "")), "overflows 63 bits"));
  EXPECT_TRUE(refused(with_tensor(raw_tensor("w", 1, {1ll << 62}, "")), "overflows 63 bits"));
  EXPECT_TRUE(refused(with_tensor(raw_tensor("w", 8, {1}, "a")), "element type STRING, which rlx does not have"));
  EXPECT_TRUE(refused(with_tensor(raw_tensor("w", 99, {1}, "a")), "element type type 99"));
  EXPECT_TRUE(refused(with_tensor(raw_tensor("w", 1, {2, 3}, six) + bytes_field(3, "")), "is a segment"));
  const std::string head = number_field(1, 3) + number_field(2, 1) + bytes_field(8, "w");
  EXPECT_TRUE(refused(with_tensor(head), "has 3 elements, float_data holds 0"));
  EXPECT_TRUE(refused(with_tensor(head + bytes_field(4, std::string(8, '\0'))), "float_data holds 2"));
  EXPECT_TRUE(refused(with_tensor(head + bytes_field(4, std::string(11, '\0'))), "a size that fits none"));
  EXPECT_TRUE(refused(with_tensor(head + bytes_field(7, std::string(3, '\1'))), "elements in int64_data"));
  EXPECT_TRUE(refused(with_tensor(head + number_field(4, 1)), "an element of another wire type"));
  EXPECT_EQ(import_text(with_tensor(head + float_field(4, 1) + float_field(4, 2) + float_field(4, 3))).outputs.size(),
            1u);
}

TEST(OnnxHostile, ZeroAmongHugeSizesIsNoElement) {
  GraphText g;
  g.nodes = {{"Identity", {"w"}, {"y"}, {}}};
  g.initializers = {raw_tensor("w", 1, {1ll << 40, 0, 1ll << 40}, "")};
  g.outputs = {bytes_field(1, "y")};
  EXPECT_EQ(bounded(model(g), ""), "");
}

TEST(OnnxHostile, FourBitTensorsOfOddSize) {
  const auto cast = [](const std::string& raw) {
    return one_node({"Cast", {"w"}, {"y"}, {integer_attribute("to", 7)}}, {raw_tensor("w", 22, {3}, raw)}, 21);
  };
  const auto y = evaluate(import_text(cast("\x78\x03")), NamedTensors{{"x", Tensor(DType::f32, {2, 3})}});
  EXPECT_EQ(load<double>(y[0]), (std::vector<double>{-8, 7, 3}));
  EXPECT_TRUE(refused(cast("\x78"), "needs 2 bytes, its raw_data holds 1"));
  EXPECT_TRUE(refused(cast("\x78\x03\x01"), "needs 2 bytes, its raw_data holds 3"));
}

TEST(OnnxHostile, ManyDimensions) {
  EXPECT_TRUE(refused(with_tensor(bytes_field(1, std::string(1000, '\1'))), "more than 64 dimensions"));
  // 2^31-1 sizes are stated, three are there.
  EXPECT_TRUE(refused(with_tensor(varint(1 << 3 | 2) + varint(0x7fffffff) + "\1\1\1"), "2147483647 bytes, 3 are left"));
  std::string shape;
  for (int i = 0; i < 65; ++i) shape += bytes_field(1, number_field(1, 1));
  const std::string type = bytes_field(1, number_field(1, 1) + bytes_field(2, shape));
  EXPECT_TRUE(refused(one_node(simple("Neg"), {}, 17, {bytes_field(1, "x") + bytes_field(2, type)}),
                      "more than 64 dimensions"));
}

// --- the wire format ---

std::string nested_branches(int depth) {
  GraphText inner;
  inner.nodes = {{"Identity", {"x"}, {"o0"}, {}}};
  inner.outputs = {bytes_field(1, "o0")};
  std::string graph = message(inner);
  for (int i = 1; i <= depth; ++i) {
    GraphText g;
    const std::string out = "o" + std::to_string(i);
    g.nodes = {{"If", {"c"}, {out}, {graph_attribute("then_branch", graph), graph_attribute("else_branch", "")}}};
    g.outputs = {bytes_field(1, out)};
    graph = message(g);
  }
  return number_field(1, 8) +
         bytes_field(7,
                     graph + bytes_field(11, value_info("x", 1, {2})) + bytes_field(5, raw_tensor("c", 9, {}, "\1"))) +
         bytes_field(8, number_field(2, 17));
}

TEST(OnnxHostile, NestedGraphs) {
  EXPECT_EQ(bounded(nested_branches(20), ""), "");
  EXPECT_EQ(bounded(nested_branches(40), "nested deeper than 32"), "");
}

TEST(BulkOnnxHostile, GraphsNestedTenThousandTimes) {
  EXPECT_EQ(bounded(nested_branches(10'000), "nested deeper than 32"), "");
}

TEST(OnnxHostile, NestedTypes) {
  std::string type = bytes_field(1, number_field(1, 1));
  for (int i = 0; i < 10'000; ++i) type = bytes_field(4, bytes_field(1, type));
  const std::string info = bytes_field(1, "x") + bytes_field(2, type);
  EXPECT_EQ(bounded(one_node(simple("Neg"), {}, 17, {info}), "nested deeper than 32"), "");
}

TEST(OnnxHostile, NumbersOnTheWire) {
  const std::string ten = std::string(9, '\xff');
  EXPECT_TRUE(refused(varint(1 << 3) + ten + "\x02", "more than 64 bits"));
  EXPECT_TRUE(refused(varint(1 << 3) + ten + "\xff\x01", "more than 64 bits"));
  EXPECT_TRUE(refused(varint(1 << 3) + ten, "is cut off"));
  EXPECT_TRUE(refused(varint(1 << 3) + ten + "\x01" + bytes_field(7, ""), "has IR version -1"));
  EXPECT_TRUE(refused(std::string(1, '\0'), "field key 0 is not one"));
  EXPECT_TRUE(refused(varint(1ull << 35), "is not one"));
  for (const int wire : {3, 4, 6, 7}) {
    EXPECT_TRUE(refused(varint(static_cast<std::uint64_t>(99 << 3 | wire)), "which ONNX does not use")) << wire;
  }
  EXPECT_TRUE(refused(varint(7 << 3 | 2) + varint(1ull << 63), "are left"));
  EXPECT_TRUE(refused(varint(7 << 3 | 2) + varint(~0ull), "are left"));
  EXPECT_TRUE(refused(number_field(7, 1), "graph is a number, expected bytes"));
  EXPECT_TRUE(refused(bytes_field(1, "x"), "ir_version is not written as an integer"));
  EXPECT_TRUE(refused("", "has no graph"));
  EXPECT_TRUE(refused(number_field(1, 8), "has no graph"));
}

TEST(OnnxHostile, FieldsThatAreThereTwice) {
  const std::string good = one_node(simple("Neg"));
  EXPECT_EQ(import_text(good).outputs.size(), 1u);
  EXPECT_TRUE(refused(good + bytes_field(7, ""), "graph is there twice"));
  EXPECT_TRUE(refused(good + number_field(1, 8), "ir_version is there twice"));
  NodeText n = simple("Neg", {integer_attribute("a", 1) + number_field(3, 2)});
  EXPECT_TRUE(refused(one_node(n), "a value is there twice"));
  n.attributes = {integer_attribute("a", 1) + bytes_field(8, "\1")};
  EXPECT_TRUE(refused(one_node(n), "has values of several types"));
  n.attributes = {bytes_field(1, "a") + number_field(3, 1) + number_field(20, 1)};
  EXPECT_TRUE(refused(one_node(n), "is stated to be float, its value is of another type"));
  n.attributes = {bytes_field(1, "a") + number_field(20, 4)};
  EXPECT_TRUE(refused(one_node(n), "has no value"));
  n.attributes = {bytes_field(1, "a") + number_field(20, 77)};
  EXPECT_TRUE(refused(one_node(n), "attribute type 77 is unknown"));
}

TEST(OnnxHostile, FloodOfUnknownFields) {
  std::string flood;
  for (int i = 0; i < 2'000'000; ++i) flood += "\xf8\x07\1";  // field 127
  EXPECT_EQ(bounded(one_node(simple("Neg")) + flood, ""), "");
}

TEST(OnnxHostile, TextThatIsNone) {
  NodeText n = simple("Neg");
  for (const std::string bad : {"\xff", "\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf5\x80\x80\x80"}) {
    n.name = bad;
    EXPECT_TRUE(refused(one_node(n), "is not UTF-8, or holds a zero byte"));
  }
  n.name = std::string(1, '\0');
  EXPECT_TRUE(refused(one_node(n), "is not UTF-8, or holds a zero byte"));
  n.name = "\xf0\x9f\x98\x80";
  EXPECT_EQ(import_text(one_node(n)).outputs.size(), 1u);
}

TEST(OnnxHostile, CutAtEveryByte) {
  const std::string whole = one_node({"Add", {"x", "w"}, {"y"}, {}}, {raw_tensor("w", 1, {3}, std::string(12, '\1'))});
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    EXPECT_THROW(import_text(whole.substr(0, i)), Error) << i;
  }
}

// A file of more than 2 GiB, which protobuf cannot read: its pages are mapped and never touched.
TEST(OnnxHostile, FileOfMoreThanTwoGibibytes) {
  const std::string path = make_folder() + "/large.onnx";
  const std::uint64_t size = (1ull << 31) + 4096;
  const std::string good = one_node(simple("Neg"));
  write_text(path, good + varint(127 << 3 | 2) + varint(size));
  fs::resize_file(path, fs::file_size(path) + size);
  EXPECT_EQ(import_onnx(path).outputs.size(), 1u);
  EXPECT_EQ(fs::remove(path), true);
}

}  // namespace
}  // namespace rlx::test
