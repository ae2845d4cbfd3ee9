// Archives of small models, tests/data/onnx/NAME.npz: `CASE/model` as bytes, inputs `CASE/in/…`, answers `CASE/out/…`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace rlx::test {

struct ArchiveCase {
  std::string name;
  Graph graph;
  NamedTensors inputs;
  std::vector<Tensor> wanted;  // one an output
};

/// One case, imported and verified.
ArchiveCase archive_case(const std::string& archive, const std::string& name);
/// Calls f with every case, of which there must be `least`; an exception fails the test and names the case.
void each_case(const std::string& archive, std::size_t least, const std::function<void(const ArchiveCase&)>& f);
/// Every case by the references and as a program of the CPU with memory poisoned and the plan checked; `difference`
/// says what is wrong with a result of a case, or nothing.
using ResultDifference = std::function<std::string(const std::string& name, const Tensor& got, const Tensor& want)>;
void expect_answers(const std::string& archive, std::size_t least, const ResultDifference& difference);

}  // namespace rlx::test
