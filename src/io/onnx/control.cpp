// If, Loop and Scan: resolved at import where conditions and trips are known, else nodes with bodies.
#include "ir/control.h"

#include <algorithm>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

constexpr Index most_unrolled = 1024;  // trips of a loop that becomes a chain of nodes

Value only(const Item& item, std::string_view what) {
  require(item.tensor(), "{} is {}, which depends on the data of a run", what, kind_of(item));
  return item.values[0];
}

Values tensors(const Items& items, std::string_view what) {
  Values all;
  for (const Item& i : items) all.push_back(only(i, what));
  return all;
}

Items items_of(std::span<const Value> values) { return {values.begin(), values.end()}; }

// A tensor of one element as rank 0.
Value scalar_of(Value v, std::string_view what) {
  require(v.type().count() == Dim(1), "{} is {}, expected one element", what, v.type().text());
  return reshape(v, {});
}

Value flag_of(Value v, std::string_view what) {
  require(v.dtype() == DType::boolean, "{} is {}, expected bool", what, v.type().text());
  return scalar_of(v, what);
}

// A body with the captures of two bodies as inputs.
GraphPtr joined(const Graph& body, const Values& own, const Values& all) {
  Builder b;
  Values inputs, arguments;
  for (std::size_t i = 0; i < all.size(); ++i) inputs.push_back(b.input("c" + std::to_string(i), all[i].type()));
  for (const Value& v : own) {
    const auto it = std::ranges::find(all, v.at, &Value::at);
    arguments.push_back(inputs[static_cast<std::size_t>(it - all.begin())]);
  }
  return std::make_shared<const Graph>(b.finish(b.inline_graph(body, arguments)));
}

Items if_items(NodeArgs& n) {
  n.expect(1, 1);
  const GraphProto &yes = n.graph("then_branch"), &no = n.graph("else_branch");
  const Value condition = flag_of(n[0], "the condition");
  Importer& importer = n.importer();
  if (const auto known = importer.decided(condition)) return importer.inline_graph(*known ? yes : no, n.frame(), {});
  const auto branch = [&](const GraphProto& g) {
    return importer.body({}, [&](std::span<const Value>) {
      return tensors(importer.inline_graph(g, n.frame(), {}), "a result of a branch");
    });
  };
  const Importer::Body first = branch(yes), second = branch(no);
  Values all = first.captures;
  for (const Value& v : second.captures) {
    if (std::ranges::find(all, v.at, &Value::at) == all.end()) all.push_back(v);
  }
  return items_of(
      if_else(condition, all, joined(first.graph, first.captures, all), joined(second.graph, second.captures, all)));
}

// A Loop node, taken apart.
class Loop {
 public:
  explicit Loop(NodeArgs& n) : n_(n), importer_(n.importer()), body_(n.graph("body")) {
    require(n.count() >= 2, "{} operands are given, expected 2 or more", n.count());
    require(body_.inputs.size() == n.count() && body_.outputs.size() + 1 >= n.count(),
            "the body has {} inputs and {} results, the loop {} operands", body_.inputs.size(), body_.outputs.size(),
            n.count());
    for (std::size_t i = 2; i < n.count(); ++i) carried_.push_back(n.item(i));
    stacked_ = body_.outputs.size() - 1 - carried_.size();
    if (n.has(0)) limit_ = scalar_of(n[0], "the number of trips");
    if (n.has(1)) condition_ = flag_of(n[1], "the condition");
  }

  Items run() {
    const auto begins = condition_ ? importer_.decided(*condition_) : std::optional(true);
    std::optional<Dim> trips = limit();
    if (begins == false) trips = Dim(0);
    const bool lists = std::ranges::any_of(carried_, [](const Item& i) { return !i.tensor(); });
    const Failures before = importer_.failures();
    std::string why = "sequences and optional values are carried";
    if (!lists) {
      try {
        Items made = as_node(begins, trips);
        if (importer_.failures().same(before)) return made;
        why = "a node of the body is not supported";
      } catch (const NotWellFormed&) {
        throw;
      } catch (const Error& e) {
        why = e.what();
      }
    }
    const bool known = begins.has_value() && (!trips || trips->is_constant()) && (trips || n_.has(1));
    if (!known) fail("{}; and the number of trips depends on the data of a run", why);
    const Failures after = importer_.failures();
    importer_.failures() = before;
    Items made;
    try {
      made = unrolled(*begins, trips ? trips->constant() : most_unrolled + 1);
    } catch (const NotWellFormed&) {
      throw;
    } catch (const Error& e) {
      importer_.failures() = after;
      fail("{}; and as a chain of trips: {}", why, e.what());
    }
    return made;
  }

