// NumPy arrays and archives: bytes by hand, files of NumPy, round trips, refusals.
#include "io/npy.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "io/bounded.h"

namespace rlx::test {
namespace {

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string file = std::string("\x93NUMPY") + version + '\0';
  const auto n = static_cast<std::uint32_t>(header.size());
  file.append(reinterpret_cast<const char*>(&n), version == 1 ? 2 : 4);
  return file + header + data;
}

Tensor parse(const std::string& file) { return parse_npy(bytes_of(file), "f"); }

std::complex<double> element(DType type, Index i) {
  const auto x = static_cast<double>(i);
  switch (info(type).kind) {
    case DTypeClass::boolean:
      return i % 3 == 1 ? 1 : 0;
    case DTypeClass::sign:
      return x * 5 - 60;
    case DTypeClass::natural:
      return x * 10;
    case DTypeClass::real:
      return x * 0.5 - 3;
    case DTypeClass::complex:
      break;
  }
  return {x * 0.5 - 3, 24 - x};
}

void expect_pattern(const Tensor& t, DType type) {
  EXPECT_EQ(t.dtype(), type);
  EXPECT_EQ(t.shape(), (std::vector<Index>{2, 3, 4}));
  const auto values = load<std::complex<double>>(t);
  for (Index i = 0; i < 24; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], element(type, i)) << i;
}

