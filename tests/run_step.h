// Runs one node through the step that its makers make, and looks for what a step must not do: write outside its
// results, change its operands, or give other bits when its items come in other pieces.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance.h"
#include "device/makers.h"
#include "ir/graph.h"

namespace rlx::test {

/// How a node is run.
struct StepRun {
  /// 0: all items in one call; else in pieces of random size and order, the same for equal seeds.
  unsigned pieces = 0;
  /// Operands (but constants and packed elements) lie in memory with their axes reversed and gaps between elements.
  bool strided = false;
  /// Results take the memory of operands where the step allows it.
  bool in_place = false;
};

/// Results of node `id` of `g` for these operands, by the first maker of `makers` that does not decline; nothing when
/// all do, and `why` says why. Operands that are `constant` nodes are given to the makers as constants. Memory around
/// the slots, results and scratch memory hold noise before the run. A broken promise is a test failure.
std::optional<std::vector<Tensor>> run_node(const Graph& g, Id id, std::span<const Tensor> operands, const DimEnv& dims,
                                            const MakerTable& makers, const StepRun& how = {},
                                            std::string* why = nullptr);

/// The same for a graph of one op, of which the inputs are the operands: a case of the conformance runner.
std::optional<std::vector<Tensor>> run_node(const Bound& b, const MakerTable& makers, const StepRun& how = {},
                                            std::string* why = nullptr);

/// The makers of the CPU.
const MakerTable& cpu_makers();

/// Element types a case can be repeated with, as maps for bind_case: {} first, then each type in place of `from`.
std::vector<std::map<DType, DType>> type_variants(const AnyCase& c);

/// Every case of `op` with every element type that inference accepts, at every level: run in one call, in pieces, with
/// strided operands where a maker takes them, and in place; equal bits each time, and close to the reference within
/// the case's tolerance (or `tolerance`). Returns how many cases ran; declined ones are failures unless `may_decline`.
struct CaseCount {
  int ran = 0, declined = 0, strided = 0;
};
CaseCount check_steps(const OpDef& op, const std::optional<Tolerance>& tolerance = std::nullopt,
                      bool may_decline = false);

}  // namespace rlx::test
