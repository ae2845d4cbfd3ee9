// The steps of if, while and scan nodes: uses only, the runtime runs the bodies.
#include "ir/control.h"

#include <algorithm>

#include "core/error.h"
#include "plan/program.h"

namespace rlx {

namespace {

void fill_scan(const Node& node, Control& c) {
  const auto& a = node.attrs.as<ScanAttrs>();
  c.trips = a.trips;
  c.carried = static_cast<std::uint32_t>(a.carried);
  c.scanned = static_cast<std::uint32_t>(a.scanned);
  const Graph& body = *node.bodies[0];
  for (std::uint32_t i = 0; i < c.scanned; ++i) {
    c.slice_bytes.push_back(body.nodes[body.inputs[c.carried + i]].results[0].plane_bytes(0));
    c.backward.push_back(std::ranges::find(a.backward, Index{i}) != a.backward.end());
  }
  for (std::uint32_t i = c.carried; i < c.results; ++i) {
    c.slice_bytes.push_back(body.type(body.outputs[i]).plane_bytes(0));
    c.backward.push_back(std::ranges::find(a.backward_results, Index{i - c.carried}) != a.backward_results.end());
  }
}

}  // namespace

Step control_step(const Node& node, std::span<const Slot> in, std::span<const Slot> out, Control& c) {
  c.op = node.op;
  c.operands = static_cast<std::uint32_t>(in.size());
  c.results = static_cast<std::uint32_t>(out.size());
  if (node.op == &scan_op()) fill_scan(node, c);
  if (node.op == &while_op()) c.carried = static_cast<std::uint32_t>(node.attrs.as<WhileAttrs>().carried);
  StepBuilder s{std::string(node.op->name())};
  for (const Slot& slot : in) s.read<std::byte>(slot);
  for (const Slot& slot : out) s.write<std::byte>(slot);
  for (std::uint32_t i = 0; i < c.carried; ++i) {
    c.carried_bytes.push_back(out[i].type.plane_bytes(0));
    s.scratch<std::byte>(c.carried_bytes.back());
  }
  if (node.op == &while_op()) s.scratch<std::byte>(Dim(1));
  c.arena_use = c.second() + c.carried + (node.op == &while_op() ? 1 : 0);
  s.scratch<std::byte>(Dim(0));
  return s.run(1, 1, [](const Memory&, const DimValues&, Range) { ensure(false, "the runtime runs control flow"); });
}

}  // namespace rlx
