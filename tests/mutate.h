// Damaged copies of a text for hostile-input tests: the same for the same seed on every machine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::test {

/// Adds to the property "mutants" of the running test, from which scripts/figures reads how many there were.
inline void count_mutants(std::int64_t n) {
  static const testing::TestInfo* last = nullptr;
  static std::int64_t total = 0;
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  total = test == last ? total + n : n;
  last = test;
  testing::Test::RecordProperty("mutants", std::to_string(total));
}

/// Makes mutants of a text: bytes flipped, runs cut, doubled or moved, and pieces replaced by values that readers trip
/// over.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string operator()(std::string_view original) {
    std::string text(original);
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) change(text);
    return text;
  }

  /// A number from 0 to n-1, or 0 for n = 0.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }

 private:
  void change(std::string& text) {
    static const std::vector<std::string> nasty = {"0",
                                                   "1",
                                                   "-1",
                                                   "2147483648",
                                                   "4294967295",
                                                   "9223372036854775807",
                                                   "18446744073709551616",
                                                   "1e999",
                                                   "-0",
                                                   "0.5",
                                                   "null",
                                                   "true",
                                                   "[]",
                                                   "{}",
                                                   "\"\"",
                                                   "\"##\"",
                                                   "\"[UNK]\"",
                                                   "NaN",
                                                   "\\ud800",
                                                   "\\u0000",
                                                   "\xff",
                                                   "\xc3",
                                                   "\xed\xa0\x80",
                                                   std::string(1, '\0'),
                                                   "[[[[[[[[",
                                                   "{\"a\":",
                                                   "\"",
                                                   "\\",
                                                   ",",
                                                   ":",
                                                   "\n",
                                                   "\r\n",
                                                   "\xef\xbf\xbd",
                                                   "\xf0\x9f\x98\x80"};
    const std::size_t at = below(text.size() + 1), length = std::min(below(12), text.size() - at);
    switch (below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      case 4:
        text.replace(at, length, nasty[below(nasty.size())]);
        break;
      case 5:
        replace_scalar(text, nasty[below(nasty.size())]);
        break;
      default:
        text.resize(at);
        break;
    }
  }

  // Rewrites one whole number, word or string, so that the text often stays well formed.
  void replace_scalar(std::string& text, const std::string& value) {
    const std::string_view ends = ",:[]{}\n";
    std::size_t begin = below(text.size() + 1);
    while (begin > 0 && ends.find(text[begin - 1]) == std::string_view::npos) --begin;
    std::size_t end = begin;
    while (end < text.size() && ends.find(text[end]) == std::string_view::npos) ++end;
    text.replace(begin, end - begin, value);
  }

  std::mt19937_64 random_;
};

}  // namespace rlx::test
