// The state of an import: names, symbols, what has failed; and what an operator's function sees of it.
#pragma once

#include <functional>
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

/// What a name stands for: a tensor, a list of tensors that the importer knows one by one, or an optional one of both.
struct Item {
  Values values;  // the tensor, or the elements of the sequence
  bool sequence = false, optional = false, none = false;

  Item() = default;
  Item(Value tensor) : values{tensor} {}
  static Item list(Values elements) {
    Item i;
    i.values = std::move(elements);
    i.sequence = true;
    return i;
  }
  bool tensor() const { return !sequence && !optional; }
};
using Items = std::vector<Item>;
/// `a sequence`, `an optional value`, `a tensor`.
std::string_view kind_of(const Item& item);

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
  Items (*make_items)(NodeArgs&) = nullptr;  // instead of `make`, for operators on sequences and optional values
};
using OperatorRows = std::span<const OperatorRow>;
// Families of operators, a file each: X(family, domain) for FAMILY_rows().
// clang-format off
#define RLX_ONNX_FAMILIES(X) \
  X(activation, "") \
  X(arithmetic, "") \
  X(attention, "") \
  X(cast, "") \
  X(control, "") \
  X(convolution, "") \
  X(curve, "") \
  X(einsum, "") \
  X(found, "") \
  X(image, "") \
  X(integer_convolution, "") \
  X(linear_attention, "") \
  X(loss, "") \
  X(movement, "") \
  X(ngram, "") \
  X(product, "") \
  X(quantized, "") \
  X(random, "") \
  X(recurrent, "") \
  X(reduce, "") \
  X(resample, "") \
  X(sampling, "") \
  X(select, "") \
  X(sequence, "") \
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

inline constexpr Index oldest_opset = 6, newest_opset = 28;

/// A graph that is being made: the model's, or a body inside of it.
struct Level {
  Builder builder;
  Level* outer = nullptr;
  std::map<Operand, Value> inner;                              // values of the outer level, as they appear here
  Values captures;                                             // those that became inputs, in order
  std::size_t charged = 0;                                     // nodes that are accounted for
  std::unordered_map<Operand, Tensor, OperandHash> evaluated;  // values that follow from constants
};

/// Names of a graph or a function body, and what they stand for.
struct Scope {
  Scope* parent = nullptr;
  Level* level = nullptr;  // whose values they are
  struct Entry {
    std::optional<Item> value;                 // empty: it comes from a node that failed, or is not loaded yet
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
  /// A record of what was added, for those who want all of them.
  void keep(OnnxProblem problem) { problems_.push_back(std::move(problem)); }
  const std::vector<OnnxProblem>& problems() const { return problems_; }
  void skip() { ++skipped_; }
  bool empty() const { return groups_.empty(); }
  /// Whether the two have heard of equally many failures.
  bool same(const Failures& other) const { return count_ == other.count_ && skipped_ == other.skipped_; }
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
  std::vector<OnnxProblem> problems_;
  std::size_t count_ = 0, skipped_ = 0;
};

class Importer {
 public:
  Importer(const ModelProto& model, TensorLoader& loader, const OnnxOptions& options, const DimSymbols& closer);

  Graph run();

  Builder& builder() { return level_->builder; }
  TensorLoader& loader() { return *loader_; }
  const ModelProto& model() const { return *model_; }

  /// Imports the nodes of a body.
  void nodes(const std::vector<NodeProto>& list, Frame& frame);
  /// Adds the names of a graph's initialisers.
  void initializers(const GraphProto& graph, Scope& scope);
  /// What a name stands for, in the graph that is being made; nothing when it comes from a node that failed. Throws
  /// Error for a name that is not defined.
  std::optional<Item> find(std::string_view name, const Frame& frame, const NodeProto* reader);
  /// Imports the nodes of a graph inside of a node into the graph that is being made; gives its outputs.
  Items inline_graph(const GraphProto& graph, Frame& frame, const Items& inputs);
  /// A graph with inputs of these types and of what `build` reads of the values around, which are `captures`.
  struct Body {
    Graph graph;
    Values captures;
  };
  Body body(std::span<const TensorType> types, const std::function<Values(std::span<const Value>)>& build);
  /// What stands in the report of failures. `again` after a failed attempt forgets what it added.
  Failures& failures() { return failures_; }
  /// The value, computed from constants and known sizes; nothing when it depends on data or takes too long.
  std::optional<Tensor> computed(Value v) const;
  /// Whether a condition holds for all data, or for none.
  std::optional<bool> decided(Value condition, int depth = 0) const;
  /// Elements of a small integer or boolean tensor of rank 0 or 1 as sizes, where they are known.
  std::optional<std::vector<Dim>> known(Value v) const;
  /// The tensor of a value that is a constant, or follows from few small constants by few nodes, or null.
  const Tensor* constant_of(Value v) const;

