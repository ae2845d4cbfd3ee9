// Recognises layer_norm and rms_norm: the normalised value first, then scale, shift and the casts of half models as
// they follow.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ir/rewrite.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/reshape/reshape.h"
#include "passes/pattern.h"
#include "passes/recognise.h"

namespace rlx {

namespace {

using namespace pattern;

constexpr Var x{0}, middle{1}, spread{2}, epsilon{3}, gamma{4};

// `p` over its root mean square: alone, and with gamma among the factors.
std::vector<Pattern> normalised(const Pattern& p) {
  const Pattern e = where(epsilon, [](const Matcher& m, Operand o) { return scalar_number(m.graph(), o).has_value(); });
  const Pattern variance = op("add", {reduced(ReduceKind::mean, square(p), spread), e});
  const Pattern root = either({op("sqrt", {variance}), op("pow", {variance, number(0.5)})});
  return {either({op("div", {p, root}), product(1, {p, inverse_root(variance)})}),
          either({op("div", {product(1, {p, gamma}), root}), product(1, {p, inverse_root(variance), gamma})})};
}

struct Forms {
  std::vector<Pattern> layer, rms;
};

Forms forms() {
  const Pattern mean = reduced(ReduceKind::mean, x, middle);
  return {normalised(either({op("sub", {x, mean}), op("add", {x, op("neg", {mean})})})), normalised(x)};
}

// What a node of the old graph computes; operands are old ones, and may be of a wider type than `dtype`.
struct Norm {
  const Op<NormAttrs>* op = nullptr;
  NormAttrs attrs;
  Operand x;
  std::vector<Operand> parameters = {};  // gamma, beta
  bool unit = false;                     // gamma is 1 and left out
};

bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

Value ones(Builder& b, DType dtype, std::span<const Dim> dims) {
  std::vector<Index> shape;
  for (const Dim& d : dims) shape.push_back(d.constant());
  Tensor t(dtype, std::move(shape));
  store(t, std::vector<double>(static_cast<std::size_t>(t.count()), 1.0));
  return constant(b, std::move(t));
}

class NormRecogniser {
 public:
  explicit NormRecogniser(const Graph& g) : g_(g), m_(g) {}

  std::optional<Values> visit(Rewriter& r, Id id);
  std::size_t found = 0;

 private:
  std::optional<Norm> written_at(Id id);
  std::optional<Norm> written_as(Id id, const Op<NormAttrs>& op, const std::vector<Pattern>& patterns);
  std::optional<Norm> given_at(Id id) const;
  std::optional<Norm> narrowed_at(Id id) const;
  std::optional<Norm> affine_at(Id id) const;
  const Norm* alone(Operand norm, Id reader) const;
  bool is_row(Operand parameter, const Norm& n) const;

