// rope: definition by slices of pairs, gradient as the opposite rotation, reference pair by pair.
#include "ops/rope/rope.h"

#include <cmath>

#include "core/error.h"
#include "ir/at_most.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/pad/pad.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"

namespace rlx {

std::span<const std::string_view> enum_names(RopePairing) {
  static constexpr std::string_view names[] = {"neox", "gptj"};
  return names;
}

namespace {

struct Heads {
  Index count = 0, size = 0, rotary = 0;
  Index half() const { return rotary / 2; }
};

Heads heads_of(const RopeAttrs& a, const TensorType& x) {
  require(x.rank() >= 2, "x is {}, expected rank 2 or more: positions, then elements of heads", x.text());
  const Dim& last = x.dim(-1);
  require(last.is_constant() && last.constant() > 0, "x is {}: its last axis must have a constant size of at least 1",
          x.text());
  require(a.head_size >= 0, "head_size is {}, expected at least 1, or 0 for the whole last axis", a.head_size);
  Heads h;
  h.size = a.head_size == 0 ? last.constant() : a.head_size;
  require(last.constant() % h.size == 0, "x is {}: its last axis does not hold heads of {} elements", x.text(), h.size);
  h.count = last.constant() / h.size;
  h.rotary = a.rotary == 0 ? h.size : a.rotary;
  require(h.rotary > 0 && h.rotary % 2 == 0 && h.rotary <= h.size,
          "{} elements of a head of {} are to be rotated, expected an even number up to its size", h.rotary, h.size);
  return h;
}

TensorType rope_infer(const RopeAttrs& a, InferContext& c) {
  require(c.in.size() == 3, "{} operands are given, expected 3", c.in.size());
  const TensorType &x = c.in[0], &cosine = c.in[1], &sine = c.in[2];
  require(!x.encoding && is_arithmetic_float(x.dtype), "x is {}, expected f64, f32, f16 or bf16", x.text());
  const Heads h = heads_of(a, x);
  const bool same = cosine.dtype == sine.dtype && cosine.rank() == sine.rank();
  require(same && !cosine.encoding && !sine.encoding, "cos is {} and sin is {}, expected equal types", cosine.text(),
          sine.text());
  require(cosine.dtype == x.dtype || cosine.dtype == DType::f32, "cos is {}, expected element type {} or f32",
          cosine.text(), name(x.dtype));
  const bool per_token = cosine.rank() == 3;
  require(cosine.rank() == 2 || (per_token && x.rank() >= 3),
          "cos is {} for x {}, expected [positions,entries], or [batch,positions,entries] for x of rank 3 or more",
          cosine.text(), x.text());
  for (Index i = 0; i < cosine.rank(); ++i) c.equal(cosine.dim(i), sine.dim(i), "sizes of cos and sin");
  if (per_token) c.equal(cosine.dim(0), x.dim(0), "batch of cos and x");
  at_most(c, x.dim(-2), cosine.dim(-2), "positions of x and rows of cos");
  at_most(c, h.half(), cosine.dim(-1), "rotated pairs and entries of a row of cos");
  return x;
}

// --- definition ---

// x as [...,S,H,D].
Value by_head(Value x, const Heads& h) {
  std::vector<Dim> dims = x.type().dims;
  dims.back() = h.count;
  dims.emplace_back(h.size);
  return reshape(x, std::move(dims));
}

struct Pair {
  Value first, second;  // [...,S,H,rotary/2]
};

Pair pairs_of(const RopeAttrs& a, Value by_head, const Heads& h) {
  const Value rotated = slice(by_head, -1, 0, h.rotary);
  if (a.pairing == RopePairing::neox) return {slice(rotated, -1, 0, h.half()), slice(rotated, -1, h.half(), h.rotary)};
  std::vector<Dim> dims = rotated.type().dims;
  dims.back() = h.half();
  std::vector<Dim> neighbours = dims;
  neighbours.emplace_back(2);
  const Value pairs = reshape(rotated, neighbours);
  return {reshape(slice(pairs, -1, 0, 1), dims), reshape(slice(pairs, -1, 1, 2), dims)};
}

Value join_pairs(const RopeAttrs& a, const Pair& p, const Heads& h) {
  if (a.pairing == RopePairing::neox) return concat({p.first, p.second}, -1);
  std::vector<Dim> dims = p.first.type().dims;
  const Value pairs = concat({unsqueeze(p.first, {p.first.rank()}), unsqueeze(p.second, {p.second.rank()})}, -1);
  dims.back() = h.rotary;
  return reshape(pairs, std::move(dims));
}

// The entries of a table that are used, shaped to broadcast over [...,S,H,rotary/2].
Value entries_of(Value table, Value x, const Heads& h) {
  const Value used = slice(slice(table, -1, 0, h.half()), -2, 0, x.dim(-2));
  std::vector<Dim> dims;
  if (table.rank() == 3) {
    dims.assign(static_cast<std::size_t>(x.rank()) - 2, 1);
    dims[0] = table.dim(0);
  }
  dims.insert(dims.end(), {x.dim(-2), 1, h.half()});
  return cast(reshape(used, std::move(dims)), x.dtype());
}

Value rope_definition(const RopeAttrs& a, const DefineArgs& d) {
  const Value x = d[0];
  const Heads h = heads_of(a, x.type());
  const Value c = entries_of(d[1], x, h), s = entries_of(d[2], x, h), heads = by_head(x, h);
  const Pair p = pairs_of(a, heads, h);
  const Value rotated = join_pairs(a, {p.first * c - p.second * s, p.second * c + p.first * s}, h);
  const Value all = h.rotary == h.size ? rotated : concat({rotated, slice(heads, -1, h.rotary, h.size)}, -1);
  return reshape(all, x.type().dims);
}

// --- gradient ---

// The gradient of a table from that of its entries at every element.
Value table_gradient(Value by_element, Value table, Value x, const Heads& h) {
  const Value used = sum_to(by_element, entries_of(table, x, h).type().dims);
  std::vector<Dim> dims = table.type().dims;
  dims[dims.size() - 2] = x.dim(-2);
  dims.back() = h.half();
  const Value rows = pad(reshape(used, std::move(dims)), -2, 0, table.dim(-2) - x.dim(-2));
  return cast(pad(rows, -1, 0, table.dim(-1) - Dim(h.half())), table.dtype());
}

Grads rope_vjp(const RopeAttrs& a, const VjpArgs& v) {
  const Heads h = heads_of(a, v.in[0].type());
  const Value x = widen(v.in[0]), u = widen(v.dout());
  const Pair p = pairs_of(a, by_head(x, h), h), g = pairs_of(a, by_head(u, h), h);
  return {rope(v.dout(), v.in[1], -v.in[2], a), table_gradient(g.first * p.first + g.second * p.second, v.in[1], x, h),
          table_gradient(g.second * p.first - g.first * p.second, v.in[2], x, h)};
}

// --- reference ---

void rope_reference(const RopeAttrs& a, const RefArgs& r) {
  if (r.out[0].count() == 0) return;
  const Tensor &x = r.in[0], &table = r.in[1];
  const Heads h = heads_of(a, x.type());
  const std::vector<double> cosine = load<double>(table), sine = load<double>(r.in[2]), in = load<double>(x);
  std::vector<double> out = in;
  const Index positions = x.shape()[x.shape().size() - 2], row = h.count * h.size;
  const Index width = table.shape().back(), rows = table.shape()[table.shape().size() - 2];
  const Index sequences = positions == 0 ? 0 : x.count() / (positions * row);
  const Index each = table.rank() == 3 && x.shape()[0] > 0 ? sequences / x.shape()[0] : 0;  // sequences of a batch item
  const bool neox = a.pairing == RopePairing::neox;
  for (Index sequence = 0; sequence < sequences; ++sequence) {
    for (Index position = 0; position < positions; ++position) {
      const Index entry = ((each > 0 ? sequence / each * rows : 0) + position) * width;
      for (Index head = 0; head < h.count; ++head) {
        const Index at = (sequence * positions + position) * row + head * h.size;
        for (Index i = 0; i < h.half(); ++i) {
          const auto first = static_cast<std::size_t>(at + (neox ? i : 2 * i));
          const auto second = static_cast<std::size_t>(at + (neox ? i + h.half() : 2 * i + 1));
          const double c = cosine[static_cast<std::size_t>(entry + i)], s = sine[static_cast<std::size_t>(entry + i)];
          out[first] = in[first] * c - in[second] * s;
          out[second] = in[second] * c + in[first] * s;
        }
      }
    }
  }
  store(r.out[0], out);
}

std::vector<Case<RopeAttrs>> rope_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), rows = Dim::symbol("R", 1, 32);
  const auto f = [](std::vector<Dim> dims) { return CaseInput(DType::f32, std::move(dims)); };
  std::vector<Case<RopeAttrs>> cases;
  for (const RopePairing pairing : {RopePairing::neox, RopePairing::gptj}) {
    const auto add = [&](Index head_size, Index rotary, std::vector<Dim> x, const std::vector<Dim>& table,
                         DimEnv env = {}) {
      cases.push_back(
          {{pairing, head_size, rotary}, {.inputs = {f(std::move(x)), f(table), f(table)}, .dims = std::move(env)}});
    };
    add(0, 0, {5, 8}, {5, 4});        // rank 2, one head
    add(8, 0, {2, 5, 24}, {5, 4});    // packed heads
    add(0, 0, {2, 3, 5, 8}, {5, 4});  // [B,H,S,D]
    add(8, 4, {2, 3, 16}, {3, 4});    // a table wider than the rotated pairs
    add(8, 4, {2, 3, 16}, {3, 2});
    add(6, 4, {2, 3, 12}, {7, 3});       // a longer table, and a tail
    add(6, 2, {2, 2, 3, 6}, {2, 3, 1});  // a table a batch item, for all heads
    add(4, 0, {2, 3, 8}, {2, 4, 3});
    add(4, 0, {b, s, 8}, {s, 2}, {{"S", 3}});
    add(4, 2, {b, 2, s, 4}, {rows, 2}, {{"S", 3}, {"R", 5}});
    add(4, 0, {b, s, 8}, {b, rows, 2}, {{"S", 3}, {"R", 5}});
    add(4, 0, {0, 3, 4}, {3, 2});
    add(4, 0, {2, 0, 4}, {3, 2});
    add(2, 0, {1, 2}, {1, 1});
    add(4, 0, {2, 2, 1, 3, 4}, {2, 3, 2});  // rank 5: axis 0 is the batch
    add(26, 22, {3, 7, 52}, {7, 11});
    // A quarter turn takes (1, 2) to (-2, 1) and (3, 4) to (-4, 3).
    const std::vector<double> turned =
        pairing == RopePairing::neox ? std::vector<double>{-3, -4, 1, 2, 9} : std::vector<double>{-2, 1, -4, 3, 9};
    cases.push_back({{pairing, 0, 4},
                     {.inputs = {f({1, 5}).filled({1, 2, 3, 4, 9}), f({1, 2}).filled({0, 0}), f({1, 2}).filled({1, 1})},
                      .expected = {turned}}});
  }
  cases.push_back({{}, {.inputs = {{DType::bf16, {2, 3, 4}}, f({3, 2}), f({3, 2})}, .other_dtypes = false}});
  return cases;
}

