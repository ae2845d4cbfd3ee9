// The inside of an executable: what is found once, and what a run does.
#include "runtime/executable_impl.h"

#include <algorithm>

#include "core/error.h"
#include "core/os_posix.h"
#include "ir/graph.h"

namespace rlx::detail {

ExecutableImpl::ExecutableImpl(Program p, Interface ports, std::shared_ptr<Device> where,
                               std::shared_ptr<Executor> threads, std::shared_ptr<WeightStore> store,
                               const ExecutableOptions& chosen)
    : program(std::move(p)),
      interface(std::move(ports)),
      device(std::move(where)),
      executor(std::move(threads)),
      weights(std::move(store)),
      options(chosen),
      layout(program),
      is_state(interface.inputs.size(), false) {
  require(options.memory_limit >= 0, "the memory limit is {} bytes, expected 0 or more", options.memory_limit);
  require(options.bindings >= 1, "0 bindings are to be kept, expected at least 1");
  for (const Interface::StatePort& s : interface.states) is_state[s.input] = true;
  first_state_write = program.steps.size();
  part = make_part(program);
  options.progress = {};
  check_memory(0, 0);
  find_symbols();
}

Part ExecutableImpl::make_part(Program& p) {
  Part made;
  for (const Id node : p.nodes) made.node_texts.push_back(describe(*p.graph, node));
  set_constants(p, made);
  made.control.assign(p.steps.size(), -1);
  for (Control& c : p.controls) {
    made.control[c.step] = static_cast<std::int32_t>(made.bodies.size());
    std::vector<Part>& bodies = made.bodies.emplace_back();
    for (Program& body : c.bodies) bodies.push_back(make_part(body));
  }
  // The graph holds the constants, of which only those that are read as they are stay.
  p.graph.reset();
  return made;
}

Frame ExecutableImpl::make_frame(const Program& p, const ProgramLayout& at) const {
  Frame made;
  made.places.resize(at.uses.size());
  made.addresses.resize(p.inputs.size() + p.outputs.size());
  for (std::size_t i = 0; i < p.controls.size(); ++i) {
    std::vector<Frame>& bodies = made.bodies.emplace_back();
    for (std::size_t k = 0; k < p.controls[i].bodies.size(); ++k)
      bodies.push_back(make_frame(p.controls[i].bodies[k], at.controls[i].bodies[k]));
  }
  return made;
}

void ExecutableImpl::set_constants(Program& p, Part& made) {
  std::vector<bool> plain(p.constants.size(), false);
  std::uint32_t use = 0;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    if (options.progress && &p == &program)
      options.progress("weights", static_cast<double>(s) / static_cast<double>(p.steps.size()));
    for (const Use& u : p.steps[s].uses) {
      const Buffer& owner = p.buffers[p.owner(u.buffer)];
      std::byte* address = nullptr;
      if (owner.kind == BufferKind::constant) {
        const Tensor& constant = p.constants[owner.number];
        if (u.packing) {
          const auto memory = weights->packed(constant, *u.packing);
          address = memory->address();
          if (std::ranges::find(kept, std::shared_ptr<const void>(memory)) == kept.end()) {
            packed_bytes += memory->bytes();
            kept.push_back(memory);
          }
        } else if (device->info().host_memory) {
          address = const_cast<std::byte*>(constant.bytes().data());  // steps only read constants
          plain[owner.number] = true;
        } else {
          const auto memory = weights->uploaded(constant);
          address = memory->address();
          kept.push_back(memory);
        }
      } else if (owner.kind != BufferKind::arena) {
        made.externals.push_back({use, static_cast<std::uint32_t>(external(p, owner))});
      }
      if (owner.kind == BufferKind::state && u.access != Access::read)
        first_state_write = std::min(first_state_write, s);
      made.constant_addresses.push_back(address);
      ++use;
    }
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const Bytes& bytes = p.constants[i].plane();
    if (plain[i]) {
      constant_bytes += static_cast<Index>(bytes.data.size());
    } else {
      release_pages(bytes);
      p.constants[i] = Tensor();
    }
  }
}

void ExecutableImpl::check_memory(Index arena, Index states) const {
  const Index sum = constant_bytes + packed_bytes + arena + states;
  require(options.memory_limit == 0 || sum <= options.memory_limit,
          "the program needs {} bytes ({} constants, {} packed weights, {} states, {} arena), the limit is {}", sum,
          constant_bytes, packed_bytes, states, arena, options.memory_limit);
}

