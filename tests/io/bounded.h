// Runs a reader over many inputs in a child process with limits on memory and time, and makes the inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace rlx::test {

/// Calls `check(i)` for i in [begin, end) in a child whose address space and resident memory may grow by `budget` bytes
/// (not under a sanitizer, which needs more) and where each call may take two seconds of processor time. `check`
/// returns what is wrong, or nothing. The result is the first complaint, with its i: of `check`, an exception, a
/// signal, the time.
std::string run_bounded(Index begin, Index end, Index budget, const std::function<std::string(Index)>& check);

/// Whether the child's memory is limited: false under a sanitizer.
bool limits_memory();

/// A small generator with equal sequences everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// In [0, n).
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t state_;
};

/// A little-endian integer field of a file.
struct Field {
  std::size_t offset = 0;
  std::size_t width = 0;
};

/// Changes one field to 0, 1, -1, 2^31, 2^32-1, 2^63-1, size-1, size+1 (of the file), its own value -1, +1, or a random
/// number: `i` chooses field and value. Values are cut to the width of the field.
std::string change_field(const std::string& file, const std::vector<Field>& fields, std::size_t i);
inline constexpr std::size_t field_values = 11;

/// The same values written as decimal digits in place of the `i`-th run of digits in [begin, end) of the text.
std::string change_number(const std::string& file, std::size_t begin, std::size_t end, std::size_t i);

/// One to four random changes of bytes: a bit, a byte, a byte that has a meaning in headers.
std::string flip(const std::string& file, std::uint64_t seed);
/// A random piece removed, repeated or inserted in [begin, end).
std::string splice(const std::string& file, std::size_t begin, std::size_t end, std::uint64_t seed);

/// The bytes of a string, copied.
Bytes bytes_of(std::string_view text);
std::string text_of(const Bytes& bytes);
/// A file of tests/data/io.
std::string data_file(const std::string& name);
std::string read_text(const std::string& path);
void write_text(const std::string& path, std::string_view text);
/// A new empty folder for one test.
std::string make_folder();

/// True when `call` throws Error whose text contains `part`; otherwise prints what happened.
bool refuses(const std::function<void()>& call, std::string_view part);

}  // namespace rlx::test
