// Importance files of llama.cpp: mean squares of the inputs of every matrix.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/quote.h"
#include "io/gguf/quantize.h"

namespace rlx {

namespace {

constexpr std::uint64_t max_entries = 1 << 20;

void check_values(const std::string& path, std::string_view name, const std::vector<float>& values) {
  require(std::ranges::all_of(values, [](float v) { return std::isfinite(v) && v >= 0; }),
          "'{}': the importance of tensor {} has negative or infinite numbers", path, quote(name));
}

/// Pairs of tensors, sums of squares `NAME.in_sum2` [matrices, columns] and numbers of samples `NAME.counts`.
ImportanceTable from_gguf(const GgufFile& file) {
  ImportanceTable table;
  constexpr std::string_view end = ".in_sum2";
  for (const GgufEntry& e : file.tensors()) {
    if (!e.name.ends_with(end)) continue;
    const std::string name(e.name.substr(0, e.name.size() - end.size()));
    const auto sums = load<double>(file.at(e.name));
    const auto counts = load<double>(file.at(name + ".counts"));
    require(!counts.empty() && sums.size() % counts.size() == 0, "'{}': tensor {} has {} sums for {} counts",
            file.path(), quote(e.name), sums.size(), counts.size());
    const std::size_t columns = sums.size() / counts.size();
    std::vector<float> values;
    values.reserve(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double count = counts[i / columns];
      values.push_back(count > 0 ? static_cast<float>(sums[i] / count) : 1.0f);
    }
    check_values(file.path(), name, values);
    table.emplace(name, std::move(values));
  }
  require(!table.empty(), "'{}' has no tensors called *.in_sum2, so it is no importance file", file.path());
  return table;
}

/// The older form: a number of entries; each a name, a number of calls, and sums of means.
ImportanceTable from_entries(const Bytes& bytes, const std::string& path) {
  ImportanceTable table;
  GgufCursor at(bytes.data, {.version = 1, .big = false}, path);
  const std::size_t count = at.length(12, "the number of entries");
  require(count > 0 && count <= max_entries, "'{}' states {} entries, expected 1 to {}", path, count, max_entries);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = at.position();
    const std::string name(at.text("the length of a name"));
    const auto calls = static_cast<std::int32_t>(at.u32("a number of calls"));
    const std::size_t n = at.length(4, "a number of values");
    if (name.empty() || calls < 1 || n == 0) {
      at.fail_at(place,
                 fmt::format("the entry {} has {} calls and {} values, expected 1 or more", quote(name), calls, n));
    }
    std::vector<float> values(n);
    for (float& v : values) v = std::bit_cast<float>(at.u32("a value")) / static_cast<float>(calls);
    check_values(path, name, values);
    if (!table.emplace(name, std::move(values)).second)
      at.fail_at(place, fmt::format("{} is there twice", quote(name)));
  }
  return table;
}

}  // namespace

ImportanceTable read_importance(const std::string& path) {
  const Bytes bytes = MappedFile(path).bytes();
  const bool gguf = bytes.data.size() >= 4 && std::memcmp(bytes.data.data(), "GGUF", 4) == 0;
  return gguf ? from_gguf(GgufFile(bytes, path)) : from_entries(bytes, path);
}

}  // namespace rlx
