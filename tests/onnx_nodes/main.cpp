// rlx_onnx_nodes FOLDER [PREFIX]: runs the ONNX node tests below FOLDER; a JSON object a line, and a summary at the
// end.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "node_test.h"

namespace {

using rlx::test::NodeResult;
using rlx::test::Verdict;

struct Counts {
  int all = 0, passed = 0, tensor_tests = 0, tensor_passed = 0, wrong = 0, fixed = 0, random = 0;

  void add(const NodeResult& r) {
    const bool ok = r.verdict == Verdict::pass;
    all += 1;
    passed += ok;
    tensor_tests += r.tensors_only;
    tensor_passed += r.tensors_only && ok;
    wrong += r.verdict == Verdict::wrong;
    fixed += ok && r.fixed_inputs;
    random += ok && r.random;
  }
};

const char* word(Verdict v) { return v == Verdict::pass ? "pass" : v == Verdict::wrong ? "wrong" : "unsupported"; }

void print(const NodeResult& r) {
  const nlohmann::json line = {{"test", r.name},           {"verdict", word(r.verdict)},     {"reason", r.reason},
                               {"operators", r.operators}, {"tensors_only", r.tensors_only}, {"fixed", r.fixed_inputs},
                               {"versions", r.versions}};
  fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print(const Counts& c) {
  const nlohmann::json line = {{"all", c.all},
                               {"passed", c.passed},
                               {"tensor_tests", c.tensor_tests},
                               {"tensor_passed", c.tensor_passed},
                               {"wrong", c.wrong},
                               {"fixed", c.fixed},
                               {"random", c.random}};
  fmt::print("{}\n", line.dump());
}

void run(const std::filesystem::path& root, const std::string& prefix) {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const bool test = std::filesystem::exists(entry.path() / "model.onnx");
    if (test && entry.path().filename().string().starts_with(prefix)) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  Counts counts;
  for (const auto& folder : folders) {
    const NodeResult r = rlx::test::run_node_test(folder);
    counts.add(r);
    print(r);
  }
  print(counts);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || count > 3) {
    fmt::print(stderr, "usage: rlx_onnx_nodes FOLDER [PREFIX]\n");
    return 2;
  }
  try {
    run(arguments[1], count == 3 ? arguments[2] : "");
  } catch (const std::exception& e) {
    fmt::print(stderr, "rlx_onnx_nodes: {}\n", e.what());
    return 1;
  }
}
