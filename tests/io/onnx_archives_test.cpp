// Archives of small models with the answers of ONNX Runtime, ml_dtypes and the package onnx: by the references, and as
// programs.
#include <gtest/gtest.h>

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

// Quantised results may lie on the other side of a tie, where the last bit of a number decides.
std::string difference(const Tensor& got, const Tensor& want, std::int64_t slack) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return got.type().text() + ", not " + want.type().text();
  if (is_float(want.dtype())) {
    const Difference d = compare(got, want, relative(5e-6));
    return d.ok ? "" : d.where;
  }
  const auto a = load<std::int64_t>(got), b = load<std::int64_t>(want);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > slack) return fmt::format("element {} is {}, expected {}", i, a[i], b[i]);
  }
  return "";
}

std::string compare_all(const Graph& g, const std::vector<Tensor>& got, const Data& data, const std::string& name) {
  const std::int64_t slack = name.starts_with("QLinear") || name == "QGemm" ? 1 : 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::string d = difference(got[i], data.at(name + "/out/" + g.output_names[i]), slack);
    if (!d.empty()) return g.output_names[i] + ": " + d;
  }
  return "";
}

std::string check(const std::string& name, const Data& data, const Session& session) {
  const Tensor& model = data.at(name + "/model");
  const Graph g = import_onnx(bytes_of({reinterpret_cast<const char*>(model.bytes().data()), model.bytes().size()}),
                              name, {.standard = {0, 65536}});
  NamedTensors inputs;
  for (const std::string& input : g.input_names) inputs.emplace(input, data.at(name + "/in/" + input));
  if (const std::string wrong = compare_all(g, evaluate(g, inputs), data, name); !wrong.empty())
    return "reference: " + wrong;
  const std::string wrong =
      compare_all(g, session.compile(g, {}, {.poison = true, .check = true}).run(inputs), data, name);
  return wrong.empty() ? "" : "program: " + wrong;
}

// Every case of an archive, at least `least`.
void expect_answers(const std::string& archive, int least) {
  const Data data = read_npz(onnx_file(archive));
  const Session session = cpu_session({.threads = 2});
  int cases = 0;
  for (const auto& [key, value] : data) {
    if (!key.ends_with("/model")) continue;
    const std::string name = key.substr(0, key.size() - 6);
    ++cases;
    try {
      EXPECT_EQ(check(name, data, session), "") << name;
    } catch (const std::exception& e) {
      ADD_FAILURE() << name << ": " << e.what();
    }
  }
  EXPECT_GE(cases, least);
}

TEST(OnnxArchives, OperatorsOfMicrosoftAsOnnxRuntime) { expect_answers("microsoft.npz", 77); }
TEST(OnnxArchives, P81_P82_SmallElementTypes) { expect_answers("types.npz", 79); }
TEST(OnnxArchives, AttentionAndItsRelatives) { expect_answers("attention.npz", 90); }

}  // namespace
}  // namespace rlx::test
