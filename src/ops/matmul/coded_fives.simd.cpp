// Products of codes of 5 bits, and of 4 bits that name values, in blocks of 32; compiled once per level.
#include "ops/matmul/coded_elements.h"

namespace rlx::RLX_LEVEL {

const CodedKernel coded_nibbles_table = coded_kernel<CodedForm<4, 32, true, 7, false, false, false>>;
const CodedKernel coded_nibbles_table_b = coded_kernel<CodedForm<4, 32, true, 7, false, false, true>>;
const CodedKernel coded_fives = coded_kernel<CodedForm<5, 32, false, 4, false, false, false>>;
const CodedKernel coded_fives_minimum = coded_kernel<CodedForm<5, 32, false, -1, false, true, false>>;

}  // namespace rlx::RLX_LEVEL
