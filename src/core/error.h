// The three kinds of failure: Error (the user's input), DeviceError (the machine), InternalError (ours, thrown by
// ensure).
#pragma once

#include <fmt/core.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace rlx {

/// Bad input: a file, shape, dtype, axis, index or option. The message names the thing, its value and what was
/// expected; lower case, no full stop. Nothing is lost: every object that took part stays usable.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The machine failed: a driver, a device, the operating system.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A broken promise of rlx itself; always a bug worth reporting.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws Error with a formatted message.
template <class... T>
[[noreturn]] void fail(fmt::format_string<T...> format, T&&... args) {
  throw Error(fmt::format(format, std::forward<T>(args)...));
}

/// Throws Error with a formatted message unless `ok`. The arguments are evaluated always, formatted only on failure.
template <class... T>
void require(bool ok, fmt::format_string<T...> format, T&&... args) {
  if (!ok) fail(format, std::forward<T>(args)...);
}

/// Throws InternalError, with the place, unless `ok`.
void ensure(bool ok, const char* what, std::source_location place = std::source_location::current());

}  // namespace rlx
