// State: checked access and exclusive holds.
#include "runtime/state.h"

#include "core/error.h"

namespace rlx {

State::State(const Graph& graph, const DimEnv& dims) {
  for (const StatePair& s : graph.states) {
    const TensorType& t = graph.type(s.input);
    require(!t.encoding, "state {} has the encoded type {}, expected a dense one", s.name, t.text());
    std::vector<Index> shape;
    for (const Dim& d : t.dims) shape.push_back(d.evaluate(dims));
    tensors_.emplace(s.name, Tensor(t.dtype, std::move(shape)));
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
