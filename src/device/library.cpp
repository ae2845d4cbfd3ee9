// Libraries of drivers.
#include "device/library.h"

#include <dlfcn.h>

#include "core/error.h"

namespace rlx {

Library::Library(std::initializer_list<const char*> names) {
  std::string reasons;
  for (const char* name : names) {
    handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      name_ = name;
      return;
    }
    const char* reason = ::dlerror();
    reasons += (reasons.empty() ? "" : "; ") + std::string(reason ? reason : name);
  }
  throw DeviceError(fmt::format("no library is found: {}", reasons));
}

void* Library::address(const char* symbol) const {
  void* p = ::dlsym(handle_, symbol);
  if (!p) throw DeviceError(fmt::format("library {} has no function {}", name_, symbol));
  return p;
}

}  // namespace rlx
