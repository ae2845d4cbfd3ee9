// Cases and failures of attention.
#include <limits>

#include "ops/attention/attention_parts.h"

namespace rlx::detail {

namespace {

using enum AttentionLayout;
using Cases = std::vector<Case<AttentionAttrs>>;

// Sizes of a case; all differ where they may, so that a wrong stride shows.
struct Sizes {
  Dim batch = 2, queries = 3, keys = 5;
  Index heads = 4, kv_heads = 2, size = 3, value_size = 2;
};

CaseInput operand(AttentionLayout layout, const Dim& batch, Index heads, const Dim& positions, Index size) {
  if (layout == bhsd) return CaseInput(DType::f32, {batch, heads, positions, size});
  if (layout == bshd) return CaseInput(DType::f32, {batch, positions, heads, size});
  return CaseInput(DType::f32, {batch, positions, heads * size});
}

CaseCommon operands(AttentionAttrs& a, const Sizes& s, DimEnv env = {}) {
  if (a.layout == packed) a.heads = s.heads;
  CaseCommon c{.inputs = {operand(a.layout, s.batch, s.heads, s.queries, s.size),
                          operand(a.layout, s.batch, s.kv_heads, s.keys, s.size),
                          operand(a.layout, s.batch, s.kv_heads, s.keys, s.value_size)},
               .tolerance = relative(3e-6),
               .dims = std::move(env)};
  return c;
}

// Every mask in every layout, with grouped heads, a scale and a cap.
void add_masks(Cases& cases) {
  const Sizes s;
  for (const AttentionLayout layout : {bhsd, bshd, packed}) {
    const auto add = [&](AttentionAttrs a, std::optional<CaseInput> extra = {}) {
      a.layout = layout;
      CaseCommon c = operands(a, s);
      if (extra) c.inputs.push_back(*extra);
      cases.push_back({a, std::move(c)});
    };
    using enum AttentionExtra;
    add({});
    add({.scale = 0.3, .soft_cap = 5});
    for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal, AttentionMask::window}) {
      const Index window = mask == AttentionMask::window ? 2 : 0;
      const auto with = [&](AttentionExtra extra) {
        return AttentionAttrs{.mask = mask, .extra = extra, .scale = 0.3, .soft_cap = 5, .window = window};
      };
      if (mask != AttentionMask::none) add(with(none));
      add(with(keys), CaseInput(DType::f32, {2, 5}).filled({1, 0, 0.75, 0.25, 1, 0, 0, 0, 1, 1}));
      add(with(bias), CaseInput(DType::f32, {2, 4, 3, 5}));
    }
    add({.extra = keys}, CaseInput(DType::boolean, {1, 5}).filled({1, 0, 1, 1, 0}));
    add({.extra = keys}, CaseInput(DType::i64, {2, 5}).filled({1, 0, 1, -2, 0, 0, 0, 0, 3, 1}));
    add({.extra = pairs}, CaseInput(DType::boolean, {2, 4, 3, 5}));
    add({.extra = pairs}, CaseInput(DType::boolean, {1, 1, 3, 5}));
    for (const std::vector<Dim>& dims :
         std::vector<std::vector<Dim>>{{1, 4, 3, 5}, {2, 1, 3, 5}, {2, 4, 1, 5}, {1, 1, 1, 5}, {1, 4, 3, 1}}) {
      add({.extra = bias}, CaseInput(DType::f32, dims));
    }
    add({.mask = AttentionMask::causal, .offset = Dim(0)});
    add({.mask = AttentionMask::causal, .offset = Dim(1)});
    add({.mask = AttentionMask::window, .window = 1, .offset = Dim(-1)});
  }
}

void add_sizes(Cases& cases) {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), t = Dim::symbol("T", 1, 16);
  for (const AttentionLayout layout : {bhsd, bshd, packed}) {
    const auto add = [&](AttentionMask mask, const Sizes& sizes, DimEnv env = {}) {
      AttentionAttrs a{.layout = layout, .mask = mask};
      CaseCommon c = operands(a, sizes, std::move(env));
      cases.push_back({a, std::move(c)});
    };
    using enum AttentionMask;
    add(causal, {.batch = b, .queries = s, .keys = s}, {{"S", 4}});
    add(causal, {.batch = b, .queries = s, .keys = t}, {{"S", 2}, {"T", 5}});
    add(causal, {.batch = b, .queries = s, .keys = t}, {{"S", 5}, {"T", 2}});
    add(causal, {.batch = 1, .queries = 1, .keys = s + 1}, {{"S", 4}});
    add(none, {.heads = 3, .kv_heads = 1, .size = 1, .value_size = 5});
    add(none, {.queries = 4, .keys = 4, .heads = 4, .kv_heads = 4, .size = 4, .value_size = 4});
    add(none, {.batch = 0});
    add(none, {.queries = 0});
    add(none, {.keys = 0});
    add(causal, {.keys = 0});
    add(none, {.batch = 1, .queries = 17, .keys = 23, .heads = 2, .kv_heads = 1, .size = 7, .value_size = 3});
  }
}

