// Merges products of one value with constant matrices: their columns side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "ir/rewrite.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "passes/recognise.h"

namespace rlx {

namespace {

// The joint matrix is a copy; larger ones are better left in the file they are mapped from.
constexpr Index most_bytes = Index{64} << 20;

const Tensor* constant_of(const Graph& g, Operand o) {
  const Node& n = g.nodes[o.node];
  return n.op == &constant_op ? &n.attrs.as<ConstantAttrs>().data : nullptr;
}

struct Member {
  Id matmul = 0;
  const Tensor* weight = nullptr;
  std::optional<Tensor> bias;  // added by the only reader, one element a column
  Id sum = 0;                  // that reader
};

Index columns(const Member& m, bool transposed) { return m.weight->shape()[transposed ? 0 : 1]; }

// Whether rows of encoded matrices may stand one behind the other: each has blocks of its own, in one plane.
bool joins_by_rows(const TensorType& t, const MatmulAttrs& a) {
  return a.transpose_b && t.block_axis == 1 && t.plane_count() == 1 && t.encoding->planes[0].per == Plane::Per::block;
}

class MatmulMerger {
 public:
  explicit MatmulMerger(const Graph& g) : g_(g), live_(live_nodes(g)) {}

  std::optional<Values> visit(Rewriter& r, Id id);
  bool collect();
  std::size_t merged = 0, joint = 0;

 private:
  // What products must have in common: the left operand and the attributes.
  struct Key {
    Operand left;
    bool transpose_a, transpose_b;
    std::string_view encoding;
    auto operator<=>(const Key&) const = default;
  };

  std::optional<Member> member(Id id) const;
  bool is_gated(Id id) const;
  void find_bias(Member& m) const;
  void emit(Rewriter& r, const std::vector<Member>& members);

