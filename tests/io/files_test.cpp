// Mapped files, contained paths, and files that appear whole.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.h"
#include "core/os_posix.h"
#include "io/bounded.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

TEST(Files, MapsAndReadsTheSameBytes) {
  const std::string path = make_folder() + "/a";
  write_text(path, "hello");
  for (const FileMode mode : {FileMode::map, FileMode::read}) {
    Bytes b;
    {
      const MappedFile f(path, mode);
      EXPECT_EQ(f.size(), 5);
      b = f.slice(1, 3);
    }
    EXPECT_EQ(text_of(b), "ell");  // the mapping outlives the file object
    EXPECT_EQ(b.writable, mode == FileMode::read);
  }
}

TEST(Files, AMappedTensorIsCopiedBeforeItIsWritten) {
  const std::string path = make_folder() + "/a";
  write_text(path, "abc");
  Tensor t(TensorType(DType::u8, {3}), {MappedFile(path).bytes()});
  t.mutable_bytes()[0] = std::byte{'x'};  // the tensor is the only owner of the mapping
  EXPECT_EQ(load<double>(t), (std::vector<double>{'x', 'b', 'c'}));
  EXPECT_EQ(read_text(path), "abc");
}

TEST(Files, LargeMemoryIsWritable) {
  for (const Index size : {Index{0}, Index{1}, Index{4} << 20, (Index{5} << 20) + 3}) {
    const Bytes b = allocate_large(size);
    ASSERT_EQ(b.data.size(), static_cast<std::size_t>(size));
    EXPECT_TRUE(b.writable);
    for (std::size_t i = 0; i < b.data.size(); ++i) const_cast<std::byte&>(b.data[i]) = static_cast<std::byte>(i % 251);
    for (std::size_t i = 0; i < b.data.size(); ++i) ASSERT_EQ(b.data[i], static_cast<std::byte>(i % 251));
  }
}

TEST(Files, RefusesWhatIsNoRegularFile) {
  const std::string folder = make_folder();
  for (const FileMode mode : {FileMode::map, FileMode::read}) {
    const auto open = [&](const std::string& name) { return [=] { MappedFile(folder + name, mode); }; };
    EXPECT_TRUE(refuses(open("/none"), "cannot open '" + folder + "/none': No such file or directory"));
    EXPECT_TRUE(refuses(open(""), "is a directory, a regular file was expected"));
    write_text(folder + "/empty", "");
    EXPECT_TRUE(refuses(open("/empty"), "empty' is empty"));
    ::mkfifo((folder + "/fifo").c_str(), 0600);
    EXPECT_TRUE(refuses(open("/fifo"), "is a FIFO"));
    EXPECT_TRUE(refuses([&] { MappedFile("/dev/zero", mode); }, "is a device"));
    EXPECT_TRUE(refuses([&] { MappedFile("", mode); }, "a file name is empty"));
    EXPECT_TRUE(refuses([&] { MappedFile(std::string("a\0b", 3), mode); }, "'a\\x00b' contains a zero byte"));
  }
}

TEST(Files, RefusesUnreadableFiles) {
  const std::string path = make_folder() + "/a";
  write_text(path, "x");
  ::chmod(path.c_str(), 0);
  const uid_t user = ::geteuid();
  ASSERT_EQ(::seteuid(user == 0 ? 65534 : user), 0);  // the superuser reads every file
  EXPECT_TRUE(refuses([&] { MappedFile f(path); }, "Permission denied"));
  ASSERT_EQ(::seteuid(user), 0);
}

TEST(Files, RefusesSlicesOutside) {
  const std::string path = make_folder() + "/a";
  write_text(path, "hello");
  const MappedFile f(path);
  for (const auto& [begin, count] :
       {std::pair<Index, Index>{0, 6}, {6, 0}, {-1, 1}, {1, -1}, {1, INT64_MAX}, {INT64_MAX, 1}}) {
    EXPECT_TRUE(refuses([&] { f.slice(begin, count); }, "is outside"));
  }
  EXPECT_EQ(f.slice(5, 0).data.size(), 0u);
}

TEST(Files, SiblingsStayInTheFolder) {
  const std::string folder = make_folder();
  fs::create_directory(folder + "/sub");
  const std::string index = folder + "/sub/index.json";
  write_text(index, "{}");
  write_text(folder + "/sub/a", "x");
  write_text(folder + "/outside", "x");
  EXPECT_EQ(sibling_path(index, "a"), fs::canonical(folder + "/sub/a").string());
  for (const std::string name :
       {"", ".", "..", "../outside", "/etc/passwd", "sub/../../outside", "a/b", "a\\b", "C:\\x", "./a"}) {
    EXPECT_TRUE(refuses([&] { sibling_path(index, name); }, "a plain file name in the same folder was expected"))
        << name;
  }
  EXPECT_TRUE(refuses([&] { sibling_path(index, std::string("a\0b", 3)); }, "'a\\x00b'"));
  EXPECT_TRUE(refuses([&] { sibling_path(index, std::string(256, 'a')); }, "(256 bytes)"));
  EXPECT_TRUE(refuses([&] { sibling_path(index, "none"); }, "No such file"));
  fs::create_symlink("../outside", folder + "/sub/link");
  EXPECT_TRUE(refuses([&] { sibling_path(index, "link"); }, "outside of its folder"));
  fs::create_symlink("a", folder + "/sub/inner");
  EXPECT_EQ(sibling_path(index, "inner"), fs::canonical(folder + "/sub/a").string());
}

TEST(Files, SiblingsMayBeLinksIntoTheFolderOfTheResolvedIndex) {
  const std::string folder = make_folder();
  fs::create_directories(folder + "/blobs");
  fs::create_directories(folder + "/snapshots/1");
  write_text(folder + "/blobs/123", "{}");
  write_text(folder + "/blobs/456", "x");
  fs::create_symlink("../../blobs/123", folder + "/snapshots/1/index.json");
  fs::create_symlink("../../blobs/456", folder + "/snapshots/1/a");
  EXPECT_EQ(sibling_path(folder + "/snapshots/1/index.json", "a"), fs::canonical(folder + "/blobs/456").string());
}

TEST(Files, AtomicFilesAppearWhole) {
  const std::string folder = make_folder(), path = folder + "/a";
  write_text(path, "old");
  {
    AtomicFile f(path);
    f.write("new");
    EXPECT_EQ(f.size(), 3);
    EXPECT_EQ(read_text(path), "old");
  }
  EXPECT_EQ(read_text(path), "old");
  {
    AtomicFile f(path);
    f.write("new");
    f.commit();
  }
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  EXPECT_TRUE(refuses([&] { AtomicFile f(folder + "/none/a"); }, "No such file or directory"));
  fs::create_directory(folder + "/sub");
  EXPECT_TRUE(refuses([&] { AtomicFile(folder + "/sub").commit(); }, "it is no regular file"));
  fs::create_symlink("a", folder + "/link");  // stays a link; its target is replaced
  write_text(folder + "/a", "old");
  {
    AtomicFile f(folder + "/link");
    f.write("newer");
    f.commit();
  }
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
  EXPECT_EQ(read_text(folder + "/a"), "newer");
  ASSERT_EQ(::mkfifo((folder + "/fifo").c_str(), 0600), 0);
  EXPECT_TRUE(refuses([&] { AtomicFile f(folder + "/fifo"); }, "it is no regular file"));
  EXPECT_TRUE(fs::is_fifo(folder + "/fifo"));
  fs::remove(folder + "/fifo");
  fs::remove(folder + "/link");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2);
}

}  // namespace
}  // namespace rlx::test