CaseInput row(std::vector<Dim> dims, std::vector<double> values) {
  return CaseInput(DType::f32, std::move(dims)).filled(std::move(values));
}

// Keys that are all alike: the result is the mean of the visible values 1, 10, 100, 1000, 10000.
void add_positions(Cases& cases) {
  const auto add = [&](AttentionAttrs a, Index queries, std::vector<double> expected) {
    cases.push_back({std::move(a),
                     {.inputs = {{DType::f32, {1, 1, queries, 2}},
                                 row({1, 1, 5, 2}, std::vector<double>(10, 0.0)),
                                 row({1, 1, 5, 1}, {1, 10, 100, 1000, 10000})},
                      .expected = {std::move(expected)}}});
  };
  const double all = 2222.2, but_last = 277.75;
  using enum AttentionMask;
  add({.mask = none}, 1, {all});
  add({.mask = causal}, 1, {all});
  add({.mask = causal}, 2, {but_last, all});
  add({.mask = causal, .offset = Dim(0)}, 2, {1, 5.5});
  add({.mask = window, .window = 1}, 1, {10000});
  add({.mask = window, .window = 2}, 1, {5500});
  add({.mask = window, .window = 2}, 2, {550, 5500});
  add({.mask = window, .window = 9}, 2, {but_last, all});
  add({.mask = causal, .offset = Dim(-1)}, 2, {0, 1});
  add({.mask = window, .window = 2, .offset = Dim(5)}, 2, {10000, 0});
}

void add_numbers(Cases& cases) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto add = [&](AttentionAttrs a, std::vector<CaseInput> inputs, std::vector<double> expected) {
    cases.push_back({std::move(a), {.inputs = std::move(inputs), .expected = {std::move(expected)}}});
  };
  // The cap comes before the mask: the hidden key stays hidden.
  const CaseInput one = row({1, 1, 1, 1}, {1}), keys = row({1, 1, 2, 1}, {-10, 5}),
                  values = row({1, 1, 2, 1}, {1, 100});
  add({.extra = AttentionExtra::keys, .scale = 1.0, .soft_cap = 1}, {one, keys, values, row({1, 2}, {1, 0})}, {1});
  add({.extra = AttentionExtra::bias, .scale = 1.0, .soft_cap = 1}, {one, keys, values, row({1, 1, 1, 2}, {0, -inf})},
      {1});
  // Nothing is visible.
  add({.extra = AttentionExtra::keys}, {one, keys, values, row({1, 2}, {0, 0})}, {0});
  add({.extra = AttentionExtra::bias}, {one, keys, values, row({1, 1, 1, 2}, {-inf, -inf})}, {0});
  // Scores 0 and log 3 weigh 1/4 and 3/4; with two elements the scale is 1/sqrt(2).
  const double log3 = 1.0986122886681098, root = 1.4142135623730951;
  const CaseInput pair = row({1, 1, 2, 1}, {4, 8});
  add({.scale = 1.0}, {one, row({1, 1, 2, 1}, {0, log3}), pair}, {7});
  add({}, {row({1, 1, 1, 2}, {root, 5}), row({1, 1, 2, 2}, {0, 0, log3, 0}), pair}, {7});
  // Four heads of q over two of k and v: heads 0, 1 read the first, 2, 3 the second.
  add({}, {{DType::f32, {1, 4, 1, 1}}, row({1, 2, 1, 1}, {1, 1}), row({1, 2, 1, 1}, {5, 9})}, {5, 5, 9, 9});
  add({.layout = packed, .heads = 4}, {{DType::f32, {1, 1, 4}}, row({1, 1, 2}, {1, 1}), row({1, 1, 2}, {5, 9})},
      {5, 5, 9, 9});
}

}  // namespace

Cases attention_cases() {
  Cases cases;
  add_masks(cases);
  add_sizes(cases);
  add_positions(cases);
  add_numbers(cases);
  return cases;
}

