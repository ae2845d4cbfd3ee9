// Conditions on positions: comparisons of coordinates, seen through reshape, broadcast, slices and sums, and constant
// triangles.
#include <algorithm>

#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"
#include "passes/recognise_mask.h"

namespace rlx::pattern {

namespace {

// An integer tensor whose elements are `constant` plus, along every axis, a multiple of the coordinate.
struct Affine {
  std::vector<Index> slope;
  Dim constant;
};

constexpr int deepest = 16;

std::optional<Affine> affine(const Graph& g, Operand o, int depth = 0);

// Slopes under `to` of the axes under `from`, which differ in axes of size 1 only.
std::optional<std::vector<Index>> regrouped(const std::vector<Index>& slope, const std::vector<Dim>& from,
                                            const std::vector<Dim>& to) {
  std::vector<Index> result(to.size(), 0);
  std::size_t at = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == Dim(1)) continue;
    while (at < to.size() && to[at] == Dim(1)) ++at;
    if (at == to.size() || to[at] != from[i]) return std::nullopt;
    result[at++] = slope[i];
  }
  while (at < to.size() && to[at] == Dim(1)) ++at;
  return at == to.size() ? std::optional(result) : std::nullopt;
}

// Right-aligned to `to`; stretched axes do not vary.
std::vector<Index> stretched(const std::vector<Index>& slope, const std::vector<Dim>& from,
                             const std::vector<Dim>& to) {
  std::vector<Index> result(to.size(), 0);
  const std::size_t shift = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != Dim(1)) result[i + shift] = slope[i];
  }
  return result;
}

std::optional<Affine> sum_of(const Graph& g, const Node& n, Index sign, int depth) {
  const std::optional<Affine> a = affine(g, n.operands[0], depth), b = affine(g, n.operands[1], depth);
  if (!a || !b) return std::nullopt;
  const std::vector<Dim>& to = n.results[0].dims;
  Affine r{stretched(a->slope, g.type(n.operands[0]).dims, to), a->constant + Dim(sign) * b->constant};
  const std::vector<Index> other = stretched(b->slope, g.type(n.operands[1]).dims, to);
  for (std::size_t i = 0; i < to.size(); ++i) r.slope[i] += sign * other[i];
  return r;
}

// 0, 1, 2, … along the only axis that is longer than 1, or one number.
std::optional<Affine> affine_constant(const Tensor& t) {
  if (t.type().encoding || !is_integer(t.dtype()) || t.count() == 0 || t.count() > (Index{1} << 20))
    return std::nullopt;
  Affine r{std::vector<Index>(t.shape().size(), 0), extend_integer(t.dtype(), t.code(0))};
  const auto longer = std::ranges::find(t.shape(), t.count());
  if (t.count() == 1) return r;
  if (longer == t.shape().end()) return std::nullopt;
  const Index first = extend_integer(t.dtype(), t.code(0)), step = extend_integer(t.dtype(), t.code(1)) - first;
  for (Index i = 1; i < t.count(); ++i) {
    if (extend_integer(t.dtype(), t.code(i)) != first + step * i) return std::nullopt;
  }
  r.slope[static_cast<std::size_t>(longer - t.shape().begin())] = step;
  return r;
}

std::optional<Affine> affine_move(const Graph& g, const Node& n, int depth) {
  const std::string_view name = n.op->name();
  std::optional<Affine> a = affine(g, n.operands[0], depth);
  if (!a) return std::nullopt;
  const std::vector<Dim>&from = g.type(n.operands[0]).dims, &to = n.results[0].dims;
  if (name == "reshape") {
    const auto slope = regrouped(a->slope, from, to);
    return slope ? std::optional(Affine{*slope, a->constant}) : std::nullopt;
  }
  if (name == "broadcast") return Affine{stretched(a->slope, from, to), a->constant};
  if (name == "transpose") {
    Affine r{{}, a->constant};
    for (const Index axis : n.attrs.as<TransposeAttrs>().order) {
      r.slope.push_back(a->slope[static_cast<std::size_t>(g.type(n.operands[0]).axis(axis))]);
    }
    return r;
  }
  const auto& s = n.attrs.as<SliceAttrs>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    a->constant = a->constant + Dim(a->slope[i]) * s.starts[i];
    a->slope[i] *= step_along(s.steps, i);
  }
  return a;
}

std::optional<Affine> affine(const Graph& g, Operand o, int depth) {
  const Node& n = g.nodes[o.node];
  const TensorType& type = g.type(o);
  const std::string_view name = n.op->name();
  if (depth > deepest || !is_integer(type.dtype) || bits(type.dtype) < 32) return std::nullopt;
  const auto known = g.values.find(o);
  if (known != g.values.end() && known->second.size() == 1 && type.count() == Dim(1)) {
    return Affine{std::vector<Index>(type.dims.size(), 0), known->second[0]};
  }
  if (name == "constant") return affine_constant(n.attrs.as<ConstantAttrs>().data);
  if (name == "iota") {
    Affine r{std::vector<Index>(type.dims.size(), 0), 0};
    r.slope[static_cast<std::size_t>(type.axis(n.attrs.as<IotaAttrs>().axis))] = 1;
    return r;
  }
  if (name == "add") return sum_of(g, n, 1, depth + 1);
  if (name == "sub") return sum_of(g, n, -1, depth + 1);
  if (name == "cast") return affine(g, n.operands[0], depth + 1);
  const bool moves = name == "reshape" || name == "broadcast" || name == "transpose" || name == "slice";
  return moves ? affine_move(g, n, depth + 1) : std::nullopt;
}

