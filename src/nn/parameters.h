// Parameters of a model while its graph is built: tensors by scoped name, checked against the shape that the model
// needs.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/builder.h"

namespace rlx {

/// Where weights come from: a file, or memory.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// For messages: a path.
  virtual std::string description() const = 0;
  virtual std::vector<std::string> names() const = 0;
  virtual bool contains(std::string_view name) const = 0;
  /// Throws Error when there is none of this name.
  virtual Tensor at(std::string_view name) const = 0;
};

/// Weights that are tensors in memory already.
class MemoryWeights final : public WeightSource {
 public:
  explicit MemoryWeights(NamedTensors tensors) : tensors_(std::move(tensors)) {}
  std::string description() const override { return "weights in memory"; }
  std::vector<std::string> names() const override;
  bool contains(std::string_view name) const override { return tensors_.contains(name); }
  Tensor at(std::string_view name) const override;

 private:
  NamedTensors tensors_;
};

/// A scope of names over a source; scopes of one source share the record of what was used.
class Parameters {
 public:
  /// Weights become constants of `builder`, cast to `compute` where they are floats of another type. The source must
  /// outlive this object.
  Parameters(Builder& builder, const WeightSource& source, DType compute = DType::f32);

  /// The scope below, `in("encoder").in("layer.0")` for names that begin with `encoder.layer.0.`.
  Parameters in(std::string_view scope) const;
  bool has(std::string_view name) const { return source_->contains(prefix_ + std::string(name)); }
  /// The constant called `name` in this scope; throws Error that names it when it is missing, no float tensor, or has
  /// another shape. A matrix (or a stack of them) whose last axis is stored in blocks stays as it is stored.
  Value take(std::string_view name, const std::vector<Index>& shape) const;
  /// The tensor itself, any shape and type, counted as used.
  Tensor tensor(std::string_view name) const;
  /// Names of the source that nothing has used and that begin with none of `ignored`.
  std::vector<std::string> unused(const std::vector<std::string>& ignored) const;

  Builder& builder() const { return *builder_; }
  DType compute() const { return compute_; }

 private:
  Builder* builder_;
  const WeightSource* source_;
  DType compute_;
  std::string prefix_;
  std::shared_ptr<std::set<std::string>> used_;
};

}  // namespace rlx
