// Cases of paged_attention.
#include <limits>

#include "ops/paged_attention/paged_attention_parts.h"

namespace rlx::detail {

namespace {

using Cases = std::vector<Case<PagedAttentionAttrs>>;

CaseInput integers(std::vector<Dim> dims, std::vector<double> values) {
  return CaseInput(DType::i32, std::move(dims)).filled(std::move(values));
}
CaseInput row(std::vector<Dim> dims, std::vector<double> values) {
  return CaseInput(DType::f32, std::move(dims)).filled(std::move(values));
}

struct Sizes {
  Dim tokens = 3, slots = 12, sequences = 2, pages = 2;
  Index heads = 4, kv_heads = 2, size = 3, value_size = 5;
  DType pool = DType::f32;
};

// Tables, sequences and positions of `s` follow.
std::vector<CaseInput> operands(const Sizes& s) {
  return {{DType::f32, {s.tokens, s.heads, s.size}},
          {s.pool, {s.slots, s.kv_heads, s.size}},
          {s.pool, {s.slots, s.kv_heads, s.value_size}}};
}

void add_options(Cases& cases) {
  const auto add = [&](PagedAttentionAttrs a, const Sizes& s) {
    std::vector<CaseInput> in = operands(s);
    in.push_back(integers({2, 2}, {2, 0, 1, 2}));
    in.push_back(integers({3}, {0, 1, 1}));
    const auto page = static_cast<double>(a.page);
    in.push_back(integers({3}, {page + 1, 0, 2 * page - 1}));
    cases.push_back({a, {.inputs = std::move(in)}});
  };
  for (const DType pool : {DType::f32, DType::f16, DType::bf16}) add({.page = 4}, {.pool = pool});
  add({.page = 4, .window = 1}, {});
  add({.page = 4, .window = 3}, {});
  add({.page = 4, .window = 100}, {});
  add({.page = 4, .scale = 0.5, .soft_cap = 1.5}, {});
  add({.page = 4, .scale = -0.5}, {});
  add({.page = 3}, {.slots = 11, .heads = 6, .kv_heads = 1, .size = 7, .value_size = 1});
  add({.page = 16}, {.slots = 48, .heads = 2, .size = 16, .value_size = 16});
}

// Sizes by symbols, and none of something.
void add_sizes(Cases& cases) {
  const Dim t = Dim::symbol("T", 0, 64), slots = Dim::symbol("S", 4, 1024), b = Dim::symbol("B", 0, 8),
            p = Dim::symbol("P", 0, 16);
  const auto add = [&](const Sizes& s, DimEnv env, std::vector<double> tables, std::vector<double> sequences,
                       std::vector<double> positions) {
    std::vector<CaseInput> in = operands(s);
    in.push_back(integers({s.sequences, s.pages}, std::move(tables)));
    in.push_back(integers({s.tokens}, std::move(sequences)));
    in.push_back(integers({s.tokens}, std::move(positions)));
    cases.push_back({{.page = 4}, {.inputs = std::move(in), .dims = std::move(env)}});
  };
  add({t, slots, b, p}, {{"T", 2}, {"S", 8}, {"B", 1}, {"P", 2}}, {1, 0}, {0, 0}, {3, 4});
  add({t, slots, b, p}, {{"T", 4}, {"S", 12}, {"B", 3}, {"P", 1}}, {1, 0, 1}, {2, 0, 1, 0}, {0, 3, 2, 1});
  add({t, slots, b, p}, {{"T", 0}, {"S", 4}, {"B", 0}, {"P", 0}}, {}, {}, {});
  add({t, slots, b, p}, {{"T", 0}, {"S", 4}, {"B", 2}, {"P", 1}}, {0, 0}, {}, {});
}

// Keys that are all alike: the result is the mean of the visible values 1, 10, 100 and so on, in pages of two.
void add_positions(Cases& cases) {
  const auto add = [&](PagedAttentionAttrs a, std::vector<double> sequences, std::vector<double> positions,
                       std::vector<double> expected) {
    const Dim tokens(static_cast<Index>(positions.size()));
    cases.push_back({a,
                     {.inputs = {{DType::f32, {tokens, 1, 2}},
                                 row({6, 1, 2}, std::vector<double>(12, 0.0)),
                                 row({6, 1, 1}, {1, 10, 100, 1000, 10000, 100000}),
                                 integers({2, 3}, {0, 1, 2, 2, 0, 0}),
                                 integers({tokens}, std::move(sequences)),
                                 integers({tokens}, std::move(positions))},
                      .expected = {std::move(expected)}}});
  };
  add({.page = 2}, {0, 0, 0}, {0, 1, 4}, {1, 5.5, 2222.2});
  add({.page = 2}, {1, 0, 1}, {2, 2, 0}, {110001.0 / 3, 37, 10000});
  add({.page = 2, .window = 1}, {0, 1, 1}, {3, 0, 2}, {1000, 10000, 1});
  add({.page = 2, .window = 2}, {0, 0, 1}, {0, 5, 3}, {1, 55000, 5.5});
  add({.page = 1}, {0, 1, 1}, {2, 0, 1}, {37, 100, 50.5});
}

void add_numbers(Cases& cases) {
  // Scores 0 and log 3 weigh 1/4 and 3/4; heads 0, 1 read the first head of the pools, 2, 3 the second.
  const double log3 = 1.0986122886681098;
  cases.push_back(
      {{.page = 2, .scale = 1.0},
       {.inputs = {row({1, 4, 1}, {1, 0, 1, 0}), row({2, 2, 1}, {0, 0, log3, log3}), row({2, 2, 1}, {4, 40, 8, 80}),
                   integers({1, 1}, {0}), integers({1}, {0}), integers({1}, {1})},
        .expected = {{7, 6, 70, 60}}}});
  // The cap comes before the mask: the hidden key stays hidden.
  cases.push_back({{.page = 2, .scale = 1.0, .soft_cap = 1},
                   {.inputs = {row({1, 1, 1}, {1}), row({2, 1, 1}, {-10, 5}), row({2, 1, 1}, {1, 100}),
                               integers({1, 1}, {0}), integers({1}, {0}), integers({1}, {0})},
                    .expected = {{1}}}});
}

}  // namespace

Cases paged_attention_cases() {
  Cases cases;
  add_options(cases);
  add_sizes(cases);
  add_positions(cases);
  add_numbers(cases);
  return cases;
}

std::vector<Failure<PagedAttentionAttrs>> paged_attention_failures() {
  const auto f = [](std::vector<Dim> dims) { return TensorType(DType::f32, std::move(dims)); };
  const auto i = [](std::vector<Dim> dims) { return TensorType(DType::i32, std::move(dims)); };
  const TensorType q = f({3, 4, 8}), k = f({32, 2, 8}), v = f({32, 2, 6}), tables = i({2, 5}), t = i({3});
  const double inf = std::numeric_limits<double>::infinity();
  return {
      {{}, {q, k, v, tables, t}, "5 operands are given, expected 6"},
      {{}, {q.with(DType::f16), k, v, tables, t, t}, "q is f16[3,4,8], expected f32 or f64"},
      {{}, {q, k.with(DType::i8), v, tables, t, t}, "keys are i8[32,2,8], expected f32, f16 or bf16"},
      {{},
       {q, k.with(DType::f64), v.with(DType::f64), tables, t, t},
       "keys are f64[32,2,8], expected f32, f16 or bf16"},
      {{}, {q, k.with(DType::f16), v, tables, t, t}, "values are f32[32,2,6], expected element type f16 as the keys"},
      {{}, {q, k, v, tables.with(DType::i64), t, t}, "tables are i64[2,5], expected i32"},
      {{}, {q, k, v, tables, t.with(DType::f32), t}, "sequences are f32[3], expected i32"},
      {{}, {q, k, v, tables, t, t.with(DType::i64)}, "positions are i64[3], expected i32"},
      {{}, {f({3, 32}), k, v, tables, t, t}, "q is f32[3,32], expected rank 3"},
      {{}, {q, f({2, 16, 2, 8}), v, tables, t, t}, "keys is f32[2,16,2,8], expected rank 3"},
      {{}, {q, k, v, i({10}), t, t}, "tables is i32[10], expected rank 2"},
      {{}, {q, k, v, tables, i({3, 1}), t}, "sequences is i32[3,1], expected rank 1"},
      {{}, {q, f({32, 2, 7}), v, tables, t, t}, "keys are f32[32,2,7]: their heads have not the 8 elements"},
      {{}, {q, k, f({32, 4, 6}), tables, t, t}, "values are f32[32,4,6]: they have not the 2 heads of the keys"},
      {{}, {q, f({32, 3, 8}), f({32, 3, 6}), tables, t, t}, "4 heads of q are not shared evenly by 3 heads"},
      {{}, {f({3, 4, 0}), k, v, tables, t, t}, "size 0 of axis 2 must be a constant of at least 1"},
      {{}, {q, k, f({16, 2, 6}), tables, t, t}, "slots of values and keys: 16 is not 32"},
      {{}, {q, k, v, tables, i({2}), t}, "tokens of sequences and q: 2 is not 3"},
      {{}, {q, k, v, tables, t, i({4})}, "tokens of positions and q: 4 is not 3"},
      {{.page = 0}, {q, k, v, tables, t, t}, "page is 0, expected 1 or more"},
      {{.scale = inf}, {q, k, v, tables, t, t}, "scale is inf, expected a finite number"},
      {{.window = -1}, {q, k, v, tables, t, t}, "window is -1, expected 0 for none or a positive number"},
      {{.soft_cap = -2}, {q, k, v, tables, t, t}, "soft_cap is -2, expected 0 for none or a positive number"},
  };
}

}  // namespace rlx::detail
