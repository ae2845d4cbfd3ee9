// Conformance cases of all ops that have GPU kernels, on the system's OpenCL device, against the references. In a
// process each kernel text is compiled once, which is most of the time these tests take.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "conformance.h"
#include "core/error.h"
#include "gpu_runner.h"
#include "ir/op_table.h"
#include "runtime/session.h"

namespace rlx::test {
namespace {

using Replace = std::map<DType, DType>;

struct Tally {
  int run = 0;
  std::map<std::string, int> declined;  // by reason
};

// The same graph compiled by a session: passes, plan, arena, with everything that can be checked.
std::vector<Tensor> run_session(const Graph& g, const std::vector<Tensor>& inputs, const DimEnv& dims) {
  const Session session(shared_opencl_device(), {.threads = 1});
  const Executable exe = session.compile(g, {}, {.poison = true, .check = true});
  NamedTensors named;
  for (std::size_t i = 0; i < inputs.size(); ++i) named.emplace(g.input_names[i], inputs[i]);
  return exe.run(named, {.dims = &dims});
}

// On a device the stated values are met within what the op may be off, too.
Tolerance looser(const Tolerance& a, const Tolerance& b) {
  if (a.kind == Tolerance::Kind::exact) return b;
  return b.kind == Tolerance::Kind::exact || (a.kind == b.kind && a.bound > b.bound) ? a : b;
}

void check_case(GpuDevice& device, const OpDef& op, const AnyCase& c, const Replace& replace, unsigned seed,
                Tally& tally) {
  std::optional<Bound> b;
  try {
    b = bind_case(op, c, replace, seed);
  } catch (const Error&) {
    return;  // inference refuses the element type
  }
  Recorder recorder(device.info());
  std::string why;
  if (!recorder.take(b->graph, &why)) {
    ++tally.declined[why];
    return;
  }
  const std::vector<Tensor> got = run_on(device, b->graph, b->inputs, b->dims);
  const std::vector<Tensor> want = evaluate(b->graph, b->inputs, {false, b->dims});
  const std::vector<Tensor> planned = run_session(b->graph, b->inputs, b->dims);
  for (std::size_t r = 0; r < got.size(); ++r) {
    EXPECT_TRUE(identical(planned[r], got[r])) << "the planned run gives other bits, result " << r;
  }
  for (std::size_t r = 0; r < got.size(); ++r) {
    const Difference d = compare(got[r], want[r], c.common.tolerance);
    EXPECT_TRUE(d.ok) << "result " << r << " " << d.where;
    if (c.common.expected.empty() || !replace.empty()) continue;
    Tensor expected(got[r].dtype(), got[r].shape());
    store(expected, c.common.expected[r]);
    const Difference e = compare(got[r], expected, looser(c.common.tolerance, c.common.expected_tolerance));
    EXPECT_TRUE(e.ok) << "result " << r << " against the stated values: " << e.where;
  }
  ++tally.run;
}

enum class Types { stated, others };

// Broadcasting is the same text arithmetic for every element type: in the other types only the first cases of drawn
// values are run, and all of given values.
class FewDrawn {
 public:
  bool skip(const AnyCase& c, const Replace& replace) {
    const bool given = std::ranges::any_of(c.common.inputs, [](const CaseInput& in) { return !in.values.empty(); });
    return !given && !replace.empty() && ++seen_[*replace.begin()] > 2;
  }