TEST(Npy, ReadsBytesMadeByHand) {
  const std::string data("\1\0\2\0\3\0\4\0\5\0\xff\xff", 12);
  const Tensor c = parse(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n", data));
  EXPECT_EQ(c.shape(), (std::vector<Index>{2, 3}));
  EXPECT_EQ(load<double>(c), (std::vector<double>{1, 2, 3, 4, 5, -1}));
  const Tensor f = parse(npy("{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<i2\"}", data, 2));
  EXPECT_EQ(load<double>(f), (std::vector<double>{1, 3, 5, 2, 4, -1}));
  const Tensor big = parse(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (6L,), }", data, 3));
  EXPECT_EQ(load<double>(big), (std::vector<double>{256, 512, 768, 1024, 1280, -1}));
}

TEST(Npy, ArraysAreUsedInPlace) {
  const std::string path = make_folder() + "/a.npy";
  write_npy(path, Tensor::of<double>(DType::f64, {3}, {1, 2, 3}));
  const Bytes file = MappedFile(path).bytes();
  EXPECT_EQ(parse_npy(file, path).storage(), file.data.data() + 128);
}

TEST(Npy, ReadsWhatNumPyWrites) {
  for (const char* name : {"v1.npy", "v2.npy", "v3.npy"}) expect_pattern(read_npy(data_file(name)), DType::f32);
  expect_pattern(read_npy(data_file("fortran.npy"), FileMode::read), DType::i32);
  const std::pair<const char*, DType> types[] = {
      {"b1", DType::boolean}, {"i1", DType::i8},  {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64},
      {"u1", DType::u8},      {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64}, {"f2", DType::f16},
      {"f4", DType::f32},     {"f8", DType::f64}, {"c8", DType::c64}};
  for (const char* archive : {"stored.npz", "deflated.npz"}) {
    const NpzFile f(data_file(archive));
    EXPECT_EQ(f.names().size(), 55u);
    for (const std::string order : {"little", "big"}) {
      for (const auto& [code, type] : types) {
        for (const std::string layout : {"C", "F"}) {
          const std::string name = order + "_" + code + "_" + layout;
          SCOPED_TRACE(std::string(archive) + " " + name);
          ASSERT_TRUE(f.contains(name));
          expect_pattern(f.at(name), type);
        }
      }
    }
    EXPECT_EQ(f.at("empty").shape(), (std::vector<Index>{0, 5}));
    EXPECT_EQ(load<double>(f.at("scalar")), std::vector<double>{2.5});
    EXPECT_EQ(load<double>(f.at("line")), (std::vector<double>{0, 1, 2, 3, 4}));
  }
  for (const char* archive : {"streamed.npz", "zip64.npz"}) {
    SCOPED_TRACE(archive);
    const auto all = read_npz(data_file(archive));
    ASSERT_EQ(all.size(), 2u);
    expect_pattern(all.at("a"), DType::f32);
    expect_pattern(all.at("b"), DType::i64);
  }
}

TEST(Npy, RefusesElementTypesByName) {
  const std::pair<const char*, const char*> rows[] = {
      {"complex128", "'<c16' is not read"}, {"longdouble", "'<f16' is not read"}, {"string", "'<U2' is not read"},
      {"bytes", "'|S2' is not read"},       {"object", "'|O' is Python objects"}, {"date", "'<M8[s]' is not read"},
      {"record", "structured arrays"},      {"bfloat16", "'<V2' is raw bytes"},   {"float8", "'<V1' is raw bytes"}};
  for (const auto& [name, part] : rows) {
    EXPECT_TRUE(refuses([&] { read_npy(data_file(fmt::format("refused_{}.npy", name))); }, part)) << name;
  }
}

TEST(Npy, RefusesBadHeaders) {
  const auto header = [](const std::string& text, std::string_view part) {
    return refuses([&] { parse(npy(text, "x")); }, part);
  };
  const std::string a = "{'descr': '|u1', 'fortran_order': False, 'shape': ";
  EXPECT_TRUE(refuses([] { parse("\x93NUMPX"); }, "'f': offset 0: expected the magic '\\x93NUMPY'"));
  EXPECT_TRUE(refuses([] { parse("\x93NUMPY\1"); }, "offset 6: the file ends inside the header, after 7 bytes"));
  EXPECT_TRUE(refuses([] { parse(npy("{}", "", 4)); }, "offset 6: format version 4.0"));
  EXPECT_TRUE(
      refuses([] { parse(npy(std::string(10001, ' '), "")); }, "offset 8: a header of 10001 bytes, at most 10000"));
  EXPECT_TRUE(refuses([] { parse(npy("{}", "").substr(0, 11)); }, "offset 8: a header of 2 bytes, 1 follow"));
  EXPECT_TRUE(header("", "offset 10: expected '{', found the end of the header"));
  EXPECT_TRUE(header("{}", "the header has no key 'descr'"));
  EXPECT_TRUE(header(a + "(2,)}", "an array of u8[2] takes 2 bytes, 1 follow the header at offset"));
  EXPECT_TRUE(header(a + "(0,)}", "takes 0 bytes, 1 follow"));
  EXPECT_TRUE(header(a + "(1)}", "the shape is a number in parentheses"));
  EXPECT_TRUE(header(a + "1}", "offset 60: expected '(', found '1}'"));
  EXPECT_TRUE(header(a + "(-1,)}", "expected an extent of at least 0, found '-1,)}'"));
  EXPECT_TRUE(header(a + "(1.0,)}", "expected ',' or ')', found '.0,)}'"));
  EXPECT_TRUE(header(a + "(01,)}", "expected an extent of at least 0"));
  EXPECT_TRUE(header(a + "(,)}", "expected an extent of at least 0"));
  EXPECT_TRUE(header(a + "(9223372036854775808,)}", "extent '9223372036854775808' is above 2^63-1"));
  EXPECT_TRUE(header(a + "(4294967296,4294967296)}", "size of the array of 'f' overflows 63 bits"));
  EXPECT_TRUE(header("{'descr': '<f8', 'fortran_order': True, 'shape': (1152921504606846976,)}",
                     "size of the array of 'f' overflows 63 bits"));
  EXPECT_TRUE(header(a + "(1,), 'shape': (1,)}", "key 'shape' is there twice"));
  EXPECT_TRUE(header(a + "(1,), 'x': 1}", "unknown key 'x', expected descr, fortran_order, shape"));
  EXPECT_TRUE(header(a + "(1,)} x", "expected the end of the header, found 'x'"));
  EXPECT_TRUE(header(a + "(1,) 'x'", "expected ',' or '}', found"));
  EXPECT_TRUE(header("{'descr': 'u1', 'fortran_order': False, 'shape': (1,)}", "descr 'u1' has no byte order"));
  EXPECT_TRUE(
      header("{'descr': '|u2', 'fortran_order': False, 'shape': (1,)}", "descr '|u2' leaves the byte order open"));
  EXPECT_TRUE(header("{'descr': '', 'fortran_order': False, 'shape': (1,)}", "descr '' has no byte order"));
  EXPECT_TRUE(header("{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
                     "expected True or False for fortran_order, found '0, "));
  EXPECT_TRUE(header("{'descr': '|u\\x31', 'fortran_order': True, 'shape': (1,)}", "an escape in descr"));
  std::string ones = "(";
  for (int i = 0; i < 65; ++i) ones += "1,";
  EXPECT_TRUE(header(a + ones + ")}", "more than 64 dimensions"));
}

TEST(Npy, TransposesFortranOrderOfAnyShape) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Index> shape(1 + random.below(5));
    Index count = 1;
    for (Index& e : shape) {
      e = static_cast<Index>(random.below(4) == 0 ? 1 + random.below(70) : 1 + random.below(4));
      count *= e;
    }
    if (count > 200000) continue;
    const char* code[] = {"|u1", "<u2", "<u4", "<u8"};
    const std::size_t k = random.below(4), width = std::size_t{1} << k;
    std::string data, list = "(";
    for (Index e : shape) list += fmt::format("{},", e);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count) * width; ++i)
      data += static_cast<char>(random.below(256));
    const Tensor t = parse(npy(fmt::format("{{'descr':'{}','fortran_order':True,'shape':{})}}", code[k], list), data));
    for (Index i = 0; i < count; ++i) {  // i counts in C order
      Index rest = i, from = 0, step = count;
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        step /= shape[axis];
        from += rest % shape[axis] * step;
        rest /= shape[axis];
      }
      std::uint64_t want = 0;
      std::memcpy(&want, data.data() + static_cast<std::size_t>(from) * width, width);
      ASSERT_EQ(t.code(i), want) << list << " element " << i;
    }
  }
}

