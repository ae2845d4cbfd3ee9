// Steps of layer_norm and rms_norm on the CPU, alone and behind sums of operands.
#include "ops/layer_norm/layer_norm.h"

#include <algorithm>
#include <string>

#include "device/step.h"
#include "ir/outline.h"
#include "ops/layer_norm/layer_norm.kernel.h"

namespace rlx {

namespace {

// What a step normalises: slots by role.
struct NormParts {
  const Node* norm = nullptr;
  std::vector<const Slot*> terms;  // added from left to right
  const Slot *gamma = nullptr, *beta = nullptr;
  const Slot* sum = nullptr;  // takes the sum of the terms
  const Slot* out = nullptr;
};

struct Term {
  Token<std::byte, Access::read> data;
  DimToken stride;
};

std::optional<Step> make_step(const StepArgs& n, const NormParts& p) {
  const bool centre = p.norm->op == &layer_norm_op;
  const NormAttrs& attrs = p.norm->attrs.as<NormAttrs>();
  const TensorType& t = p.out->type;
  for (const std::span<const Slot> slots : {n.in, n.out}) {
    for (const Slot& s : slots) {
      if (!s.dense()) return n.decline("a norm reads and writes dense rows");
    }
  }
  const auto kernel = (centre ? norm_kernels().layer_norm : norm_kernels().rms_norm)[static_cast<std::size_t>(t.dtype)];
  const auto axis = static_cast<std::size_t>(t.axis(attrs.axis));
  const Dim cols = product(std::span(t.dims).subspan(axis)), width = max(cols, 1);
  StepBuilder s(std::string(p.terms.size() > 1 ? "add_" : "") + std::string(p.norm->op->name()));
  const auto row = s.dim(cols), bytes = s.dim(t.plane_bytes(0));
  std::vector<Term> terms;
  for (const Slot* x : p.terms) terms.push_back({s.read<std::byte>(*x), s.dim(x->type.dims == t.dims ? cols : Dim(0))});
  std::optional<Token<std::byte, Access::read>> gamma, beta;
  std::optional<Token<std::byte, Access::write>> sum;
  if (p.gamma) gamma = s.read<std::byte>(*p.gamma);
  if (p.beta) beta = s.read<std::byte>(*p.beta);
  const auto y = s.write<std::byte>(*p.out);
  if (p.sum) sum = s.write<std::byte>(*p.sum);
  // Every pack of a row is read for the last time before it is written. One result may take an operand's memory.
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (p.terms[i]->type.dims == t.dims) s.may_overwrite(sum ? *sum : y, terms[i].data);
  }
  s.flops(t.count() * 8);
  return s.run(floordiv(t.count(), width), ceildiv(16384, width),
               [=, epsilon = attrs.epsilon](const Memory& m, const DimValues& d, Range r) {
                 NormRows rows{.term_count = static_cast<int>(terms.size()),
                               .gamma = gamma ? m[*gamma].data() : nullptr,
                               .beta = beta ? m[*beta].data() : nullptr,
                               .sum = sum ? m[*sum].data() : nullptr,
                               .y = m[y].data(),
                               .cols = d[row],
                               .epsilon = epsilon};
                 rows.stream = d[bytes] >= streamed_bytes;
                 for (std::size_t i = 0; i < terms.size(); ++i) {
                   rows.terms[i] = {m[terms[i].data].data(), d[terms[i].stride]};
                   if (rows.terms[i].data == rows.y) rows.stream = false;
                 }
                 kernel(rows, r.begin, r.end);
               });
}

std::optional<Step> norm_step(const StepArgs& n) {
  NormParts p{.norm = &n.node, .terms = {&n.in[0]}, .out = &n.out[0]};
  if (n.in.size() > 1) p.gamma = &n.in[1];
  if (n.in.size() > 2) p.beta = &n.in[2];
  return make_step(n, p);
}

// --- regions: sums in front of a norm ---

// Reads a body; every function gives false for what is no sum in front of a norm.
class Body {
 public:
  explicit Body(const StepArgs& n) : n_(n), g_(*n.node.bodies[0]) {}

  std::optional<NormParts> read() {
    if (!find_norm()) return {};
    const Node& norm = *parts_.norm;
    const Operand x = norm.operands[0];
    if (!add_terms(x) || parts_.terms.size() < 2 || !all_used()) return {};
    for (std::size_t i = 1; i < norm.operands.size(); ++i) {
      const Slot* s = input(norm.operands[i]);
      if (!s) return {};
      (i == 1 ? parts_.gamma : parts_.beta) = s;
    }
    for (std::size_t i = 0; i < g_.outputs.size(); ++i) {
      const Operand o = g_.outputs[i];
      const Slot*& place = o == x ? parts_.sum : parts_.out;
      if ((o != x && &g_.nodes[o.node] != parts_.norm) || place) return {};
      place = &n_.out[i];
    }
    if (!parts_.out) return {};
    return parts_;
  }

 private:
  bool find_norm() {
    for (const Node& node : g_.nodes) {
      if (node.op != &layer_norm_op && node.op != &rms_norm_op) continue;
      if (parts_.norm) return false;
      parts_.norm = &node;
    }
    return parts_.norm;
  }
  const Slot* input(Operand o) const {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      if (g_.inputs[i] == o.node) return &n_.in[i];
    }
    return nullptr;
  }
  // A sum of operands as terms; those of a sum inside come first, which leaves the value as it is.
  bool add_terms(Operand o) {
    const TensorType& whole = parts_.norm->results[0];
    if (const Slot* s = input(o)) {
      const auto axis = static_cast<std::ptrdiff_t>(whole.axis(parts_.norm->attrs.as<NormAttrs>().axis));
      const bool row = std::ranges::equal(s->type.dims, std::span(whole.dims).subspan(static_cast<std::size_t>(axis)));
      if (s->type.dims != whole.dims && !row) return false;
      parts_.terms.push_back(s);
      return parts_.terms.size() <= 3;
    }
    const Node& node = g_.nodes[o.node];
    if (node.op->name() != "add" || node.results[0].dims != whole.dims || ++adds_ > 2) return false;
    const bool swap = !input(node.operands[1]);
    if (swap && !input(node.operands[0])) return false;
    return add_terms(node.operands[swap ? 1 : 0]) && add_terms(node.operands[swap ? 0 : 1]);
  }
  bool all_used() const { return g_.nodes.size() == g_.inputs.size() + static_cast<std::size_t>(adds_) + 1; }

  const StepArgs& n_;
  const Graph& g_;
  NormParts parts_;
  int adds_ = 0;
};

std::optional<Step> region_step(const StepArgs& n) {
  const std::optional<NormParts> parts = Body(n).read();
  if (!parts) return n.decline("the region is no sum of up to three operands in front of one norm");
  return make_step(n, *parts);
}

}  // namespace

std::span<const MakerRow> layer_norm_cpu() {
  static const MakerRow rows[] = {{&layer_norm_op, norm_step}, {&rms_norm_op, norm_step}, {&fusion_op(), region_step}};
  return rows;
}

}  // namespace rlx