  const Graph& g_;
  std::vector<bool> live_;
  std::unordered_map<Id, std::vector<Member>> groups_;  // by their first matmul
  std::unordered_map<Id, Value> results_;
};

std::optional<Member> MatmulMerger::member(Id id) const {
  const Node& n = g_.nodes[id];
  if (!live_[id] || n.op != &matmul_op || constant_of(g_, n.operands[0])) return std::nullopt;
  Member m{id, constant_of(g_, n.operands[1])};
  const bool fits = m.weight && m.weight->rank() == 2 && m.weight->count() > 0 &&
                    (m.weight->type().encoding ? joins_by_rows(m.weight->type(), n.attrs.as<MatmulAttrs>())
                                               : bits(m.weight->dtype()) % 8 == 0);
  if (!fits || (m.weight->type().encoding && is_gated(id))) return std::nullopt;
  find_bias(m);
  return m;
}

// Whether a product is multiplied by the activation of another, or is that other: the two are computed together as
// they are.
bool MatmulMerger::is_gated(Id id) const {
  const auto is_mul = [&](Id user) { return g_.nodes[user].op->name() == "mul"; };
  for (const Id user : g_.users(id)) {
    if (is_mul(user)) return true;
    const Node& n = g_.nodes[user];
    const bool unary = (n.op->traits() & elementwise) != 0 && n.operands.size() == 1;
    if (unary && std::ranges::any_of(g_.users(user), is_mul)) return true;
  }
  return false;
}

// A row of equal elements, which constants of one element stand for.
Tensor row_of(const Tensor& t, Index count) {
  Tensor row(t.dtype(), {count});
  for (Index i = 0; i < count; ++i) row.set_code(i, t.code(0));
  return row;
}

// The constant row that the only reader adds to every row of the product.
void MatmulMerger::find_bias(Member& m) const {
  if (g_.is_output(m.matmul)) return;
  std::vector<Id> readers;
  for (const Id user : g_.users(m.matmul)) {
    if (live_[user]) readers.push_back(user);
  }
  if (readers.size() != 1 || g_.nodes[readers[0]].op->name() != "add") return;
  const Node& sum = g_.nodes[readers[0]];
  const Tensor* bias = constant_of(g_, sum.operands[sum.operands[0].node == m.matmul ? 1 : 0]);
  const Dim& width = g_.nodes[m.matmul].results[0].dims.back();
  if (!bias || sum.results[0] != g_.nodes[m.matmul].results[0]) return;
  const bool one = bias->count() == 1, row = bias->rank() > 0 && Dim(bias->shape().back()) == width;
  if (!one && (!row || Dim(bias->count()) != width)) return;
  m.bias = one ? row_of(*bias, width.constant()) : *bias;
  m.sum = readers[0];
}

// Whether there is anything to merge.
bool MatmulMerger::collect() {
  std::map<Key, std::vector<Member>> by_key;
  for (Id id = 0; id < g_.nodes.size(); ++id) {
    const std::optional<Member> m = member(id);
    if (!m) continue;
    const auto& a = g_.nodes[id].attrs.as<MatmulAttrs>();
    const Encoding* const encoding = m->weight->type().encoding;
    by_key[{g_.nodes[id].operands[0], a.transpose_a, a.transpose_b, encoding ? encoding->name : ""}].push_back(*m);
  }
  for (const auto& [key, members] : by_key) {
    Index bytes = 0;
    for (const Member& m : members) bytes += static_cast<Index>(m.weight->bytes().size());
    if (members.size() < 2 || bytes > most_bytes) continue;
    groups_.emplace(members[0].matmul, members);
  }
  return !groups_.empty();
}

// Matrices [K,N] or, transposed, [N,K], or rows [N], one behind the other along N.
Tensor joined(const std::vector<const Tensor*>& parts, bool rows) {
  Index total = 0;
  for (const Tensor* t : parts) total += t->count();
  const Tensor& first = *parts[0];
  if (first.type().encoding) {
    Index bytes = 0;
    for (const Tensor* t : parts) bytes += static_cast<Index>(t->bytes().size());
    const Bytes all = Bytes::allocate(bytes);
    auto* to = const_cast<std::byte*>(all.data.data());  // nobody shares it yet
    for (const Tensor* t : parts) to = std::ranges::copy(t->bytes(), to).out;
    const Index inner = first.shape()[1];
    return {TensorType(first.dtype(), {total / inner, inner}, *first.type().encoding, 1), {all}};
  }
  const Index lines = rows ? first.shape()[0] : 1;  // each holds a piece of every part
  std::vector<Index> shape{total};
  if (first.rank() == 2 && rows) shape = {lines, total / lines};
  Tensor t(first.dtype(), std::move(shape));
  std::byte* to = t.mutable_bytes().data();
  for (Index line = 0; line < lines; ++line) {
    for (const Tensor* part : parts) {
      const std::size_t piece = part->bytes().size() / static_cast<std::size_t>(lines);
      std::memcpy(to, part->bytes().data() + static_cast<std::size_t>(line) * piece, piece);
      to += piece;
    }
  }
  return t;
}

void MatmulMerger::emit(Rewriter& r, const std::vector<Member>& members) {
  const Node& n = g_.nodes[members[0].matmul];
  const MatmulAttrs attrs = n.attrs.as<MatmulAttrs>();
  std::vector<const Tensor*> weights, biases;
  for (const Member& m : members) {
    weights.push_back(m.weight);
    if (m.bias) biases.push_back(&*m.bias);
  }
  Tensor weight = joined(weights, !attrs.transpose_b);
  if (attrs.transpose_b && !weight.type().encoding) {
    const Index inner = members[0].weight->shape()[1];
    weight = weight.reshaped({weight.count() / inner, inner});
  }
  Value y = matmul(r.value(n.operands[0]), constant(r.builder(), std::move(weight)), attrs);
  const bool all = biases.size() == members.size();
  if (all) y = y + constant(r.builder(), joined(biases, false));
  Index begin = 0;
  for (const Member& m : members) {
    const Index end = begin + columns(m, attrs.transpose_b);
    results_.emplace(all ? m.sum : m.matmul, slice(y, -1, begin, end));
    begin = end;
  }
  merged += members.size();
  ++joint;
}

std::optional<Values> MatmulMerger::visit(Rewriter& r, Id id) {
  const auto group = groups_.find(id);
  if (group != groups_.end()) emit(r, group->second);
  const auto made = results_.find(id);
  return made == results_.end() ? std::nullopt : std::optional(Values{made->second});
}

}  // namespace

Graph merge_matmuls(const Graph& g, PassContext& context) {
  MatmulMerger all(g);
  if (!all.collect()) return g;
  Graph result = rewrite(g, [&](Rewriter& r, Id id) { return all.visit(r, id); });
  context.remark(fmt::format("{} products as {}", all.merged, all.joint));
  return drop_dead(result);
}

}  // namespace rlx