 private:
  // Most trips, where they are known as a size.
  std::optional<Dim> limit() const {
    if (!limit_) return std::nullopt;
    const auto elements = importer_.known(*limit_);
    if (elements) return max((*elements)[0], 0);
    const auto number = importer_.computed(*limit_);
    if (!number) return std::nullopt;
    return Dim(std::max<Index>(load<std::int64_t>(*number)[0], 0));
  }

  Values carried() const { return tensors(carried_, "a carried value"); }

  // Inputs of the ONNX body: trip number, condition (true, or the trip would not run), carried values.
  Items trip(Value number, std::span<const Value> carried) {
    const ValueInfo& first = body_.inputs[0];
    if (first.has_shape && first.dims.size() == 1) number = reshape(number, {1});
    Items in{number, constant(importer_.builder(), DType::boolean, 1)};
    in.insert(in.end(), carried.begin(), carried.end());
    return importer_.inline_graph(body_, n_.frame(), in);
  }

  Items as_node(std::optional<bool> begins, const std::optional<Dim>& trips) {
    if (trips && begins) {
      if (std::optional<Items> made = as_scan(*trips)) return *made;
    }
    for (std::size_t i = 0; i < stacked_; ++i) {
      require(!n_.wants(carried_.size() + i),
              "result {} has as many slices as there are trips, which depends on the "
              "data of a run",
              carried_.size() + i);
    }
    return as_while();
  }

  // Nothing when the body may end the loop.
  std::optional<Items> as_scan(const Dim& trips) {
    const Values begin = carried();
    std::vector<TensorType> types;
    for (const Value& v : begin) types.push_back(v.type());
    types.emplace_back(DType::i64, std::vector<Dim>{});
    bool ends = false;
    const Importer::Body body = importer_.body(types, [&](std::span<const Value> in) {
      Values out = tensors(trip(in.back(), in.first(begin.size())), "a result of the body");
      const auto goes_on = importer_.decided(flag_of(out[0], "the next condition"));
      ends = goes_on != true && !(trips == Dim(0));
      out.erase(out.begin());
      return same_types(std::move(out), begin);
    });
    if (ends) return std::nullopt;
    Values operands = begin;
    operands.push_back(iota(importer_.builder(), DType::i64, {trips}));
    operands.insert(operands.end(), body.captures.begin(), body.captures.end());
    return items_of(scan(importer_.builder(),
                         {.trips = trips, .carried = static_cast<Index>(begin.size()), .scanned = 1}, operands,
                         std::make_shared<const Graph>(body.graph)));
  }

  // A carried value whose sizes may differ gets a check: it must come out as it went in.
  static Values same_types(Values out, const Values& begin) {
    for (std::size_t i = 0; i < begin.size(); ++i) {
      const TensorType& want = begin[i].type();
      const TensorType have = out[i].type();
      if (have == want || have.dtype != want.dtype || have.rank() != want.rank()) continue;
      bool possible = true;
      for (std::size_t k = 0; k < want.dims.size(); ++k)
        possible = possible && rlx::equal(have.dims[k], want.dims[k]) != Tri::no;
      if (!possible) continue;
      for (std::size_t k = 0; k < want.dims.size(); ++k)
        out[i].builder->check(have.dims[k], want.dims[k], "sizes of a carried value");
      out[i] = reshape(out[i], want.dims);
    }
    return out;
  }

  Items as_while() {
    const Values begin = carried();
    Builder& b = importer_.builder();
    std::vector<TensorType> types;
    Values operands{constant(b, DType::i64, 0)};
    operands.insert(operands.end(), begin.begin(), begin.end());
    if (limit_) operands.push_back(*limit_);
    for (const Value& v : operands) types.push_back(v.type());
    const Importer::Body body = importer_.body(types, [&](std::span<const Value> in) {
      Values out = tensors(trip(in[0], in.subspan(1, begin.size())), "a result of the body");
      out.resize(1 + begin.size());
      const Value next = in[0] + like(in[0], 1);
      Value goes_on = flag_of(out[0], "the next condition");
      if (limit_) goes_on = bitwise_and(goes_on, less(next, in.back()));
      out.erase(out.begin());
      out = same_types(std::move(out), begin);
      out.insert(out.begin(), {goes_on, next});
      return out;
    });
    Value goes_on = condition_ ? *condition_ : constant(b, DType::boolean, 1);
    if (limit_) goes_on = bitwise_and(goes_on, less(operands[0], *limit_));
    const std::size_t count = begin.size() + 1;
    Values captures(operands.begin() + static_cast<std::ptrdiff_t>(count), operands.end());
    captures.insert(captures.end(), body.captures.begin(), body.captures.end());
    const Values made =
        while_loop(goes_on, std::span(operands).first(count), captures, std::make_shared<const Graph>(body.graph));
    return items_of(std::span(made).subspan(1));
  }