 private:
  const Tensor* evaluated(Value v) const;
  Value input(const ValueInfo& info);
  Value fixed(const ValueInfo& info, const Tensor& value);
  Index asked_size(const ValueInfo& info, std::size_t axis) const;
  void take_shapes();
  Dim dimension(const ValueInfo& info, std::size_t axis);
  Dim symbol(std::string_view name, std::string fallback);
  void node(const NodeProto& n, Frame& frame);
  Item declared(const ValueInfo& info);
  void failed(const NodeProto& n, Index opset, const std::string& why, const std::vector<std::string>& types);
  std::optional<std::vector<std::optional<Item>>> operands(const NodeProto& n, Frame& frame, Index opset);
  std::optional<Items> results(const NodeProto& n, Frame& frame, Index opset);
  Items call(const FunctionProto& f, const NodeProto& n, Frame& frame);
  void define(std::string_view name, std::optional<Item> value, Frame& frame);
  Item sequence_input(const ValueInfo& info);
  void output(const ValueInfo& info, const Frame& frame, Values& values, std::vector<std::string>& names);
  Value lift(Level& level, Value v);
  Index opset_of(const NodeProto& n, const Frame& frame) const;
  const FunctionProto* function_of(const NodeProto& n) const;
  void charge(std::size_t work);
  void charge_new_nodes();
  void check_options() const;

  const ModelProto* model_;
  TensorLoader* loader_;
  const OnnxOptions* options_;
  DimSymbols closer_;
  Level base_;
  Level* level_ = &base_;
  Failures failures_;
  std::map<std::string, Dim, std::less<>> symbols_;      // by the file's name
  std::set<std::string, std::less<>> identifiers_;       // in use
  std::map<std::string, int, std::less<>> next_suffix_;  // of identifiers that would be equal
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*> functions_;
  std::size_t node_count_ = 0, work_ = 0;
  std::vector<std::size_t> position_;  // of the node that is imported, outermost first
};

/// One node, as its operator's function sees it. Errors of every kind become the node's failure.
class NodeArgs {
 public:
  NodeArgs(Importer& importer, const NodeProto& node, Frame& frame, Index opset, std::vector<std::optional<Item>> in);

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
  /// Operand `i` of any kind; throws Error when it is left out.
  const Item& item(std::size_t i) const;
  bool has_item(std::size_t i) const { return i < items_.size() && items_[i].has_value(); }
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
  std::optional<std::vector<std::string>> strings(std::string_view name);
  std::optional<Tensor> tensor(std::string_view name);
  const GraphProto& graph(std::string_view name);
  /// Takes an attribute that changes nothing of the result.
  void ignore(std::string_view name) { given(name); }
  /// Throws Error naming an attribute that nobody asked for.
  void finish() const;

  /// Elements of the integer or boolean operand `i` as sizes; throws Error when they depend on data.
  std::vector<Dim> sizes(std::size_t i) const;
  /// The same, or, where they depend on data, sizes that a run finds; each must then be 0 or more.
  std::vector<Dim> found_sizes(std::size_t i);
  /// The elements of `sizes` as numbers.
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
  std::vector<std::optional<Value>> in_;  // operands that are tensors
  std::vector<std::optional<Item>> items_;
  std::set<std::string_view> asked_;
};

/// A node that cannot be imported, with the types of its operands as far as they are known.
OnnxProblem problem_of(const WireFile& file, const NodeProto& node, Index opset, const std::string& why,
                       const std::vector<std::string>& types);

/// The key of a node's random numbers: of its seed, or, without one, of the name of its result.
Value random_key(NodeArgs& n);
/// Text out of the file, in quotes and fit for a message.
inline std::string in_quotes(std::string_view text) { return quote(text, 80); }
/// Axis in [-rank, rank) as its non-negative form; throws Error otherwise.
Index axis_of(Index axis, Index rank);

}  // namespace rlx::onnx