std::vector<Failure<RopeAttrs>> rope_failures() {
  const auto f = [](std::vector<Dim> dims) { return TensorType(DType::f32, std::move(dims)); };
  const TensorType x = f({2, 3, 8}), t = f({3, 4});
  using enum RopePairing;
  return {
      {{}, {x, t}, "2 operands are given, expected 3"},
      {{}, {{DType::i32, {2, 3, 8}}, t, t}, "x is i32[2,3,8], expected f64, f32, f16 or bf16"},
      {{}, {f({8}), t, t}, "x is f32[8], expected rank 2 or more"},
      {{}, {f({3, Dim::symbol("N", 2, 8)}), t, t}, "its last axis must have a constant size of at least 1"},
      {{neox, 5}, {x, t, t}, "x is f32[2,3,8]: its last axis does not hold heads of 5 elements"},
      {{neox, -1}, {x, t, t}, "head_size is -1, expected at least 1"},
      {{neox, 4, 6}, {x, t, t}, "6 elements of a head of 4 are to be rotated, expected an even number up to its size"},
      {{neox, 8, 3}, {x, t, t}, "3 elements of a head of 8 are to be rotated, expected an even number"},
      {{}, {x, t, {DType::f64, {3, 4}}}, "cos is f32[3,4] and sin is f64[3,4], expected equal types"},
      {{}, {x, {DType::f16, {3, 4}}, {DType::f16, {3, 4}}}, "cos is f16[3,4], expected element type f32 or f32"},
      {{}, {x, f({3, 4}), f({3, 5})}, "sizes of cos and sin: 4 is not 5"},
      {{}, {x, f({12}), f({12})}, "cos is f32[12] for x f32[2,3,8], expected [positions,entries]"},
      {{}, {f({3, 8}), f({1, 3, 4}), f({1, 3, 4})}, "expected [positions,entries], or [batch,positions,entries]"},
      {{}, {x, f({3, 3, 4}), f({3, 3, 4})}, "batch of cos and x: 3 is not 2"},
      {{}, {x, f({2, 4}), f({2, 4})}, "positions of x and rows of cos: 3 is more than 2"},
      {{}, {x, f({3, 3}), f({3, 3})}, "rotated pairs and entries of a row of cos: 4 is more than 3"},
  };
}

}  // namespace