std::vector<Failure<AttentionAttrs>> attention_failures() {
  using Attrs = AttentionAttrs;
  const auto f = [](std::vector<Dim> dims) { return TensorType(DType::f32, std::move(dims)); };
  const TensorType q = f({2, 4, 3, 8}), k = f({2, 2, 5, 8}), v = f({2, 2, 5, 6});
  const TensorType flat_q = f({2, 3, 32}), flat_k = f({2, 5, 16}), flat_v = f({2, 5, 12});
  const auto causal = AttentionMask::causal, window = AttentionMask::window;
  const Attrs keys{.extra = AttentionExtra::keys}, pairs{.extra = AttentionExtra::pairs},
      bias{.extra = AttentionExtra::bias};
  return {
      {{}, {q, k}, "2 operands are given, expected 3 for extra none"},
      {{}, {q, k, v, q}, "4 operands are given, expected 3 for extra none"},
      {keys, {q, k, v}, "3 operands are given, expected 4 for extra keys"},
      {{}, {{DType::i32, {2, 4, 3, 8}}, k, v}, "q is i32[2,4,3,8], expected f64, f32, f16 or bf16"},
      {{}, {q, {DType::f16, {2, 2, 5, 8}}, v}, "k is f16[2,2,5,8], expected element type f32 as q"},
      {{}, {q, k, {DType::f64, {2, 2, 5, 6}}}, "v is f64[2,2,5,6], expected element type f32 as q"},
      {{}, {flat_q, k, v}, "q is f32[2,3,32], expected rank 4 in layout bhsd"},
      {{.layout = packed, .heads = 4}, {flat_q, k, flat_v}, "k is f32[2,2,5,8], expected rank 3 in layout packed"},
      {{.layout = packed}, {flat_q, flat_k, flat_v}, "heads is 0: the packed layout needs the number of heads of q"},
      {{.layout = packed, .heads = 5},
       {flat_q, flat_k, flat_v},
       "q is f32[2,3,32]: its last axis does not hold 5 heads"},
      {{.layout = packed, .heads = 4}, {flat_q, f({2, 5, 12}), flat_v}, "does not hold heads of 8 elements"},
      {{.layout = packed, .heads = 4}, {flat_q, flat_k, f({2, 5, 13})}, "does not hold the 2 heads of k"},
      {{.heads = 3}, {q, k, v}, "q is f32[2,4,3,8] in layout bhsd: it has 4 heads, but heads is 3"},
      {{}, {q, f({2, 3, 5, 8}), f({2, 3, 5, 6})}, "4 heads of q are not shared evenly by 3 heads of k"},
      {{}, {q, f({2, 2, 5, 7}), v}, "k is f32[2,2,5,7]: its heads have not the 8 elements of those of q"},
      {{}, {q, k, f({2, 4, 5, 6})}, "v is f32[2,4,5,6]: it has not the 2 heads of k"},
      {{}, {f({2, 4, 3, 0}), k, v}, "size 0 of axis 3 must be a constant of at least 1"},
      {{}, {q, f({3, 2, 5, 8}), v}, "batch of k and q: 3 is not 2"},
      {{}, {q, k, f({3, 2, 5, 6})}, "batch of v and q: 3 is not 2"},
      {{}, {q, k, f({2, 2, 4, 6})}, "positions of v and k: 4 is not 5"},
      {{.scale = std::numeric_limits<double>::infinity()}, {q, k, v}, "scale is inf, expected a finite number"},
      {{.soft_cap = -1}, {q, k, v}, "soft_cap is -1, expected 0 for none or a positive number"},
      {{.mask = window}, {q, k, v}, "window is 0 for mask window, expected 1 or more"},
      {{.mask = causal, .window = 2}, {q, k, v}, "window is 2 for mask causal, expected 0"},
      {{.offset = Dim(0)}, {q, k, v}, "offset is given for mask none"},
      {keys, {q, k, v, f({2, 1})}, "axis 1 of operand keys: 1 is not 5"},
      {keys, {q, k, v, f({2, 1, 5})}, "operand keys is f32[2,1,5], expected rank 2"},
      {keys, {q, k, v, {DType::c64, {2, 5}}}, "operand keys is c64[2,5], expected bool, integers or floats"},
      {pairs, {q, k, v, f({2, 4, 3, 5})}, "operand pairs is f32[2,4,3,5], expected bool"},
      {bias, {q, k, v, {DType::f16, {2, 4, 3, 5}}}, "operand bias is f16[2,4,3,5], expected the element type of q"},
      {bias, {q, k, v, f({2, 2, 3, 5})}, "axis 1 of operand bias: 2 is not 4"},
      {bias, {q, k, v, f({3, 5})}, "operand bias is f32[3,5], expected rank 4"},
  };
}

}  // namespace rlx::detail
