// Sizes of a program as numbers.
#include "plan/binding.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

std::uint32_t DimTable::add(const Dim& d) {
  std::vector<std::uint32_t>& equals = by_hash_[d.hash()];
  for (const std::uint32_t i : equals) {
    if (dims_[i] == d) return i;
  }
  dims_.push_back(d);
  equals.push_back(static_cast<std::uint32_t>(dims_.size() - 1));
  return equals.back();
}

std::vector<Index> DimTable::evaluate(const DimEnv& dims) const {
  std::vector<Index> values;
  values.reserve(dims_.size());
  for (const Dim& d : dims_) values.push_back(d.evaluate(dims));
  return values;
}

ProgramLayout::ProgramLayout(const Program& p) : lives(lifetimes(p)), ends(p.steps.size()) {
  for (const Buffer& b : p.buffers) buffer_bytes.push_back(table.add(b.bytes));
  for (const Step& s : p.steps) {
    steps.push_back({table.add(s.items), table.add(s.grain), table.add(s.flops),
                     static_cast<std::uint32_t>(dims.size()), static_cast<std::uint32_t>(uses.size())});
    for (const Dim& d : s.dims) dims.push_back(table.add(d));
    for (const Use& u : s.uses) uses.push_back({table.add(u.offset), table.add(u.bytes)});
  }
  for (const Control& c : p.controls) {
    ControlAt& at = controls.emplace_back();
    at.trips = table.add(c.trips);
    for (const Dim& d : c.slice_bytes) at.slice_bytes.push_back(table.add(d));
    for (const Dim& d : c.carried_bytes) at.carried_bytes.push_back(table.add(d));
    for (const Program& body : c.bodies) at.bodies.emplace_back(body);
  }
  for (BufferId b = 0; b < lives.size(); ++b) {
    if (lives[b].used) ends[lives[b].end].push_back(b);
  }
}

Binding::Binding(const Program& p, const ProgramLayout& layout, DimEnv environment) : env(std::move(environment)) {
  const std::vector<Index> values = layout.table.evaluate(env);
  for (const ProgramLayout::StepAt& s : layout.steps)
    steps.push_back({values[s.items], std::max<Index>(values[s.grain], 1), values[s.flops]});
  for (const std::uint32_t d : layout.dims) dims.push_back(values[d]);
  for (const std::uint32_t b : layout.buffer_bytes) buffer_bytes.push_back(values[b]);
  for (const ProgramLayout::UseAt& u : layout.uses) {
    use_offsets.push_back(values[u.offset]);
    use_bytes.push_back(values[u.bytes]);
  }
  for (std::size_t i = 0; i < p.controls.size(); ++i) {
    const Control& c = p.controls[i];
    const ProgramLayout::ControlAt& from = layout.controls[i];
    ControlAt& to = controls.emplace_back();
    to.trips = values[from.trips];
    for (const std::uint32_t d : from.slice_bytes) to.slice_bytes.push_back(values[d]);
    for (const std::uint32_t d : from.carried_bytes) to.carried_bytes.push_back(values[d]);
    Index arena = 0;  // bodies of one step never run at the same time
    for (std::size_t k = 0; k < c.bodies.size(); ++k) {
      to.bodies.push_back(inside(c.bodies[k], from.bodies[k], env));
      arena = std::max(arena, to.bodies.back().placement.bytes);
    }
    buffer_bytes[c.arena] = arena;
    use_bytes[layout.steps[c.step].uses_begin + c.arena_use] = arena;
  }
  placement = place(p, layout.lives, buffer_bytes);
}

Binding Binding::inside(const Program& p, const ProgramLayout& layout, const DimEnv& env) {
  Binding refusal;
  try {
    for (const Check& c : p.checks) {
      const Index left = c.left.evaluate(env), right = c.right.evaluate(env);
      require(left == right, "{}: {} is {}, {} is {}, they must be equal", c.why, c.left.text(), left, c.right.text(),
              right);
    }
    for (const auto& [size, node] : p.sizes) {
      const Index value = size.evaluate(env);
      require(value >= 0, "{}: size {} is {}, which is negative", node, size.text(), value);
    }
    return {p, layout, env};
  } catch (const Error& e) {
    refusal.refused = e.what();
  }
  return refusal;
}

}  // namespace rlx
