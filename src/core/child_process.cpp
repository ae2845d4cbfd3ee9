// A forked child and a pipe.
#include "core/child_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.h"

namespace rlx {

namespace {

std::string system_text() { return std::generic_category().message(errno); }

constexpr int status_of_exceptions = 3;

[[noreturn]] void be_the_child(FunctionRef<std::string()> work, int out) {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
  try {
    const std::string text = work();
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(out, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) ::_exit(status_of_exceptions);
      done += static_cast<std::size_t>(n);
    }
  } catch (...) {
    ::_exit(status_of_exceptions);
  }
  ::_exit(0);  // nothing of the parent's is flushed or destroyed twice
}

}  // namespace

ChildResult run_in_child(FunctionRef<std::string()> work) {
  std::array<int, 2> ends{};
  require(::pipe2(ends.data(), O_CLOEXEC) == 0, "cannot make a pipe: {}", system_text());
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_the_child(work, ends[1]);
  }
  const std::string reason = child < 0 ? system_text() : std::string();
  ::close(ends[1]);
  ChildResult result;
  std::array<char, 4096> part;
  while (child > 0) {
    const ssize_t n = ::read(ends[0], part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    result.text.append(part.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  require(child > 0, "cannot start a process: {}", reason);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    result.died = fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    result.died = fmt::format("exit status {}", WEXITSTATUS(status));
  }
  return result;
}

}  // namespace rlx
