// Patterns: backtracking by continuations, products in any association, numbers.
#include "passes/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "ir/op.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"

namespace rlx::pattern {

// --- patterns ---

Pattern::Pattern(Var v) : test_([v](Matcher& m, Operand o, const Next& next) { return m.bind(v, o, next); }) {}

Pattern number(double value) {
  return Pattern([value](Matcher& m, Operand o, const Next& next) {
    const std::optional<double> is = scalar_number(m.graph(), o);
    return is && near(*is, value, m.graph().type(o).dtype) && next();
  });
}

Pattern op(std::string_view name, std::vector<Pattern> operands) {
  return Pattern([name, operands = std::move(operands)](Matcher& m, Operand o, const Next& next) {
    const Node& n = m.node(o);
    if (o.result != 0 || n.op->name() != name || n.operands.size() != operands.size()) return false;
    return m.within(o.node, [&] {
      const std::function<bool(std::size_t)> rest = [&](std::size_t i) {
        if (i == operands.size()) return next();
        return operands[i](m, n.operands[i], [&, i] { return rest(i + 1); });
      };
      if (rest(0)) return true;
      if (operands.size() != 2 || !(n.op->traits() & commutative)) return false;
      return operands[0](m, n.operands[1], [&] { return operands[1](m, n.operands[0], next); });
    });
  });
}

namespace {

using Factors = std::vector<const Pattern*>;
using WithConstant = std::function<bool(double)>;

bool match_factors(Matcher& m, Operand o, const Factors& factors, double constant, const WithConstant& next);

// a * b holds the factors, some in a, the others in b.
bool match_split(Matcher& m, Operand a, Operand b, const Factors& factors, double constant, const WithConstant& next) {
  for (unsigned choice = 1; choice + 1 < 1U << factors.size(); ++choice) {
    Factors left, right;
    for (std::size_t i = 0; i < factors.size(); ++i) (choice >> i & 1 ? left : right).push_back(factors[i]);
    if (match_factors(m, a, left, constant, [&](double c) { return match_factors(m, b, right, c, next); })) return true;
  }
  return false;
}

bool match_factors(Matcher& m, Operand o, const Factors& factors, double constant, const WithConstant& next) {
  if (factors.size() == 1 && (*factors[0])(m, o, [&] { return next(constant); })) return true;
  const Node& n = m.node(o);
  if (m.is(o, "neg")) {
    return m.within(o.node, [&] { return match_factors(m, n.operands[0], factors, -constant, next); });
  }
  const bool times = m.is(o, "mul");
  if (!times && !m.is(o, "div")) return false;
  const Operand a = n.operands[0], b = n.operands[1];
  return m.within(o.node, [&] {
    if (const auto c = scalar_number(m.graph(), b)) {
      return match_factors(m, a, factors, times ? constant * *c : constant / *c, next);
    }
    if (!times) return false;
    if (const auto c = scalar_number(m.graph(), a)) return match_factors(m, b, factors, constant * *c, next);
    return match_split(m, a, b, factors, constant, next);
  });
}

}  // namespace

Pattern product(double factor, std::vector<Pattern> factors) {
  return Pattern([factor, factors = std::move(factors)](Matcher& m, Operand o, const Next& next) {
    if (!is_arithmetic_float(m.graph().type(o).dtype)) return false;
    Factors all;
    for (const Pattern& p : factors) all.push_back(&p);
    return match_factors(m, o, all, 1, [&](double c) {  // several rounded constants may have met
      return (c == factor || near(c, factor, m.graph().type(o).dtype, 2)) && next();
    });
  });
}

Pattern either(std::vector<Pattern> patterns) {
  return Pattern([patterns = std::move(patterns)](Matcher& m, Operand o, const Next& next) {
    return std::ranges::any_of(patterns, [&](const Pattern& p) { return p(m, o, next); });
  });
}

Pattern where(Pattern pattern, std::function<bool(const Matcher&, Operand)> predicate) {
  return Pattern([pattern = std::move(pattern), predicate = std::move(predicate)](
                     Matcher& m, Operand o, const Next& next) { return predicate(m, o) && pattern(m, o, next); });
}

Pattern where_all(Pattern pattern, std::function<bool(const Matcher&)> predicate) {
  return Pattern(
      [pattern = std::move(pattern), predicate = std::move(predicate)](Matcher& m, Operand o, const Next& next) {
        return pattern(m, o, [&] { return predicate(m) && next(); });
      });
}

Pattern square(Pattern x) {
  const Pattern same = where(op("mul", {x, x}), [](const Matcher& m, Operand o) {
    return m.is(o, "mul") && m.node(o).operands[0] == m.node(o).operands[1];
  });
  return either({same, op("pow", {x, number(2)})});
}

Pattern inverse(Pattern x) {
  return either({op("reciprocal", {x}), op("div", {number(1), x}), op("pow", {x, number(-1)})});
}

Pattern inverse_root(Pattern x) {
  return either({op("rsqrt", {x}), inverse(either({op("sqrt", {x}), op("pow", {x, number(0.5)})})),
                 op("pow", {x, number(-0.5)}), op("sqrt", {inverse(x)})});
}

namespace {

std::optional<Operand> reduction_of(const Matcher& m, Operand o, ReduceKind kind) {
  const auto is = [&](Operand at, ReduceKind k) {
    return m.is(at, "reduce") && m.node(at).attrs.as<ReduceAttrs>().kind == k;
  };
  if (is(o, kind)) return o;
  const bool times = m.is(o, "mul");
  if (kind != ReduceKind::mean || (!times && !m.is(o, "div"))) return std::nullopt;
  Operand sum = m.node(o).operands[0], count = m.node(o).operands[1];
  if (times && m.is(count, "reduce")) std::swap(sum, count);
  const std::optional<double> c = scalar_number(m.graph(), count);
  if (!c || !is(sum, ReduceKind::sum)) return std::nullopt;
  Dim elements = 1;
  for (const Index a : reduced_axes(m.graph(), sum)) {
    elements = elements * m.graph().type(m.node(sum).operands[0]).dim(a);
  }
  if (!elements.is_constant() || elements.constant() == 0) return std::nullopt;
  const auto n = static_cast<double>(elements.constant());
  return near(*c, times ? 1 / n : n, m.graph().type(o).dtype) ? std::optional(sum) : std::nullopt;
}

bool keeps_axes(const Matcher& m, Operand o, Operand reduction) {
  TensorType wanted = m.graph().type(m.node(reduction).operands[0]);
  for (const Index a : reduced_axes(m.graph(), reduction)) wanted = wanted.with(a, 1);
  return m.graph().type(o) == wanted;
}

}  // namespace

Pattern reduced(ReduceKind kind, Pattern x, Var result) {
  return Pattern([kind, x = std::move(x), result](Matcher& m, Operand o, const Next& next) {
    const Operand mean = m.is(o, "reshape") ? m.node(o).operands[0] : o;
    const std::optional<Operand> r = reduction_of(m, mean, kind);
    if (!r || !keeps_axes(m, o, *r)) return false;
    const Next inside = [&] { return m.bind(result, *r, [&] { return x(m, m.node(*r).operands[0], next); }); };
    return m.within(o.node, [&] { return m.within(mean.node, [&] { return m.within(r->node, inside); }); });
  });
}

// --- matcher ---

Matcher::Matcher(const Graph& g) : graph_(g), live_(live_nodes(g)) {}

bool Matcher::match(const Pattern& p, Operand root) {
  std::ranges::fill(bound_, std::nullopt);
  path_.clear();
  return p(*this, root, [&] {
    for (const Id id : path_) {
      if (id != root.node && read_outside(id, path_)) return false;
    }
    inner_ = path_;
    return true;
  });
}

bool Matcher::read_outside(Id id, const std::vector<Id>& inside) const {
  if (graph_.is_output(id)) return true;
  return std::ranges::any_of(graph_.users(id),
                             [&](Id user) { return live_[user] && !std::ranges::count(inside, user); });
}

bool Matcher::only_reader(Id id, Id user) const { return !read_outside(id, {user}); }

bool Matcher::bind(Var v, Operand o, const Next& next) {
  ensure(v.slot < var_count, "a pattern has too many variables");
  std::optional<Operand>& slot = bound_[v.slot];
  if (slot) return *slot == o && next();
  slot = o;
  if (next()) return true;
  slot.reset();
  return false;
}

bool Matcher::within(Id id, const Next& next) {
  path_.push_back(id);
  if (next()) return true;
  path_.pop_back();
  return false;
}

// --- numbers ---

namespace {

constexpr Index most_elements = 1024;  // of a constant that is looked through
constexpr int deepest = 8;

double rounded(double v, DType d) { return is_float(d) ? decode_float(d, encode_float(d, v)) : v; }

std::optional<double> splat(const Tensor& t) {
  const DType d = t.dtype();
  if (t.type().encoding || t.count() == 0 || t.count() > most_elements) return std::nullopt;
  if (!is_arithmetic_float(d) && !is_integer(d)) return std::nullopt;
  const std::uint64_t first = t.code(0);
  for (Index i = 1; i < t.count(); ++i) {
    if (t.code(i) != first) return std::nullopt;
  }
  return is_float(d) ? decode_float(d, first) : static_cast<double>(extend_integer(d, first));
}

std::optional<double> number_of(const Graph& g, Operand o, int depth);

std::optional<double> computed(const Graph& g, Operand o, int depth) {
  const Node& n = g.nodes[o.node];
  const std::string_view name = n.op->name();
  const std::size_t operands = n.operands.size();
  if (operands == 0 || operands > 2 || !(n.op->traits() & elementwise)) return std::nullopt;
  const std::optional<double> a = number_of(g, n.operands[0], depth + 1);
  if (!a) return std::nullopt;
  if (name == "sqrt") return std::sqrt(*a);
  if (name == "rsqrt") return 1 / std::sqrt(*a);
  if (name == "reciprocal") return 1 / *a;
  if (name == "neg") return -*a;
  if (operands != 2) return std::nullopt;
  const std::optional<double> b = number_of(g, n.operands[1], depth + 1);
  if (!b) return std::nullopt;
  if (name == "add") return *a + *b;
  if (name == "sub") return *a - *b;
  if (name == "mul") return *a * *b;
  if (name == "div") return *a / *b;
  if (name == "pow") return std::pow(*a, *b);
  return std::nullopt;
}

std::optional<double> number_of(const Graph& g, Operand o, int depth) {
  const Node& n = g.nodes[o.node];
  const DType d = g.type(o).dtype;
  const std::string_view name = n.op->name();
  if (depth > deepest) return std::nullopt;
  if (name == "constant") return splat(n.attrs.as<ConstantAttrs>().data);
  if (const auto known = g.values.find(o); known != g.values.end() && known->second.size() == 1) {
    const Dim& v = known->second[0];
    return v.is_constant() ? std::optional<double>(static_cast<double>(v.constant())) : std::nullopt;
  }
  if (name == "reshape" || name == "broadcast") return number_of(g, n.operands[0], depth + 1);
  if (name == "cast") {
    const DType from = g.type(n.operands[0]).dtype;
    const std::optional<double> v = number_of(g, n.operands[0], depth + 1);
    if (!v || !is_arithmetic_float(d) || !(is_arithmetic_float(from) || is_integer(from))) return std::nullopt;
    return rounded(*v, d);
  }
  if (!is_arithmetic_float(d)) return std::nullopt;
  const std::optional<double> v = computed(g, o, depth);
  return v ? std::optional<double>(rounded(*v, d)) : std::nullopt;
}

int mantissa_bits(DType d) {
  switch (d) {
    case DType::f64:
      return 52;
    case DType::f32:
      return 23;
    case DType::f16:
      return 10;
    default:
      return 7;
  }
}

}  // namespace

bool holds(const Graph& g, std::initializer_list<std::string_view> ops) {
  return std::ranges::all_of(ops, [&](std::string_view op) {
    return std::ranges::any_of(g.nodes, [&](const Node& n) { return n.op->name() == op; });
  });
}

std::optional<double> scalar_number(const Graph& g, Operand o) { return number_of(g, o, 0); }

bool near(double value, double wanted, DType dtype, int ulps) {
  if (!is_arithmetic_float(dtype)) return value == wanted;
  const double target = rounded(wanted, dtype);
  if (value == target) return true;
  if (target == 0 || !std::isfinite(target) || !std::isfinite(value)) return false;
  return std::abs(value - target) <= ulps * std::ldexp(1.0, std::ilogb(target) - mantissa_bits(dtype));
}

double shortest(double value, DType dtype) {
  if (!std::isfinite(value) || dtype == DType::f64) return value;
  for (int digits = 1; digits < 17; ++digits) {
    const std::string text = fmt::format("{:.{}e}", value, digits - 1);
    double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    if (rounded(read, dtype) == value) return read;
  }
  return value;
}

std::vector<Index> reduced_axes(const Graph& g, Operand reduction) {
  const Node& n = g.nodes[reduction.node];
  std::vector<Index> sorted;
  for (const Index a : n.attrs.as<ReduceAttrs>().axes) sorted.push_back(g.type(n.operands[0]).axis(a));
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace rlx::pattern
