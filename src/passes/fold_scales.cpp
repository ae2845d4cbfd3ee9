// Takes what is done to the channels of a convolution into its weights: factors first, then one sum.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "ir/rewrite.h"
#include "ops/constant/constant.h"
#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/scalar/scalar.h"
#include "passes/match.h"
#include "passes/recognise.h"

namespace rlx {

namespace {

constexpr Index most_bytes = Index{64} << 20;  // of weights: they are copied

// y = conv * scale + shift, for each channel.
struct Chain {
  Id conv = 0, last = 0;
  std::vector<double> scale, shift;
  int steps = 0;
  bool scaled = false;
};

class ScaleFolder {
 public:
  explicit ScaleFolder(const Graph& g) : g_(g), live_(live_nodes(g)) {}

  bool collect() {
    for (Id id = 0; id < g_.nodes.size(); ++id) {
      if (!live_[id] || !has_weights(g_.nodes[id])) continue;
      Chain c = chain_of(id);
      if (c.steps > (c.scaled ? 0 : 1) && weights_of(c)) chains_.emplace(c.last, std::move(c));
    }
    return !chains_.empty();
  }
  std::size_t count() const { return chains_.size(); }

  std::optional<Values> visit(Rewriter& r, Id id) const {
    const auto at = chains_.find(id);
    if (at == chains_.end()) return std::nullopt;
    const Chain& c = at->second;
    const Node& n = g_.nodes[c.conv];
    const Value w = constant(r.builder(), *weights_of(c)), x = r.value(n.operands[0]);
    const auto& attrs = n.attrs.as<ConvAttrs>();
    const Value y = n.op == &conv_op ? conv(x, w, attrs) : conv_transpose(x, w, attrs);
    if (std::ranges::all_of(c.shift, [](double v) { return v == 0; })) return Values{y};
    std::vector<Index> dims(n.results[0].dims.size() - 1, 1);
    dims[0] = static_cast<Index>(c.shift.size());
    return Values{y + constant(r.builder(), Tensor::of<double>(y.dtype(), std::move(dims), c.shift))};
  }

 private:
  static bool has_weights_of(const Tensor* w) {
    return w && !w->type().encoding && (w->dtype() == DType::f32 || w->dtype() == DType::f64) && w->count() > 0 &&
           static_cast<Index>(w->bytes().size()) <= most_bytes;
  }
  bool has_weights(const Node& n) const {
    return (n.op == &conv_op || n.op == &conv_transpose_op) &&
           has_weights_of(match::constant_of(g_.nodes[n.operands[1].node]));
  }

  // The only live node that reads one that is no output.
  std::optional<Id> reader(Id id) const {
    if (g_.is_output(id)) return std::nullopt;
    std::optional<Id> found;
    for (const Id user : g_.users(id)) {
      if (!live_[user] || user == found) continue;
      if (found) return std::nullopt;
      found = user;
    }
    return found;
  }

  // The numbers of a constant for all channels; nothing when it has others.
  static std::vector<double> numbers(const Tensor* t, const TensorType& y) {
    const Dim& channels = y.dims[1];
    if (!t || t->type().encoding || !channels.is_constant() || t->rank() > y.rank()) return {};
    const std::vector<Index>& shape = t->shape();
    if (t->count() == 1) return std::vector<double>(static_cast<std::size_t>(channels.constant()), load<double>(*t)[0]);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const bool channel = i + y.dims.size() == shape.size() + 1;
      if (shape[i] != (channel ? channels.constant() : 1)) return {};
    }
    return load<double>(*t);
  }

  // Takes one more node, if it does something to every channel as a whole.
  bool extend(Chain& c, Id id) const {
    const Node& n = g_.nodes[id];
    const TensorType& y = g_.nodes[c.conv].results[0];
    if (n.operands.size() != 2 || n.results[0] != y) return false;
    const bool first = n.operands[0].node == c.last;
    const std::vector<double> by = numbers(match::constant_of(g_.nodes[n.operands[first ? 1 : 0].node]), y);
    if (by.empty() || n.operands[0] == n.operands[1]) return false;
    const std::string_view op = n.op->name();
    if (op != "add" && op != "mul" && !(first && (op == "sub" || op == "div"))) return false;
    for (std::size_t i = 0; i < by.size(); ++i) {
      if (op == "add") c.shift[i] += by[i];
      if (op == "sub") c.shift[i] -= by[i];
      if (op == "mul") c.scale[i] *= by[i], c.shift[i] *= by[i];
      if (op == "div") c.scale[i] /= by[i], c.shift[i] /= by[i];
    }
    c.scaled = c.scaled || op == "mul" || op == "div";
    c.last = id;
    ++c.steps;
    return true;
  }

  Chain chain_of(Id id) const {
    const Dim& channels = g_.nodes[id].results[0].dims[1];
    Chain c{id, id, {}, {}};
    if (!channels.is_constant()) return c;
    c.scale.assign(static_cast<std::size_t>(channels.constant()), 1);
    c.shift.assign(c.scale.size(), 0);
    for (auto next = reader(id); next && extend(c, *next);) next = reader(c.last);
    return c;
  }

  // The weights times the factors; nothing when one leaves the normal numbers, or a shift is none.
  std::optional<Tensor> weights_of(const Chain& c) const {
    const Node& n = g_.nodes[c.conv];
    const Tensor& w = *match::constant_of(g_.nodes[n.operands[1].node]);
    const bool wide = w.dtype() == DType::f64;
    const double least = wide ? std::numeric_limits<double>::min() : double{std::numeric_limits<float>::min()};
    const double most = wide ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
    const auto is_normal = [&](double v) { return std::fabs(v) >= least && std::fabs(v) <= most; };
    if (!std::ranges::all_of(c.scale, is_normal)) return std::nullopt;
    if (!std::ranges::all_of(c.shift, [&](double v) { return v == 0 || is_normal(v); })) return std::nullopt;
    std::vector<double> v = load<double>(w);
    const std::vector<Index>& shape = w.shape();
    Index taps = 1;
    for (std::size_t i = 2; i < shape.size(); ++i) taps *= shape[i];
    const Index groups = n.attrs.as<ConvAttrs>().groups, per_group = shape[0] / groups;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const Index filter = static_cast<Index>(i) / taps, first = filter / shape[1], second = filter % shape[1];
      const Index channel = n.op == &conv_op ? first : first / per_group * shape[1] + second;
      const double scaled = v[i] * c.scale[static_cast<std::size_t>(channel)];
      if (v[i] != 0 && !is_normal(scaled)) return std::nullopt;
      v[i] = scaled;
    }
    return Tensor::of<double>(w.dtype(), shape, v);
  }

  const Graph& g_;
  std::vector<bool> live_;
  std::unordered_map<Id, Chain> chains_;  // by their last node
};

}  // namespace

Graph fold_scales(const Graph& g, PassContext& context) {
  ScaleFolder all(g);
  if (!all.collect()) return g;
  context.remark(fmt::format("{} convolutions take factors and shifts of their channels", all.count()));
  return drop_dead(rewrite(g, [&](Rewriter& r, Id id) { return all.visit(r, id); }));
}

}  // namespace rlx
