// philox: ten rounds of two products of 32 bits.
#include "ops/philox/philox.h"

#include <numbers>

#include "core/error.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

constexpr std::uint32_t factors[2] = {0xD2511F53u, 0xCD9E8D57u}, increments[2] = {0x9E3779B9u, 0xBB67AE85u};
constexpr int rounds = 10;

TensorType philox_infer(const PhiloxAttrs& a, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  require(c.in[0] == TensorType(DType::u32, {2}), "the key is {}, expected u32[2]", c.in[0].text());
  require(c.in[1] == TensorType(DType::u32, {4}), "the counter is {}, expected u32[4]", c.in[1].text());
  for (const Dim& d : a.dims) require(d.bounds().hi >= 0, "size {} is negative", d.text());
  return {DType::u32, a.dims};
}

void philox_reference(const PhiloxAttrs&, const RefArgs& r) {
  const auto key = load<std::uint64_t>(r.in[0]), start = load<std::uint64_t>(r.in[1]);
  std::array<std::uint32_t, 2> k{};
  std::array<std::uint32_t, 4> c{};
  for (std::size_t i = 0; i < 2; ++i) k[i] = static_cast<std::uint32_t>(key[i]);
  for (std::size_t i = 0; i < 4; ++i) c[i] = static_cast<std::uint32_t>(start[i]);
  std::vector<std::uint64_t> words;
  for (Index i = 0; i < r.out[0].count(); ++i) {
    const auto block = philox_block(philox_counter(c, static_cast<std::uint64_t>(i / 4)), k);
    words.push_back(block[static_cast<std::size_t>(i % 4)]);
  }
  store(r.out[0], words);
}

Value word(Builder& b, std::uint64_t value) { return constant(b, Tensor::of<std::uint64_t>(DType::u64, {}, {value})); }

// The blocks side by side, in 64-bit numbers that hold 32-bit words.
Value philox_definition(const PhiloxAttrs& a, const DefineArgs& d) {
  Builder& b = *d[0].builder;
  const Value low = word(b, 0xFFFFFFFFu), half = word(b, 32);
  const auto element = [&](std::size_t i, Index k) { return cast(reshape(slice(d[i], 0, k, k + 1), {}), DType::u64); };
  const Dim count = product(a.dims), blocks = ceildiv(count, 4);
  const Value first = bitwise_or(element(1, 0), shift_left(element(1, 1), half));
  const Value lower = first + cast(iota(b, DType::i64, {blocks}), DType::u64);
  const Value upper = bitwise_or(element(1, 2), shift_left(element(1, 3), half)) + cast(less(lower, first), DType::u64);
  Value c[4] = {bitwise_and(lower, low), shift_right(lower, half), bitwise_and(upper, low), shift_right(upper, half)};
  Value k[2] = {element(0, 0), element(0, 1)};
  for (int i = 0; i < rounds; ++i) {
    const Value p = c[0] * word(b, factors[0]), q = c[2] * word(b, factors[1]);
    const Value next[4] = {bitwise_xor(bitwise_xor(shift_right(q, half), c[1]), k[0]), bitwise_and(q, low),
                           bitwise_xor(bitwise_xor(shift_right(p, half), c[3]), k[1]), bitwise_and(p, low)};
    for (int j = 0; j < 4; ++j) c[j] = next[j];
    for (int j = 0; j < 2; ++j) k[j] = bitwise_and(k[j] + word(b, increments[j]), low);
  }
  Values words;
  for (const Value& v : c) words.push_back(unsqueeze(v, {1}));
  const Value all = reshape(cast(concat(words, 1), DType::u32), {4 * blocks});
  return reshape(slice(all, 0, 0, count), a.dims);
}

