// Reading and running archives of small models.
#include "io/onnx_archive.h"

#include <gtest/gtest.h>

#include <set>

#include "backend/cpu/cpu_device.h"
#include "io/bounded.h"
#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "io/onnx_models.h"
#include "ir/verify.h"
#include "runtime/evaluate.h"
#include "runtime/session.h"

namespace rlx::test {

namespace {

using Data = std::map<std::string, Tensor>;

ArchiveCase case_of(const Data& data, const std::string& name) {
  const auto model = data.at(name + "/model").bytes();
  ArchiveCase c{.name = name};
  c.graph = import_onnx(bytes_of({reinterpret_cast<const char*>(model.data()), model.size()}), name,
                        {.standard = {0, 65536}});
  verify(c.graph);
  for (const std::string& input : c.graph.input_names) c.inputs.emplace(input, data.at(name + "/in/" + input));
  for (const std::string& output : c.graph.output_names) c.wanted.push_back(data.at(name + "/out/" + output));
  return c;
}

void expect_results(const ArchiveCase& c, const std::vector<Tensor>& got, const ResultDifference& difference,
                    const char* by) {
  ASSERT_EQ(got.size(), c.wanted.size()) << c.name;
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(difference(c.name, got[i], c.wanted[i]), "") << c.name << " " << c.graph.output_names[i] << " " << by;
}

}  // namespace

ArchiveCase archive_case(const std::string& archive, const std::string& name) {
  return case_of(read_npz(onnx_file(archive)), name);
}

void each_case(const std::string& archive, std::size_t least, const std::function<void(const ArchiveCase&)>& f) {
  const Data data = read_npz(onnx_file(archive));
  std::set<std::string> names;
  for (const auto& [key, value] : data) {
    if (key.ends_with("/model")) names.insert(key.substr(0, key.size() - 6));
  }
  EXPECT_GE(names.size(), least);
  for (const std::string& name : names) {
    try {
      f(case_of(data, name));
    } catch (const std::exception& e) {
      ADD_FAILURE() << name << ": " << e.what();
    }
  }
}

void expect_answers(const std::string& archive, std::size_t least, const ResultDifference& difference) {
  const Session session = cpu_session({.threads = 2});
  each_case(archive, least, [&](const ArchiveCase& c) {
    expect_results(c, evaluate(c.graph, c.inputs), difference, "by the references");
    const Executable exe = session.compile(c.graph, {}, {.poison = true, .check = true});
    expect_results(c, exe.run(c.inputs), difference, "as a program");
  });
}

}  // namespace rlx::test
