// The process's peak of resident memory, for tests that promise a bound.
#pragma once

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cstdint>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>

namespace rlx::test {

/// A field of this process's status in bytes, such as "VmRSS:".
inline std::optional<std::int64_t> status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kilobytes = 0;
    if (word == field && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

/// Whether this build's memory and time say nothing about a release.
constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
  return true;
#else
  return false;
#endif
#else
  return false;
#endif
}

/// Seconds of processor time that `work` takes: other programs on a busy machine do not count.
template <class Work>
double processor_seconds(Work work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Bytes by which `work` raised resident memory at its peak; empty where the system does not tell, or under a
/// sanitizer.
template <class Work>
std::optional<std::int64_t> peak_growth(Work work) {
#if defined(__GLIBC__)
  malloc_trim(0);  // else memory that was freed before would hide what the work takes
#endif
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  const std::optional<std::int64_t> before = status_bytes("VmRSS:");
  work();
  const std::optional<std::int64_t> peak = status_bytes("VmHWM:");
  if (sanitized() || !reset || !before || !peak) return std::nullopt;
  return *peak - *before;
}

}  // namespace rlx::test
