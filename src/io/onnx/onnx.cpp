// Import of ONNX models: reads, builds, and builds again with the bounds that the model turned out to need.
#include "io/onnx/onnx.h"

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ir/measure.h"

namespace rlx {

namespace {

using onnx::Importer;
using onnx::ModelProto;
using onnx::TensorLoader;

// Bounds that a run-time check of `g` puts on a symbol: min(S, 512) = S allows none above 512. Sizes outside fail the
// check in any case, and inside of the bounds the check and the minimum are gone.
DimSymbols closer_bounds(const Graph& g) {
  DimSymbols closer;
  for (const Check& c : g.checks) {
    for (const auto& [left, right] : {std::pair(c.left, c.right), std::pair(c.right, c.left)}) {
      const std::string_view name = right.symbol_name();
      DimSymbols found;
      left.collect_symbols(found);
      if (found.size() != 1) continue;
      const auto& [symbol, bounds] = *found.begin();
      const Dim s = Dim::symbol(symbol, bounds.lo, bounds.hi);
      Bounds b = closer.contains(symbol) ? closer[symbol] : bounds;
      if (name == symbol) {
        const Bounds reached = left.bounds();
        if (left == min(s, reached.hi)) b.hi = std::min(b.hi, reached.hi);
        if (left == max(s, reached.lo)) b.lo = std::max(b.lo, reached.lo);
      } else if (right.is_constant() && right.constant() >= bounds.lo && right.constant() <= bounds.hi) {
        const Index r = right.constant();
        if (left == max(s, r)) b.hi = std::min(b.hi, r);
        if (left == min(s, r)) b.lo = std::max(b.lo, r);
      }
      if (b != bounds && b.lo <= b.hi) closer[symbol] = b;
    }
  }
  for (const Measure& m : measures(g)) closer.erase(m.symbol);
  return closer;
}

// Errors of the graph's own rules do not know the file.
Graph import_once(const ModelProto& model, TensorLoader& loader, const OnnxOptions& options, const DimSymbols& closer) {
  try {
    return Importer(model, loader, options, closer).run();
  } catch (const Error& e) {
    const std::string_view text = e.what();
    if (text.starts_with(fmt::format("'{}'", model.file.name))) throw;
    fail("'{}': {}", model.file.name, text);
  }
}

Graph import_model(const ModelProto& model, const OnnxOptions& options, bool has_folder) {
  DimSymbols closer;
  TensorLoader loader(model, options.mode, has_folder);
  constexpr int most_rounds = 4;
  for (int round = 1;; ++round) {
    Graph g = import_once(model, loader, options, closer);
    const DimSymbols found = closer_bounds(g);
    if (found.empty() || round == most_rounds) return g;
    for (const auto& [name, bounds] : found) closer[name] = bounds;
  }
}

}  // namespace

Graph import_onnx(const std::filesystem::path& path, const OnnxOptions& options) {
  return import_model(*onnx::read_model(path.string(), options.mode), options, true);
}

Graph import_onnx(const Bytes& bytes, const std::string& name, const OnnxOptions& options) {
  return import_model(*onnx::read_model(bytes, name), options, false);
}

}  // namespace rlx
