// Normalizers on strings.
#include "text/normalizers.h"

#include <utility>

namespace rlx {

namespace {

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string apply(std::string text) const override {
    if (!text.empty()) text.insert(0, prefix_);
    return text;
  }

 private:
  std::string prefix_;
};

class ReplaceText : public Normalizer {
 public:
  ReplaceText(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  std::string apply(std::string text) const override {
    if (from_.empty()) return text;
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = 0; (at = text.find(from_, done)) != std::string::npos; done = at + from_.size()) {
      out.append(text, done, at - done);
      out += to_;
    }
    if (done == 0) return text;
    out.append(text, done);
    return out;
  }

 private:
  std::string from_, to_;
};

}  // namespace

std::unique_ptr<Normalizer> prepend_text(std::string prefix) { return std::make_unique<Prepend>(std::move(prefix)); }
std::unique_ptr<Normalizer> replace_text(std::string from, std::string to) {
  return std::make_unique<ReplaceText>(std::move(from), std::move(to));
}

}  // namespace rlx
