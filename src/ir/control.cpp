// Control flow: inference, builder functions, and passes' way into bodies.
#include "ir/control.h"

#include <algorithm>

#include "core/error.h"
#include "ir/outline.h"
#include "ir/rewrite.h"

namespace rlx {

void check_body(const Graph& body, Types operands, std::size_t first, std::string_view name) {
  require(body.states.empty(), "{} holds state pairs", name);
  require(operands.size() - first == body.inputs.size(), "{} operands are given, {} has {} inputs",
          operands.size() - first, name, body.inputs.size());
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const TensorType& want = body.nodes[body.inputs[i]].results[0];
    require(operands[first + i] == want, "operand {} is {}, input {} of {} is {}", first + i,
            operands[first + i].text(), body.input_names[i], name, want.text());
  }
}

namespace {

std::vector<TensorType> output_types(const Graph& body) {
  std::vector<TensorType> types;
  for (const Operand o : body.outputs) types.push_back(body.type(o));
  return types;
}

void require_flag(const TensorType& t, std::string_view what) {
  require(t == TensorType(DType::boolean, {}), "{} is {}, expected bool[]", what, t.text());
}

void require_bodies(const InferContext& c, std::size_t count) {
  require(c.bodies.size() == count, "{} bodies are given, expected {}", c.bodies.size(), count);
}

// A carried value keeps its type over a trip.
void require_carried(const TensorType& before, const TensorType& after, std::size_t number) {
  require(before == after, "carried value {} is {} before a trip and {} after it", number, before.text(), after.text());
}

std::vector<TensorType> infer_if(const NoAttrs&, InferContext& c) {
  require_bodies(c, 2);
  require(!c.in.empty(), "no operands are given, expected a condition");
  require_flag(c.in[0], "the condition");
  check_body(*c.bodies[0], c.in, 1, "the first body");
  check_body(*c.bodies[1], c.in, 1, "the second body");
  const std::vector<TensorType> yes = output_types(*c.bodies[0]), no = output_types(*c.bodies[1]);
  require(yes.size() == no.size(), "the bodies have {} and {} results", yes.size(), no.size());
  for (std::size_t i = 0; i < yes.size(); ++i) {
    require(yes[i] == no[i], "result {} is {} in the first body and {} in the second", i, yes[i].text(), no[i].text());
  }
  return yes;
}

std::vector<TensorType> infer_while(const WhileAttrs& a, InferContext& c) {
  require_bodies(c, 1);
  require(!c.in.empty(), "no operands are given, expected a condition");
  require_flag(c.in[0], "the condition");
  const std::size_t carried = c.in.size() - 1;
  require(1 <= a.carried && static_cast<std::size_t>(a.carried) <= carried,
          "{} values are carried, expected 1 to the {} operands behind the condition", a.carried, carried);
  check_body(*c.bodies[0], c.in, 1, "the body");
  std::vector<TensorType> out = output_types(*c.bodies[0]);
  require(out.size() == static_cast<std::size_t>(a.carried) + 1, "the body has {} results, expected {}", out.size(),
          a.carried + 1);
  require_flag(out[0], "the next condition");
  out.erase(out.begin());
  for (std::size_t i = 0; i < out.size(); ++i) require_carried(c.in[1 + i], out[i], i);
  return out;
}

// Slices lie at whole bytes.
void require_slices(const TensorType& t, std::string_view what, std::size_t number) {
  require(!t.encoding && bits(t.dtype) % 8 == 0, "{} {} is {}, whose slices do not lie at whole bytes", what, number,
          t.text());
}

void check_numbers(const std::vector<Index>& list, std::size_t count, std::string_view what) {
  std::vector<bool> seen(count, false);
  for (const Index i : list) {
    require(0 <= i && i < static_cast<Index>(count) && !seen[static_cast<std::size_t>(i)],
            "{} {} is not one of {}, or listed twice", what, i, count);
    seen[static_cast<std::size_t>(i)] = true;
  }
}

std::vector<TensorType> infer_scan(const ScanAttrs& a, InferContext& c) {
  require_bodies(c, 1);
  require(a.trips.bounds().lo >= 0, "{} trips are asked for, expected 0 or more", a.trips.text());
  require(a.carried >= 0 && a.scanned >= 0 && static_cast<std::size_t>(a.carried + a.scanned) <= c.in.size(),
          "{} carried and {} scanned operands, {} are given", a.carried, a.scanned, c.in.size());
  const auto carried = static_cast<std::size_t>(a.carried), scanned = static_cast<std::size_t>(a.scanned);
  std::vector<TensorType> in(c.in.begin(), c.in.end());
  for (std::size_t i = 0; i < scanned; ++i) {
    TensorType& t = in[carried + i];
    require(t.rank() >= 1, "scanned operand {} is {}, expected rank 1 or more", i, t.text());
    require_slices(t, "scanned operand", i);
    c.equal(t.dims[0], a.trips, fmt::format("slices of scanned operand {}", i));
    t.dims.erase(t.dims.begin());
  }
  check_body(*c.bodies[0], in, 0, "the body");
  std::vector<TensorType> out = output_types(*c.bodies[0]);
  require(out.size() >= carried, "the body has {} results, expected at least {}", out.size(), a.carried);
  for (std::size_t i = 0; i < carried; ++i) require_carried(in[i], out[i], i);
  for (std::size_t i = carried; i < out.size(); ++i) {
    require_slices(out[i], "stacked result", i - carried);
    out[i].dims.insert(out[i].dims.begin(), a.trips);
  }
  check_numbers(a.backward, scanned, "scanned operand");
  check_numbers(a.backward_results, out.size() - carried, "stacked result");
  return out;
}

std::vector<TensorType> infer_call(const CallAttrs&, InferContext& c) {
  require_bodies(c, 1);
  check_body(*c.bodies[0], c.in, 0, "the body");
  for (const Check& k : c.bodies[0]->checks) c.checks.push_back(k);
  return output_types(*c.bodies[0]);
}

constinit const Op<NoAttrs> if_definition{{
    .name = "if",
    .doc = "The results of one of two bodies: of the first when the condition, bool[], is true, else of the second. "
           "Further operands are the inputs of both bodies. The other body does not run, so that neither its errors "
           "nor its checks of sizes count. Results have the same types in both.",
    .infer = infer_if,
}};
constinit const Op<WhileAttrs> while_definition{{
    .name = "while",
    .doc = "Runs the body as long as a condition holds. Operands are the condition bool[], `carried` values and values "
           "that every trip reads; the body gives the next condition and the carried values, whose types stay. Results "
           "are the carried values when the condition is false, the operands themselves when it never holds.",
    .infer = infer_while,
}};
constinit const Op<ScanAttrs> scan_definition{{
    .name = "scan",
    .doc =
        "Runs the body `trips` times. Operands are `carried` values, `scanned` tensors of which trip i reads slice i "
        "along axis 0 (slice trips-1-i of those in `backward`), and values that every trip reads. The body gives the "
        "carried values, whose types stay, and slices of stacked results. Results are the carried values after the "
        "last trip, then the stacked ones, [trips, ...]; without a trip the carried values are the operands.",
    .infer = infer_scan,
}};
constinit const Op<CallAttrs> call_definition{{
    .name = "call",
    .doc = "The results of a body that has a name. Operands are the body's inputs. Passes begin by putting the body in "
           "place of the call.",
    .infer = infer_call,
    .definition = [](const CallAttrs&, const DefineArgs& d) -> Values {
      return d.in.empty() ? Values{} : d.in[0].builder->inline_graph(*d.bodies[0], d.in);
    },
}};

}  // namespace

