// Passes as text: every file below text/ is a case "before, after". With RLX_UPDATE=1 in the environment the lower
// halves are rewritten.
//
//   # pass: NAME, NAME        the passes, in order
//   # remark: TEXT            part of a remark that the last pass must make; any number of lines
//   graph(…) { … }
//   ---
//   graph(…) { … }            or the word `same`: nothing may change
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "ir/print.h"
#include "passes/pass.h"
#include "probe_ops.h"
#include "runtime/pass_evaluator.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

struct TextCase {
  std::string header;  // its lines, as they are
  std::vector<std::string> passes, remarks;
  std::string before, after;
};

const fs::path folder = fs::path(RLX_TEST_DATA).parent_path() / "passes" / "text";
const std::string heading = "rlx " + std::to_string(text_version) + "\n";

std::string trimmed(std::string_view s) {
  const std::size_t begin = s.find_first_not_of(" \t\r\n"), end = s.find_last_not_of(" \t\r\n");
  return begin == s.npos ? "" : std::string(s.substr(begin, end - begin + 1));
}

void read_header(TextCase& c, const std::string& line) {
  c.header += line + "\n";
  if (line.starts_with("# remark:")) c.remarks.push_back(trimmed(line.substr(9)));
  if (!line.starts_with("# pass:")) return;
  std::istringstream names(line.substr(7));
  for (std::string name; std::getline(names, name, ',');) c.passes.push_back(trimmed(name));
}

TextCase read_case(const fs::path& path) {
  std::ifstream in(path);
  TextCase c;
  bool behind = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "---") {
      require(!behind, "{} has two lines ---", path.filename().string());
      behind = true;
    } else if (!behind && c.before.empty() && line.starts_with('#')) {
      read_header(c, line);
    } else {
      (behind ? c.after : c.before) += line + "\n";
    }
  }
  require(behind && !c.passes.empty(), "{} needs a line \"# pass: NAME\" and a line \"---\"", path.filename().string());
  return c;
}

std::vector<Pass> passes_of(const TextCase& c) {
  std::vector<Pass> passes;
  for (const std::string& name : c.passes) passes.push_back(find_pass(name));
  return passes;
}

std::string text_of(const Graph& g) {
  ConstantSink sink;
  const std::string text = print(g, &sink);
  require(sink.take().empty(), "a constant is too large for a text test");
  return text.substr(heading.size());
}

std::vector<fs::path> files() {
  std::vector<fs::path> all;
  for (const auto& e : fs::recursive_directory_iterator(folder)) {
    if (e.path().extension() == ".rlx") all.push_back(fs::relative(e.path(), folder));
  }
  std::ranges::sort(all);
  return all;
}

class PassText : public testing::TestWithParam<fs::path> {};

TEST_P(PassText, GivesTheLowerHalf) {
  const fs::path path = folder / GetParam();
  const TextCase c = read_case(path);
  const Graph before = parse(heading + c.before, parse_options());
  const DeviceInfo device;
  const CompileOptions options;
  Report report;
  PassContext context{device, options, report};
  use_reference(context);
  const std::vector<Pass> passes = passes_of(c);
  const Graph after = run_passes(before, passes, context);
  const std::string was = text_of(before), got = text_of(after);
  if (std::getenv("RLX_UPDATE") != nullptr) {
    std::ofstream(path) << c.header << c.before << "---\n" << (was == got ? "same\n" : got);
    return;
  }
  if (trimmed(c.after) == "same") {
    EXPECT_EQ(got, was);
  } else {
    const std::string want = text_of(parse(heading + c.after, parse_options()));
    EXPECT_EQ(got, want);
    EXPECT_NE(got, was) << "the pass did nothing: write `same`";
  }
  for (const std::string& text : c.remarks) {
    const bool said = std::ranges::any_of(report.remarks, [&](const Remark& r) {
      return r.pass == passes.back().name && r.text.find(text) != std::string::npos;
    });
    EXPECT_TRUE(said) << "no remark with: " << text;
  }
  EXPECT_EQ(text_of(run_passes(after, passes, context)), got) << "a second run changes the result";
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) {
  std::string s = info.param.parent_path() / info.param.stem();
  for (char& c : s) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return s;
}

INSTANTIATE_TEST_SUITE_P(Files, PassText, testing::ValuesIn(files()), test_name);

}  // namespace
}  // namespace rlx::test
