// Indices as linear forms of coordinates.
#include "io/onnx/grid.h"

#include <algorithm>

#include "ops/broadcast/broadcast.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

constexpr int deepest_form = 16;

/// An integer tensor whose elements are the sum over all axes of slope times coordinate.
using Slopes = std::vector<Dim>;

class Forms {
 public:
  explicit Forms(Importer& importer) : importer_(importer), builder_(importer.builder()) {}

  std::optional<Slopes> of(Value v, int depth = 0) {
    if (depth > deepest_form || !is_integer(v.dtype())) return std::nullopt;
    const Node& n = builder_.graph().nodes[v.at.node];
    Slopes none(v.type().dims.size(), Dim(0));
    const auto known = importer_.known(v);
    if (known && std::ranges::all_of(*known, [](const Dim& d) { return d == Dim(0); })) return none;
    const auto operand = [&](std::size_t i) { return Value{&builder_, n.operands[i]}; };
    if (n.op == &iota_op) {
      const auto& a = n.attrs.as<IotaAttrs>();
      none[static_cast<std::size_t>(v.type().axis(a.axis))] = 1;
      return none;
    }
    if (n.op == &reshape_op) return regrouped(of(operand(0), depth + 1), operand(0).type().dims, v.type().dims);
    if (n.op == &broadcast_op) return stretched(of(operand(0), depth + 1), operand(0).type().dims, v.type().dims);
    if (n.op->name() == "add") {
      const auto a = stretched(of(operand(0), depth + 1), operand(0).type().dims, v.type().dims);
      const auto b = stretched(of(operand(1), depth + 1), operand(1).type().dims, v.type().dims);
      if (!a || !b) return std::nullopt;
      for (std::size_t i = 0; i < none.size(); ++i) none[i] = (*a)[i] + (*b)[i];
      return none;
    }
    if (n.op->name() == "mul") return scaled(operand(0), operand(1), v, depth);
    return std::nullopt;
  }

 private:
  std::optional<Slopes> scaled(Value a, Value b, Value v, int depth) {
    for (const auto& [x, factor] : {std::pair(a, b), std::pair(b, a)}) {
      const auto known = importer_.known(factor);
      if (!known || known->size() != 1) continue;
      auto slopes = stretched(of(x, depth + 1), x.type().dims, v.type().dims);
      if (!slopes) return std::nullopt;
      for (Dim& s : *slopes) s = s * known->front();
      return slopes;
    }
    return std::nullopt;
  }

  // Under sizes that differ in axes of size 1 only.
  static std::optional<Slopes> regrouped(const std::optional<Slopes>& slopes, const std::vector<Dim>& from,
                                         const std::vector<Dim>& to) {
    if (!slopes) return std::nullopt;
    Slopes result(to.size(), Dim(0));
    std::size_t at = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] == Dim(1)) continue;
      while (at < to.size() && to[at] == Dim(1)) ++at;
      if (at == to.size() || to[at] != from[i]) return std::nullopt;
      result[at++] = (*slopes)[i];
    }
    return result;
  }

  static std::optional<Slopes> stretched(const std::optional<Slopes>& slopes, const std::vector<Dim>& from,
                                         const std::vector<Dim>& to) {
    if (!slopes) return std::nullopt;
    Slopes result(to.size(), Dim(0));
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] != Dim(1)) result[i + to.size() - from.size()] = (*slopes)[i];
    }
    return result;
  }

  Importer& importer_;
  Builder& builder_;
};

// `x`, whose first sizes are `lead`, with these at axes `places` (ascending) of `heads` and the rest behind.
Value placed(Value x, const std::vector<Dim>& lead, const std::vector<std::size_t>& places, std::vector<Dim> heads,
             const std::vector<Dim>& rest) {
  std::vector<Dim> apart(heads.size(), Dim(1));
  for (std::size_t i = 0; i < lead.size(); ++i) apart[places[i]] = lead[i];
  apart.insert(apart.end(), rest.begin(), rest.end());
  heads.insert(heads.end(), rest.begin(), rest.end());
  return broadcast(reshape(x, std::move(apart)), std::move(heads));
}

}  // namespace

std::optional<Value> gather_of_grid(Importer& importer, Value table, Value indices) {
  Builder& b = importer.builder();
  const Node& n = b.graph().nodes[table.at.node];
  if (n.op != &reshape_op || table.rank() == 0) return std::nullopt;
  const Value x{&b, n.operands[0]};
  const auto slopes = Forms(importer).of(indices);
  if (!slopes) return std::nullopt;
  const std::vector<Dim>& heads = indices.type().dims;
  std::vector<Dim> lead;  // the axes of x that the table joins, without those of size 1
  Dim joined = 1;
  for (const Dim& d : x.type().dims) {
    if (joined == table.dim(0)) break;
    joined = joined * d;
    if (d != Dim(1)) lead.push_back(d);
  }
  if (joined != table.dim(0) || lead.size() < 2) return std::nullopt;
  std::vector<std::size_t> places;
  Dim stride = joined;
  for (std::size_t i = 0, at = 0; i < lead.size(); ++i) {
    stride = floordiv(stride, lead[i]);
    while (at < heads.size() && (*slopes)[at] == Dim(0)) ++at;
    if (at == heads.size() || (*slopes)[at] != stride || heads[at] != lead[i]) return std::nullopt;
    places.push_back(at++);
  }
  for (std::size_t at = places.back() + 1; at < heads.size(); ++at) {
    if ((*slopes)[at] != Dim(0)) return std::nullopt;
  }
  return placed(x, lead, places, heads, {table.type().dims.begin() + 1, table.type().dims.end()});
}

std::optional<Value> gather_of_grid(Importer& importer, Value x, std::span<const Value> columns) {
  Forms forms(importer);
  std::vector<std::size_t> places;
  const std::vector<Dim>& heads = columns[0].type().dims;
  const auto k = static_cast<std::ptrdiff_t>(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto slopes = forms.of(columns[i]);
    if (!slopes) return std::nullopt;
    std::optional<std::size_t> place;
    for (std::size_t at = 0; at < heads.size(); ++at) {
      if ((*slopes)[at] == Dim(0)) continue;
      if (place || (*slopes)[at] != Dim(1) || heads[at] != x.type().dims[i]) return std::nullopt;
      place = at;
    }
    if (!place || (!places.empty() && *place <= places.back())) return std::nullopt;
    places.push_back(*place);
  }
  const std::vector<Dim>& dims = x.type().dims;
  return placed(x, {dims.begin(), dims.begin() + k}, places, heads, {dims.begin() + k, dims.end()});
}

}  // namespace rlx::onnx
