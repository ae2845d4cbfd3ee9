// Who runs pieces of work: the thread pool of rlx, or one that a host brings.
#pragma once

#include <type_traits>

#include "core/index.h"

namespace rlx {

/// A function over [begin, end) by reference: no allocation.
class RangeFunction {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, RangeFunction>)
  RangeFunction(F& f)
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, Index begin, Index end) { (*static_cast<F*>(object))(begin, end); }) {}
  void operator()(Index begin, Index end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, Index, Index);
};

/// Runs work on several threads. `run` may be called from any thread, from several at once, and not from inside its
/// own functions.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Threads that work together, the caller included.
  virtual int width() const = 0;
  /// Calls `function` over pieces of [0, items), each of at least `grain` items but the last, and returns when all are
  /// done. When pieces throw, the others still run or are left out, and the exception of the lowest piece that threw is
  /// thrown again.
  virtual void run(Index items, Index grain, RangeFunction function) = 0;
};

}  // namespace rlx
