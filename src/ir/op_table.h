// All op folders (generated from src/ops/) and registries of ops by name.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "ir/op.h"

namespace rlx {

struct OpFolder {
  std::string_view name;
  std::span<const OpDef* const> (*ops)();
};
/// One row a folder under src/ops.
std::span<const OpFolder> op_folders();

/// Ops by name: those of rlx, and a user's own.
class OpRegistry {
 public:
  /// The ops of rlx.
  OpRegistry();
  /// Adds an op that outlives the registry; throws Error when the name is taken or no name of an op
  /// (`[a-z][a-z0-9_]*`).
  void add(const OpDef& op);
  /// Null when unknown.
  const OpDef* find(std::string_view name) const;
  /// Ops in the order of their names.
  std::vector<const OpDef*> all() const;

 private:
  std::map<std::string, const OpDef*, std::less<>> ops_;
};

}  // namespace rlx
