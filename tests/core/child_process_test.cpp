// Work in a child process.
#include "core/child_process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace rlx {
namespace {

TEST(ChildProcess, GivesTheTextOfItsWork) {
  std::string large(1 << 20, 'x');
  const ChildResult r = run_in_child([&] { return std::string(large); });
  EXPECT_EQ(r.text, large);
  EXPECT_EQ(r.died, "");
  EXPECT_EQ(run_in_child([] { return std::string(); }).text, "");
}

TEST(ChildProcess, SaysHowItsWorkEnded) {
  const ChildResult killed = run_in_child([]() -> std::string {
    std::signal(SIGTERM, SIG_DFL);
    std::raise(SIGTERM);
    return "not reached";
  });
  EXPECT_EQ(killed.text, "");
  EXPECT_NE(killed.died.find("signal 15"), std::string::npos) << killed.died;
  EXPECT_EQ(run_in_child([]() -> std::string { ::_Exit(7); }).died, "exit status 7");
  EXPECT_NE(run_in_child([]() -> std::string { throw std::runtime_error("no"); }).died, "");
}

}  // namespace
}  // namespace rlx
