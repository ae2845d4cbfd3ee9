// The weights of a decoder under names that do not depend on the file they come from.
#pragma once

#include <set>

#include "models/decoder_config.h"
#include "models/decoder_table.h"
#include "nn/parameters.h"

namespace rlx {

/// Parameters by the names `token_embedding`, `position_embedding`, `final_norm`, `head`, and, for layer I,
/// `layers.I.NAME` with NAME one of attention_norm, query, key, value, query_norm, key_norm, out, attention_post_norm,
/// ffn_norm, router, gate, up, down, ffn_post_norm, and `experts.E.gate`, `.up`, `.down`; each followed by `.weight` or
/// `.bias`. Matrices are [out, in]. Rows of joined tensors (queries, keys and values in one; gate and up in one; stacks
/// of experts) share the file's bytes; tensors that are stored [in, out], and norms that are stored less 1, are
/// copied.
class DecoderWeights final : public WeightSource {
 public:
  /// `source` and `config` must outlive this object.
  DecoderWeights(const WeightSource& source, const DecoderConfig& config);

  std::string description() const override { return source_->description(); }
  /// Names as they are stored.
  std::vector<std::string> names() const override { return source_->names(); }
  bool contains(std::string_view name) const override { return find(name).has_value(); }
  Tensor at(std::string_view name) const override;

  /// A tensor by its stored name, counted as used.
  Tensor stored(std::string_view name) const;
  bool has_stored(std::string_view name) const { return source_->contains(name); }
  /// Counts a stored tensor as used, if it is there.
  void skip(std::string_view name) const { used_.insert(std::string(name)); }
  /// Stored names that nothing has used, sorted.
  std::vector<std::string> unused() const;

 private:
  struct Place {
    std::string stored;
    const StoredName* row = nullptr;
    Index expert = -1;  // of a stack
  };
  struct Rows {
    Index begin = 0, count = 0;
  };

  std::optional<Place> find(std::string_view name) const;
  std::optional<Place> place(const std::string& pattern, std::string_view suffix, const std::string& layer,
                             const std::string& expert) const;
  Rows rows_of(std::string_view parameter, Fused fused) const;

  const WeightSource* source_;
  const DecoderConfig* config_;
  std::vector<StoredName> rows_;
  std::string removed_;  // what the file leaves out at the front of names
  mutable std::set<std::string, std::less<>> used_;
};

/// Rows [begin, begin + count) of the first axis; shares the bytes. The tensor is dense with elements of whole bytes,
/// or stored in blocks along its last axis.
Tensor rows_of(const Tensor& t, Index begin, Index count);
/// Entry `number` of the first axis, without that axis; shares the bytes.
Tensor matrix_of(const Tensor& stack, Index number);
/// A dense matrix with its axes exchanged.
Tensor transposed(const Tensor& t);

}  // namespace rlx
