// The process's peak of resident memory, for tests that promise a bound.
#pragma once

#include <cstdint>
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

/// Bytes by which `work` raised resident memory at its peak; empty where the system does not tell.
template <class Work>
std::optional<std::int64_t> peak_growth(Work work) {
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  const std::optional<std::int64_t> before = status_bytes("VmRSS:");
  work();
  const std::optional<std::int64_t> peak = status_bytes("VmHWM:");
  if (!reset || !before || !peak) return std::nullopt;
  return *peak - *before;
}

}  // namespace rlx::test
