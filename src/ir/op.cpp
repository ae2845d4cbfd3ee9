// The input op and registries of ops.
#include "ir/op.h"

#include <algorithm>

#include "core/error.h"
#include "ir/control.h"
#include "ir/measure.h"
#include "ir/op_table.h"
#include "ir/outline.h"

namespace rlx {

static constinit const Op<NoAttrs> input_definition{{.name = "input", .doc = "An input of the graph."}};
const OpDef& input_op() { return input_definition; }

OpRegistry::OpRegistry() {
  for (const OpDef* op : {&fusion_op(), &if_op(), &while_op(), &scan_op(), &call_op(), &measure_op()}) add(*op);
  for (const OpFolder& f : op_folders()) {
    for (const OpDef* op : f.ops()) add(*op);
  }
}

void OpRegistry::add(const OpDef& op) {
  const std::string_view n = op.name();
  const bool word = !n.empty() && n[0] >= 'a' && n[0] <= 'z' && std::ranges::all_of(n, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  require(word, "\"{}\" is no name of an op: expected small letters, digits and _", n);
  for (const std::string_view reserved : {"input", "graph", "check", "state", "return", "names", "dims"}) {
    require(n != reserved, "an op may not be called {}", n);
  }
  const auto [it, added] = ops_.emplace(n, &op);
  require(added || it->second == &op, "op {} is registered twice", n);
}

const OpDef* OpRegistry::find(std::string_view name) const {
  const auto it = ops_.find(name);
  return it == ops_.end() ? nullptr : it->second;
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> r;
  for (const auto& [name, op] : ops_) r.push_back(op);
  return r;
}

}  // namespace rlx