constinit const Op<RopeAttrs> rope_op{{
    .name = "rope",
    .doc = "Rotary position embedding: in every head, pair i of the first `rotary` elements turns by the angle of its "
           "position: (a, b) becomes (a c - b s, b c + a s), c = cos[row,i], s = sin[row,i]; the other elements pass. "
           "x has rank 2 or more; positions run along the axis before the last, and the last axis holds heads of "
           "`head_size` elements, so [S,H*D], [B,S,H*D] and [B,H,S,D] fit; [B,S,H,D] is passed as [B,S,H*D]. `pairing` "
           "neox pairs element i with i + rotary/2, gptj 2i with 2i + 1. Tables are [rows,entries], row = position, "
           "or [B,rows,entries] with B the first axis of x, for positions that differ in the batch; spare rows and "
           "entries are not used. x is f64, f32, f16 or bf16, the tables are the same or f32. Gradient of x: the "
           "rotation by the opposite angle; of the tables: summed over what shares an entry. Source: Su et al., "
           "arXiv 2104.09864.",
    .infer = rope_infer,
    .definition = rope_definition,
    .vjp = rope_vjp,
    .reference = rope_reference,
    .cases = rope_cases,
    .failures = rope_failures,
}};

Value rope(Value x, Value cos, Value sin, RopeAttrs attrs) {
  const auto rows = [&](Value table) {
    if (table.rank() != 1) return table;
    const Index half = heads_of(attrs, x.type()).half();
    return reshape(table, {floordiv(table.dim(0), half), half});
  };
  return x.builder->emit_one(rope_op, attrs, {x, rows(cos), rows(sin)});
}

std::span<const OpDef* const> rope_ops() {
  static constexpr const OpDef* ops[] = {&rope_op};
  return ops;
}

}  // namespace rlx