// slope_q * i + slope_k * j + constant <= 0, of coordinates along the last two axes.
std::optional<Positions> bound(const std::vector<Index>& slope, const Dim& constant) {
  const std::size_t rank = slope.size();
  if (rank < 2) return std::nullopt;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (slope[i] != 0) return std::nullopt;
  }
  const Index query = slope[rank - 2], key = slope[rank - 1];
  if (query == -1 && key == 1) return Positions{.upper = Dim(0) - constant, .lower = {}};
  if (query == 1 && key == -1) return Positions{.upper = {}, .lower = constant};
  return std::nullopt;
}

// A comparison as DIFFERENCE <= 0; the difference.
std::optional<Affine> difference(const Graph& g, const Node& n, bool shows_when) {
  const std::string_view name = n.op->name();
  const bool smaller = name.starts_with("less"), equal = name.ends_with("_equal");
  if (!smaller && !name.starts_with("greater")) return std::nullopt;
  std::optional<Affine> d = sum_of(g, n, -1, 0);
  if (!d) return std::nullopt;
  // a < b is d + 1 <= 0, a > b is 1 - d <= 0; the negation of e <= 0 is 1 - e <= 0.
  Index sign = smaller ? 1 : -1;
  d->constant = Dim(sign) * d->constant + (equal ? 0 : 1);
  if (!shows_when) {
    sign = -sign;
    d->constant = Dim(1) - d->constant;
  }
  for (Index& s : d->slope) s *= sign;
  return d;
}

// A constant that shows, in row i of its last two axes, the columns up to i.
bool is_triangle(const Graph& g, Operand o) {
  const Node& n = g.nodes[o.node];
  if (n.op != &constant_op) return false;
  const Tensor& t = n.attrs.as<ConstantAttrs>().data;
  if (t.dtype() != DType::boolean || t.rank() < 2 || t.count() > (Index{1} << 24)) return false;
  const Index columns = t.shape().back(), rows = t.shape()[t.shape().size() - 2];
  if (t.count() != rows * columns) return false;
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      if ((t.code(i * columns + j) != 0) != (j <= i)) return false;
    }
  }
  return true;
}

std::optional<Positions> triangle(const Graph& g, Operand o, bool shows_when) {
  const Node& n = g.nodes[o.node];
  if (!shows_when) return std::nullopt;
  if (is_triangle(g, o)) return Positions{.upper = Dim(0), .lower = {}};
  if (n.op != &slice_op || !is_triangle(g, n.operands[0])) return std::nullopt;
  const auto& s = n.attrs.as<SliceAttrs>();
  const std::size_t rank = s.starts.size();
  if (step_along(s.steps, rank - 1) != 1 || step_along(s.steps, rank - 2) != 1) return std::nullopt;
  return Positions{.upper = s.starts[rank - 2] - s.starts[rank - 1], .lower = {}};
}

}  // namespace

std::optional<Positions> positions_of(const Graph& g, const Condition& c) {
  Operand at = c.at;
  bool shows_when = c.shows_when;
  const std::vector<Dim>& own = g.type(at).dims;
  const bool aligned = own.size() >= 2 && c.dims.size() >= 2 && std::equal(own.end() - 2, own.end(), c.dims.end() - 2);
  if (!aligned) return std::nullopt;
  for (int depth = 0; depth < deepest; ++depth) {
    const Node& n = g.nodes[at.node];
    const std::string_view name = n.op->name();
    if (name == "bitwise_not") {
      shows_when = !shows_when;
    } else if (name == "broadcast") {
      // The last two axes must be those of the operand.
      const std::vector<Dim>&from = g.type(n.operands[0]).dims, &to = g.type(at).dims;
      if (from.size() < 2 || !std::equal(from.end() - 2, from.end(), to.end() - 2)) return std::nullopt;
    } else if (name == "reshape") {
      const std::vector<Dim>&from = g.type(n.operands[0]).dims, &to = g.type(at).dims;
      const bool same = from.size() >= 2 && to.size() >= 2 && std::equal(from.end() - 2, from.end(), to.end() - 2);
      if (!same || product(from) != product(std::span(from).last(2)) || product(to) != product(from))
        return std::nullopt;
    } else {
      break;
    }
    at = n.operands[0];
  }
  std::optional<Positions> p = triangle(g, at, shows_when);
  if (p) return p;
  const std::optional<Affine> d = difference(g, g.nodes[at.node], shows_when);
  return d ? bound(d->slope, d->constant) : std::nullopt;
}

bool always_shows(const Graph& g, const Condition& c) {
  const Node& n = g.nodes[c.at.node];
  const std::optional<Affine> d = difference(g, n, c.shows_when);
  if (!d) return false;
  Index most = d->constant.bounds().hi;
  for (std::size_t i = 0; i < d->slope.size(); ++i) {
    const Index last = n.results[0].dims[i].bounds().hi - 1;
    if (d->slope[i] > 0 && (last > unbounded || d->slope[i] > 1)) return false;  // far from overflow
    if (d->slope[i] > 0) most += last;
  }
  return most <= 0;
}

}  // namespace rlx::pattern
