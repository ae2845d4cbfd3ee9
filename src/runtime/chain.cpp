// Running segments: the sizes that one has found bind the next.
#include "runtime/chain.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "runtime/executable_impl.h"

namespace rlx::detail {

// One run of a chain.
struct Chain::Run {
  const RunOptions& options;
  State::Hold* hold = nullptr;
  DimEnv env;
  std::vector<const ConstView*> inputs;                // by input; null: a state
  std::vector<const MutableView*> outputs;             // by output; null: not bound
  std::vector<std::vector<Tensor>> made = {};          // by segment and output; empty where the caller's memory is used
  std::vector<std::vector<const MutableView*>> bound;  // by segment and output
};

Chain::Chain(Interface ports, Segments segments, std::vector<Executable> parts)
    : interface_(std::move(ports)),
      segments_(std::move(segments)),
      parts_(std::move(parts)),
      is_state_(interface_.inputs.size(), false) {
  for (const Interface::StatePort& s : interface_.states) is_state_[s.input] = true;
  for (Segment& s : segments_.parts) s.graph.reset();  // it holds the constants
}

DimEnv Chain::bind(Run& run, std::span<const BoundInput> inputs) const {
  run.inputs.assign(interface_.inputs.size(), nullptr);
  for (const BoundInput& in : inputs) {
    require(in.port < run.inputs.size(), "input {} is another program's: this one has {} inputs", in.port,
            run.inputs.size());
    require(!run.inputs[in.port], "input {} is bound twice", interface_.inputs[in.port].name);
    require(!is_state_[in.port], "input {} comes from a state", interface_.inputs[in.port].name);
    run.inputs[in.port] = &in.view;
  }
  require(interface_.states.empty() || run.options.state, "the graph has {} states, but no State is given",
          interface_.states.size());
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    if (is_state_[i]) {
      const auto s = std::ranges::find(interface_.states, i, &Interface::StatePort::input);
      types.push_back(run.options.state->at(s->name).type());
      continue;
    }
    require(run.inputs[i], "input {} is missing", interface_.inputs[i].name);
    types.emplace_back(run.inputs[i]->dtype,
                       std::vector<Dim>(run.inputs[i]->shape.begin(), run.inputs[i]->shape.end()));
  }
  return bind_dims(interface_, types, run.options.dims ? *run.options.dims : DimEnv());
}

void Chain::bind_outputs(Run& run, std::span<const BoundOutput> outputs) const {
  run.outputs.assign(interface_.outputs.size(), nullptr);
  for (const BoundOutput& out : outputs) {
    require(out.port < run.outputs.size(), "output {} is another program's: this one has {} outputs", out.port,
            run.outputs.size());
    require(!run.outputs[out.port], "output {} is bound twice", out.port);
    run.outputs[out.port] = &out.view;
  }
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    run.made.emplace_back();
    run.bound.emplace_back(parts_[s].interface().outputs.size(), nullptr);
  }
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    const SegmentSource& from = segments_.outputs[i];
    if (!from.segment || !run.outputs[i]) continue;
    const MutableView*& place = run.bound[*from.segment][from.number];
    if (!place) place = run.outputs[i];
  }
}

void Chain::run_part(Run& run, std::size_t part) const {
  const Executable& e = parts_[part];
  std::vector<BoundInput> in;
  for (std::uint32_t i = 0; i < segments_.parts[part].inputs.size(); ++i) {
    if (e.impl_->is_state[i]) continue;
    const SegmentSource& from = segments_.parts[part].inputs[i];
    if (!from.segment) {
      in.push_back({i, *run.inputs[from.number]});
    } else if (const MutableView* given = run.bound[*from.segment][from.number]) {
      in.push_back({i, {given->dtype, given->shape, given->data}});
    } else {
      in.push_back({i, run.made[*from.segment][from.number]});
    }
  }
  std::vector<BoundOutput> out;
  for (std::uint32_t i = 0; i < run.bound[part].size(); ++i) {
    if (run.bound[part][i]) out.push_back({i, *run.bound[part][i]});
  }
  std::vector<std::chrono::nanoseconds> times;
  RunOptions options = run.options;
  options.dims = &run.env;
  options.found = nullptr;
  options.state = e.interface().states.empty() ? nullptr : run.options.state;
  if (options.step_times) options.step_times = &times;
  run.made[part] = e.run_held(in, out, options, run.hold);
  if (run.options.step_times) run.options.step_times->insert(run.options.step_times->end(), times.begin(), times.end());
  for (const auto& [symbol, number] : segments_.parts[part].sizes) {
    const MutableView* given = run.bound[part][number];
    std::int64_t size = 0;
    std::memcpy(&size, given ? given->data : run.made[part][number].bytes().data(), sizeof size);
    run.env.insert_or_assign(symbol, size);
    if (run.options.found) run.options.found->insert_or_assign(symbol, size);
  }
}

