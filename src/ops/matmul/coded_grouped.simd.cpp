// Products of codes in blocks of 256 with a scale for each group of 32; compiled once per level.
#include "ops/matmul/coded_elements.h"

namespace rlx::RLX_LEVEL {

const CodedKernel coded_k_nibbles = coded_kernel<CodedForm<4, 32, false, -1, true, true, false>>;
const CodedKernel coded_k_fives = coded_kernel<CodedForm<5, 32, false, -1, true, true, false>>;
const CodedKernel coded_k_nibbles_table = coded_kernel<CodedForm<4, 32, true, 7, true, false, false>>;

}  // namespace rlx::RLX_LEVEL