void ExecutableImpl::find_symbols() {
  for (const auto& [name, limits] : interface.symbols) {
    Seen seen{name};
    for (std::size_t i = 0; i < interface.inputs.size() && seen.input < 0; ++i) {
      const std::vector<Dim>& dims = interface.inputs[i].type.dims;
      for (std::uint32_t k = 0; k < dims.size() && seen.input < 0; ++k) {
        if (dims[k].symbol_name() == name) seen = {name, static_cast<std::int32_t>(i), k};
      }
    }
    symbols.push_back(seen);
  }
}

// Externals are numbered: inputs (states among them), then outputs.
std::size_t ExecutableImpl::external(const Program& p, const Buffer& b) const {
  if (b.kind == BufferKind::output) return p.inputs.size() + b.number;
  return b.kind == BufferKind::state ? interface.states[b.number].input : b.number;
}

ExecutableImpl::Lease::Lease(const ExecutableImpl& impl) : impl_(impl) {
  {
    const std::lock_guard guard(impl.lock);
    if (!impl.contexts.empty()) {
      context_ = std::move(impl.contexts.back());
      impl.contexts.pop_back();
    }
  }
  if (context_) return;
  context_ = std::make_unique<Context>();
  context_->inputs.resize(impl.interface.inputs.size());
  context_->state_views.resize(impl.interface.states.size());
  context_->outputs.resize(impl.interface.outputs.size());
  context_->frame = impl.make_frame(impl.program, impl.layout);
  context_->extents.reserve(context_->frame.addresses.size());
}

ExecutableImpl::Lease::~Lease() {
  const std::lock_guard guard(impl_.lock);
  impl_.contexts.push_back(std::move(context_));
}

void ExecutableImpl::check_input(const Context& c, std::size_t i) const {
  const ConstView& v = *c.inputs[i];
  const Interface::Port& port = interface.inputs[i];
  const bool fits = v.dtype == port.type.dtype && v.shape.size() == port.type.dims.size();
  if (!fits) {
    const TensorType given(v.dtype, std::vector<Dim>(v.shape.begin(), v.shape.end()));
    fail("input {} is {}, expected {}", port.name, given.text(), port.type.text());
  }
  const auto width = static_cast<std::uintptr_t>(storage_bytes(v.dtype, 1));
  const bool empty = std::ranges::find(v.shape, Index{0}) != v.shape.end();
  require(v.data || empty, "input {} has no memory", port.name);
  require(reinterpret_cast<std::uintptr_t>(v.data) % std::min<std::uintptr_t>(width, 8) == 0,
          "input {} lies at an address that is no multiple of its element size {}", port.name, width);
}

void ExecutableImpl::bind_inputs(Context& c, std::span<const BoundInput> inputs, const RunOptions& o) const {
  std::ranges::fill(c.inputs, nullptr);
  for (const BoundInput& in : inputs) {
    require(in.port < c.inputs.size(), "input {} is another program's: this one has {} inputs", in.port,
            c.inputs.size());
    require(!c.inputs[in.port], "input {} is bound twice", interface.inputs[in.port].name);
    require(!is_state[in.port], "input {} comes from a state", interface.inputs[in.port].name);
    c.inputs[in.port] = &in.view;
  }
  require(interface.states.empty() || o.state, "the graph has {} states, but no State is given",
          interface.states.size());
  for (std::size_t i = 0; i < interface.states.size(); ++i) {
    const Interface::StatePort& s = interface.states[i];
    c.state_views[i] = ConstView(o.state->at(s.name));
    c.inputs[s.input] = &c.state_views[i];
  }
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    require(c.inputs[i], "input {} is missing", interface.inputs[i].name);
    check_input(c, i);
  }
  c.bound = bind(c, o);
}

void ExecutableImpl::bind_outputs(Context& c, std::span<const BoundOutput> outs) const {
  std::ranges::fill(c.outputs, MutableView{});
  std::vector<MutableView>& all = c.outputs;
  std::size_t given = 0;
  for (const BoundOutput& out : outs) {
    require(out.port < all.size(), "output {} is another program's: this one has {} outputs", out.port, all.size());
    const Interface::Port& port = interface.outputs[out.port];
    const auto label = [&] { return port.name.empty() ? std::to_string(out.port) : port.name; };
    const std::vector<Index>& shape = c.bound->out_shapes[out.port];
    if (out.view.dtype != port.type.dtype || !std::ranges::equal(out.view.shape, shape)) {
      const TensorType got(out.view.dtype, {out.view.shape.begin(), out.view.shape.end()});
      const TensorType want(port.type.dtype, {shape.begin(), shape.end()});
      fail("output {} is {}, expected {}", label(), got.text(), want.text());
    }
    const auto width = std::min<std::uintptr_t>(static_cast<std::uintptr_t>(storage_bytes(port.type.dtype, 1)), 8);
    const bool empty = std::ranges::find(shape, Index{0}) != shape.end();
    if (!out.view.data && !empty) fail("output {} has no memory", label());
    if (reinterpret_cast<std::uintptr_t>(out.view.data) % width != 0)
      fail("output {} lies at an address that is no multiple of its element size {}", label(), width);
    if (!all[out.port].shape.empty() || all[out.port].data) fail("output {} is bound twice", label());
    all[out.port] = out.view;
    ++given;
  }
  require(given == all.size(), "{} outputs are bound, the program has {}", given, all.size());
}

