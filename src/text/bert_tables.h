// Classes of code points as the reference BERT tokenizer sees them, whatever Unicode version is installed.
#pragma once

#include <cstdint>
#include <span>

namespace rlx {

struct CodeRange {
  std::uint32_t first, last;  // both included
};

struct CodeShift {
  std::uint32_t first, last;
  std::int32_t distance;
};

/// Ascending, disjoint ranges.
struct BertTables {
  std::span<const CodeRange> removed, mark, punctuation, inert;
  std::span<const CodeShift> lower;
};

extern const BertTables bert_tables;

}  // namespace rlx
