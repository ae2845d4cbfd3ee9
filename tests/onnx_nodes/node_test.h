// One folder of the ONNX node tests: a model, data sets of inputs and outputs, and what came of running it.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace rlx::test {

enum class Verdict { pass, unsupported, wrong };

struct NodeResult {
  std::string name;
  Verdict verdict = Verdict::unsupported;
  std::string reason;                            // of what is not a pass
  std::string operators;                         // of the model, without repetition, separated by blanks
  std::map<std::string, std::int64_t> versions;  // of the domain of every operator, `DOMAIN.OPERATOR`
  bool tensors_only = true;                      // all inputs and outputs are tensors of numbers
  bool fixed_inputs = false;                     // operands that must be known were fixed to the values of the data set
  bool random = false;                           // the values are random: only types and sizes were compared
};

/// Runs the model over all data sets, compiled for the CPU, and compares types, sizes and values with what is expected.
/// Unsupported: the model was refused, or the run ended with Error.
NodeResult run_node_test(const std::filesystem::path& folder);

}  // namespace rlx::test