const OpDef& if_op() { return if_definition; }
const OpDef& while_op() { return while_definition; }
const OpDef& scan_op() { return scan_definition; }
const OpDef& call_op() { return call_definition; }
bool is_control(const OpDef& op) {
  return &op == &if_definition || &op == &while_definition || &op == &scan_definition;
}

Values if_else(Value condition, std::span<const Value> captures, GraphPtr yes, GraphPtr no) {
  Values operands{condition};
  operands.insert(operands.end(), captures.begin(), captures.end());
  return condition.builder->emit(if_definition, Attrs(), operands, {std::move(yes), std::move(no)});
}

Values while_loop(Value condition, std::span<const Value> carried, std::span<const Value> captures, GraphPtr body) {
  Values operands{condition};
  operands.insert(operands.end(), carried.begin(), carried.end());
  operands.insert(operands.end(), captures.begin(), captures.end());
  return condition.builder->emit(while_definition, Attrs(WhileAttrs{static_cast<Index>(carried.size())}), operands,
                                 {std::move(body)});
}

Values scan(Builder& builder, ScanAttrs attrs, std::span<const Value> operands, GraphPtr body) {
  return builder.emit(scan_definition, Attrs(std::move(attrs)), operands, {std::move(body)});
}

Values call(Builder& builder, std::string name, std::span<const Value> operands, GraphPtr body) {
  return builder.emit(call_definition, Attrs(CallAttrs{std::move(name)}), operands, {std::move(body)});
}

Graph map_bodies(const Graph& g, const std::function<Graph(const Graph&)>& change) {
  if (std::ranges::none_of(g.nodes, [](const Node& n) { return is_control(*n.op); })) return g;
  return rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    const Node& n = r.from().nodes[id];
    if (!is_control(*n.op)) return {};
    std::vector<GraphPtr> bodies;
    for (const GraphPtr& b : n.bodies) bodies.push_back(std::make_shared<const Graph>(change(map_bodies(*b, change))));
    return r.builder().emit(*n.op, n.attrs, r.operands(id), std::move(bodies), n.instance);
  });
}

}  // namespace rlx