  const Graph& g_;
  Matcher m_;
  std::unordered_map<Id, Norm> norms_;
};

// The first of the reduced axes, from the end, when they are the trailing ones.
std::optional<Index> first_axis(const Graph& g, Operand reduction, Index rank) {
  const std::vector<Index> axes = reduced_axes(g, reduction);
  const bool trailing = !axes.empty() && axes.back() == rank - 1;
  const bool adjacent = trailing && axes.back() - axes.front() + 1 == static_cast<Index>(axes.size());
  return adjacent ? std::optional(axes.front() - rank) : std::nullopt;
}

std::optional<Norm> NormRecogniser::written_as(Id id, const Op<NormAttrs>& op, const std::vector<Pattern>& patterns) {
  const TensorType& type = g_.nodes[id].results[0];
  for (const Pattern& p : patterns) {
    if (!m_.match(p, {id, 0}) || !m_.same_type(x, {id, 0})) continue;
    const std::optional<Index> axis = first_axis(g_, m_[spread], type.rank());
    if (!axis || (m_.has(middle) && first_axis(g_, m_[middle], type.rank()) != axis)) continue;
    const double e = *scalar_number(g_, m_[epsilon]);
    const auto row = std::span(type.dims).last(static_cast<std::size_t>(-*axis));
    if (!std::isfinite(e) || e < 0 || product(row).bounds().hi <= 0) continue;
    Norm n{&op, {*axis, shortest(e, type.dtype)}, m_[x]};
    if (m_.has(gamma) && !is_row(m_[gamma], n)) continue;
    if (m_.has(gamma)) n.parameters.push_back(m_[gamma]);
    return n;
  }
  return std::nullopt;
}

std::optional<Norm> NormRecogniser::written_at(Id id) {
  static const Forms all = forms();
  const std::string_view name = g_.nodes[id].op->name();
  if ((name != "mul" && name != "div") || !is_arithmetic_float(g_.nodes[id].results[0].dtype)) return std::nullopt;
  std::optional<Norm> n = written_as(id, layer_norm_op, all.layer);
  return n ? n : written_as(id, rms_norm_op, all.rms);
}

// A node that is one of the ops already.
std::optional<Norm> NormRecogniser::given_at(Id id) const {
  const Node& n = g_.nodes[id];
  const Op<NormAttrs>* op = n.op == &layer_norm_op ? &layer_norm_op : n.op == &rms_norm_op ? &rms_norm_op : nullptr;
  if (!op) return std::nullopt;
  return Norm{op, n.attrs.as<NormAttrs>(), n.operands[0], {n.operands.begin() + 1, n.operands.end()}};
}

const Norm* NormRecogniser::alone(Operand norm, Id reader) const {
  const auto at = norms_.find(norm.node);
  return at != norms_.end() && m_.only_reader(norm.node, reader) ? &at->second : nullptr;
}

// Sizes of the normalised axes, with leading 1s or not; or one constant for all of them.
bool NormRecogniser::is_row(Operand parameter, const Norm& n) const {
  const TensorType &t = g_.type(parameter), &of = g_.type(n.x);
  const std::span row = std::span(of.dims).subspan(static_cast<std::size_t>(of.axis(n.attrs.axis)));
  if (t.encoding || t.dims.size() > of.dims.size()) return false;
  if (t.count() == Dim(1) && scalar_number(g_, parameter)) return true;
  if (t.dims.size() < row.size()) return false;
  const std::size_t leading = t.dims.size() - row.size();
  return std::all_of(t.dims.begin(), t.dims.begin() + static_cast<Index>(leading),
                     [](const Dim& d) { return d == Dim(1); }) &&
         std::ranges::equal(std::span(t.dims).subspan(leading), row);
}

// A norm in f32 of a widened half value, rounded to its type: what the op means for that type.
std::optional<Norm> NormRecogniser::narrowed_at(Id id) const {
  const Node& n = g_.nodes[id];
  const DType to = n.results[0].dtype;
  const Norm* inner = n.op == &cast_op && is_half(to) ? alone(n.operands[0], id) : nullptr;
  if (!inner || g_.type(n.operands[0]).dtype != DType::f32) return std::nullopt;
  Norm narrow = *inner;
  std::vector<Operand*> all{&narrow.x};
  for (Operand& p : narrow.parameters) all.push_back(&p);
  for (Operand* o : all) {
    if (!m_.is(*o, "cast") || g_.type(m_.node(*o).operands[0]).dtype != to) return std::nullopt;
    *o = m_.node(*o).operands[0];
  }
  return narrow;
}

// A norm times its scale, or a scaled one plus its shift.
std::optional<Norm> NormRecogniser::affine_at(Id id) const {
  const Node& n = g_.nodes[id];
  const bool scale = m_.is({id, 0}, "mul");
  if (!scale && !m_.is({id, 0}, "add")) return std::nullopt;
  for (const auto& [norm, parameter] : {std::pair(n.operands[0], n.operands[1]), {n.operands[1], n.operands[0]}}) {
    const Norm* inner = alone(norm, id);
    if (!inner || norm == parameter || g_.type(norm) != n.results[0]) continue;
    const bool shift = !scale && !inner->unit && inner->op == &layer_norm_op && inner->parameters.size() < 2;
    const bool unit = shift && inner->parameters.empty();
    if (!(scale ? inner->parameters.empty() : shift) || (unit && !g_.type(parameter).is_constant()) ||
        !is_row(parameter, *inner) || g_.type(parameter).dtype != n.results[0].dtype)
      continue;
    Norm extended = *inner;
    extended.parameters.push_back(parameter);
    extended.unit = unit;
    return extended;
  }
  return std::nullopt;
}

std::optional<Values> NormRecogniser::visit(Rewriter& r, Id id) {
  std::optional<Norm> n = given_at(id);
  if (n) {
    norms_.emplace(id, std::move(*n));
    return std::nullopt;
  }
  n = narrowed_at(id);
  if (!n) n = affine_at(id);
  if (!n) n = written_at(id);
  if (!n) return std::nullopt;
  const Value of = r.value(n->x);
  const std::span row = std::span(of.type().dims).subspan(static_cast<std::size_t>(of.type().axis(n->attrs.axis)));
  Values operands{of};
  if (n->unit) operands.push_back(ones(r.builder(), of.dtype(), row));
  for (const Operand p : n->parameters) {
    const std::vector<Dim> dims(row.begin(), row.end());
    const Value v = r.value(p);
    const bool stretched = v.type().count() == Dim(1) && product(dims) != Dim(1);
    operands.push_back(stretched ? broadcast(reshape(v, {}), dims) : reshape(v, dims));
  }
  Values made = r.builder().emit(*n->op, Attrs(n->attrs), operands);
  norms_.emplace(id, std::move(*n));
  ++found;
  return made;
}

}  // namespace

Graph recognise_norms(const Graph& g, PassContext& context) {
  if (!holds(g, {"reduce"}) && !holds(g, {"layer_norm"}) && !holds(g, {"rms_norm"})) return g;
  NormRecogniser all(g);
  Graph result = rewrite(g, [&](Rewriter& r, Id id) { return all.visit(r, id); });
  if (all.found == 0) return g;
  result = drop_dead(result);
  const auto is_norm = [](const Node& n) { return n.op == &layer_norm_op || n.op == &rms_norm_op; };
  context.remark(fmt::format("{} norms in the graph", std::ranges::count_if(result.nodes, is_norm)));
  return result;
}

}  // namespace rlx
