// The state of an import: names, symbols, what has failed; and what an operator's function sees of it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/quote.h"
#include "io/onnx/model.h"
#include "io/onnx/onnx.h"
#include "io/onnx/tensors.h"
#include "ir/builder.h"

namespace rlx::onnx {

class NodeArgs;

/// The file breaks a rule of the format: nothing more is imported, whereas other errors are collected.
class NotWellFormed : public Error {
 public:
  using Error::Error;
};

/// How an operator becomes nodes: its results in order; those at the end that no node reads may be left out.
using OperatorFunction = Values (*)(NodeArgs&);
struct OperatorRow {
  std::string_view name;
  Index since;  // first version of the operator set that has it, in a form that the function reads
  OperatorFunction make;
};
using OperatorRows = std::span<const OperatorRow>;
// Families of operators, a file each: X(family, domain) for FAMILY_rows().
// clang-format off
#define RLX_ONNX_FAMILIES(X) \
  X(activation, "") \
  X(arithmetic, "") \
  X(attention, "") \
  X(cast, "") \
  X(convolution, "") \
  X(curve, "") \
  X(einsum, "") \
  X(image, "") \
  X(integer_convolution, "") \
  X(linear_attention, "") \
  X(loss, "") \
  X(movement, "") \
  X(product, "") \
  X(quantized, "") \
  X(reduce, "") \
  X(resample, "") \
  X(sampling, "") \
  X(select, "") \
  X(shape, "") \
  X(signal, "") \
  X(machine_learning, "ai.onnx.ml") \
  X(preview, "ai.onnx.preview") \
  X(training, "ai.onnx.preview.training") \
  X(microsoft, "com.microsoft") \
  X(microsoft_attention, "com.microsoft") \
  X(microsoft_quantized, "com.microsoft")
// clang-format on
#define RLX_DECLARE(family, domain) OperatorRows family##_rows();
RLX_ONNX_FAMILIES(RLX_DECLARE)
#undef RLX_DECLARE

inline constexpr Index oldest_opset = 7, newest_opset = 28;

/// Names of a graph or a function body, and what they stand for.
struct Scope {
  Scope* parent = nullptr;
  struct Entry {
    std::optional<Value> value;                // empty: it comes from a node that failed, or is not loaded yet
    const TensorProto* initializer = nullptr;  // loaded when it is first read
  };
  std::unordered_map<std::string_view, Entry> names;
};

/// What a body runs in: its names, operator sets and the attributes of the call.
struct Frame {
  Scope* scope = nullptr;
  std::span<const OpsetImport> opsets;
  std::map<std::string_view, const AttributeProto*> attributes;  // of a function call; null: given none
  bool in_function = false;
  int depth = 0;
};

/// Nodes that cannot be imported, grouped by what is wrong.
class Failures {
 public:
  void add(const NodeProto& node, Index opset, const std::string& why);
  void skip() { ++skipped_; }
  bool empty() const { return groups_.empty(); }
  /// Throws the Error that lists them.
  [[noreturn]] void report(const std::string& model, std::size_t nodes) const;

 private:
  struct Group {
    std::string text;
    std::size_t count = 0;
    std::vector<std::string> nodes;  // the first ones
  };
  std::vector<Group> groups_;
  std::map<std::string, std::size_t, std::less<>> by_text_;
  std::size_t count_ = 0, skipped_ = 0;
};

class Importer {
 public:
  Importer(const ModelProto& model, TensorLoader& loader, const OnnxOptions& options, const DimSymbols& closer);

  Graph run();

  Builder& builder() { return builder_; }
  TensorLoader& loader() { return *loader_; }
  const ModelProto& model() const { return *model_; }

  /// Imports the nodes of a body.
  void nodes(const std::vector<NodeProto>& list, Frame& frame);
  /// Adds the names of a graph's initialisers.
  void initializers(const GraphProto& graph, Scope& scope);
  /// The value of a name; null when it comes from a node that failed. Throws Error for a name that is not defined.
  std::optional<Value> find(std::string_view name, const Frame& frame, const NodeProto* reader);
  /// Elements of a small integer or boolean tensor of rank 0 or 1 as sizes, where they are known.
  std::optional<std::vector<Dim>> known(Value v) const;
  /// The tensor of a value that is a constant, or follows from few small constants by few nodes, or null.
  const Tensor* constant_of(Value v) const;

