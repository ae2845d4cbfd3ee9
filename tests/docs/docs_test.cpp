// The documentation is true: quoted code is in the file it names, and graphs in text form are read and printed back.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "ir/print.h"
#include "models.h"

namespace rlx {
namespace {

const std::filesystem::path root = std::filesystem::path(RLX_TEST_DATA) / ".." / "..";

// A fenced block of a page: its language, its text, and the file that the line before it names as
// `<!-- from FILE -->`.
struct Block {
  std::string page, language, text, from;
};

void read_blocks(const std::filesystem::path& page, std::vector<Block>& blocks) {
  std::istringstream in(test::file_text(page));
  std::string from;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      Block b{page.filename().string(), line.substr(3), "", from};
      while (std::getline(in, line) && line != "```") b.text += line + "\n";
      EXPECT_EQ(line, "```") << page << ": a block does not end";
      blocks.push_back(b);
      from.clear();
    } else {
      constexpr std::string_view begin = "<!-- from ", end = " -->";
      const bool names = line.starts_with(begin) && line.ends_with(end);
      from = names ? line.substr(begin.size(), line.size() - begin.size() - end.size()) : "";
    }
  }
}

const std::vector<Block>& blocks() {
  static const std::vector<Block> all = [] {
    std::vector<Block> found;
    read_blocks(root / "README.md", found);
    for (const auto& entry : std::filesystem::directory_iterator(root / "docs")) {
      if (entry.path().extension() == ".md") read_blocks(entry.path(), found);
    }
    return found;
  }();
  return all;
}

TEST(Docs, QuotedCodeIsInTheFileItNames) {
  int checked = 0;
  for (const Block& b : blocks()) {
    if (b.from.empty()) {
      EXPECT_NE(b.language, "cpp") << b.page << ": code without the file it is from:\n" << b.text;
      continue;
    }
    const std::string file = test::file_text(root / b.from);
    EXPECT_NE(file.find(b.text), std::string::npos) << b.page << ": " << b.from << " does not contain\n" << b.text;
    ++checked;
  }
  EXPECT_GE(checked, 10);
}

TEST(Docs, GraphsInTextFormReadBack) {
  int checked = 0;
  for (const Block& b : blocks()) {
    if (b.language != "rlx") continue;
    EXPECT_EQ(print(parse(b.text)), b.text) << b.page;
    ++checked;
  }
  EXPECT_GE(checked, 2);
}

}  // namespace
}  // namespace rlx
