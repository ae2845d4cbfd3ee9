// Which step makers a backend has for an op.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "device/step.h"

namespace rlx {

/// What a folder exports for a backend.
using MakerFolder = std::span<const MakerRow> (*)();

/// One row a folder with a NAME.cpu.cpp (generated).
std::span<const MakerFolder> cpu_maker_folders();

/// A step maker that holds what it needs, for instance the device that it compiles for.
using BoundMaker = std::function<std::optional<Step>(const StepArgs&)>;

/// Step makers by op.
class MakerTable {
 public:
  MakerTable() = default;
  explicit MakerTable(std::span<const MakerFolder> folders);
  /// Adds a maker that is asked before those that are there: a user's own op, or a better kernel.
  void add(MakerRow row) { add(row.op, row.make); }
  void add(const OpDef* op, BoundMaker make);
  /// In the order in which they are asked.
  std::span<const BoundMaker> find(const OpDef* op) const;
  /// The step of the first maker that does not decline, or nothing, and `why` holds one reason a line.
  std::optional<Step> make(const StepArgs& args) const;

 private:
  std::unordered_map<const OpDef*, std::vector<BoundMaker>> makers_;
};

}  // namespace rlx
