// Published node tests of the package onnx for convolutions, pools and images: by the references, and as programs of
// the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backend/cpu/cpu_device.h"
#include "conformance.h"
#include "core/error.h"
#include "io/bounded.h"
#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "io/onnx_models.h"
#include "runtime/evaluate.h"
#include "runtime/session.h"

namespace rlx::test {
namespace {

using Data = std::map<std::string, Tensor>;

// What differs from the wanted results, or nothing. Integers and 8-bit results are equal, others close.
std::string compare_all(const Graph& g, const std::vector<Tensor>& got, const Data& data, const std::string& name) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Tensor& want = data.at(name + "/out/" + g.output_names[i]);
    const Difference d = compare(got[i], want, relative(2e-6));
    if (!d.ok) return name + " " + g.output_names[i] + ": " + d.where;
  }
  return "";
}

std::string check(const std::string& name, const Data& data, const Session& session) {
  const Tensor& model = data.at(name + "/model");
  const Graph g = import_onnx(bytes_of({reinterpret_cast<const char*>(model.bytes().data()), model.bytes().size()}),
                              name, {.standard = {0, 65536}});
  NamedTensors inputs;
  for (const std::string& input : g.input_names) inputs.emplace(input, data.at(name + "/in/" + input));
  if (const std::string wrong = compare_all(g, evaluate(g, inputs), data, name); !wrong.empty()) {
    return "reference: " + wrong;
  }
  const Executable exe = session.compile(g, {}, {.poison = true, .check = true});
  const std::string wrong = compare_all(g, exe.run(inputs), data, name);
  return wrong.empty() ? "" : "program: " + wrong;
}

// Why a test is refused, or nothing: by how its name begins.
std::string reason(const std::string& name) {
  static const std::map<std::string, std::string> all{
      {"batchnorm_example_training_mode", "training_mode is not 0"},
      {"batchnorm_epsilon_training_mode", "training_mode is not 0"},
      {"affine_grid", "the operator is not supported"},
      {"gridsample", "the operator is not supported"},
      {"roialign", "the operator is not supported"},
  };
  for (const auto& [start, why] : all) {
    if (name.starts_with(start)) return why;
  }
  return "";
}

TEST(OnnxVision, PublishedNodeTests) {
  const Data data = read_npz(onnx_file("vision.npz"));
  const Session session = cpu_session({.threads = 2});
  std::set<std::string> names;
  for (const auto& [key, value] : data) {
    if (key.ends_with("/model")) names.insert(key.substr(0, key.size() - 6));
  }
  EXPECT_GE(names.size(), 140u);
  for (const std::string& name : names) {
    const std::string why = reason(name);
    try {
      EXPECT_EQ(check(name, data, session), "");
      EXPECT_TRUE(why == "") << name << " is refused by the list only";
    } catch (const std::exception& e) {
      const bool expected = why != "" && std::string(e.what()).find(why) != std::string::npos;
      EXPECT_TRUE(expected) << name << ": " << e.what();
    }
  }
}

}  // namespace
}  // namespace rlx::test