std::map<std::string, Tensor> samples() {
  std::map<std::string, Tensor> all;
  Random random(2);
  for (const DType type : all_dtypes()) {
    if (bits(type) < 8 || type == DType::bf16 || (is_float(type) && bits(type) == 8)) continue;
    Tensor t(type, {3, 5});
    for (Index i = 0; i < t.count(); ++i) t.set_code(i, random.next());
    all.emplace(name(type), t);
  }
  all.emplace("none", Tensor(DType::f32, {4, 0}));
  all.emplace("one", Tensor::scalar(DType::f32, 1.5));
  all.emplace("line", Tensor(DType::u8, {1000}));
  return all;
}

TEST(Npy, RoundTripOfEveryType) {
  const std::string path = make_folder() + "/a";
  for (const auto& [name, tensor] : samples()) {
    write_npy(path, tensor);
    EXPECT_TRUE(identical(read_npy(path), tensor)) << name;
  }
  for (const bool compress : {false, true}) {
    write_npz(path, samples(), compress);
    const auto back = read_npz(path);
    EXPECT_EQ(back.size(), samples().size());
    for (const auto& [name, tensor] : samples()) EXPECT_TRUE(identical(back.at(name), tensor)) << name;
  }
  for (const DType type : {DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::f8e4m3fnuz, DType::f8e5m2fnuz,
                           DType::f4e2m1, DType::e8m0, DType::i4, DType::u4, DType::i2, DType::u2}) {
    EXPECT_TRUE(refuses([&] { write_npy(path, Tensor(type, {2})); }, "which NumPy has no element type for"));
    EXPECT_TRUE(refuses([&] { write_npz(path, {{"a", Tensor(type, {2})}}); }, "array 'a' is "));
  }
}

TEST(Npz, StoredArraysAreUsedInPlace) {
  const std::string path = make_folder() + "/a.npz";
  write_npz(path,
            {{"a", Tensor::of<double>(DType::f64, {2}, {1, 2})}, {"bc", Tensor::of<double>(DType::f64, {1}, {3})}});
  const Bytes file = MappedFile(path).bytes();
  const NpzFile f(file, path);
  for (const std::string& name : f.names()) {
    const auto* p = static_cast<const std::byte*>(f.at(name).storage());
    EXPECT_TRUE(p > file.data.data() && p < file.data.data() + file.data.size()) << name;
  }
}

TEST(Npz, Zip64FieldsRoundTrip) {
  const std::string path = make_folder() + "/a.zip", content(1000, 'x');
  AtomicFile out(path);
  ZipWriter writer(out, 1);
  writer.add("a", {std::as_bytes(std::span(content))}, false);
  writer.add("b", {std::as_bytes(std::span(content)), std::as_bytes(std::span(content))}, true);
  writer.finish();
  out.commit();
  const ZipReader zip(MappedFile(path).bytes(), path);
  ASSERT_EQ(zip.count(), 2);
  const auto all = [](std::span<const std::byte>) {};
  EXPECT_EQ(text_of(zip.content(zip.entry(0), 0, all)), content);
  EXPECT_EQ(text_of(zip.content(zip.entry(1), 0, all)), content + content);
  EXPECT_LT(zip.entry(1).stored, 100);
}

