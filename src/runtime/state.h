// State: the values that live between runs of a graph, owned by the caller.
#pragma once

#include <atomic>
#include <set>

#include "ir/graph.h"

namespace rlx {

/// Named tensors, one a state pair. One run holds a State at a time; a second one is an Error, not a race.
class State {
 public:
  State() = default;
  /// Zeros of the states' types, sizes taken from `dims`; throws Error for a symbol without value.
  State(const Graph& graph, const DimEnv& dims);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Throws Error for an unknown name, or a value that a failed run has lost.
  const Tensor& at(std::string_view name) const;
  /// Sets a value; throws Error, and changes nothing, when the name is unknown or type or shape differ.
  void set(std::string_view name, Tensor value);
  const NamedTensors& all() const { return tensors_; }

  /// Exclusive use for one run.
  class Hold {
   public:
    explicit Hold(State& state);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    /// Memory of a value, to be changed in place.
    std::span<std::byte> bytes(std::string_view name);
    /// The values are half written: every use is an Error until each is set anew.
    void lose();

   private:
    State& state_;
  };

 private:
  NamedTensors tensors_;
  std::set<std::string, std::less<>> lost_;
  std::atomic<bool> held_ = false;
};

}  // namespace rlx