// Outputs that are inputs, or other outputs, are copied where the caller wants them.
std::vector<Tensor> Chain::results(Run& run) const {
  std::vector<Tensor> given;
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    const SegmentSource& from = segments_.outputs[i];
    const MutableView* const place = from.segment ? run.bound[*from.segment][from.number] : nullptr;
    if (run.outputs[i] && place == run.outputs[i]) continue;
    Tensor value;
    if (!from.segment) {
      const ConstView& v = *run.inputs[from.number];
      value = Tensor(v.dtype, {v.shape.begin(), v.shape.end()});
      std::memcpy(const_cast<std::byte*>(value.bytes().data()), v.data, value.bytes().size());
    } else if (place) {
      value = Tensor(place->dtype, {place->shape.begin(), place->shape.end()});
      std::memcpy(const_cast<std::byte*>(value.bytes().data()), place->data, value.bytes().size());
    } else {
      value = run.made[*from.segment][from.number];
    }
    if (!run.outputs[i]) {
      given.push_back(std::move(value));
      continue;
    }
    const MutableView& to = *run.outputs[i];
    require(to.dtype == value.dtype() && std::ranges::equal(to.shape, value.shape()), "output {} is {}", i,
            value.type().text());
    std::memcpy(to.data, value.bytes().data(), value.bytes().size());
  }
  return given;
}

std::vector<Tensor> Chain::run(std::span<const BoundInput> inputs, std::span<const BoundOutput> outputs,
                               const RunOptions& options) const {
  std::optional<State::Hold> hold;
  if (options.state) hold.emplace(*options.state);
  Run run{.options = options, .hold = hold ? &*hold : nullptr, .env = {}, .inputs = {}, .outputs = {}, .bound = {}};
  run.env = bind(run, inputs);
  bind_outputs(run, outputs);
  if (options.step_times) options.step_times->clear();
  if (options.found) options.found->clear();
  for (std::size_t s = 0; s < parts_.size(); ++s) run_part(run, s);
  return results(run);
}

std::vector<std::vector<Index>> Chain::output_shapes(std::span<const BoundInput> inputs,
                                                     const RunOptions& options) const {
  Run run{.options = options, .env = {}, .inputs = {}, .outputs = {}, .bound = {}};
  const DimEnv env = bind(run, inputs);
  std::vector<std::vector<Index>> shapes;
  for (std::size_t i = 0; i < interface_.outputs.size(); ++i) {
    std::vector<Index>& shape = shapes.emplace_back();
    for (const Dim& d : interface_.outputs[i].type.dims) {
      DimSymbols used;
      d.collect_symbols(used);
      for (const auto& [name, bounds] : used) {
        require(env.contains(name), "output {} is {}: only a run finds size {}", i, interface_.outputs[i].type.text(),
                name);
      }
      shape.push_back(d.evaluate(env));
    }
  }
  return shapes;
}

RunReport Chain::report(const DimEnv& dims) const {
  RunReport all;
  for (const Executable& e : parts_) {
    RunReport one = e.report(dims);
    const auto before = static_cast<std::uint32_t>(all.steps.size());
    for (StepReport& s : one.steps) {
      for (std::uint32_t& w : s.waits_for) w += before;
      if (before > 0 && s.waits_for.empty()) s.waits_for.push_back(before - 1);
      all.steps.push_back(std::move(s));
    }
    for (BufferReport& b : one.buffers) {
      b.begin += before;
      b.end += before;
      all.buffers.push_back(std::move(b));
    }
    all.device = one.device;
    all.arena_bytes = std::max(all.arena_bytes, one.arena_bytes);
    all.constant_bytes += one.constant_bytes;
    all.packed_bytes += one.packed_bytes;
    all.remarks.insert(all.remarks.end(), one.remarks.begin(), one.remarks.end());
  }
  all.dims = dims;
  return all;
}

MemoryUse Chain::memory() const {
  MemoryUse all;
  for (const Executable& e : parts_) {
    const MemoryUse one = e.memory();
    all.arenas += one.arenas;
    all.weights = one.weights;  // of the session
    all.outputs += one.outputs;
  }
  return all;
}

}  // namespace rlx::detail
