// Text that comes out of a file, made fit for a message.
#pragma once

#include <string>
#include <string_view>

namespace rlx {

/// `text` in single quotes; bytes outside of printable ASCII, quotes and backslashes become `\xNN`; more than `limit`
/// bytes are cut and the length is told.
std::string quote(std::string_view text, std::size_t limit = 80);

}  // namespace rlx
