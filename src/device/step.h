// A step: one kernel call of a schedule, as what it touches, how much work it is, and a function over a range of that
// work. A maker sees symbolic sizes; buffers are known by id, never by address; run() gets addresses and numbers, and
// can reach nothing that the step did not declare.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"
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
  const Tensor* constant = nullptr;  // its value, when it is a constant of the graph: for makers only, not for run()
  bool dense() const { return strides.empty(); }
};

/// A form of a constant that a kernel reads instead of the constant itself: made once, then shared by all programs of
/// a session.
struct Packing {
  std::string layout;  // equal names give equal bytes for equal constants
  Index bytes = 0;
  std::function<void(const Tensor& from, std::span<std::byte> to)> pack;
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
  std::shared_ptr<const Packing> packing = nullptr;  // read in this form
  Dim least = 0;                                     // bytes that no kernel can do without: each element once
};
/// The buffer of scratch memory that only one step uses.
inline constexpr BufferId own_scratch = ~BufferId{0};

/// A result that a step may write over an operand of the same size: numbers of uses. The kernel reads every byte of
/// the operand before it, or another thread, writes that byte.
struct InPlace {
  std::uint32_t write = 0, read = 0;
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

/// Results of at least so many bytes are gone from every cache before they are read: kernels may write them past the
/// caches, which spares the memory the reading of what is overwritten.
inline constexpr Index streamed_bytes = Index{32} << 20;

struct Step {
  using Run = std::function<void(const Memory&, const DimValues&, Range)>;
  std::string name;
  std::vector<Use> uses;
  std::vector<InPlace> in_place;
  std::vector<Dim> dims;
  Dim items = 1;
  Dim grain = 1;                      // items that one call should have at least
  Dim flops = 0;                      // operations of the whole step, for reports
  DType arithmetic = DType::f32;      // what they are done in: its peak bounds them
  std::vector<std::string> declined;  // why makers that were asked first did not make the step
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
  /// Memory for `count` elements that holds nothing before and after; 64-byte aligned.
  template <class T>
  Token<T, Access::scratch> scratch(const Dim& count) {
    return Token<T, Access::scratch>(use({own_scratch, Access::scratch, 0, count * Index{sizeof(T)}}));
  }
  /// Reads a constant in another form.
  template <class T>
  Token<T, Access::read> packed(const Slot& constant, Packing packing) {
    ensure(constant.constant, "only constants are packed");
    const Index bytes = packing.bytes;
    return Token<T, Access::read>(
        use({constant.buffer, Access::read, 0, bytes, std::make_shared<const Packing>(std::move(packing)),
             min(bytes, constant.type.plane_bytes(constant.plane))}));
  }
  /// `out` may take the memory of `in`; see InPlace.
  template <class T, class U>
  void may_overwrite(Token<T, Access::write> out, Token<U, Access::read> in) {
    step_.in_place.push_back({out.use_, in.use_});
  }
  DimToken dim(Dim size);
  /// Operations of the whole step, and the element type whose multiply-add they use (f32, f64, bf16, i8), for reports.
  void flops(Dim count, DType arithmetic = DType::f32) {
    step_.flops = std::move(count);
    step_.arithmetic = arithmetic;
  }
  /// No kernel needs more than this much of an operand (rows of a table), for reports.
  template <class T>
  void needs_at_most(Token<T, Access::read> t, const Dim& bytes) {
    Dim& least = step_.uses[t.use_].least;
    least = min(least, bytes);
  }
  /// The step: `items` pieces of work, in calls of at least `grain` (one call takes all when there are fewer; pieces
  /// of different calls may run at the same time).
  Step run(Dim items, Dim grain, Step::Run function);

 private:
  std::uint32_t use(const Slot& slot, Access access);
  std::uint32_t use(Use use);
  Step step_;
};

/// What a step maker is given.
struct StepArgs {
  const Node& node;
  std::span<const Slot> in, out;
  /// Where a maker says why it declines; may be null.
  std::string* why = nullptr;
  std::nullopt_t decline(std::string_view reason) const {
    if (why) *why = reason;
    return std::nullopt;
  }
};

/// Empty: not my case; the definition runs instead.
using StepMaker = std::optional<Step> (*)(const StepArgs&);

/// A folder NAME exports rows for a backend as `std::span<const MakerRow> NAME_cpu()`. Makers of one op (fusion_op()
/// for regions) are asked in the order of folders and rows; the first that does not decline makes the step.
struct MakerRow {
  const OpDef* op = nullptr;
  StepMaker make = nullptr;
};

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
  Index items_ = 0, grain_ = 1;
};

}  // namespace rlx
