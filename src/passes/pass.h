// Passes: free functions from graph to graph, with a context; a pipeline is a list of them.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace rlx {

/// Results of one node for these operands, whose sizes show those of the results.
using NodeEvaluator = std::function<std::vector<Tensor>(const Node&, std::span<const Tensor>)>;
/// Outputs of a graph for these inputs; `dims` gives symbols that no input shows.
using GraphEvaluator = std::function<std::vector<Tensor>(const Graph&, std::span<const Tensor>, const DimEnv& dims)>;

/// What a device can do, as far as passes ask.
struct DeviceInfo {
  std::string name = "cpu";
  /// Element types that arithmetic runs in.
  std::set<DType> arithmetic{DType::f64, DType::f32, DType::f16, DType::bf16};
  Index cache_bytes = Index{1} << 20;
  /// Whether the device has a kernel for a node of a graph, and, if not, why; absent: for every node.
  std::function<bool(const Graph&, Id, std::string* why)> accepts = {};
};

/// One thing that a pass did, or did not do and why.
struct Remark {
  std::string pass, text;
};

/// Hears what part of the work is done, from 0 to 1, and what is being done.
using Progress = std::function<void(std::string_view what, double done)>;

struct CompileOptions {
  std::set<std::string, std::less<>> disabled;     // passes that are left out
  std::set<std::string, std::less<>> print_after;  // passes whose result goes to the report
  std::optional<DType> matmul_dtype = {};          // of products of f32 values: bf16, f16, or i8 with constant matrices
  bool encode_activations = false;                 // of products with encoded matrices: in 8-bit blocks
  std::function<bool(std::string_view)> quantise = {};  // whether a product, by name, may become i8; absent: all may
  std::function<void(const Remark&)> log = {};          // hears every remark as it is made
  Progress progress = {};                               // hears of passes and of the packing of weights
  bool verify_numerics = false;                         // compares results before and after every pass
};

/// What a compilation says about itself.
struct Report {
  std::vector<Remark> remarks;
  struct Timing {
    std::string pass;
    std::chrono::nanoseconds time{};
    std::size_t nodes_before = 0, nodes_after = 0;
  };
  std::vector<Timing> timings;
};

/// What a pass gets beside the graph.
struct PassContext {
  const DeviceInfo& device;
  const CompileOptions& options;
  Report& report;
  std::string current = {};            // the pass that runs
  NodeEvaluator evaluate_node = {};    // folds constants; absent: references of ops, where they have one
  GraphEvaluator evaluate_graph = {};  // compares graphs
  /// Says something in the name of the pass that runs.
  void remark(std::string text) {
    report.remarks.push_back({current, std::move(text)});
    if (options.log) options.log(report.remarks.back());
  }
};

struct Pass {
  std::string_view name;  // a verb phrase with dashes
  std::string_view doc;
  Graph (*run)(const Graph&, PassContext&);
  /// How much results may change, relative to the largest magnitude of each; 0: by no bit (one NaN is like another).
  /// Half types may change by one unit in the last place as soon as this is not 0.
  double tolerance = 0;
};

/// Runs passes in order, leaving out disabled ones. The graph is verified first (Error), and again after each pass,
/// with its interface compared to the one before; a broken one is an InternalError that names the pass. With
/// verify_numerics so is one that changes results (see verify_numerics.h). Throws Error when `options` name an unknown
/// pass.
Graph run_passes(const Graph& g, std::span<const Pass> passes, PassContext& context);

/// The passes that rlx has, by name.
std::span<const Pass> all_passes();
/// Those that prepare a graph for a device, in order: simplify, recognise, fuse, legalise.
std::span<const Pass> default_passes();
/// The pass of this name; throws Error that lists the known ones.
const Pass& find_pass(std::string_view name);

}  // namespace rlx
