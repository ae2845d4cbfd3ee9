// Names, symbols, nodes in order, and the one report of what cannot be imported.
#include "io/onnx/importer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "core/error.h"
#include "ops/constant/constant.h"

namespace rlx::onnx {

namespace {

// Steps of the import, in bytes of sizes' text and of nodes made: what a file may cost beyond its own size.
constexpr std::size_t most_work = std::size_t{128} << 20;
constexpr std::size_t most_groups = 60, most_names = 4, longest_reason = 400;
constexpr std::size_t most_opsets = 100;
constexpr int deepest_call = 24;

const OperatorRow* row_of(std::string_view domain, std::string_view name) {
  static const auto table = [] {
    std::map<std::pair<std::string_view, std::string_view>, const OperatorRow*> all;
#define RLX_ROWS(family, domain) \
  for (const OperatorRow& r : family##_rows()) all.emplace(std::pair(std::string_view(domain), r.name), &r);
    RLX_ONNX_FAMILIES(RLX_ROWS)
#undef RLX_ROWS
    return all;
  }();
  const auto it = table.find({domain, name});
  return it == table.end() ? nullptr : it->second;
}

std::string node_name(const NodeProto& n) {
  if (!n.name.empty()) return in_quotes(n.name);
  for (const std::string_view o : n.outputs) {
    if (!o.empty()) return "that makes " + in_quotes(o);
  }
  return "without name";
}

// Throws Error when the bytes of a tensor of this type are no number, sizes being their least.
void check_size(const TensorType& t) {
  std::vector<Index> least;
  for (const Dim& d : t.dims) least.push_back(std::max<Index>(d.bounds().lo, 0));
  storage_bytes(t.dtype, checked_product(least, t.text()));
}

std::size_t text_size(std::span<const Dim> dims) {
  std::size_t n = 0;
  for (const Dim& d : dims) n += d.is_constant() ? 16 : 16 + d.text().size();
  return n;
}

std::vector<std::string> types_of(const std::vector<std::optional<Item>>& operands) {
  std::vector<std::string> all;
  for (const auto& item : operands) {
    all.push_back(!item ? "?" : item->tensor() ? item->values[0].type().text() : std::string(kind_of(*item)));
  }
  return all;
}

}  // namespace

void Failures::add(const NodeProto& node, Index opset, const std::string& why) {
  ++count_;
  std::string text =
      fmt::format("{}{}{} (version {}): {}", node.domain, node.domain.empty() ? "" : ".",
                  node.op.empty() ? "an operator without name" : node.op, opset, why.substr(0, longest_reason));
  auto it = by_text_.find(text);
  if (it == by_text_.end()) {
    if (groups_.size() >= most_groups) return;
    it = by_text_.emplace(text, groups_.size()).first;
    groups_.push_back({std::move(text), 0, {}});
  }
  Group& g = groups_[it->second];
  ++g.count;
  if (g.nodes.size() < most_names) g.nodes.push_back(node_name(node));
}

void Failures::report(const std::string& model, std::size_t nodes) const {
  std::string text = fmt::format("'{}': {} of {} nodes cannot be imported", model, count_, nodes);
  if (skipped_ > 0) text += fmt::format(", {} more read their results", skipped_);
  std::size_t listed = 0;
  for (const Group& g : groups_) {
    text += fmt::format("\n  {} x {}: node {}", g.count, g.text, g.nodes[0]);
    for (std::size_t i = 1; i < g.nodes.size(); ++i) text += ", " + g.nodes[i];
    if (g.count > g.nodes.size()) text += fmt::format(" and {} more", g.count - g.nodes.size());
    listed += g.count;
  }
  if (listed < count_) text += fmt::format("\n  and {} more", count_ - listed);
  throw Error(text);
}

Importer::Importer(const ModelProto& model, TensorLoader& loader, const OnnxOptions& options, const DimSymbols& closer)
    : model_(&model), loader_(&loader), options_(&options), closer_(closer) {
  for (const FunctionProto& f : model.functions) {
    const bool added = functions_.emplace(std::tuple(f.domain, f.name, f.overload), &f).second;
    require(added, "'{}': function {} is there twice", model.file.name, in_quotes(f.name));
    require(f.opsets.size() <= most_opsets, "'{}': function {} imports more than {} operator sets", model.file.name,
            in_quotes(f.name), most_opsets);
  }
  require(model.opsets.size() <= most_opsets, "'{}' imports more than {} operator sets", model.file.name, most_opsets);
}

void Importer::charge(std::size_t work) {
  work_ += work;
  if (work_ <= most_work) return;
  throw NotWellFormed(fmt::format("'{}': the graph of {} nodes and the sizes in it take too much memory",
                                  model_->file.name, node_count_));
}

// What the nodes since the last call take.
void Importer::charge_new_nodes() {
  const Graph& g = level_->builder.graph();
  std::size_t work = 0;
  for (std::size_t& i = level_->charged; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    work += 200 + 16 * n.operands.size();
    for (std::uint32_t r = 0; r < n.results.size(); ++r) {
      work += text_size(n.results[r].dims);
      if (const auto it = g.values.find({static_cast<Id>(i), r}); it != g.values.end()) {
        work += text_size(it->second);
      }
    }
  }
  charge(work);
}

Dim Importer::symbol(std::string_view name, std::string fallback) {
  if (!name.empty()) {
    if (const auto it = symbols_.find(name); it != symbols_.end()) return it->second;
  }
  std::string id = (name.empty() ? std::move(fallback) : std::string(name)).substr(0, 40);
  for (char& c : id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  if (id.empty() || (id[0] >= '0' && id[0] <= '9')) id = "_" + id;
  for (const char* const word : {"floordiv", "ceildiv", "min", "max"}) {
    if (id == word) id += '_';
  }
  const std::string base = id;
  while (!identifiers_.insert(id).second)
    id = fmt::format("{}_{}", base, ++next_suffix_.try_emplace(base, 1).first->second);
  const auto& asked = options_->bounds;
  const auto it = asked.contains(name) ? asked.find(name) : asked.find(id);
  Bounds bounds = it == asked.end() ? options_->standard : it->second;
  if (const auto c = closer_.find(id); c != closer_.end()) bounds = c->second;
  const Dim d = Dim::symbol(id, bounds.lo, bounds.hi);
  if (!name.empty()) symbols_.emplace(name, d);
  return d;
}

// Whether a size is known by its number; some exporters write -1 for one that is not, or the name ?.
static bool is_number(const DimProto& d) { return d.kind == DimProto::Kind::value && d.value != -1; }
static bool is_named(const DimProto& d) { return d.kind == DimProto::Kind::name && d.name != "?"; }

// What the options say of a size; -1: nothing.
Index Importer::asked_size(const ValueInfo& info, std::size_t axis) const {
  const auto asked = options_->shapes.find(info.name);
  if (asked == options_->shapes.end()) return -1;
  require(asked->second.size() == info.dims.size(), "'{}': input {} has {} axes, a shape of {} is asked for",
          model_->file.name, in_quotes(info.name), info.dims.size(), asked->second.size());
  const Index size = asked->second[axis];
  require(size >= -1, "'{}': size {} of input {} is asked to be {}", model_->file.name, axis, in_quotes(info.name),
          size);
  return size;
}

// Named sizes that the options give stand for all sizes of that name.
void Importer::take_shapes() {
  for (const ValueInfo& info : model_->graph.inputs) {
    for (std::size_t axis = 0; axis < info.dims.size(); ++axis) {
      const Index size = asked_size(info, axis);
      if (size < 0 || !is_named(info.dims[axis])) continue;
      const auto [it, added] = symbols_.emplace(info.dims[axis].name, Dim(size));
      require(added || it->second == Dim(size), "'{}': {} is asked to be {} and {}", model_->file.name,
              in_quotes(info.dims[axis].name), it->second.text(), size);
    }
  }
}

Dim Importer::dimension(const ValueInfo& info, std::size_t axis) {
  const DimProto& d = info.dims[axis];
  const Index size = asked_size(info, axis);
  require(size < 0 || !is_number(d) || size == d.value, "'{}': size {} of input {} is {}, asked to be {}",
          model_->file.name, axis, in_quotes(info.name), d.value, size);
  if (size >= 0) return {size};
  if (!is_number(d)) {
    return symbol(is_named(d) ? d.name : std::string_view(), fmt::format("{}_{}", info.name, axis));
  }
  require(d.value >= 0, "'{}': input {} has the size {} along axis {}", model_->file.name, in_quotes(info.name),
          d.value, axis);
  return {d.value};
}

Value Importer::input(const ValueInfo& info) {
  const auto& file = model_->file.name;
  require(info.kind == "tensor", "'{}': input {} is {}, expected a tensor", file, in_quotes(info.name),
          info.kind.empty() ? std::string("of no stated type") : fmt::format("a {}", info.kind));
  const auto dtype = dtype_of(info.type);
  require(dtype.has_value(), "'{}': input {} has element type {}, which rlx does not have", file, in_quotes(info.name),
          element_name(info.type));
  require(info.has_shape, "'{}': input {} has no declared shape", file, in_quotes(info.name));
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < info.dims.size(); ++i) dims.push_back(dimension(info, i));
  TensorType type(*dtype, std::move(dims));
  check_size(type);
  return level_->builder.input(info.name, std::move(type));
}

// An input that the caller has fixed to a value, which must be one that the file allows.
Value Importer::fixed(const ValueInfo& info, const Tensor& value) {
  const auto& file = model_->file.name;
  const bool type = info.kind == "tensor" && dtype_of(info.type) == value.dtype();
  bool sizes = !info.has_shape || value.rank() == static_cast<Index>(info.dims.size());
  for (std::size_t i = 0; sizes && info.has_shape && i < info.dims.size(); ++i) {
    sizes = info.dims[i].kind != DimProto::Kind::value || info.dims[i].value == value.shape()[i];
  }
  require(type && sizes, "'{}': input {} is fixed to a tensor {}, which is not what the file declares", file,
          in_quotes(info.name), value.type().text());
  return constant(level_->builder, value);
}

void Importer::initializers(const GraphProto& graph, Scope& scope) {
  for (const TensorProto& t : graph.initializers) {
    require(!t.name.empty(), "'{}': an initializer has no name", model_->file.name);
    const bool added = scope.names.try_emplace(t.name, Scope::Entry{{}, &t}).second;
    require(added, "'{}': initializer {} is there twice", model_->file.name, in_quotes(t.name));
  }
  for (const std::string_view s : graph.sparse_initializers) {
    fail("'{}': initializer {} is sparse, which is not supported", model_->file.name, in_quotes(s));
  }
}

void Importer::check_options() const {
  for (const auto& [name, shape] : options_->shapes) {
    const bool there = std::ranges::any_of(model_->graph.inputs, [&](const ValueInfo& i) { return i.name == name; });
    require(there, "'{}' has no input called {}, which has a shape in the options", model_->file.name, in_quotes(name));
  }
  for (const auto& [name, value] : options_->fixed) {
    const bool there = std::ranges::any_of(model_->graph.inputs, [&](const ValueInfo& i) { return i.name == name; });
    require(there, "'{}' has no input called {}, which is to be fixed", model_->file.name, in_quotes(name));
  }
  for (const auto& [name, types] : options_->sequences) {
    const bool there = std::ranges::any_of(model_->graph.inputs, [&](const ValueInfo& i) { return i.name == name; });
    require(there, "'{}' has no input called {}, whose elements are given", model_->file.name, in_quotes(name));
  }
  for (const auto& [name, bounds] : options_->bounds) {
    if (symbols_.contains(name) || identifiers_.contains(name)) continue;
    std::string all;
    for (const std::string& id : identifiers_) all += (all.empty() ? "" : ", ") + id;
    fail("'{}' has no size called {}, its sizes are {}", model_->file.name, in_quotes(name), all);
  }
}

Graph Importer::run() {
  const GraphProto& g = model_->graph;
  const std::string& file = model_->file.name;
  require(model_->ir_version >= 3, "'{}' has IR version {}, 3 and newer are read", file, model_->ir_version);
  Scope scope{nullptr, level_, {}};
  initializers(g, scope);
  take_shapes();
  std::set<std::string_view> input_names;
  for (const ValueInfo& info : g.inputs) {
    require(!info.name.empty(), "'{}': an input has no name", file);
    require(input_names.insert(info.name).second, "'{}': input {} is declared twice", file, in_quotes(info.name));
    if (scope.names.contains(info.name)) continue;  // an initialiser, which older files list as inputs too
    try {
      scope.names.emplace(info.name, Scope::Entry{declared(info), nullptr});
    } catch (const Error& e) {
      if (!options_->on_problem) throw;
      scope.names.emplace(info.name, Scope::Entry{std::nullopt, nullptr});
      failures_.keep({.name = std::string(info.name), .why = e.what()});
    }
  }
  check_options();
  Frame frame{&scope, model_->opsets, {}, false, 0};
  nodes(g.nodes, frame);
  for (const OnnxProblem& p : failures_.problems()) options_->on_problem(p);
  if (!failures_.empty()) failures_.report(file, node_count_);
  for (const OnnxProblem& p : failures_.problems()) throw Error(p.why);
  require(!g.outputs.empty(), "'{}': the graph has no outputs", file);
  Values outputs;
  std::vector<std::string> names;
  for (const ValueInfo& info : g.outputs) output(info, frame, outputs, names);
  require(!outputs.empty(), "'{}': all outputs are empty", file);
  return level_->builder.finish(outputs, std::move(names));
}

// What an input of the model stands for.
Item Importer::declared(const ValueInfo& info) {
  if (options_->sequences.contains(info.name)) return sequence_input(info);
  const auto fix = options_->fixed.find(info.name);
  return fix == options_->fixed.end() ? input(info) : fixed(info, fix->second);
}

// A tensor is one output; the elements of a sequence are outputs of their own, an empty optional value is none.
void Importer::output(const ValueInfo& info, const Frame& frame, Values& values, std::vector<std::string>& names) {
  const auto item = find(info.name, frame, nullptr);
  ensure(item.has_value(), "an output of a failed node");
  if (item->none) return;
  for (std::size_t i = 0; i < item->values.size(); ++i) {
    const Value v = item->values[i];
    const bool stated = info.kind == "tensor" && info.type != 0;
    require(!stated || dtype_of(info.type) == v.dtype(), "'{}': output {} is declared as {}, the graph makes {}",
            model_->file.name, in_quotes(info.name), element_name(info.type), name(v.dtype()));
    values.push_back(v);
    names.push_back(std::string(info.name) + (item->sequence ? "." + std::to_string(i) : ""));
  }
}

std::optional<Item> Importer::find(std::string_view name, const Frame& frame, const NodeProto* reader) {
  for (Scope* s = frame.scope; s; s = s->parent) {
    const auto it = s->names.find(name);
    if (it == s->names.end()) continue;
    Scope::Entry& entry = it->second;
    if (const TensorProto* t = std::exchange(entry.initializer, nullptr)) {  // a failure is not tried again
      entry.value = Item(constant(s->level->builder, loader_->load(*t)));
      charge_new_nodes();
    }
    if (!entry.value || s->level == level_) return entry.value;
    Item here = *entry.value;
    for (Value& v : here.values) v = lift(*level_, v);
    return here;
  }
  const std::string who = reader ? fmt::format("node {} ({})", node_name(*reader), reader->op) : "an output";
  throw NotWellFormed(
      fmt::format("'{}': {} reads {}, which nothing before it defines", model_->file.name, who, in_quotes(name)));
}

void Importer::define(std::string_view name, std::optional<Item> value, Frame& frame) {
  bool added = frame.scope->names.try_emplace(name, Scope::Entry{std::move(value), nullptr}).second;
  for (const Scope* s = frame.scope->parent; s; s = s->parent) added = added && !s->names.contains(name);
  if (!added)
    throw NotWellFormed(fmt::format("'{}': the name {} is defined twice", model_->file.name, in_quotes(name)));
}

Index Importer::opset_of(const NodeProto& n, const Frame& frame) const {
  Index version = -1;
  for (const OpsetImport& o : frame.opsets) {
    if (o.domain == n.domain) version = std::max(version, o.version);
  }
  return version;
}

const FunctionProto* Importer::function_of(const NodeProto& n) const {
  const auto it = functions_.find({n.domain, n.op, n.overload});
  return it == functions_.end() ? nullptr : it->second;
}

void Importer::nodes(const std::vector<NodeProto>& list, Frame& frame) {
  const std::size_t depth = position_.size();
  position_.push_back(0);
  try {
    for (const NodeProto& n : list) {
      node(n, frame);
      ++position_.back();
    }
  } catch (...) {
    position_.resize(depth);
    throw;
  }
  position_.pop_back();
}

void Importer::failed(const NodeProto& n, Index opset, const std::string& why, const std::vector<std::string>& types) {
  failures_.add(n, opset, why);
  if (!options_->on_problem) return;
  OnnxProblem p = problem_of(model_->file, n, opset, why, types);
  p.position = fmt::format("{}", fmt::join(position_, "."));
  failures_.keep(std::move(p));
}

void Importer::node(const NodeProto& n, Frame& frame) {
  ++node_count_;
  charge(100 + n.name.size());
  const Index opset = opset_of(n, frame);
  const auto made = results(n, frame, opset);
  charge_new_nodes();
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    if (n.outputs[i].empty()) continue;
    charge(100 + n.outputs[i].size());
    const bool there = made && i < made->size();
    define(n.outputs[i], there ? std::optional((*made)[i]) : std::nullopt, frame);
    if (there && (*made)[i].values.size() == 1)
      level_->builder.label((*made)[i].values[0], n.name.empty() ? n.outputs[i] : n.name);
  }
}

// The values that a node reads; nothing when one of them cannot be loaded, which is then noted.
std::optional<std::vector<std::optional<Item>>> Importer::operands(const NodeProto& n, Frame& frame, Index opset) {
  std::vector<std::optional<Item>> in;
  for (const std::string_view name : n.inputs) {
    in.emplace_back();
    if (name.empty()) continue;
    charge(16);
    try {
      in.back() = find(name, frame, &n);
    } catch (const NotWellFormed&) {
      throw;
    } catch (const Error& e) {
      failed(n, opset, e.what(), {});
      return std::nullopt;
    }
    if (!in.back()) continue;
    for (const Value& v : in.back()->values) {
      charge(8);
      if (const auto* elements = level_->builder.known(v)) charge(text_size(*elements));
    }
  }
  return in;
}

std::optional<Items> Importer::results(const NodeProto& n, Frame& frame, Index opset) {
  auto in = operands(n, frame, opset);
  if (!in) return std::nullopt;
  const FunctionProto* const function = function_of(n);
  const OperatorRow* const row = function ? nullptr : row_of(n.domain, n.op);
  const std::vector<std::string> types = options_->on_problem ? types_of(*in) : std::vector<std::string>();
  try {
    require(opset >= 0, "the model imports no operators of domain {}",
            n.domain.empty() ? std::string("'' (the standard ones)") : in_quotes(n.domain));
    require(function || row, "the operator is not supported");
    if (n.domain.empty()) {
      // An operator of a function that is older keeps its meaning.
      const Index oldest = row ? std::min(oldest_opset, row->since) : oldest_opset;
      require(opset >= oldest && opset <= newest_opset, "versions {} to {} are supported", oldest_opset, newest_opset);
    }
    if (row) require(opset >= row->since, "the operator exists from version {}", row->since);
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i].empty() || (*in)[i]) continue;
      failures_.skip();
      return std::nullopt;
    }
    if (function) return call(*function, n, frame);
    for (std::size_t i = 0; row->make && i < in->size(); ++i) {
      require(!(*in)[i] || (*in)[i]->tensor(), "operand {} is {}, expected a tensor", i,
              (*in)[i] ? kind_of(*(*in)[i]) : "");
    }
    NodeArgs args(*this, n, frame, opset, std::move(*in));
    Items out;
    if (row->make_items) {
      out = row->make_items(args);
    } else {
      for (const Value& v : row->make(args)) out.emplace_back(v);
    }
    args.finish();
    for (const Item& i : out) {
      for (const Value& v : i.values) check_size(v.type());
    }
    for (std::size_t i = out.size(); i < n.outputs.size(); ++i) {
      require(n.outputs[i].empty(), "result {} ({}) is not supported", i, in_quotes(n.outputs[i]));
    }
    return out;
  } catch (const NotWellFormed&) {
    throw;
  } catch (const Error& e) {
    failed(n, opset, e.what(), types);
    return std::nullopt;
  }
}

