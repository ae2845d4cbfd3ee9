// Work in a process of its own, for foreign code that may end the process it runs in.
#pragma once

#include <string>

#include "core/function_ref.h"

namespace rlx {

/// What a child process gave back.
struct ChildResult {
  std::string text;  // what the function returned, as far as it was written
  std::string died;  // how the child ended when it did not return: "signal 6 (Aborted)", "exit status 3"
};

/// Runs `work` in a forked child, whose standard error is dropped, and gives its text. Call it while no other thread
/// of the process holds a lock that `work` needs. Throws Error when the system gives no process.
ChildResult run_in_child(FunctionRef<std::string()> work);

}  // namespace rlx
