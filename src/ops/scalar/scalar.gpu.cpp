// Elementwise nodes and fusion bodies as one GPU kernel: an item computes one element of every result.
#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "ir/outline.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/scalar/scalar_text.h"

namespace rlx {

std::span<const OpDef* const> scalar_ops();

namespace {

// The number of a constant whose elements are all equal, as a literal.
std::optional<std::string> splat_text(const Tensor& t) {
  const DType value = gpu_value(t.dtype());
  if (t.count() == 0) return gpu_number(value, 0.0);
  for (Index i = 1; i < t.count(); ++i) {
    if (t.code(i) != t.code(0)) return std::nullopt;
  }
  const Tensor first = t.count() == 1 ? t : [&] {
    Tensor one(t.dtype(), {});
    one.set_code(0, t.code(0));
    return one;
  }();
  if (is_float(t.dtype())) return gpu_number(value, load<double>(first)[0]);
  return gpu_number(value, load<std::int64_t>(first)[0]);
}

// Writes the statements of a region for one element of its results.
class Region {
 public:
  Region(const StepArgs& n, const DeviceProperties& device) : n_(n), device_(device), dims_(n.out[0].type.dims) {}

  std::optional<Launch> launch();

 private:
  bool acceptable();
  bool node(const Node& node, Id id, const Graph* body);
  std::optional<Text> iota(const IotaAttrs& a);
  Text load(std::size_t k);
  bool refuse(std::string reason) const {
    if (n_.why) *n_.why = std::move(reason);
    return false;
  }

