// Steps of convolutions and pools on every case and element type, at every level, against the references.
#include <gtest/gtest.h>

#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/pool/pool.h"
#include "run_step.h"

namespace rlx::test {
namespace {

TEST(StepsConv, Conv) { EXPECT_GT(check_steps(conv_op, std::nullopt, true).ran, 0); }
TEST(StepsConv, ConvTranspose) { EXPECT_GT(check_steps(conv_transpose_op, std::nullopt, true).ran, 0); }
TEST(StepsConv, Pool) { EXPECT_GT(check_steps(pool_op).ran, 0); }
TEST(StepsConv, PoolIndex) { EXPECT_GT(check_steps(pool_index_op, exact).ran, 0); }

}  // namespace
}  // namespace rlx::test
