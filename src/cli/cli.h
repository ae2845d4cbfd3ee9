// What the commands of the program share: output, files, exit codes.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/index.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
}

namespace rlx::cli {

/// Exit codes, stated in --help.
enum Exit : int {
  success = 0,
  bad_input = 1,  // rlx::Error: a file, value or option that cannot be used
  bad_usage = 2,  // the command line itself
  device = 3,     // rlx::DeviceError: machine or device
  internal = 70,  // a bug in rlx
};

/// Each adds one command; what it does runs when the command line has been read.
void add_embed(CLI::App& app, std::function<void()>& run);
void add_inspect(CLI::App& app, std::function<void()>& run);
void add_quantize(CLI::App& app, std::function<void()>& run);
void add_info(CLI::App& app, std::function<void()>& run);
void add_ops(CLI::App& app, std::function<void()>& run);
void add_passes(CLI::App& app, std::function<void()>& run);
void add_run(CLI::App& app, std::function<void()>& run);
void add_check(CLI::App& app, std::function<void()>& run);
void add_bench(CLI::App& app, std::function<void()>& run);
void add_chat(CLI::App& app, std::function<void()>& run);
void add_generate(CLI::App& app, std::function<void()>& run);
void add_perplexity(CLI::App& app, std::function<void()>& run);
void add_bench_llm(CLI::App& app, std::function<void()>& run);

/// Draws a bar on standard error while something takes longer than a second, if that is a terminal.
class ProgressBar {
 public:
  ProgressBar() = default;
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `done` from 0 to 1; 1 takes the bar away.
  void show(std::string_view what, double done);
  void clear();
  /// For CompileOptions::progress.
  auto callback() {
    return [this](std::string_view what, double done) { show(what, done); };
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool drawn_ = false;
};

/// `"a\u0001"`: a JSON string. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
/// A JSON number: the shortest that reads back; null for infinities and NaN, which JSON lacks.
std::string json_number(double value);
/// Lines of a file, or of standard input for "-", without their line ends. Throws Error when it cannot be read.
std::vector<std::string> read_lines(const std::string& path);
/// Writes to standard output; throws Error when that fails (a full disk; a closed pipe ends the program quietly).
void print(std::string_view text);
/// Width of a text on a terminal, and the text cut or filled to one.
std::string fit(std::string_view text, std::size_t width);
/// 22713216 as "22,713,216".
std::string grouped(Index n);

}  // namespace rlx::cli
