// Output helpers of the commands.
#include <fmt/format.h>
#include <unistd.h>
#include <utf8proc.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <utility>

#include "cli/cli.h"
#include "core/error.h"

namespace rlx::cli {

namespace {

// The code point at `at`, and how many bytes it takes; U+FFFD and 1 where the bytes are no UTF-8.
std::pair<utf8proc_int32_t, std::size_t> next(std::string_view text, std::size_t at) {
  utf8proc_int32_t point = 0;
  const auto rest = static_cast<utf8proc_ssize_t>(text.size() - at);
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at, rest, &point);
  return n > 0 ? std::pair(point, static_cast<std::size_t>(n)) : std::pair(0xFFFD, std::size_t{1});
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const auto [point, bytes] = next(text, i);
    if (point == '"' || point == '\\') {
      out += '\\';
      out += static_cast<char>(point);
    } else if (point < 32) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(point));
    } else if (point == 0xFFFD) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(i, bytes);
    }
    i += bytes;
  }
  return out + '"';
}

std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    require(file.is_open(), "{}: {}", path, std::strerror(errno));
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  const bool failed = in.bad() || (path == "-" && std::ferror(stdin) != 0);
  require(!failed, "{}: reading failed: {}", path == "-" ? "standard input" : path, std::strerror(errno));
  return lines;
}

void print(std::string_view text) {
  const bool ok = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (ok) return;
  if (errno == EPIPE) std::_Exit(success);  // the reader has seen enough
  fail("writing to standard output failed: {}", std::strerror(errno));
}

std::string fit(std::string_view text, std::size_t width) {
  std::string out;
  std::size_t used = 0, fits_bytes = 0, fits_used = 0;
  bool cut = false;
  for (std::size_t i = 0; i < text.size();) {
    const auto [point, bytes] = next(text, i);
    const bool control = point < 32 || (point >= 127 && point < 160);
    const auto columns = static_cast<std::size_t>(control ? 1 : std::max(0, utf8proc_charwidth(point)));
    if (used + columns > width) {
      cut = true;
      break;
    }
    if (control) {
      out += ' ';
    } else if (point == 0xFFFD) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(i, bytes);
    }
    used += columns;
    if (used + 1 <= width) {  // the longest beginning that leaves room for an ellipsis
      fits_bytes = out.size();
      fits_used = used;
    }
    i += bytes;
  }
  if (cut && width > 0) {
    out.resize(fits_bytes);
    out += "\u2026";
    used = fits_used + 1;
  }
  return out + std::string(width - used, ' ');
}

std::string grouped(Index n) {
  std::string s = std::to_string(n);
  for (auto i = static_cast<Index>(s.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3)
    s.insert(static_cast<std::size_t>(i), ",");
  return s;
}

void ProgressBar::show(std::string_view what, double done) {
  static const bool terminal = ::isatty(STDERR_FILENO) != 0;
  if (done >= 1) return clear();
  if (!terminal || std::chrono::steady_clock::now() - begin_ < std::chrono::seconds(1)) return;
  constexpr int width = 30;
  const int full = std::clamp(static_cast<int>(done * width), 0, width);
  fmt::print(stderr, "\r{:<24} [{}{}] {:3.0f} %", what.substr(0, 24), std::string(static_cast<std::size_t>(full), '#'),
             std::string(static_cast<std::size_t>(width - full), ' '), done * 100);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!std::exchange(drawn_, false)) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace rlx::cli
