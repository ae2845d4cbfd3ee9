// State: checked access and exclusive holds.
#include "runtime/state.h"

#include "core/checked.h"
#include "core/error.h"

namespace rlx {

// All states lie in one block, which large pages serve: the many small reads of a cache would wait for page tables.
State::State(const Graph& graph, const DimEnv& dims) {
  constexpr Index line = 64;
  std::vector<TensorType> types;
  Checked total = 0;
  for (const StatePair& s : graph.states) {
    const TensorType& t = graph.type(s.input);
    require(!t.encoding, "state {} has the encoded type {}, expected a dense one", s.name, t.text());
    TensorType& own = types.emplace_back(t.dtype, std::vector<Dim>());
    for (const Dim& d : t.dims) own.dims.emplace_back(d.evaluate(dims));
    total = total + Checked(own.plane_bytes(0).constant() + line);
  }
  const Bytes block = Bytes::allocate(total.value("states"));
  Index offset = 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Index size = types[i].plane_bytes(0).constant();
    const auto data = block.data.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
    // An owner each: a tensor that nobody else has is written in place.
    const std::shared_ptr<const void> owner(data.data(), [keep = block.owner](const void*) {});
    tensors_.emplace(graph.states[i].name, Tensor(types[i], {Bytes{owner, data, true}}));
    offset += (size + line - 1) / line * line;
  }
}

const Tensor& State::at(std::string_view name) const {
  const auto it = tensors_.find(name);
  require(it != tensors_.end(), "there is no state \"{}\"", name);
  require(!lost_.contains(name), "state {} was half written by a run that failed, set it anew", name);
  return it->second;
}

void State::set(std::string_view name, Tensor value) {
  const auto it = tensors_.find(name);
  require(it != tensors_.end(), "there is no state \"{}\"", name);
  require(it->second.type() == value.type(), "state {} is {}, the new value {}", name, it->second.type().text(),
          value.type().text());
  it->second = std::move(value);
  lost_.erase(it->first);
}

State::Hold::Hold(State& state) : state_(state) {
  require(!state.held_.exchange(true), "the state is in use by another run");
}
State::Hold::~Hold() { state_.held_ = false; }

std::span<std::byte> State::Hold::bytes(std::string_view name) {
  (void)state_.at(name);
  return state_.tensors_.find(name)->second.mutable_bytes();
}

void State::Hold::lose() {
  for (const auto& [name, value] : state_.tensors_) state_.lost_.insert(name);
}

}  // namespace rlx
