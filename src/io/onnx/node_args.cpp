// What an operator's function sees of its node.
#include <algorithm>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ir/measure.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/sizes/sizes.h"
#include "ops/slice/slice.h"

namespace rlx::onnx {

Index axis_of(Index axis, Index rank) {
  require(-rank <= axis && axis < rank, "axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

NodeArgs::NodeArgs(Importer& importer, const NodeProto& node, Frame& frame, Index opset,
                   std::vector<std::optional<Item>> in)
    : importer_(&importer), node_(&node), frame_(&frame), opset_(opset), items_(std::move(in)) {
  for (const auto& item : items_) in_.push_back(item && item->tensor() ? std::optional(item->values[0]) : std::nullopt);
}

const Item& NodeArgs::item(std::size_t i) const {
  require(has_item(i), "operand {} is left out", i);
  return *items_[i];
}

Value NodeArgs::operator[](std::size_t i) const {
  require(!has_item(i) || has(i), "operand {} is {}, expected a tensor", i, has_item(i) ? kind_of(*items_[i]) : "");
  require(has(i), "operand {} is left out", i);
  return *in_[i];
}

Values NodeArgs::all() const {
  require(!in_.empty(), "the node has no operands");
  Values v;
  for (std::size_t i = 0; i < in_.size(); ++i) v.push_back((*this)[i]);
  return v;
}

void NodeArgs::expect(std::size_t least, std::size_t most) const {
  require(least <= in_.size() && in_.size() <= most, "{} operands are given, expected {} to {}", in_.size(), least,
          most);
}

const AttributeProto* NodeArgs::find(std::string_view name, AttributeType type) {
  asked_.insert(name);
  const auto& all = node_->attributes;
  const auto it = std::ranges::find(all, name, &AttributeProto::name);
  if (it == all.end()) return nullptr;
  const AttributeProto* a = &*it;
  if (!a->reference.empty()) {
    require(frame_->in_function, "attribute {} refers to {} outside of a function", in_quotes(name),
            in_quotes(a->reference));
    const auto given = frame_->attributes.find(a->reference);
    if (given == frame_->attributes.end()) return nullptr;
    a = given->second;
  }
  if (type == AttributeType::undefined) return a;
  require(a->type == type, "attribute {} is of type {}, expected {}", in_quotes(name), attribute_type_name(a->type),
          attribute_type_name(type));
  return a;
}

bool NodeArgs::given(std::string_view name) { return find(name, AttributeType::undefined) != nullptr; }

Index NodeArgs::integer(std::string_view name, Index standard) {
  const AttributeProto* a = find(name, AttributeType::integer);
  return a ? a->integer : standard;
}

Index NodeArgs::integer(std::string_view name) {
  const AttributeProto* a = find(name, AttributeType::integer);
  require(a != nullptr, "attribute {} is missing", in_quotes(name));
  return a->integer;
}

double NodeArgs::real(std::string_view name, double standard) {
  const AttributeProto* a = find(name, AttributeType::real);
  return a ? static_cast<double>(a->real) : standard;
}

std::string NodeArgs::string(std::string_view name, std::string_view standard) {
  const AttributeProto* a = find(name, AttributeType::string);
  return std::string(a ? a->string.substr(0, 100) : standard);
}

std::optional<std::vector<Index>> NodeArgs::integers(std::string_view name) {
  const AttributeProto* a = find(name, AttributeType::integers);
  if (!a) return std::nullopt;
  return integers_of(importer_->model().file, *a);
}

std::optional<std::vector<float>> NodeArgs::reals(std::string_view name) {
  const AttributeProto* a = find(name, AttributeType::reals);
  if (!a) return std::nullopt;
  return reals_of(importer_->model().file, *a);
}

std::optional<std::vector<std::string>> NodeArgs::strings(std::string_view name) {
  const AttributeProto* a = find(name, AttributeType::strings);
  if (!a) return std::nullopt;
  std::vector<std::string> all;
  for (const std::string_view s : strings_of(importer_->model().file, *a)) all.emplace_back(s.substr(0, 100));
  return all;
}

std::optional<Tensor> NodeArgs::tensor(std::string_view name) {
  const AttributeProto* a = find(name, AttributeType::tensor);
  if (!a) return std::nullopt;
  return importer_->loader().load(a->tensors.at(0));
}

const GraphProto& NodeArgs::graph(std::string_view name) {
  const AttributeProto* a = find(name, AttributeType::graph);
  require(a != nullptr, "attribute {} is missing", in_quotes(name));
  return *a->graphs.at(0);
}

void NodeArgs::finish() const {
  std::set<std::string_view> seen;
  for (const AttributeProto& a : node_->attributes) {
    require(seen.insert(a.name).second, "attribute {} is there twice", in_quotes(a.name));
    if (opset_ < 6 && node_->domain.empty() && a.name == "consumed_inputs") continue;  // a hint about memory
    require(asked_.contains(a.name), "attribute {} is not supported", in_quotes(a.name));
  }
}

std::vector<Dim> NodeArgs::sizes(std::size_t i) const {
  const Value v = (*this)[i];
  require(is_integer(v.dtype()) || v.dtype() == DType::boolean, "operand {} is {}, expected integers", i,
          v.type().text());
  require(v.rank() <= 1, "operand {} is {}, expected rank 0 or 1", i, v.type().text());
  const auto elements = importer_->known(v);
  require(elements.has_value(), "operand {} ({}) depends on the data of a run, its elements must follow from sizes", i,
          in_quotes(node_->inputs[i]));
  return *elements;
}

std::vector<Dim> NodeArgs::found_sizes(std::size_t i) {
  const Value v = (*this)[i];
  const bool list = v.rank() <= 1 && is_integer(v.dtype()) &&
                    (v.rank() == 0 || (v.dim(0).is_constant() && v.dim(0).constant() <= Index{most_axes}));
  if (!list || importer_->known(v)) return sizes(i);
  const Value line = reshape(cast(v, DType::i64), {v.type().count()});
  std::vector<Dim> all;
  for (Index k = 0; k < line.dim(0).constant(); ++k) {
    all.push_back(measure(reshape(slice(line, 0, k, k + 1), {}), unbounded));
  }
  return all;
}

std::vector<Index> NodeArgs::numbers(std::size_t i) const {
  std::vector<Index> all;
  for (const Dim& d : sizes(i)) {
    require(d.is_constant(), "operand {} ({}) has the element {}, expected a number", i, in_quotes(node_->inputs[i]),
            d.text());
    all.push_back(d.constant());
  }
  return all;
}

Index NodeArgs::number(std::size_t i) const {
  const std::vector<Index> all = numbers(i);
  require(all.size() == 1, "operand {} has {} elements, expected 1", i, all.size());
  return all[0];
}

double NodeArgs::scalar(std::size_t i) const {
  const Tensor* t = importer_->constant_of((*this)[i]);
  require(t != nullptr, "operand {} ({}) depends on the data of a run, expected a constant", i,
          in_quotes(node_->inputs[i]));
  require(t->count() == 1 && !is_complex(t->dtype()), "operand {} is {}, expected one number", i, t->type().text());
  return load<double>(*t)[0];
}

std::optional<std::vector<Index>> NodeArgs::axes(Index from, std::size_t i) {
  if (opset_ < from) return integers("axes");
  if (!has(i)) return std::nullopt;
  return numbers(i);
}

Value NodeArgs::known(DType dtype, std::vector<Dim> elements, bool vector) {
  require(vector || elements.size() == 1, "{} elements make no scalar", elements.size());
  const bool constants = std::ranges::all_of(elements, [](const Dim& d) { return d.is_constant(); });
  std::vector<Index> shape;
  if (vector) shape.push_back(static_cast<Index>(elements.size()));
  if (constants) {
    std::vector<std::int64_t> values;
    for (const Dim& d : elements) values.push_back(d.constant());
    return constant(builder(), Tensor::of<std::int64_t>(dtype, shape, values));
  }
  const Value v = cast(rlx::sizes(builder(), std::move(elements)), dtype);
  return vector ? v : reshape(v, {});
}

}  // namespace rlx::onnx