  // A trip after the other in the graph around; the condition must be known each time.
  Items unrolled(bool goes_on, Index trips) {
    Items now = carried_;
    std::vector<Values> slices(stacked_);
    for (Index t = 0; goes_on && t < trips; ++t) {
      require(t < most_unrolled, "the loop has more than {} trips", most_unrolled);
      Items in{constant(importer_.builder(), DType::i64, static_cast<double>(t)),
               constant(importer_.builder(), DType::boolean, 1)};
      const ValueInfo& first = body_.inputs[0];
      if (first.has_shape && first.dims.size() == 1) in[0] = reshape(in[0].values[0], {1});
      in.insert(in.end(), now.begin(), now.end());
      Items out = importer_.inline_graph(body_, n_.frame(), in);
      const auto next = importer_.decided(flag_of(only(out[0], "the next condition"), "the next condition"));
      require(next.has_value(), "the condition after trip {} depends on the data of a run", t);
      goes_on = *next;
      for (std::size_t i = 0; i < stacked_; ++i)
        slices[i].push_back(unsqueeze(only(out[1 + now.size() + i], "a slice of a result"), {0}));
      std::copy_n(out.begin() + 1, now.size(), now.begin());
    }
    for (std::size_t i = 0; i < stacked_; ++i) {
      if (!n_.wants(now.size() + i) && slices[i].empty()) break;
      require(!slices[i].empty(), "result {} has no slices, and so no known type", carried_.size() + i);
      now.emplace_back(concat(slices[i], 0));
    }
    return now;
  }

  NodeArgs& n_;
  Importer& importer_;
  const GraphProto& body_;
  Items carried_;
  std::size_t stacked_ = 0;
  std::optional<Value> limit_, condition_;
};

Items loop_items(NodeArgs& n) { return Loop(n).run(); }

// `axis` first.
Value to_front(Value v, Index axis) {
  std::vector<Index> order{axis};
  for (Index i = 0; i < v.rank(); ++i) {
    if (i != axis) order.push_back(i);
  }
  return transpose(v, order);
}

Value from_front(Value v, Index axis) {
  std::vector<Index> order;
  for (Index i = 1; i < v.rank(); ++i) order.push_back(i);
  order.insert(order.begin() + axis, 0);
  return transpose(v, order);
}

// Numbers of the entries that are 1 in a list of directions.
std::vector<Index> backward(NodeArgs& n, std::string_view name, std::size_t count) {
  const auto list = n.integers(name);
  if (!list) return {};
  require(list->size() == count, "{} has {} elements, expected {}", name, list->size(), count);
  std::vector<Index> all;
  for (std::size_t i = 0; i < count; ++i) {
    require((*list)[i] == 0 || (*list)[i] == 1, "{} has the element {}, expected 0 or 1", name, (*list)[i]);
    if ((*list)[i] == 1) all.push_back(static_cast<Index>(i));
  }
  return all;
}

std::vector<Index> axes_of(NodeArgs& n, std::string_view name, std::size_t count) {
  const auto list = n.integers(name);
  if (!list) return std::vector<Index>(count, 0);
  require(list->size() == count, "{} has {} elements, expected {}", name, list->size(), count);
  return *list;
}

struct ScanParts {
  const GraphProto* body = nullptr;
  std::size_t carried = 0, scanned = 0, stacked = 0;
};

