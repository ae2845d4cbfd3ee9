// Libraries of drivers: loaded when they are asked for, never linked, so that one program runs on every machine.
#pragma once

#include <initializer_list>
#include <string>

namespace rlx {

/// A shared library. It stays loaded until the program ends: drivers do not survive being unloaded.
class Library {
 public:
  /// The first of `names` that the system's loader finds; throws DeviceError with what the loader said.
  explicit Library(std::initializer_list<const char*> names);

  const std::string& name() const { return name_; }
  /// Sets `function` to a function of the library; throws DeviceError when it is missing.
  template <class F>
  void find(F*& function, const char* symbol) const {
    function = reinterpret_cast<F*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace rlx
