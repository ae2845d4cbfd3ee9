// Compiled graphs in memory with fences, against the reference evaluator: at every level, with all passes and with none
// but legalise, on poisoned arenas, with the memory plan checked.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_device.h"
#include "conformance.h"
#include "levels.h"
#include "pitfalls.h"
#include "runtime/programs.h"

namespace rlx::test {

/// Options without any pass but legalise.
inline CompileOptions unfused() {
  CompileOptions options;
  for (const Pass& p : default_passes()) {
    if (p.name != "legalise") options.disabled.emplace(p.name);
  }
  return options;
}

/// Bytes whose end is the end of a page, before one that no access survives; the bytes before them are 0xA5.
class Fenced {
 public:
  explicit Fenced(std::size_t size) : size_(size) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    whole_ = (size + page - 1) / page * page + page;
    void* at = mmap(nullptr, whole_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    base_ = static_cast<std::byte*>(at);
    mapped_ = whole_ + page;
    std::memset(base_, 0xA5, whole_);
    EXPECT_EQ(mprotect(base_ + whole_, page, PROT_NONE), 0);
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() { munmap(base_, mapped_); }

  std::byte* data() const { return base_ + whole_ - size_; }
  /// Whether nothing has written before the bytes.
  bool whole() const {
    return std::all_of(base_, data(), [](std::byte b) { return b == std::byte{0xA5}; });
  }

 private:
  std::size_t size_, whole_ = 0, mapped_ = 0;
  std::byte* base_ = nullptr;
};

/// Runs with every input and output between fences; operands must stay whole and every result is written.
inline std::vector<Tensor> run_fenced(const Executable& exe, const NamedTensors& in, const RunOptions& options = {}) {
  std::vector<std::unique_ptr<Fenced>> memory, results;
  std::vector<BoundInput> inputs;
  for (const auto& [name, t] : in) {
    memory.push_back(std::make_unique<Fenced>(t.bytes().size()));
    if (!t.bytes().empty()) std::memcpy(memory.back()->data(), t.bytes().data(), t.bytes().size());
    inputs.push_back(exe.input(name).bind({t.dtype(), t.shape(), memory.back()->data()}));
  }
  const std::vector<std::vector<Index>> shapes = exe.output_shapes(inputs, options);
  std::vector<Tensor> out;
  std::vector<BoundOutput> outputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    out.emplace_back(exe.interface().outputs[i].type.dtype, shapes[i]);
    results.push_back(std::make_unique<Fenced>(out[i].bytes().size()));
    outputs.push_back(exe.output(i).bind({out[i].dtype(), shapes[i], results[i]->data()}));
  }
  exe.run(inputs, outputs, options);
  std::size_t at = 0;
  for (const auto& [name, t] : in) {
    EXPECT_TRUE(memory[at]->whole()) << "before input " << name;
    EXPECT_TRUE(std::equal(t.bytes().begin(), t.bytes().end(), memory[at++]->data())) << "input " << name;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_TRUE(results[i]->whole()) << "before output " << i;
    if (!out[i].bytes().empty()) std::memcpy(out[i].mutable_bytes().data(), results[i]->data(), out[i].bytes().size());
  }
  return out;
}

/// Equal types; numbers differ by at most `bound` times the largest finite one (at least 1), or not at all.
inline void expect_alike(const std::vector<Tensor>& got, const std::vector<Tensor>& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].type().text(), want[i].type().text()) << "output " << i;
    if (identical(got[i], want[i])) continue;
    const auto a = load<std::complex<double>>(got[i]), e = load<std::complex<double>>(want[i]);
    double largest = 1;
    for (const auto& x : e) {
      if (std::isfinite(std::abs(x))) largest = std::max(largest, std::abs(x));
    }
    for (std::size_t k = 0; k < a.size(); ++k) {
      const bool both_nan = std::isnan(std::abs(a[k])) && std::isnan(std::abs(e[k]));
      if (both_nan || a[k] == e[k]) continue;
      ASSERT_LE(std::abs(a[k] - e[k]), bound * largest)
          << "output " << i << " element " << k << ": " << a[k].real() << " for " << e[k].real();
    }
  }
}

inline NamedTensors named(const Graph& g, const std::vector<Tensor>& in) {
  NamedTensors all;
  for (std::size_t i = 0; i < in.size(); ++i) all.emplace(g.input_names[i], in[i]);
  return all;
}

/// The graph, compiled in every way, gives `want` within the bound, twice and with the same bits.
inline void expect_compiled(const Graph& g, const std::vector<Tensor>& in, const std::vector<Tensor>& want,
                            double bound) {
  at_every_level([&] {
    for (const bool fuse : {true, false}) {
      SCOPED_TRACE(fuse ? "all passes" : "legalise alone");
      const Session session = cpu_session({.threads = fuse ? 2 : 1});
      const Executable exe = session.compile(g, fuse ? CompileOptions{} : unfused(), careful);
      const std::vector<Tensor> got = run_fenced(exe, named(g, in)), again = exe.run(named(g, in));
      expect_alike(got, want, bound);
      ASSERT_EQ(got.size(), again.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], again[i])) << "second run, " << i;
    }
  });
}
inline void check_compiled(const Graph& g, const std::vector<Tensor>& in, double bound = 2e-6) {
  expect_compiled(g, in, evaluate(g, in), bound);
}
template <class Make>
void check(const std::vector<Tensor>& in, Make make, double bound = 2e-6) {
  check_compiled(graph_of(in, make), in, bound);
}

/// How many steps run a kernel of this name.
inline std::ptrdiff_t steps_of(const Executable& exe, std::string_view kernel, const DimEnv& dims = {}) {
  const RunReport report = exe.report(dims);
  return std::ranges::count_if(report.steps, [&](const StepReport& s) { return s.kernel == kernel; });
}

/// Numbers in -2..2 of 29 different values.
inline Tensor mixed(std::vector<Index> shape, Index first = 0, DType type = DType::f32) {
  Tensor t(type, std::move(shape));
  std::vector<double> v;
  for (Index i = 0; i < t.count(); ++i) v.push_back(static_cast<double>((i * 11 + first * 7) % 29 - 14) / 8);
  store(t, v);
  return t;
}

}  // namespace rlx::test
