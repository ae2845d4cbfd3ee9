// The plan of a compiled model as a table, as JSON, and as a picture of its memory.
#pragma once

#include <string>

#include "runtime/report.h"

namespace rlx::cli {

std::string plan_table(const RunReport& r);
std::string plan_json(const RunReport& r);
/// An SVG picture: time runs from left to right, one column a step; every value in the arena is a box over the steps
/// that touch it, at its place in memory.
std::string memory_svg(const RunReport& r, const std::string& title);

}  // namespace rlx::cli
