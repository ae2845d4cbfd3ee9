// Running a chat template.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/template_parser.h"

namespace rlx::chat {

/// The text that a tree gives for `variables` (a mapping in `arena`). An Error names the line of the template.
std::string run_template(const Tree& tree, std::string_view name, Arena& arena, const Dict& variables,
                         std::int64_t now);

}  // namespace rlx::chat