// Published answers of the generator, and that of a seed.
std::vector<Case<PhiloxAttrs>> philox_cases() {
  const Dim b = Dim::symbol("B", 0, 16);
  std::vector<Case<PhiloxAttrs>> cases;
  const auto add = [&](std::vector<Dim> dims, std::vector<double> key, std::vector<double> counter,
                       std::vector<double> words) {
    cases.push_back({{std::move(dims)},
                     {.inputs = {CaseInput(DType::u32, {2}).filled(std::move(key)),
                                 CaseInput(DType::u32, {4}).filled(std::move(counter))},
                      .expected = {std::move(words)},
                      .tolerance = exact,
                      .expected_tolerance = exact,
                      .other_dtypes = false}});
  };
  const double top = 0xFFFFFFFFu;
  add({4}, {0, 0}, {0, 0, 0, 0}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  add({2, 2}, {0xa4093822u, 0x299f31d0u}, {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
      {0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u});
  add({4}, {top, top}, {top, top, top, top}, {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  add({4}, {0x7ddf7469u, 0xdaa66d2cu}, {0, 0, 0, 0}, {0x71b28d71u, 0x700bbe15u, 0x473451d1u, 0x983216fbu});
  add({}, {0, 0}, {0, 0, 0, 0}, {0x6627e8d5u});
  add({0, 3}, {0, 0}, {0, 0, 0, 0}, {});
  // The counter carries into every word.
  cases.push_back({{{3, 5}},
                   {.inputs = {CaseInput(DType::u32, {2}).filled({7, 9}),
                               CaseInput(DType::u32, {4}).filled({top - 1, top, top, 5})},
                    .tolerance = exact,
                    .other_dtypes = false}});
  cases.push_back({{{b, 7}},
                   {.inputs = {CaseInput(DType::u32, {2}).range(0, 1e9), CaseInput(DType::u32, {4}).range(0, 1e9)},
                    .tolerance = exact,
                    .dims = {{"B", 5}},
                    .other_dtypes = false}});
  return cases;
}

Value numbers_of(Value words) {
  const Value high = shift_right(words, constant(*words.builder, DType::u32, 8));
  return cast(high, DType::f32) * constant(*words.builder, DType::f32, 0x1p-24);
}

}  // namespace

std::array<std::uint32_t, 4> philox_block(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t p = std::uint64_t{c[0]} * factors[0], q = std::uint64_t{c[2]} * factors[1];
    c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(q),
         static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p)};
    for (std::size_t j = 0; j < 2; ++j) k[j] += increments[j];
  }
  return c;
}

std::array<std::uint32_t, 4> philox_counter(std::array<std::uint32_t, 4> c, std::uint64_t blocks) {
  const std::uint64_t first = c[0] | std::uint64_t{c[1]} << 32, low = first + blocks;
  const std::uint64_t high = (c[2] | std::uint64_t{c[3]} << 32) + (low < first ? 1 : 0);
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
          static_cast<std::uint32_t>(high >> 32)};
}

constinit const Op<PhiloxAttrs> philox_op{{
    .name = "philox",
    .doc =
        "Random words u32 of sizes `dims` by Philox-4x32-10: element i is word i modulo 4 of the block at the counter "
        "plus i / 4. Operands are a key u32[2] and a counter u32[4] of 128 bits, low words first; equal operands "
        "give equal words, on every device. No gradient.",
    .infer = philox_infer,
    .definition = philox_definition,
    .reference = philox_reference,
    .cases = philox_cases,
    .failures =
        [] {
          const TensorType key{DType::u32, {2}}, counter{DType::u32, {4}};
          return std::vector<Failure<PhiloxAttrs>>{
              {{{4}}, {key}, "1 operands are given, expected 2"},
              {{{4}}, {counter, counter}, "the key is u32[4], expected u32[2]"},
              {{{4}}, {key, key}, "the counter is u32[2], expected u32[4]"},
              {{{-4}}, {key, counter}, "size -4 is negative"},
          };
        },
}};

Value philox(Value key, Value counter, std::vector<Dim> dims) {
  return key.builder->emit_one(philox_op, PhiloxAttrs{std::move(dims)}, {key, counter});
}

Value philox_key(Builder& b, std::uint64_t seed, std::uint64_t stream) {
  const std::uint64_t k = seed + stream * 0x9E3779B97F4A7C15u;
  return constant(b, Tensor::of<std::uint64_t>(DType::u32, {2}, {k & 0xFFFFFFFFu, k >> 32}));
}

Value philox_start(Builder& b) { return constant(b, Tensor::of<std::uint64_t>(DType::u32, {4}, {0, 0, 0, 0})); }

Value random_uniform(Value key, Value counter, std::vector<Dim> dims, DType dtype, double low, double high) {
  const Value u = numbers_of(philox(key, counter, std::move(dims)));
  return cast(like(u, low) + like(u, high - low) * u, dtype);
}

Value random_normal(Value key, Value counter, std::vector<Dim> dims, DType dtype, double mean, double scale) {
  std::vector<Dim> pairs = dims;
  pairs.emplace_back(2);
  const Value u = numbers_of(philox(key, counter, std::move(pairs)));
  const auto part = [&](Index i) { return reshape(slice(u, -1, i, i + 1), dims); };
  const Value floored = maximum(part(0), like(u, 0x1p-126)), turn = part(1);
  const Value z = sqrt(like(u, -2) * log(floored)) * cos(like(u, 2 * std::numbers::pi) * turn);
  return cast(like(z, mean) + like(z, scale) * z, dtype);
}

std::span<const OpDef* const> philox_ops() {
  static constexpr const OpDef* ops[] = {&philox_op};
  return ops;
}

}  // namespace rlx