std::shared_ptr<const Bound> ExecutableImpl::bind(Context& c, const RunOptions& o) const {
  c.key.clear();
  for (const Seen& s : symbols) {
    if (s.input >= 0) {
      const Index size = c.inputs[static_cast<std::size_t>(s.input)]->shape[s.axis];
      c.key.push_back(size);
      if (!o.dims) continue;
      const auto given = o.dims->find(s.name);
      require(given == o.dims->end() || given->second == size, "size symbol {} is {} in input {}, the options say {}",
              s.name, size, interface.inputs[static_cast<std::size_t>(s.input)].name,
              given == o.dims->end() ? 0 : given->second);
      continue;
    }
    const auto it = o.dims ? o.dims->find(s.name) : DimEnv::const_iterator();
    require(o.dims && it != o.dims->end(), "size symbol {} has no value: no input shows it alone", s.name);
    c.key.push_back(it->second);
  }
  const auto fits = [&](const Bound& b) {
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      if (!std::ranges::equal(b.in_shapes[i], c.inputs[i]->shape)) return false;
    }
    return true;
  };
  if (c.bound && c.bound->key == c.key && fits(*c.bound)) return c.bound;
  {
    const std::lock_guard guard(lock);
    const auto it = std::ranges::find_if(bounds, [&](const auto& b) { return b->key == c.key; });
    if (it != bounds.end() && fits(**it)) {
      std::rotate(bounds.begin(), it, it + 1);
      return bounds.front();
    }
  }
  std::shared_ptr<const Bound> made = make_bound(c, o.dims ? *o.dims : DimEnv());
  const std::lock_guard guard(lock);
  if (bounds.size() >= options.bindings) bounds.pop_back();
  bounds.insert(bounds.begin(), made);
  return made;
}

static void check_plans(const Program& p, const Binding& numbers) {
  if (!numbers.refused.empty()) return;  // a body that does not run at these sizes
  check_plan(p, numbers.placement, numbers.buffer_bytes, numbers.env);
  for (std::size_t i = 0; i < p.controls.size(); ++i) {
    for (std::size_t k = 0; k < p.controls[i].bodies.size(); ++k)
      check_plans(p.controls[i].bodies[k], numbers.controls[i].bodies[k]);
  }
}

std::shared_ptr<const Bound> ExecutableImpl::make_bound(const Context& c, const DimEnv& dims) const {
  std::vector<TensorType> types;
  for (const ConstView* v : c.inputs) types.emplace_back(v->dtype, std::vector<Dim>(v->shape.begin(), v->shape.end()));
  DimEnv env = bind_dims(interface, types, dims);
  for (const auto& [size, node] : program.sizes) {
    const Index value = size.evaluate(env);
    require(value >= 0, "{}: size {} is {}, which is negative", node, size.text(), value);
  }
  auto made = std::make_shared<Bound>(program, layout, std::move(env));
  made->key = c.key;
  Index states = 0;
  for (const Interface::StatePort& s : interface.states) states += made->numbers.buffer_bytes[program.inputs[s.input]];
  check_memory(made->numbers.placement.bytes, states);
  for (const ConstView* v : c.inputs) made->in_shapes.emplace_back(v->shape.begin(), v->shape.end());
  for (const Interface::Port& port : interface.outputs) {
    std::vector<Index>& shape = made->out_shapes.emplace_back();
    for (const Dim& d : port.type.dims) shape.push_back(d.evaluate(made->numbers.env));
  }
  if (options.check) check_plans(program, made->numbers);
  return made;
}

MemoryUse ExecutableImpl::memory() const {
  MemoryUse use{0, weights->bytes(), outputs->bytes()};
  const std::lock_guard guard(lock);
  for (const auto& c : contexts) {
    if (c->arena) use.arenas += c->arena->bytes();
    for (const auto& m : c->staged) use.arenas += m ? m->bytes() : 0;
  }
  return use;
}

}  // namespace rlx::detail
