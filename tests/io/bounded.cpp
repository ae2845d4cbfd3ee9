// The child process with limits, and mutations.
#include "io/bounded.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/error.h"
#include "core/os_posix.h"
#include "mutate.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif

namespace rlx::test {

bool limits_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
  return false;
#else
  return true;
#endif
}

namespace {

/// What the child tells, in memory shared with the parent.
struct Report {
  Index at;
  char text[1000];
};

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Memory {
  Index address_space, resident;  // bytes
};

Memory memory_now() {
  malloc_trim(0);  // what the parent has freed is no room for the child
  std::ifstream statm("/proc/self/statm");
  Memory m{};
  statm >> m.address_space >> m.resident;
  m.address_space *= sysconf(_SC_PAGESIZE);
  m.resident *= sysconf(_SC_PAGESIZE);
  return m;
}

void limit_memory(Index bytes) {
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = static_cast<rlim_t>(bytes);
  ensure(setrlimit(RLIMIT_AS, &limit) == 0, "no limit on memory");
}

/// Largest resident size so far.
Index resident_peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Index{usage.ru_maxrss} * 1024;
}

void run_child(Index begin, Index end, Index budget, const std::function<std::string(Index)>& check, Report& report) {
  const Memory before = memory_now();
  if (limits_memory()) limit_memory(before.address_space + budget);
  alarm(300);
  for (Index i = begin; i < end; ++i) {
    report.at = i;
    std::string wrong;
    const double start = cpu_seconds();
    try {
      wrong = check(i);
    } catch (const std::exception& e) {
      wrong = fmt::format("it threw {}", e.what());
    }
    const double took = cpu_seconds() - start;
    const Index grown = resident_peak() - before.resident;
    if (wrong.empty() && limits_memory() && grown > budget) wrong = fmt::format("it took {} bytes of memory", grown);
    if (wrong.empty() && took > 2) wrong = fmt::format("it took {:.2f} s", took);
    if (!wrong.empty()) {
      wrong.copy(report.text, sizeof report.text - 1);
      return;
    }
  }
}

}  // namespace

std::string run_bounded(Index begin, Index end, Index budget, const std::function<std::string(Index)>& check) {
  count_mutants(end - begin);
  void* p = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return "no shared memory";
  auto& report = *new (p) Report{};
  const pid_t child = fork();
  if (child == 0) {
    run_child(begin, end, budget, check, report);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::string wrong(report.text);
  if (wrong.empty() && WIFSIGNALED(status)) wrong = fmt::format("signal {}", WTERMSIG(status));
  if (wrong.empty() && WEXITSTATUS(status) != 0) wrong = fmt::format("exit status {}", WEXITSTATUS(status));
  if (!wrong.empty()) wrong = fmt::format("input {}: {}", report.at, wrong);
  munmap(p, sizeof(Report));
  return wrong;
}

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

namespace {

std::uint64_t changed(std::uint64_t value, std::size_t size, std::size_t i) {
  const std::uint64_t n = size;
  const std::uint64_t values[field_values] = {
      0,     1,     ~std::uint64_t{0}, 1ull << 31, 0xffffffff,      (1ull << 63) - 1,
      n - 1, n + 1, value - 1,         value + 1,  Random(i).next()};
  return values[i % field_values];
}

}  // namespace

std::string change_field(const std::string& file, const std::vector<Field>& fields, std::size_t i) {
  const Field& f = fields[i / field_values % fields.size()];
  std::string out = file;
  std::uint64_t value = 0;
  std::memcpy(&value, file.data() + f.offset, f.width);
  value = changed(value, file.size(), i);
  std::memcpy(out.data() + f.offset, &value, f.width);
  return out;
}

std::string change_number(const std::string& file, std::size_t begin, std::size_t end, std::size_t i) {
  std::vector<Field> runs;
  const auto digit = [&](std::size_t k) { return k < end && file[k] >= '0' && file[k] <= '9'; };
  for (std::size_t k = begin; k < end; ++k) {
    if (!digit(k)) continue;
    std::size_t n = 1;
    while (digit(k + n)) ++n;
    runs.push_back({k, n});
    k += n;
  }
  const Field& f = runs[i / field_values % runs.size()];
  const std::string digits = file.substr(f.offset, f.width);
  const std::uint64_t old = std::stoull(digits.substr(0, 18));
  const std::uint64_t value = changed(old, file.size(), i);
  const std::string text = i % field_values == 2 ? "-1" : std::to_string(value);
  return file.substr(0, f.offset) + text + file.substr(f.offset + f.width);
}

std::string flip(const std::string& file, std::uint64_t seed) {
  constexpr std::string_view known = "0123456789\"'{}[]():,-.\\ \n<>|";
  Random random(seed);
  std::string out = file;
  for (std::size_t n = 1 + random.below(4); n > 0; --n) {
    char& c = out[random.below(out.size())];
    const std::uint64_t kind = random.below(3);
    if (kind == 0) c = static_cast<char>(c ^ (1 << random.below(8)));
    if (kind == 1) c = static_cast<char>(random.below(256));
    if (kind == 2) c = known[random.below(known.size())];
  }
  return out;
}

std::string splice(const std::string& file, std::size_t begin, std::size_t end, std::uint64_t seed) {
  Random random(seed);
  const std::size_t at = begin + random.below(end - begin), n = 1 + random.below(std::min<std::size_t>(40, end - at));
  std::string out = file;
  const std::uint64_t kind = random.below(3);
  if (kind == 0) out.erase(at, n);
  if (kind == 1) out.insert(begin + random.below(end - begin), file.substr(at, n));
  if (kind == 2) out.insert(at, n, static_cast<char>(random.below(128)));
  return out;
}

Bytes bytes_of(std::string_view text) {
  Bytes b = Bytes::allocate(static_cast<Index>(text.size()));
  std::memcpy(const_cast<std::byte*>(b.data.data()), text.data(), text.size());
  return b;
}

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data.data()), bytes.data.size()};
}

std::string data_file(const std::string& name) { return fmt::format("{}/io/{}", RLX_TEST_DATA, name); }

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_text(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

std::string make_folder() {
  std::string name = testing::TempDir() + "/rlx_io_XXXXXX";
  ensure(mkdtemp(name.data()) != nullptr, "no folder for the test");
  return name;
}

bool refuses(const std::function<void()>& call, std::string_view part) {
  try {
    call();
  } catch (const Error& e) {
    if (std::string_view(e.what()).find(part) != std::string_view::npos) return true;
    std::cerr << "the message is: " << e.what() << "\n";
    return false;
  } catch (const std::exception& e) {
    std::cerr << "no rlx::Error but: " << e.what() << "\n";
    return false;
  }
  std::cerr << "nothing was thrown\n";
  return false;
}

}  // namespace rlx::test
