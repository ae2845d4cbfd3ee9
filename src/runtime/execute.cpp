// The loop over steps, and the report about them.
#include <algorithm>

#include "core/error.h"
#include "runtime/executable_impl.h"

namespace rlx::detail {

using Clock = std::chrono::steady_clock;

// Addresses of everything that does not change while the binding stays; inputs and outputs come with each run.
void ExecutableImpl::set_places(Context& c) const {
  if (c.placed == c.bound) return;
  const Binding& b = c.bound->numbers;
  if (!c.arena || c.arena->bytes() < b.placement.bytes) {
    c.placed.reset();
    c.arena.reset();
    c.arena = std::make_unique<DeviceMemory>(*device, b.placement.bytes);
  }
  set_places({program, layout, part, b, c.frame}, c.arena->address());
  c.placed = c.bound;
}

void ExecutableImpl::set_places(const Running& r, std::byte* arena) const {
  const Binding& b = r.numbers;
  if (!b.refused.empty()) return;
  r.frame.arena = arena;
  std::size_t use = 0;
  for (const Step& step : r.program.steps) {
    for (const Use& u : step.uses) {
      Memory::Place& place = r.frame.places[use];
      place.bytes = static_cast<std::size_t>(b.use_bytes[use]);
      const BufferId owner = r.program.owner(u.buffer);
      std::byte* const base = r.part.constant_addresses[use]                       ? r.part.constant_addresses[use]
                              : r.program.buffers[owner].kind == BufferKind::arena ? arena + b.placement.offsets[owner]
                                                                                   : nullptr;
      place.address = base ? base + b.use_offsets[use] : nullptr;
      ++use;
    }
  }
  for (std::size_t i = 0; i < r.program.controls.size(); ++i) {
    const Control& c = r.program.controls[i];
    for (std::size_t k = 0; k < c.bodies.size(); ++k) {
      set_places({c.bodies[k], r.layout.controls[i].bodies[k], r.part.bodies[i][k], b.controls[i].bodies[k],
                  r.frame.bodies[i][k]},
                 arena + b.placement.offsets[r.program.owner(c.arena)]);
    }
  }
}

void ExecutableImpl::set_externals(const Running& r) {
  for (const Part::External& e : r.part.externals) {
    std::byte* const base = r.frame.addresses[e.number];  // null where the caller has no elements
    r.frame.places[e.use].address = base ? base + r.numbers.use_offsets[e.use] : nullptr;
  }
}

void ExecutableImpl::execute(Context& c, const RunOptions& o, State::Hold* hold) const {
  set_places(c);
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    c.frame.addresses[i] = static_cast<std::byte*>(const_cast<void*>(c.inputs[i]->data));  // inputs are only read
  for (const Interface::StatePort& s : interface.states) c.frame.addresses[s.input] = hold->bytes(s.name).data();
  for (std::size_t i = 0; i < c.outputs.size(); ++i)
    c.frame.addresses[c.inputs.size() + i] = static_cast<std::byte*>(c.outputs[i].data);
  check_overlaps(c);
  if (!device->info().host_memory) stage(c);
  set_externals({program, layout, part, c.bound->numbers, c.frame});
  run_steps(c, o, hold);
  if (!device->info().host_memory) unstage(c, hold);
}

// Nothing that a run writes shares memory with anything else that the caller gave.
void ExecutableImpl::check_overlaps(Context& c) const {
  const std::size_t inputs = c.inputs.size();
  c.extents.clear();
  for (std::uint32_t i = 0; i < c.frame.addresses.size(); ++i) {
    const BufferId buffer = i < inputs ? program.inputs[i] : program.owner(program.outputs[i - inputs]);
    const auto begin = reinterpret_cast<std::uintptr_t>(c.frame.addresses[i]);
    const auto bytes = static_cast<std::uintptr_t>(c.bound->numbers.buffer_bytes[buffer]);
    if (bytes > 0) c.extents.push_back({begin, begin + bytes, i, i >= inputs || is_state[i]});
  }
  std::ranges::sort(c.extents, {}, &Context::Extent::begin);
  const auto name = [&](std::uint32_t i) {
    if (i < inputs) return (is_state[i] ? "state " : "input ") + interface.inputs[i].name;
    const std::string& given = interface.outputs[i - inputs].name;
    return "output " + (given.empty() ? std::to_string(i - inputs) : given);
  };
  const Context::Extent *written = nullptr, *read = nullptr;  // those that reach furthest
  for (const Context::Extent& e : c.extents) {
    const Context::Extent* const other = written && written->end > e.begin          ? written
                                         : e.written && read && read->end > e.begin ? read
                                                                                    : nullptr;
    if (other) {
      const bool first = e.written && (!other->written || e.number > other->number);
      fail("{} lies in the memory of {}", name(first ? e.number : other->number),
           name(first ? other->number : e.number));
    }
    const Context::Extent*& furthest = e.written ? written : read;
    if (!furthest || furthest->end < e.end) furthest = &e;
  }
}

// Copies inputs and states to the device; addresses become the device's.
void ExecutableImpl::stage(Context& c) const {
  c.staged.resize(c.frame.addresses.size());
  for (std::size_t i = 0; i < c.frame.addresses.size(); ++i) {
    const bool is_input = i < c.inputs.size();
    const std::size_t k = is_input ? i : i - c.inputs.size();
    const Index bytes = c.bound->numbers.buffer_bytes[is_input ? program.inputs[k] : program.owner(program.outputs[k])];
    if (!c.staged[i] || c.staged[i]->bytes() < bytes) c.staged[i] = std::make_unique<DeviceMemory>(*device, bytes);
    if (is_input && bytes > 0)
      device->upload(c.staged[i]->address(), {c.frame.addresses[i], static_cast<std::size_t>(bytes)});
    c.frame.addresses[i] = c.staged[i]->address();
  }
}

void ExecutableImpl::unstage(Context& c, State::Hold* hold) const {
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    const Index bytes = c.bound->numbers.buffer_bytes[program.owner(program.outputs[i])];
    if (bytes == 0) continue;
    device->download({static_cast<std::byte*>(c.outputs[i].data), static_cast<std::size_t>(bytes)},
                     c.staged[c.inputs.size() + i]->address());
  }
  for (const Interface::StatePort& s : interface.states) {
    if (const auto bytes = hold->bytes(s.name); !bytes.empty()) device->download(bytes, c.staged[s.input]->address());
  }
  device->synchronize();
}

