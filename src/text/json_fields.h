// Reading the objects of tokenizer files: nothing that a reader does not know may pass.
#pragma once

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/json.h"
#include "text/added_tokens.h"

namespace rlx {

/// The largest id of a token.
constexpr Index most_token_id = 2147483646;

/// Members that a reader does not know could change the meaning, so they are refused.
inline void require_known(const JsonValue& object, std::initializer_list<std::string_view> known) {
  for (const JsonMember& m : object.members()) {
    if (std::find(known.begin(), known.end(), m.key) != known.end()) continue;
    m.value.fail_expected("no such member");
  }
}

/// A member that may be missing or null.
inline std::optional<JsonValue> find_value(const JsonValue& object, std::string_view key) {
  const std::optional<JsonValue> value = object.find(key);
  return value && !value->is_null() ? value : std::nullopt;
}

/// A token beside its id, `["[SEP]", 102]`: the id.
inline Index read_token_id(const JsonValue& pair, Index most = most_token_id) {
  if (!pair.is_array() || pair.size() != 2) pair.fail_expected("a token and its id");
  pair.at(Index{0}).as_string();
  return pair.at(Index{1}).as_index(0, most);
}

/// A file of at most as many bytes as a JSON text may have; throws Error that names the path.
std::string read_bounded_file(const std::filesystem::path& path);

/// A string of one of the given names, by its place.
inline std::size_t read_choice(const JsonValue& value, std::initializer_list<std::string_view> names) {
  const std::string_view text = value.as_string();
  const auto it = std::find(names.begin(), names.end(), text);
  if (it == names.end()) {
    std::string all;
    for (const std::string_view name : names) all += (all.empty() ? "" : ", ") + std::string(name);
    value.fail_expected("one of " + all);
  }
  return static_cast<std::size_t>(it - names.begin());
}

}  // namespace rlx