 private:
  const Tensor* evaluated(Value v) const;
  Value input(const ValueInfo& info);
  Value fixed(const ValueInfo& info, const Tensor& value);
  Dim dimension(const ValueInfo& info, std::size_t axis);
  Dim symbol(std::string_view name, std::string fallback);
  void node(const NodeProto& n, Frame& frame);
  std::optional<std::vector<std::optional<Value>>> operands(const NodeProto& n, Frame& frame, Index opset);
  std::optional<Values> results(const NodeProto& n, Frame& frame, Index opset);
  Values call(const FunctionProto& f, const NodeProto& n, Frame& frame);
  void define(std::string_view name, std::optional<Value> value, Frame& frame);
  Index opset_of(const NodeProto& n, const Frame& frame) const;
  const FunctionProto* function_of(const NodeProto& n) const;
  void charge(std::size_t work);
  void charge_new_nodes();
  void check_options() const;

  const ModelProto* model_;
  TensorLoader* loader_;
  const OnnxOptions* options_;
  DimSymbols closer_;
  Builder builder_;
  Failures failures_;
  std::map<std::string, Dim, std::less<>> symbols_;      // by the file's name
  std::set<std::string, std::less<>> identifiers_;       // in use
  std::map<std::string, int, std::less<>> next_suffix_;  // of identifiers that would be equal
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*> functions_;
  std::size_t node_count_ = 0, charged_nodes_ = 0, work_ = 0;
  mutable std::unordered_map<Operand, Tensor, OperandHash> evaluated_;  // references stay valid
};

/// One node, as its operator's function sees it. Errors of every kind become the node's failure.
class NodeArgs {
 public:
  NodeArgs(Importer& importer, const NodeProto& node, Frame& frame, Index opset, std::vector<std::optional<Value>> in)
      : importer_(&importer), node_(&node), frame_(&frame), opset_(opset), in_(std::move(in)) {}

  Importer& importer() { return *importer_; }
  Builder& builder() { return importer_->builder(); }
  const NodeProto& node() const { return *node_; }
  Frame& frame() { return *frame_; }
  Index opset() const { return opset_; }

  /// Number of operands, those left out included.
  std::size_t count() const { return in_.size(); }
  bool has(std::size_t i) const { return i < in_.size() && in_[i].has_value(); }
  /// Operand `i`; throws Error when it is left out.
  Value operator[](std::size_t i) const;
  std::optional<Value> optional(std::size_t i) const { return has(i) ? in_[i] : std::nullopt; }
  /// All operands, at least one, none of them left out.
  Values all() const;
  /// Whether result `i` has a name.
  bool wants(std::size_t i) const { return i < node_->outputs.size() && !node_->outputs[i].empty(); }
  /// Throws Error unless the node has `least` to `most` operands.
  void expect(std::size_t least, std::size_t most) const;

  /// Attributes; one that no function asks for makes the node fail. Throw Error when the type is another.
  bool given(std::string_view name);
  Index integer(std::string_view name, Index standard);
  Index integer(std::string_view name);
  double real(std::string_view name, double standard);
  std::string string(std::string_view name, std::string_view standard);
  std::optional<std::vector<Index>> integers(std::string_view name);
  std::optional<std::vector<float>> reals(std::string_view name);
  std::optional<Tensor> tensor(std::string_view name);
  const GraphProto& graph(std::string_view name);
  /// Takes an attribute that changes nothing of the result.
  void ignore(std::string_view name) { given(name); }
  /// Throws Error naming an attribute that nobody asked for.
  void finish() const;

  /// Elements of the integer or boolean operand `i` as sizes; throws Error when they depend on data.
  std::vector<Dim> sizes(std::size_t i) const;
  /// The same as numbers.
  std::vector<Index> numbers(std::size_t i) const;
  Index number(std::size_t i) const;
  /// The only element of the constant operand `i`.
  double scalar(std::size_t i) const;
  /// `axes` as the attribute (before version `from`) or the operand `i`; empty when neither is given.
  std::optional<std::vector<Index>> axes(Index from, std::size_t i);
  /// Elements (of rank 0 when `vector` is false) that are known now, as a value.
  Value known(DType dtype, std::vector<Dim> elements, bool vector);

 private:
  const AttributeProto* find(std::string_view name, AttributeType type);

  Importer* importer_;
  const NodeProto* node_;
  Frame* frame_;
  Index opset_;
  std::vector<std::optional<Value>> in_;
  std::set<std::string_view> asked_;
};

/// Text out of the file, in quotes and fit for a message.
inline std::string in_quotes(std::string_view text) { return quote(text, 80); }
/// Axis in [-rank, rank) as its non-negative form; throws Error otherwise.
Index axis_of(Index axis, Index rank);

}  // namespace rlx::onnx
