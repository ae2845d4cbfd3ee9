// The held text is at most as long as the longest stop string, so that it is searched as it is.
#include "generate/stop_strings.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& s : stops_) require(!s.empty(), "a stop string is empty");
}

std::string StopStrings::push(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  std::size_t first = std::string::npos;
  for (const std::string& s : stops_) {
    const std::size_t at = held_.find(s);
    if (at < first) {
      first = at;
      found_ = s;
    }
  }
  if (first != std::string::npos) {
    stopped_ = true;
    std::string out = held_.substr(0, first);
    held_.clear();
    return out;
  }
  // The longest end of the text with which a stop string may begin stays.
  std::size_t kept = 0;
  for (const std::string& s : stops_) {
    for (std::size_t n = std::min(s.size() - 1, held_.size()); n > kept; --n) {
      if (held_.ends_with(std::string_view(s).substr(0, n))) kept = n;
    }
  }
  std::string out = held_.substr(0, held_.size() - kept);
  held_.erase(0, out.size());
  return out;
}

std::string StopStrings::flush() {
  std::string out;
  std::swap(out, held_);
  return out;
}

}  // namespace rlx
