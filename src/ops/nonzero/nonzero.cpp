// nonzero: each element that counts goes to the place that the running count of those before it says.
#include "ops/nonzero/nonzero.h"

#include "core/error.h"
#include "ir/measure.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/cumulative/cumulative.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter/scatter.h"
#include "ops/sizes/sizes.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

std::vector<TensorType> nonzero_infer(const NoAttrs&, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  const bool numbers =
      is_arithmetic_float(x.dtype) || x.dtype == DType::boolean || (is_integer(x.dtype) && bits(x.dtype) >= 8);
  require(numbers && !x.encoding, "element type {} is not supported, cast first", x.text());
  return {{DType::i64, {x.count()}}, {DType::i64, {}}};
}

// A place more takes what does not count.
Values nonzero_definition(const NoAttrs&, const DefineArgs& d) {
  const Value x = reshape(d[0], {d[0].type().count()});
  const Dim& n = x.dim(0);
  Builder& b = *x.builder;
  const Value counts = x.dtype() == DType::boolean ? x : not_equal(x, like(x, 0));
  const Value ones = cast(counts, DType::i64), size = reshape(sizes(b, {n}), {});
  const Value to = select(counts, cumsum(ones, 0, true), size);
  const Value places = broadcast(constant(b, DType::i64, 0), {n + 1});
  return {slice(scatter(places, iota(b, DType::i64, {n}), to, 0, ScatterKind::none), 0, 0, n), sum(ones, {0})};
}

void nonzero_reference(const NoAttrs&, const RefArgs& r) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(r.in[0].count()), 0);
  const auto x = load<std::complex<double>>(r.in[0]);  // of 64-bit integers only whether they are 0 matters
  std::size_t found = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != 0.0) positions[found++] = static_cast<std::int64_t>(i);
  }
  store(r.out[0], positions);
  store(r.out[1], std::vector<std::int64_t>{static_cast<std::int64_t>(found)});
}

std::vector<Case<NoAttrs>> nonzero_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 0, 16);
  std::vector<Case<NoAttrs>> cases;
  const auto add = [&](CaseInput x, std::vector<double> positions, double count) {
    cases.push_back({{},
                     {.inputs = {std::move(x)},
                      .expected = {std::move(positions), {count}},
                      .tolerance = exact,
                      .expected_tolerance = exact,
                      .gradient = false}});
  };
  add(CaseInput(DType::f32, {2, 3}).filled({0, 1, -0.0, -2, 0, std::nan("")}), {1, 3, 5, 0, 0, 0}, 3);
  add(CaseInput(DType::f32, {3}).filled({0, 0, 0}), {0, 0, 0}, 0);
  add(CaseInput(DType::boolean, {4}).filled({1, 0, 1, 1}), {0, 2, 3, 0}, 3);
  add(CaseInput(DType::i64, {2}).filled({1099511627776.0, 0}), {0, 0}, 1);
  add(CaseInput(DType::f32, {}).filled({5}), {0}, 1);
  add(CaseInput(DType::i32, {0, 3}), {}, 0);
  cases.push_back(
      {{}, {.inputs = {CaseInput(DType::i32, {b, s, 3}).range(-1, 1)}, .tolerance = exact, .dims = {{"S", 7}}}});
  cases.push_back({{}, {.inputs = {CaseInput(DType::f32, {b, s})}, .tolerance = exact, .gradient = false}});
  return cases;
}

}  // namespace

constinit const Op<NoAttrs> nonzero_op{{
    .name = "nonzero",
    .doc =
        "Row-major positions of the elements that are not 0, ascending, in as many places as there are elements (the "
        "rest is 0), and their number. NaN is not 0, -0 is. Floats of at least 16 bits, integers of at least 8 and "
        "bool; both results i64. The builder function gives just the positions that count: their number is a size "
        "that a run finds. No gradient.",
    .infer = nonzero_infer,
    .definition = nonzero_definition,
    .reference = nonzero_reference,
    .cases = nonzero_cases,
    .failures =
        [] {
          return std::vector<Failure<NoAttrs>>{
              {{}, {}, "0 operands are given, expected 1"},
              {{}, {{DType::c64, {2}}}, "element type c64[2] is not supported, cast first"},
              {{}, {{DType::i4, {2}}}, "element type i4[2] is not supported, cast first"},
          };
        },
}};

Value nonzero(Value x) {
  Builder& b = *x.builder;
  const Values v = b.emit(nonzero_op, Attrs(NoAttrs{}), std::span(&x, 1));
  return slice(v[0], 0, 0, measure(v[1], x.type().count()));
}

Value nonzero_coordinates(Value x) {
  Builder& b = *x.builder;
  const Value positions = nonzero(x);
  if (x.rank() == 0) return broadcast(constant(b, DType::i64, 0), {0, positions.dim(0)});
  Values rows;
  Dim inner = 1;
  for (Index axis = x.rank(); axis-- > 0;) {
    const auto number = [&](const Dim& d) { return maximum(reshape(sizes(b, {d}), {}), like(positions, 1)); };
    const Value at = inner == Dim(1) ? positions : positions / number(inner);
    rows.insert(rows.begin(), unsqueeze(axis == 0 ? at : fmod(at, number(x.dim(axis))), {0}));
    inner = inner * x.dim(axis);
  }
  return concat(rows, 0);
}

Value compress(Value x, Value condition, Index axis) {
  require(condition.rank() == 1, "the condition is {}, expected rank 1", condition.type().text());
  return gather(x, nonzero(condition), axis);
}

std::span<const OpDef* const> nonzero_ops() {
  static constexpr const OpDef* ops[] = {&nonzero_op};
  return ops;
}

}  // namespace rlx
