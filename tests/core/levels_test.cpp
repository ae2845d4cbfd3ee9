// Tests of the instruction levels: detection, names, forcing.
#include "core/levels.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/simd_probe.kernel.h"
#include "levels.h"

namespace rlx {
namespace {

/// The flags that the operating system lists for the first processor; it leaves out what it does not support.
std::set<std::string> flags_of_system() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::set<std::string> flags;
    for (std::string word; words >> word;) flags.insert(word);
    return flags;
  }
  return {};
}

int expected_count(const std::set<std::string>& flags) {
  const std::vector<std::vector<std::string>> needs = {{"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
                                                       {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
                                                       {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
                                                       {"avx512_bf16", "avx512_vnni"}};
  int count = 0;
  for (const std::vector<std::string>& level : needs) {
    for (const std::string& flag : level) {
      if (!flags.contains(flag)) return count;
    }
    ++count;
  }
  return count;
}

TEST(Levels, AreThoseOfTheSystem) {
  const std::set<std::string> flags = flags_of_system();
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no flags";
  EXPECT_EQ(available_levels().count, expected_count(flags));
}

TEST(Levels, StartWithTheHighest) { EXPECT_EQ(static_cast<int>(level()), available_levels().count - 1); }

TEST(Levels, PickTheTableOfTheForcedLevel) {
  std::vector<const SimdProbe*> tables;
  std::vector<long> lanes;
  at_every_level([&] {
    tables.push_back(&simd_probe());
    lanes.push_back(simd_probe().lanes);
  });
  const std::vector<const SimdProbe*> all = {&v2::simd_probe, &v3::simd_probe, &v4::simd_probe, &v4b::simd_probe};
  const std::vector<long> all_lanes = {4, 8, 16, 16};
  ASSERT_EQ(tables.size(), static_cast<std::size_t>(available_levels().count));
  for (std::size_t i = 0; i < tables.size(); ++i) {
    EXPECT_EQ(tables[i], all[i]);
    EXPECT_EQ(lanes[i], all_lanes[i]);
  }
}

TEST(Levels, NamesAreReadBack) {
  for (int i = 0; i < level_count; ++i) {
    const Level each = static_cast<Level>(i);
    EXPECT_EQ(parse_level(level_name(each)), each);
  }
  try {
    parse_level("avx2");
    FAIL() << "a wrong name was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "level \"avx2\" does not exist: expected v2, v3, v4 or v4b");
  }
}

TEST(Levels, RefusesALevelThatTheMachineLacks) {
  const Level before = level();
  // On a machine that has all four this is not a level at all.
  EXPECT_THROW(force_level(static_cast<Level>(available_levels().count)), std::exception);
  EXPECT_EQ(level(), before);
}

}  // namespace
}  // namespace rlx
