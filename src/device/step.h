// A step: one kernel call of a schedule, as what it touches, how much work it is, and a function over a range of that
// work. A maker sees symbolic sizes; buffers are known by id, never by address; run() gets addresses and numbers, and
// can reach nothing that the step did not declare.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace rlx {

using BufferId = std::uint32_t;

/// Where a value lives: a buffer, an offset in bytes, and strides in elements (none: dense). One slot a plane.
struct Slot {
  BufferId buffer = 0;
  TensorType type;
  Dim offset = 0;
  std::vector<Dim> strides;
  std::size_t plane = 0;
  bool dense() const { return strides.empty(); }
};

enum class Access : std::uint8_t { read, write, update, scratch };

/// A declared use, for one step; only StepBuilder makes tokens.
template <class T, Access A>
class Token {
  explicit Token(std::uint32_t use) : use_(use) {}
  std::uint32_t use_;
  friend class StepBuilder;
  friend class Memory;
};

/// A declared size.
class DimToken {
  explicit DimToken(std::uint32_t index) : index_(index) {}
  std::uint32_t index_;
  friend class StepBuilder;
  friend class DimValues;
};

/// One use of a buffer; order, barriers, lifetimes and traces follow from these.
struct Use {
  BufferId buffer = 0;
  Access access = Access::read;
  Dim offset, bytes;
};

/// The declared sizes of a step as numbers, found once for every binding of the symbols.
class DimValues {
 public:
  explicit DimValues(std::span<const Index> values) : values_(values) {}
  Index operator[](DimToken t) const { return values_[t.index_]; }

 private:
  std::span<const Index> values_;
};

/// The declared uses of a step as addresses.
class Memory {
 public:
  struct Place {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
  };
  explicit Memory(std::span<const Place> places) : places_(places) {}

  template <class T>
  std::span<const T> operator[](Token<T, Access::read> t) const {
    return at<const T>(t.use_);
  }
  template <class T, Access A>
    requires(A != Access::read)
  std::span<T> operator[](Token<T, A> t) const {
    return at<T>(t.use_);
  }

 private:
  template <class T>
  std::span<T> at(std::uint32_t use) const {
    return {reinterpret_cast<T*>(places_[use].address), places_[use].bytes / sizeof(T)};
  }
  std::span<const Place> places_;
};

/// Items [begin, end) of a step's work.
struct Range {
  Index begin = 0, end = 0;
};

struct Step {
  using Run = std::function<void(const Memory&, const DimValues&, Range)>;
  std::string name;
  std::vector<Use> uses;
  std::vector<Dim> dims;
  Dim items = 1;
  Index grain = 1;  // items that one call should have at least
  Run run;
};

/// Collects what a step touches and makes the step.
class StepBuilder {
 public:
  explicit StepBuilder(std::string name) { step_.name = std::move(name); }

  template <class T>
  Token<T, Access::read> read(const Slot& s) {
    return Token<T, Access::read>(use(s, Access::read));
  }
  template <class T>
  Token<T, Access::write> write(const Slot& s) {
    return Token<T, Access::write>(use(s, Access::write));
  }
  /// Reads and writes in place.
  template <class T>
  Token<T, Access::update> update(const Slot& s) {
    return Token<T, Access::update>(use(s, Access::update));
  }
  template <class T>
  Token<T, Access::scratch> scratch(const Slot& s) {
    return Token<T, Access::scratch>(use(s, Access::scratch));
  }
  DimToken dim(Dim size);
  /// The step: `items` pieces of work, in calls of at least `grain`.
  Step run(Dim items, Index grain, Step::Run function);

 private:
  std::uint32_t use(const Slot& slot, Access access);
  Step step_;
};

/// What a step maker is given.
struct StepArgs {
  const Node& node;
  std::span<const Slot> in, out;
  /// Where a maker says why it declines; may be null.
  std::string* why = nullptr;
  std::optional<Step> decline(std::string_view reason) const {
    if (why) *why = reason;
    return std::nullopt;
  }
};

/// Empty: not my case; the definition runs instead.
using StepMaker = std::optional<Step> (*)(const StepArgs&);

/// A step with its sizes and addresses resolved for one binding of the symbols.
class BoundStep {
 public:
  /// `address` gives the start of a buffer; throws Error when a size has no value.
  BoundStep(const Step& step, const DimEnv& dims, const std::function<std::byte*(BufferId)>& address);
  Index items() const { return items_; }
  void run(Range range) const { step_->run(Memory(places_), DimValues(values_), range); }
  /// All items, in pieces of the step's grain.
  void run_all() const;

 private:
  const Step* step_;
  std::vector<Memory::Place> places_;
  std::vector<Index> values_;
  Index items_ = 0;
};

}  // namespace rlx
