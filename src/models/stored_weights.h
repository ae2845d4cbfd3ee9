// The weights of a model under names that do not depend on the file they come from.
#pragma once

#include <set>

#include "nn/parameters.h"

namespace rlx {

/// Part of a stored tensor that holds several parameters one after the other.
enum class Fused : std::uint8_t { no, query_key_value, gate_up };

/// Where a parameter is stored. `{}` is the number of the layer, `<>` that of the expert.
struct StoredName {
  std::string_view parameter;  // its own name, `layers.{}.query`
  std::string_view stored;     // without `.weight` or `.bias`
  Fused fused = Fused::no;
  bool transposed = false;  // stored [in, out]
};

/// Sizes of the parts of joined tensors, and how norms are stored.
struct StoredSizes {
  Index query = 0, key = 0;  // rows of queries, and of keys and values each
  Index ffn = 0;             // rows of gate and up each
  double norm_offset = 0;    // added to the weights of norms
};

/// Parameters by names of a table, each followed by `.weight` or `.bias`. Matrices are [out, in]. Rows of joined
/// tensors (queries, keys and values in one; gate and up in one; stacks of experts) share the file's bytes; tensors
/// that are stored [in, out], and norms with an offset, are copied.
class StoredWeights final : public WeightSource {
 public:
  /// Of `rows` the first whose stored name is there counts. `first` is a parameter that every model has: when it is not
  /// found, names are taken to lack their first part (`model.`, `transformer.`). `source` must outlive this object.
  StoredWeights(const WeightSource& source, std::vector<StoredName> rows, const StoredSizes& sizes,
                std::string_view first);

  std::string description() const override { return source_->description(); }
  /// Names as they are stored.
  std::vector<std::string> names() const override { return source_->names(); }
  bool contains(std::string_view name) const override { return find(name).has_value(); }
  Tensor at(std::string_view name) const override;

  /// A tensor by its stored name, counted as used.
  Tensor stored(std::string_view name) const;
  bool has_stored(std::string_view name) const { return source_->contains(name); }
  /// Stored names that nothing has used, sorted.
  std::vector<std::string> unused() const;

 private:
  struct Place {
    std::string stored;
    const StoredName* row = nullptr;
    Index expert = -1;  // of a stack
  };
  struct Rows {
    Index begin = 0, count = 0, all = 0;
  };

  std::optional<Place> find(std::string_view name) const;
  std::optional<Place> place(const std::string& pattern, std::string_view suffix, const std::string& layer,
                             const std::string& expert) const;
  Rows rows_of(std::string_view parameter, Fused fused) const;

  const WeightSource* source_;
  std::vector<StoredName> rows_;
  StoredSizes sizes_;
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