  const StepArgs& n_;
  const DeviceProperties& device_;
  std::vector<Dim> dims_;
  TextWriter writer_;
  std::vector<std::optional<Text>> loaded_;  // by operand
  std::unordered_map<Id, Text> values_;      // by node of the body
  std::unordered_map<Id, const Tensor*> constants_;
  std::vector<std::optional<Text>> results_;
  bool coordinates_ = false;  // an iota needs the coordinate of each axis
};

bool Region::acceptable() {
  for (const auto* slots : {&n_.in, &n_.out}) {
    for (const Slot& s : *slots) {
      if (s.type.encoding) return refuse("encoded operands have no elementwise kernel");
      if (std::string why = gpu_refuses(s.type.dtype, device_); !why.empty()) return refuse(why);
      if (s.type.dims.size() > dims_.size()) return refuse("an operand has more axes than the result");
    }
  }
  for (const Slot& s : n_.out) {
    if (s.type.dims != dims_) return refuse("the results differ in size");
  }
  return true;
}

Text Region::load(std::size_t k) {
  if (!loaded_[k]) {
    const DType type = n_.in[k].type.dtype;
    const std::string element = fmt::format("x{0}[x{0}_at]", k);
    loaded_[k] = Text{&writer_, gpu_value(type), writer_.let(gpu_value(type), gpu_load(type, element))};
  }
  return *loaded_[k];
}

std::optional<Text> Region::iota(const IotaAttrs& a) {
  const TensorType t(a.dtype, a.dims);
  if (t.dims.size() > dims_.size()) {
    refuse("an iota has more axes than the result");
    return std::nullopt;
  }
  const std::size_t axis = static_cast<std::size_t>(t.axis(a.axis));
  coordinates_ = true;
  const Text at{&writer_, DType::i64,
                t.dims[axis] == Dim(1) ? gpu_number(DType::i64, std::int64_t{0})
                                       : fmt::format("c{}", axis + dims_.size() - t.dims.size())};
  return cast_text(at, DType::i64, a.dtype);
}

// One node of the body, or, without a body, the node itself.
bool Region::node(const Node& node, Id id, const Graph* body) {
  if (node.results.size() != 1) return refuse(fmt::format("op {} has several results", node.op->name()));
  const DType out = node.results[0].dtype;
  if (std::string why = gpu_refuses(out, device_); !why.empty()) return refuse(why);
  if (node.op == &constant_op) {
    const Tensor& data = node.attrs.as<ConstantAttrs>().data;
    const std::optional<std::string> text = splat_text(data);
    if (!text) return refuse("a constant of different elements inside a region has no text");
    constants_[id] = &data;
    values_.insert_or_assign(id, Text{&writer_, gpu_value(out), *text});
    return true;
  }
  std::vector<Text> operands;
  std::vector<DType> types;
  std::vector<const Tensor*> constants;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const Id from = node.operands[k].node;
    operands.push_back(body ? values_.at(from) : load(k));
    types.push_back(body ? body->type(node.operands[k]).dtype : n_.in[k].type.dtype);
    constants.push_back(body ? (constants_.contains(from) ? constants_.at(from) : nullptr) : n_.in[k].constant);
  }
  std::string why;
  std::optional<Text> text;
  if (node.op == &broadcast_op) {
    text = operands[0];
  } else if (node.op == &iota_op) {
    text = iota(node.attrs.as<IotaAttrs>());
    if (!text) return false;
  } else {
    text = scalar_text(node, types, out, operands, constants, why);
    if (!text) return refuse(why);
  }
  values_.insert_or_assign(id, *text);
  return true;
}

std::optional<Launch> Region::launch() {
  if (!acceptable()) return std::nullopt;
  loaded_.resize(n_.in.size());
  if (n_.node.op == &fusion_op()) {
    const Graph& body = *n_.node.bodies[0];
    for (std::size_t k = 0; k < body.inputs.size(); ++k) values_.emplace(body.inputs[k], load(k));
    for (Id i = 0; i < body.nodes.size(); ++i) {
      if (!is_input(body.nodes[i]) && !node(body.nodes[i], i, &body)) return std::nullopt;
    }
    for (const Operand o : body.outputs) results_.push_back(values_.at(o.node));
  } else {
    if (!node(n_.node, 0, nullptr)) return std::nullopt;
    results_.push_back(values_.at(0));
  }

  LaunchBuilder b(n_.node.op == &fusion_op() ? "elementwise" : fmt::format("{}_elements", n_.node.op->name()));
  std::vector<LoopOperand> operands;
  std::vector<GpuRead> reads;
  for (std::size_t k = 0; k < n_.in.size(); ++k) {
    reads.push_back(b.read(fmt::format("x{}", k), n_.in[k]));
    operands.push_back({fmt::format("x{}_at", k), loop_strides(n_.in[k], dims_)});
  }
  std::string stores;
  for (std::size_t k = 0; k < n_.out.size(); ++k) {
    const Slot& out = n_.out[k];
    const GpuWrite write = b.write(fmt::format("y{}", k), out);
    operands.push_back({fmt::format("y{}_at", k), loop_strides(out, dims_)});
    stores += fmt::format("  y{0}[y{0}_at] = {1};\n", k, gpu_store(out.type.dtype, results_[k]->name));
    // All operands of an element are read before any result of it is written, each by the item that does both.
    if (n_.out.size() != 1 || !out.dense()) continue;
    for (std::size_t i = 0; i < n_.in.size(); ++i) {
      const Slot& in = n_.in[i];
      const bool same = in.dense() && in.type.dims == out.type.dims && bits(in.type.dtype) == bits(out.type.dtype);
      if (same) b.may_overwrite(write, reads[i]);
    }
  }
  const Dim count = product(dims_);
  b.size("count", count);
  b.flops(count * std::max<Index>(1, static_cast<Index>(values_.size()) - static_cast<Index>(n_.in.size())));
  const Index group_size = 256;
  std::string body = "  const i64 i = group_x * size_x + local_x;\n  if (i >= count) return;\n";
  body += loop_text(b, "c", "i", dims_, std::move(operands), coordinates_);
  return b.launch(ceildiv(count, group_size), group_size, body + writer_.text() + stores);
}

}  // namespace

std::optional<Launch> elementwise_launch(const StepArgs& n, const DeviceProperties& device) {
  return Region(n, device).launch();
}

std::span<const GpuMakerRow> scalar_gpu() {
  static const std::vector<GpuMakerRow> rows = [] {
    std::vector<GpuMakerRow> all{{&fusion_op(), elementwise_launch}};
    for (const OpDef* op : scalar_ops()) all.push_back({op, elementwise_launch});
    return all;
  }();
  return rows;
}

}  // namespace rlx
