// Code points that newer Unicode versions put into a class, beyond those that PCRE2's tables know.
#pragma once

#include <span>
#include <string_view>

#include "text/bert_tables.h"

namespace rlx {

struct PatternAddition {
  std::string_view name;  // of a Unicode property, as in \p{name}; w for \w
  std::span<const CodeRange> ranges;
};

std::span<const PatternAddition> pattern_additions();

}  // namespace rlx
