// Runs a test body at every instruction level of the machine.
#pragma once

#include <gtest/gtest.h>

#include "core/levels.h"

namespace rlx {

/// Calls `body()` once per available level with that level forced, and restores the level that was in use.
template <class Body>
void at_every_level(Body&& body) {
  const Level before = level();
  for (const Level each : available_levels()) {
    SCOPED_TRACE(level_name(each));
    force_level(each);
    body();
  }
  force_level(before);
}

}  // namespace rlx