/// The bytes of an archive with one deflated array, made by the writer.
std::string archive(bool compress) {
  const std::string path = make_folder() + "/a.npz";
  write_npz(path, {{"a", Tensor(DType::f32, {10000})}}, compress);
  return read_text(path);
}

/// `file` with the little-endian number at `offset` changed.
std::string with(std::string file, std::size_t offset, std::uint32_t value, std::size_t width = 4) {
  std::memcpy(file.data() + offset, &value, width);
  return file;
}

TEST(Npz, RefusesDamagedArchives) {
  const auto refused = [](const std::string& file, std::string_view part) {
    return refuses([&] { NpzFile(bytes_of(file), "f").at("a"); }, part);
  };
  const std::string file = archive(true), stored = archive(false);
  const std::size_t end = file.size() - 22, directory = end - 46 - 5;
  EXPECT_TRUE(refused("", "'f': offset 0: no end record"));
  EXPECT_TRUE(refused(file.substr(0, file.size() - 1), "no end record"));
  EXPECT_TRUE(refused(file + "x", "no end record"));
  EXPECT_TRUE(refused("x" + file, "does not end at the end record"));
  EXPECT_TRUE(refused(with(file, end + 10, 0x00020002, 2), "several disks"));
  EXPECT_TRUE(
      refused(with(with(file, end + 8, 2, 2), end + 10, 2, 2), "2 entries do not fit into a directory of 51 bytes"));
  EXPECT_TRUE(refused(with(with(file, end + 8, 0, 2), end + 10, 0, 2), "51 bytes follow the last directory entry"));
  EXPECT_TRUE(refused(with(file, directory, 0), "no directory entry 0 of 1"));
  EXPECT_TRUE(refused(with(file, directory + 8, 0x801, 2), "entry 'a.npy' has flags 0x801: encrypted"));
  EXPECT_TRUE(refused(with(file, directory + 10, 12, 2), "entry 'a.npy' has method 12"));
  EXPECT_TRUE(refused(with(file, directory + 10, 0, 2), "is stored with "));
  EXPECT_TRUE(refused(with(file, directory + 16, 0), "sizes or CRC of entry 'a.npy' differ from the directory"));
  EXPECT_TRUE(refused(with(file, directory + 24, 0x7fffffff), "unpacked 2147483647: not possible"));
  EXPECT_TRUE(refused(with(file, directory + 24, 0xffffffff), "a size of 4294967295 without ZIP64 field"));
  EXPECT_TRUE(refused(with(file, directory + 42, 1), "no local header"));
  EXPECT_TRUE(refused(with(file, 30, 'b', 1), "the local name 'b.npy' differs from 'a.npy'"));
  EXPECT_TRUE(refused(with(with(file, 14, 1), directory + 16, 1), "is damaged: its CRC is "));
  EXPECT_TRUE(refused(with(stored, 5000, 1), "is damaged: its CRC is "));
  EXPECT_TRUE(refuses([&] { NpzFile(bytes_of(file), "f").at("b"); }, "'f' has no array 'b'"));
}

TEST(Npz, UnpacksNoMoreThanTheHeaderAsksFor) {
  const std::string file = archive(true);
  const std::size_t end = file.size() - 22, directory = end - 46 - 5;
  for (const std::uint32_t size : {40127u, 40129u, 41000u, 127u, 0u}) {  // 128 + 40000 is right
    const std::string wrong = with(with(file, 22, size), directory + 24, size);
    EXPECT_TRUE(refuses([&] { NpzFile(bytes_of(wrong), "f").at("a"); }, "'f': ")) << size;
  }
  EXPECT_EQ(NpzFile(bytes_of(file), "f").unpacked_bytes("a"), 40128);
}

TEST(Npz, RefusesOverlappingEntries) {
  // Two directory entries over one piece of content, the base of the strongest archive bombs.
  const std::string path = make_folder() + "/a.npz";
  write_npz(path, {{"a", Tensor(DType::f32, {100})}, {"b", Tensor(DType::f32, {100})}});
  std::string file = read_text(path);
  const std::size_t end = file.size() - 22, second = end - 51;
  file = with(file, second + 42, 0);  // the local header of the first
  EXPECT_TRUE(refuses([&] { NpzFile(bytes_of(file), "f"); }, "'f': offset 0: "));
}

}  // namespace
}  // namespace rlx::test
