// Products of codes of 4 and 8 bits in blocks of 32, and the table of all; compiled once per level.
#include "ops/matmul/coded_elements.h"

namespace rlx::RLX_LEVEL {

const CodedKernel coded_nibbles = coded_kernel<CodedForm<4, 32, false, 3, false, false, false>>;
const CodedKernel coded_nibbles_minimum = coded_kernel<CodedForm<4, 32, false, -1, false, true, false>>;
const CodedKernel coded_bytes = coded_kernel<CodedForm<8, 32, false, 7, false, false, false>>;

const CodedKernels coded_kernels{.kinds = {
                                     coded_nibbles,
                                     coded_nibbles_minimum,
                                     coded_nibbles_table,
                                     coded_nibbles_table_b,
                                     coded_fives,
                                     coded_fives_minimum,
                                     coded_bytes,
                                     coded_k_twos,
                                     coded_k_threes,
                                     coded_k_nibbles,
                                     coded_k_fives,
                                     coded_k_sixes,
                                     coded_k_nibbles_table,
                                 }};

}  // namespace rlx::RLX_LEVEL
