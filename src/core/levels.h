// Instruction levels: which ones this machine has, which one is used, and how a table of kernels is declared once for
// all. Level objects include this file, so it includes no standard header.
#pragma once

namespace rlx {

/// Each level includes the ones before it. cmake/levels.cmake holds the compiler flags.
enum class Level {
  v2,   ///< x86-64-v2: SSE4.2
  v3,   ///< x86-64-v3: AVX2, FMA, F16C
  v4,   ///< x86-64-v4: AVX-512 F, BW, CD, DQ, VL
  v4b,  ///< v4 with AVX512_BF16 and AVX512_VNNI
};
inline constexpr int level_count = 4;

/// The levels of this machine, lowest first; usable in a range-for.
struct LevelRange {
  int count;
  struct Iterator {
    int index;
    Level operator*() const { return static_cast<Level>(index); }
    Iterator& operator++() {
      ++index;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index != other.index; }
  };
  Iterator begin() const { return {0}; }
  Iterator end() const { return {count}; }
};

/// What both the processor and the operating system support. DeviceError if not even v2 is there.
LevelRange available_levels();

/// The level in use: the highest available one unless force_level() chose another.
Level level();

/// Makes level() return `chosen`. Error if this machine lacks it. Tables already picked stay what they are,
/// so call it before programs are compiled.
void force_level(Level chosen);

/// "v2", "v3", "v4", "v4b".
const char* level_name(Level level);

/// The inverse of level_name. Error for any other text.
Level parse_level(const char* name);

}  // namespace rlx

/// Declares `const Table name` in the namespace of every level, and rlx::name(), which returns the one of level().
/// Used once, at global scope, in NAME.kernel.h; NAME.simd.cpp defines `const Table name` in rlx::RLX_LEVEL.
#define RLX_LEVELS(Table, name)                                                  \
  namespace rlx::v2 {                                                            \
  extern const Table name;                                                       \
  }                                                                              \
  namespace rlx::v3 {                                                            \
  extern const Table name;                                                       \
  }                                                                              \
  namespace rlx::v4 {                                                            \
  extern const Table name;                                                       \
  }                                                                              \
  namespace rlx::v4b {                                                           \
  extern const Table name;                                                       \
  }                                                                              \
  namespace rlx {                                                                \
  inline const Table& name() {                                                   \
    const Table* const tables[] = {&v2::name, &v3::name, &v4::name, &v4b::name}; \
    static_assert(sizeof(tables) / sizeof(*tables) == level_count);              \
    return *tables[static_cast<int>(level())];                                   \
  }                                                                              \
  }
