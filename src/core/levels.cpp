// Finds the instruction levels of the machine and keeps the one in use.
#include "core/levels.h"

#include <atomic>
#include <iterator>
#include <string_view>

#include "core/error.h"

namespace rlx {
namespace {

constexpr const char* names[] = {"v2", "v3", "v4", "v4b"};
static_assert(std::size(names) == level_count);

/// -1 until level() or force_level() is called first.
constinit std::atomic<int> current = -1;

/// The compilers' run time reads cpuid and, for the AVX registers, what the operating system saves (xgetbv).
int count_levels() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("x86-64-v2")) return 0;
  if (!__builtin_cpu_supports("x86-64-v3")) return 1;
  if (!__builtin_cpu_supports("x86-64-v4")) return 2;
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni")) return 3;
  return 4;
}

}  // namespace

LevelRange available_levels() {
  static const int count = count_levels();
  if (count == 0) throw DeviceError("the processor lacks x86-64-v2 (SSE4.2, SSSE3, POPCNT), which rlx needs");
  return {count};
}

Level level() {
  int now = current.load(std::memory_order_relaxed);
  if (now < 0) {
    int unset = -1;
    const int best = available_levels().count - 1;
    now = current.compare_exchange_strong(unset, best, std::memory_order_relaxed) ? best : unset;
  }
  return static_cast<Level>(now);
}

void force_level(Level chosen) {
  const int highest = available_levels().count - 1;
  require(static_cast<int>(chosen) <= highest, "level {} is not available on this machine: the highest is {}",
          level_name(chosen), names[highest]);
  current.store(static_cast<int>(chosen), std::memory_order_relaxed);
}

const char* level_name(Level level) {
  const int index = static_cast<int>(level);
  ensure(index >= 0 && index < level_count, "a Level outside its list");
  return names[index];
}

Level parse_level(const char* name) {
  for (int i = 0; i < level_count; ++i) {
    if (std::string_view(name) == names[i]) return static_cast<Level>(i);
  }
  fail("level \"{}\" does not exist: expected v2, v3, v4 or v4b", name);
}

}  // namespace rlx
