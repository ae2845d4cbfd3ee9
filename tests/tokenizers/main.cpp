// rlx_tokenizer_cases FILE...: checks each file of cases; prints one JSON object a file. With --time TEXT_FILE before
// the files, measures encoding of that text in place of checking.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tokenizer_cases.h"

namespace {

nlohmann::json check(const std::filesystem::path& path) {
  nlohmann::json out{{"file", path.filename().string()}};
  try {
    const rlx::test::TokenizerCases file = rlx::test::read_tokenizer_cases(path);
    std::size_t wrong = 0;
    std::string first;
    for (const rlx::test::TokenizerCase& c : file.cases) {
      std::string problem;
      try {
        problem = rlx::test::check_case(file.tokenizer, c);
      } catch (const std::exception& e) {
        problem = e.what();
      }
      if (!problem.empty() && ++wrong <= 5) first += "\n  \"" + c.text + "\": " + problem.substr(0, 600);
    }
    out.update({{"source", file.source},
                {"cases", file.cases.size()},
                {"wrong", wrong},
                {"first", first},
                {"load_seconds", file.load_seconds},
                {"tokens", file.tokenizer.vocab_size()}});
  } catch (const std::exception& e) {
    out["error"] = e.what();
  }
  return out;
}

nlohmann::json measure(const std::filesystem::path& path, const std::string& text) {
  const rlx::test::TokenizerCases file = rlx::test::read_tokenizer_cases(path);
  double best = 1e9;
  std::size_t ids = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ids = file.tokenizer.encode(text).size();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return {{"file", path.filename().string()},
          {"load_seconds", file.load_seconds},
          {"seconds", best},
          {"bytes", text.size()},
          {"ids", ids}};
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> args(arguments + 1, arguments + count);
  std::string text;
  const bool timed = args.size() > 1 && args[0] == "--time";
  if (timed) {
    std::ifstream in(args[1], std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    text = all.str();
    args.erase(args.begin(), args.begin() + 2);
  }
  if (args.empty()) {
    fmt::print(stderr, "usage: rlx_tokenizer_cases [--time TEXT_FILE] FILE...\n");
    return 2;
  }
  for (const std::string& path : args) {
    const nlohmann::json line = timed ? measure(path, text) : check(path);
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return 0;
}
