// What a model of unknown origin goes through: import, compile, run with made-up inputs, all within limits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "io/onnx/onnx.h"
#include "ir/verify.h"
#include "runtime/session.h"

namespace rlx::fuzz {

/// How far a model came.
enum class Outcome : std::uint8_t { refused, imported, compiled, ran };

/// Elements for an input: small integers, floats in [-2, 2), the same for the same seed.
inline Tensor made_up(const TensorType& type, const DimEnv& dims, std::uint64_t seed) {
  std::vector<Index> shape;
  for (const Dim& d : type.dims) shape.push_back(d.evaluate(dims));
  Tensor t(type.dtype, std::move(shape));
  require(t.count() <= 65536, "an input of {} elements", t.count());
  std::vector<double> values(static_cast<std::size_t>(t.count()));
  for (double& v : values) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const auto bits = static_cast<double>(seed >> 40) * 0x1p-24;
    v = is_float(type.dtype) || is_complex(type.dtype) ? bits * 4 - 2 : static_cast<double>(static_cast<int>(bits * 4));
  }
  store<double>(t, values);
  return t;
}

/// Operations of a run, where they are known before it.
inline bool affordable(const Executable& exe, const DimEnv& dims) {
  Index flops = 0;
  for (const StepReport& s : exe.report(dims).steps) {
    if (s.flops > 20'000'000 - flops || s.bytes_read > (Index{1} << 26) || s.bytes_written > (Index{1} << 26))
      return false;
    flops += s.flops;
  }
  return true;
}

/// Throws nothing but what is a bug: an Error at any stage is an answer.
inline Outcome run_model(const Bytes& file, std::uint64_t seed) {
  static const Session session = cpu_session({.threads = 1});
  Outcome reached = Outcome::refused;
  try {
    const Graph g = import_onnx(file, "fuzz", {.standard = {1, 64}});
    verify(g);
    reached = Outcome::imported;
    ExecutableOptions options;
    options.memory_limit = Index{64} << 20;
    options.poison = options.check = true;
    options.bindings = 2;
    const Executable exe = session.compile(g, {}, options);
    reached = Outcome::compiled;
    for (const Index wish : {3, 1}) {
      DimEnv dims;
      for (const auto& [name, bounds] : g.symbols) dims.emplace(name, std::clamp(wish, bounds.lo, bounds.hi));
      if (!affordable(exe, dims)) break;
      NamedTensors in;
      for (std::size_t i = 0; i < g.inputs.size(); ++i)
        in.emplace(g.input_names[i], made_up(g.nodes[g.inputs[i]].results[0], dims, seed + i));
      RunOptions run{.dims = &dims};
      run.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
      exe.run(in, run);
      reached = Outcome::ran;
      if (g.symbols.empty()) break;
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a refusal
  }
  return reached;
}

}  // namespace rlx::fuzz