 private:
  std::map<std::pair<const DType, DType>, int> seen_;
};

// Runs the cases of the ops that `wanted` accepts; every op must have run at least one, unless it is listed in `none`.
void check_ops(bool (*wanted)(std::string_view name), Types types, std::initializer_list<std::string_view> none = {}) {
  std::string why;
  GpuDevice* device = opencl_device(&why);
  if (!device) GTEST_SKIP() << "no OpenCL device: " << why;
  unsigned seed = 1;
  int total = 0;
  std::map<std::string, int> declined;
  for (const OpDef* op : gpu_ops()) {
    const std::vector<AnyCase> cases = op->cases();
    if (cases.empty() || !wanted(op->name())) continue;
    Tally tally;
    FewDrawn few;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      for (const Replace& replace : variants(cases[i])) {
        seed += 17;
        if (replace.empty() != (types == Types::stated) || few.skip(cases[i], replace)) continue;
        SCOPED_TRACE(fmt::format("{} case {} {{{}}}{}", op->name(), i, cases[i].attrs.print(),
                                 replace.empty() ? "" : " as " + std::string(name(replace.begin()->second))));
        try {
          check_case(*device, *op, cases[i], replace, seed, tally);
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what();
        }
      }
    }
    if (types == Types::stated && std::ranges::find(none, op->name()) == none.end()) {
      EXPECT_GT(tally.run, 0) << op->name();
    }
    total += tally.run;
    for (const auto& [reason, count] : tally.declined) declined[reason] += count;
  }
  testing::Test::RecordProperty("cases", total);
  for (const auto& [reason, count] : declined) {
    std::printf("declined %d times: %s\n", count, reason.c_str());
    // What is declined is only what docs/gpu.md lists.
    EXPECT_TRUE(reason.find("kernels do not load elements of type") == 0 ||
                reason.find("of integers may have to fail for 0") != std::string::npos)
        << reason;
  }
  std::printf("%d cases\n", total);
}

bool is_cast(std::string_view name) { return name == "cast"; }
bool is_no_cast(std::string_view name) { return name != "cast"; }
bool is_row_op(std::string_view name) { return name == "softmax" || name == "iota"; }

TEST(Opencl, SoftmaxAndIota) { check_ops(is_row_op, Types::stated); }
TEST(BulkOpencl, CasesOfEveryOp) { check_ops(is_no_cast, Types::stated, {"conj"}); }
TEST(BulkOpencl, CasesOfEveryOpInOtherElementTypes) { check_ops(is_no_cast, Types::others); }
// Ops without GPU kernels, through their definitions; those that end at an op without kernel are named.
TEST(BulkOpencl, CasesOfOtherOpsThroughDefinitions) {
  std::string why;
  if (!opencl_device(&why)) GTEST_SKIP() << "no OpenCL device: " << why;
  const std::vector<const OpDef*> with_kernel = gpu_ops();
  std::map<std::string, int> run, declined;
  for (const OpFolder& folder : op_folders()) {
    for (const OpDef* op : folder.ops()) {
      if (std::ranges::find(with_kernel, op) != with_kernel.end()) continue;
      const std::vector<AnyCase> cases = op->cases();
      for (std::size_t i = 0; i < cases.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} case {} {{{}}}", op->name(), i, cases[i].attrs.print()));
        const Bound b = program_of(bind_case(*op, cases[i], {}, static_cast<unsigned>(i)));
        std::vector<Tensor> got;
        try {
          got = run_session(b.graph, b.inputs, b.dims);
        } catch (const Error& e) {
          EXPECT_NE(std::string(e.what()).find("cannot run on device"), std::string::npos) << e.what();
          ++declined[std::string(op->name())];
          continue;
        }
        const std::vector<Tensor> want = evaluate(b.graph, b.inputs, {false, b.dims});
        for (std::size_t r = 0; r < got.size(); ++r) {
          const Difference d = compare(got[r], want[r], cases[i].common.tolerance);
          EXPECT_TRUE(d.ok) << "result " << r << " " << d.where;
        }
        ++run[std::string(op->name())];
      }
    }
  }
  for (const auto& [name, count] : run) std::printf("%s: %d cases\n", name.c_str(), count);
  for (const auto& [name, count] : declined) std::printf("%s: %d cases declined\n", name.c_str(), count);
}

TEST(BulkOpencl, CasesOfCast) { check_ops(is_cast, Types::stated); }

}  // namespace
}  // namespace rlx::test