void ExecutableImpl::run_step(const Running& r, std::size_t s, const RunOptions& o) const {
  const Step& step = r.program.steps[s];
  const ProgramLayout::StepAt& at = r.layout.steps[s];
  const Binding::StepAt& numbers = r.numbers.steps[s];
  if (numbers.items <= 0) return;
  if (r.part.control[s] >= 0) return run_control(r, static_cast<std::size_t>(r.part.control[s]), o);
  const Memory memory(std::span(r.frame.places).subspan(at.uses_begin, step.uses.size()));
  const DimValues dims(std::span(r.numbers.dims).subspan(at.dims_begin, step.dims.size()));
  if (numbers.items <= numbers.grain || executor->width() == 1 || !device->info().host_memory)
    return step.run(memory, dims, {0, numbers.items});
  const auto piece = [&](Index begin, Index end) {
    if (o.cancel && o.cancel->cancelled()) fail("the run was cancelled in step {} ({})", s, step.name);
    step.run(memory, dims, {begin, end});
  };
  executor->run(numbers.items, numbers.grain, piece);
}

void ExecutableImpl::end_step(const Running& r, std::size_t s) const {
  if (!options.poison) return;
  for (const BufferId b : r.layout.ends[s])
    device->fill(r.frame.arena + r.numbers.placement.offsets[b], r.numbers.buffer_bytes[b], std::byte{0xFF});
}

void ExecutableImpl::run_steps(Context& c, const RunOptions& o, State::Hold* hold) const {
  if (o.step_times) o.step_times->assign(program.steps.size(), {});
  const Running running{program, layout, part, c.bound->numbers, c.frame};
  std::size_t s = 0;
  bool inside = false;
  const auto lose = [&] {
    if (hold && (s > first_state_write || (s == first_state_write && inside))) hold->lose();
  };
  try {
    for (; s < program.steps.size(); ++s) {
      inside = false;
      if (o.cancel && o.cancel->cancelled())
        fail("the run was cancelled before step {} ({})", s, program.steps[s].name);
      if (o.deadline && Clock::now() > *o.deadline)
        fail("the deadline passed before step {} of {} ({})", s, program.steps.size(), program.steps[s].name);
      const auto begin = o.step_times ? Clock::now() : Clock::time_point();
      inside = true;
      run_step(running, s, o);
      if (o.step_times) {
        device->synchronize();
        (*o.step_times)[s] = Clock::now() - begin;
      }
      end_step(running, s);
    }
  } catch (const Error& e) {
    lose();
    fail("{}: {}", s < part.node_texts.size() ? part.node_texts[s] : "", e.what());
  } catch (...) {
    lose();
    throw;
  }
}

RunReport ExecutableImpl::report(const DimEnv& dims) const {
  for (const auto& [name, limits] : interface.symbols) {
    const auto it = dims.find(name);
    require(it != dims.end(), "size symbol {} has no value", name);
    require(limits.lo <= it->second && it->second <= limits.hi, "size symbol {} is {}, outside its bounds {}..{}", name,
            it->second, limits.lo, limits.hi);
  }
  const Binding b(program, layout, dims);
  RunReport r{.device = device->info().name,
              .dims = dims,
              .arena_bytes = b.placement.bytes,
              .constant_bytes = constant_bytes,
              .packed_bytes = packed_bytes};
  const auto waits = dependencies(program);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    StepReport step{program.steps[s].name, part.node_texts[s], b.steps[s].items, b.steps[s].grain, b.steps[s].flops};
    step.arithmetic = program.steps[s].arithmetic;
    step.declined = program.steps[s].declined;
    for (std::size_t u = 0; u < program.steps[s].uses.size(); ++u) {
      const Use& use = program.steps[s].uses[u];
      const Access access = use.access;
      const Index bytes = b.use_bytes[layout.steps[s].uses_begin + u];
      const bool weight = program.buffers[program.owner(use.buffer)].kind == BufferKind::constant;
      (weight ? step.least_weight_bytes : step.least_bytes) +=
          use.least.evaluate(dims) * (access == Access::update ? 2 : 1);
      if (access == Access::read || access == Access::update) step.bytes_read += bytes;
      if (access == Access::write || access == Access::update) step.bytes_written += bytes;
    }
    step.waits_for = waits[s];
    r.steps.push_back(std::move(step));
  }
  static constexpr const char* kinds[] = {"input", "output", "constant", "state", "arena"};
  for (BufferId i = 0; i < program.buffers.size(); ++i) {
    const BufferId owner = program.owner(i);
    const Buffer& buffer = program.buffers[i];
    r.buffers.push_back({fmt::format("%{}#{}", buffer.value.node, buffer.value.result),
                         kinds[static_cast<std::size_t>(program.buffers[owner].kind)], b.buffer_bytes[i],
                         b.placement.offsets[owner], layout.lives[owner].begin, layout.lives[owner].end, owner != i});
  }
  r.remarks = program.remarks;
  return r;
}

}  // namespace rlx::detail
