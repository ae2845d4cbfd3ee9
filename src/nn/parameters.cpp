// Parameters: scopes, checks, and the record of used names.
#include "nn/parameters.h"

#include <algorithm>

#include "core/error.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"

namespace rlx {

std::vector<std::string> MemoryWeights::names() const {
  std::vector<std::string> all;
  for (const auto& [name, tensor] : tensors_) all.push_back(name);
  return all;
}

Tensor MemoryWeights::at(std::string_view name) const {
  const auto it = tensors_.find(name);
  require(it != tensors_.end(), "{}: there is no tensor \"{}\"", description(), name);
  return it->second;
}

Parameters::Parameters(Builder& builder, const WeightSource& source, DType compute)
    : builder_(&builder), source_(&source), compute_(compute), used_(std::make_shared<std::set<std::string>>()) {
  require(is_arithmetic_float(compute), "a model is computed in a float type, not in {}", name(compute));
}

Parameters Parameters::in(std::string_view scope) const {
  Parameters p = *this;
  if (!scope.empty()) p.prefix_ += std::string(scope) + ".";
  return p;
}

Tensor Parameters::tensor(std::string_view name) const {
  const std::string full = prefix_ + std::string(name);
  require(source_->contains(full), "{}: tensor {} is missing", source_->description(), full);
  used_->insert(full);
  return source_->at(full);
}

Value Parameters::take(std::string_view name, const std::vector<Index>& shape) const {
  const Tensor t = tensor(name);
  const std::string full = prefix_ + std::string(name);
  require(t.shape() == shape, "{}: tensor {} has shape {}, expected {}", source_->description(), full, text(t.shape()),
          text(shape));
  const TensorType& type = t.type();
  const bool matrix = type.encoding && type.rank() >= 2 && type.block_axis == type.rank() - 1;
  require(is_float(type.dtype) && (matrix || !type.encoding), "{}: tensor {} is {}, expected floats",
          source_->description(), full, type.text());
  const Value v = constant(*builder_, t);
  builder_->label(v, full);
  return matrix ? v : cast(v, compute_);
}

std::vector<std::string> Parameters::unused(const std::vector<std::string>& ignored) const {
  std::vector<std::string> left;
  for (std::string& n : source_->names()) {
    const bool skipped = std::ranges::any_of(ignored, [&](const std::string& i) { return n.starts_with(i); });
    if (!skipped && !used_->contains(n)) left.push_back(std::move(n));
  }
  return left;
}

}  // namespace rlx
