// Products of codes in blocks of 256 with a scale for each group of 16; compiled once per level.
#include "ops/matmul/coded_elements.h"

namespace rlx::RLX_LEVEL {

const CodedKernel coded_k_twos = coded_kernel<CodedForm<2, 16, false, -1, true, true, false>>;
const CodedKernel coded_k_threes = coded_kernel<CodedForm<3, 16, false, 2, true, false, false>>;
const CodedKernel coded_k_sixes = coded_kernel<CodedForm<6, 16, false, 5, true, false, false>>;

}  // namespace rlx::RLX_LEVEL