ScanParts scan_parts(NodeArgs& n, std::size_t operands) {
  ScanParts p{&n.graph("body"), 0, 0, 0};
  const Index scanned = n.integer("num_scan_inputs");
  require(1 <= scanned && static_cast<std::size_t>(scanned) <= operands,
          "num_scan_inputs is {}, expected 1 to the {} operands", scanned, operands);
  p.scanned = static_cast<std::size_t>(scanned);
  p.carried = operands - p.scanned;
  require(p.body->inputs.size() == operands && p.body->outputs.size() >= p.carried,
          "the body has {} inputs and {} results, expected {} and at least {}", p.body->inputs.size(),
          p.body->outputs.size(), operands, p.carried);
  p.stacked = p.body->outputs.size() - p.carried;
  return p;
}

// A scan of the operands (axis 0 first) in the graph that is being made.
Values scan_here(NodeArgs& n, const ScanParts& p, const Values& operands, std::vector<Index> in_backward,
                 std::vector<Index> out_backward) {
  const Dim trips = operands[p.carried].dim(0);
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    types.push_back(operands[i].type());
    if (i < p.carried) continue;
    require(types.back().rank() >= 1, "scanned operand {} is {}, expected rank 1 or more", i, types.back().text());
    types.back().dims.erase(types.back().dims.begin());
  }
  Importer& importer = n.importer();
  const Importer::Body body = importer.body(types, [&](std::span<const Value> in) {
    Values out = tensors(importer.inline_graph(*p.body, n.frame(), items_of(in)), "a result of the body");
    for (std::size_t i = 0; i < p.carried; ++i) {
      if (out[i].type() != types[i] && out[i].type().count() == types[i].count() && out[i].dtype() == types[i].dtype)
        out[i] = reshape(out[i], types[i].dims);
    }
    return out;
  });
  Values all = operands;
  all.insert(all.end(), body.captures.begin(), body.captures.end());
  ScanAttrs a{trips, static_cast<Index>(p.carried), static_cast<Index>(p.scanned), std::move(in_backward),
              std::move(out_backward)};
  return scan(importer.builder(), std::move(a), all, std::make_shared<const Graph>(body.graph));
}

Values scan_from_9(NodeArgs& n) {
  Values operands = n.all();
  const ScanParts p = scan_parts(n, operands.size());
  const std::vector<Index> in_axes = axes_of(n, "scan_input_axes", p.scanned);
  const std::vector<Index> out_axes = axes_of(n, "scan_output_axes", p.stacked);
  for (std::size_t i = 0; i < p.scanned; ++i) {
    Value& v = operands[p.carried + i];
    v = to_front(v, axis_of(in_axes[i], v.rank()));
  }
  Values out = scan_here(n, p, operands, backward(n, "scan_input_directions", p.scanned),
                         backward(n, "scan_output_directions", p.stacked));
  for (std::size_t i = 0; i < p.stacked; ++i) {
    Value& v = out[p.carried + i];
    v = from_front(v, axis_of(out_axes[i], v.rank()));
  }
  return out;
}

// Version 8: a batch axis before all, and lengths of sequences.
Values scan_8(NodeArgs& n) {
  require(n.count() >= 2, "{} operands are given, expected 2 or more", n.count());
  require(!n.has(0), "lengths of sequences are not supported");
  Values operands;
  for (std::size_t i = 1; i < n.count(); ++i) operands.push_back(n[i]);
  const ScanParts p = scan_parts(n, operands.size());
  const std::vector<Index> directions = backward(n, "directions", p.scanned);
  std::vector<TensorType> types;
  for (const Value& v : operands) {
    require(v.rank() >= 1, "operand of type {} has no batch axis", v.type().text());
    types.push_back(v.type());
    types.back().dims.erase(types.back().dims.begin());
  }
  Importer& importer = n.importer();
  const Importer::Body body = importer.body(
      types, [&](std::span<const Value> in) { return scan_here(n, p, Values(in.begin(), in.end()), directions, {}); });
  Values all = operands;
  all.insert(all.end(), body.captures.begin(), body.captures.end());
  return scan(importer.builder(),
              {.trips = operands[0].dim(0), .carried = 0, .scanned = static_cast<Index>(types.size())}, all,
              std::make_shared<const Graph>(body.graph));
}

Items scan_items(NodeArgs& n) { return items_of(n.opset() < 9 ? scan_8(n) : scan_from_9(n)); }

}  // namespace

OperatorRows control_rows() {
  static constexpr OperatorRow rows[] = {
      {"If", 1, nullptr, if_items},
      {"Loop", 1, nullptr, loop_items},
      {"Scan", 8, nullptr, scan_items},
  };
  return rows;
}

}  // namespace rlx::onnx
