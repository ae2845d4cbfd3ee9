// Executables: binding inputs and sizes, contexts with their arenas, the loop over steps.
#include "runtime/executable.h"

#include <algorithm>

#include "core/error.h"
#include "core/os_posix.h"
#include "runtime/chain.h"
#include "runtime/executable_impl.h"

namespace rlx {

using Impl = detail::ExecutableImpl;

Executable::Executable(Program program, Interface interface, std::shared_ptr<Device> device,
                       std::shared_ptr<Executor> executor, std::shared_ptr<WeightStore> weights,
                       const ExecutableOptions& options)
    : impl_(std::make_unique<Impl>(std::move(program), std::move(interface), std::move(device), std::move(executor),
                                   std::move(weights), options)) {}
Executable::Executable(std::unique_ptr<detail::Chain> chain) : chain_(std::move(chain)) {}
Executable::~Executable() = default;
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;

const Interface& Executable::interface() const { return chain_ ? chain_->interface() : impl_->interface; }

static std::uint32_t find_port(const std::vector<Interface::Port>& ports, std::string_view name, const char* kind) {
  std::string known;
  for (std::uint32_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return i;
    known += (known.empty() ? "" : ", ") + ports[i].name;
  }
  fail("there is no {} \"{}\", expected one of {}", kind, name, known);
}

InputHandle Executable::input(std::string_view name) const {
  const std::uint32_t port = find_port(interface().inputs, name, "input");
  require(chain_ ? !chain_->is_state(port) : !impl_->is_state[port], "input {} comes from a state", name);
  return InputHandle(port);
}

OutputHandle Executable::output(std::string_view name) const {
  return OutputHandle(find_port(interface().outputs, name, "output"));
}

OutputHandle Executable::output(std::size_t position) const {
  require(position < interface().outputs.size(), "there is no output {}, the program has {}", position,
          interface().outputs.size());
  return OutputHandle(static_cast<std::uint32_t>(position));
}

std::vector<std::vector<Index>> Executable::output_shapes(std::span<const BoundInput> inputs,
                                                          const RunOptions& options) const {
  if (chain_) return chain_->output_shapes(inputs, options);
  const Impl::Lease lease(*impl_);
  impl_->bind_inputs(*lease, inputs, options);
  return lease->bound->out_shapes;
}

void Executable::run(std::span<const BoundInput> inputs, std::span<const BoundOutput> outputs,
                     const RunOptions& options) const {
  if (chain_) {
    require(outputs.size() == interface().outputs.size(), "{} outputs are bound, the program has {}", outputs.size(),
            interface().outputs.size());
    chain_->run(inputs, outputs, options);
    return;
  }
  std::optional<State::Hold> hold;
  if (options.state) hold.emplace(*options.state);
  const Impl::Lease lease(*impl_);
  impl_->bind_inputs(*lease, inputs, options);
  impl_->bind_outputs(*lease, outputs);
  impl_->execute(*lease, options, hold ? &*hold : nullptr);
}

std::vector<Tensor> Executable::run(const NamedTensors& inputs, const RunOptions& options) const {
  std::vector<BoundInput> in;
  for (const auto& [name, value] : inputs) {
    require(!value.type().encoding, "input {} is {}, expected a dense tensor", name, value.type().text());
    in.push_back(input(name).bind(value));
  }
  if (chain_) return chain_->run(in, {}, options);
  std::optional<State::Hold> hold;
  if (options.state) hold.emplace(*options.state);
  return run_held(in, {}, options, hold ? &*hold : nullptr);
}

std::vector<Tensor> Executable::run_held(std::span<const BoundInput> inputs, std::span<const BoundOutput> outputs,
                                         const RunOptions& options, State::Hold* hold) const {
  const Impl::Lease lease(*impl_);
  impl_->bind_inputs(*lease, inputs, options);
  std::vector<Tensor> results;
  std::vector<BoundOutput> out(outputs.begin(), outputs.end());
  for (std::uint32_t i = 0; i < impl_->interface.outputs.size(); ++i) {
    if (std::ranges::find(outputs, i, &BoundOutput::port) != outputs.end()) {
      results.emplace_back();
      continue;
    }
    results.push_back(impl_->outputs->take(impl_->interface.outputs[i].type.dtype, lease->bound->out_shapes[i]));
    // Nobody else has seen this memory.
    out.push_back({i, {results[i].dtype(), results[i].shape(), const_cast<std::byte*>(results[i].bytes().data())}});
  }
  impl_->bind_outputs(*lease, out);
  impl_->execute(*lease, options, hold);
  return results;
}

MemoryUse Executable::memory() const { return chain_ ? chain_->memory() : impl_->memory(); }
RunReport Executable::report(const DimEnv& dims) const { return chain_ ? chain_->report(dims) : impl_->report(dims); }

}  // namespace rlx