Items Importer::call(const FunctionProto& f, const NodeProto& n, Frame& frame) {
  require(frame.depth < deepest_call, "functions call each other deeper than {}: {} may call itself", deepest_call,
          in_quotes(f.name));
  require(n.inputs.size() <= f.inputs.size(), "{} operands are given to a function of {}", n.inputs.size(),
          f.inputs.size());
  require(n.outputs.size() <= f.outputs.size(), "{} results are asked of a function of {}", n.outputs.size(),
          f.outputs.size());
  Scope scope{nullptr, level_, {}};
  Frame inner{&scope, f.opsets, {}, true, frame.depth + 1};
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i].empty()) continue;
    define(f.inputs[i], find(n.inputs[i], frame, &n), inner);
  }
  charge(2000 + 64 * f.standard.size() + 16 * f.attributes.size() * (n.attributes.size() + 1));
  for (const AttributeProto& a : f.standard) inner.attributes[a.name] = &a;
  for (const AttributeProto& a : n.attributes) {
    const AttributeProto* given = &a;
    if (!a.reference.empty()) {
      const auto it = frame.attributes.find(a.reference);
      if (it == frame.attributes.end()) continue;
      given = it->second;
    }
    const bool declared = std::ranges::find(f.attributes, a.name) != f.attributes.end() ||
                          std::ranges::find(f.standard, a.name, &AttributeProto::name) != f.standard.end();
    require(declared, "attribute {} is none of the function's", in_quotes(a.name));
    inner.attributes[a.name] = given;
  }
  nodes(f.nodes, inner);
  Items out;
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    const auto v = find(f.outputs[i], inner, &n);
    require(v.has_value(), "a node of the function {} cannot be imported", in_quotes(f.name));
    out.push_back(*v);
  }
  return out;
}

const Tensor* Importer::constant_of(Value v) const {
  const Node& n = v.builder->graph().nodes[v.at.node];
  return n.op == &constant_op ? &n.attrs.as<ConstantAttrs>().data : evaluated(v);
}

std::optional<std::vector<Dim>> Importer::known(Value v) const {
  if (const auto* elements = v.builder->known(v)) return *elements;
  const Tensor* t = constant_of(v);
  const bool read =
      t && t->rank() <= 1 && t->count() <= 4096 && (is_integer(t->dtype()) || t->dtype() == DType::boolean);
  if (!read || t->dtype() == DType::u64) return std::nullopt;
  std::vector<Dim> elements;
  for (const std::int64_t x : load<std::int64_t>(*t)) elements.emplace_back(x);
  return elements;
}

}  // namespace rlx::onnx
