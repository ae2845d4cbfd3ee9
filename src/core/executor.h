// Who runs pieces of work: the thread pool of rlx, or one that a host brings.
#pragma once

#include "core/function_ref.h"
#include "core/index.h"

namespace rlx {

/// A function over [begin, end).
using RangeFunction = FunctionRef<void(Index begin, Index end)>;

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
