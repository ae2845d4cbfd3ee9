// What turns the pieces of a text into ids: the last stage of a tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace rlx {

/// Immutable; what a call needs beside it is in its scratch, of which each thread has its own.
class TokenModel {
 public:
  struct Scratch {
    virtual ~Scratch() = default;
  };

  virtual ~TokenModel() = default;
  virtual std::unique_ptr<Scratch> scratch() const { return std::make_unique<Scratch>(); }
  /// Appends the ids of a piece. `piece` is UTF-8, or any bytes where the model works on bytes.
  virtual void encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& out) const = 0;
};

}  // namespace rlx
