// sample: the order of steps is that of the common samplers.
#include "ops/sample/sample.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "ops/sample/draw.h"

namespace rlx {

namespace {

TensorType sample_infer(const SampleAttrs& a, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &logits = c.in[0], &numbers = c.in[1];
  require(is_arithmetic_float(logits.dtype) && !logits.encoding, "logits are {}, expected floats", logits.text());
  require(numbers.dtype == DType::f32 && !numbers.encoding, "numbers are {}, expected f32", numbers.text());
  require(logits.rank() >= 1 && numbers.rank() == logits.rank() - 1, "numbers of rank {} are given for logits {}",
          numbers.rank(), logits.text());
  require(a.temperature >= 0 && std::isfinite(a.temperature), "temperature is {}, expected 0 or more", a.temperature);
  require(a.top_k >= 0, "top_k is {}, expected 0 or more", a.top_k);
  require(a.top_p > 0 && a.top_p <= 1, "top_p is {}, expected 0 to 1, without 0", a.top_p);
  for (Index i = 0; i < numbers.rank(); ++i) c.equal(logits.dim(i), numbers.dim(i), fmt::format("size of axis {}", i));
  return {DType::i64, numbers.dims};
}

void sample_reference(const SampleAttrs& a, const RefArgs& r) {
  const std::vector<double> logits = load<double>(r.in[0]), numbers = load<double>(r.in[1]);
  const auto classes = static_cast<std::size_t>(r.in[0].shape().back());
  std::vector<double> weights;
  std::vector<Index> order, out;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    out.push_back(draw(std::span(logits).subspan(i * classes, classes), numbers[i], a, weights, order));
  }
  store(r.out[0], out);
}

std::vector<Case<SampleAttrs>> sample_cases() {
  const Dim b = Dim::symbol("B", 0, 16), v = Dim::symbol("V", 0, 16);
  const double inf = std::numeric_limits<double>::infinity(), almost = 1 - 0x1p-24;
  std::vector<Case<SampleAttrs>> cases;
  const auto add = [&](SampleAttrs a, CaseInput logits, CaseInput numbers, std::vector<double> out) {
    cases.push_back({a,
                     {.inputs = {std::move(logits), std::move(numbers)},
                      .expected = {std::move(out)},
                      .tolerance = exact,
                      .expected_tolerance = exact,
                      .gradient = false}});
  };
  const auto four = [](std::vector<double> x) { return CaseInput(DType::f32, {1, 4}).filled(std::move(x)); };
  const auto number = [](double x) { return CaseInput(DType::f32, {1}).filled({x}); };
  // Probabilities .6439, .2369, .0871, .0321.
  const CaseInput falling = four({2, 1, 0, -1});
  add({}, falling, number(0), {0});
  add({}, falling, number(0.64), {0});
  add({}, falling, number(0.65), {1});
  add({}, falling, number(0.9), {2});
  add({}, falling, number(almost), {3});
  // Of top_p 0.7 two are left, with .7311 and .2689.
  add({1, 0, 0.7}, falling, number(0.73), {0});
  add({1, 0, 0.7}, falling, number(0.74), {1});
  add({1, 0, 0.7}, falling, number(almost), {1});
  add({1, 0, 1e-9}, falling, number(almost), {0});
  add({1, 2, 1}, falling, number(almost), {1});
  add({1, 1, 1}, four({1, 3, 3, 0}), number(almost), {1});
  add({0, 0, 1}, four({1, 3, 3, 0}), number(almost), {1});
  add({1, 2, 1}, four({1, 3, 1, 0}), number(almost), {2});  // ties at the cut stay
  add({100, 0, 1}, falling, number(0.5), {1});
  add({1, 0, 1}, CaseInput(DType::f32, {3}).filled({-inf, 0, 0}), CaseInput(DType::f32, {}).filled({0}), {1});
  add({1, 0, 1}, CaseInput(DType::f32, {2, 0}), CaseInput(DType::f32, {2}).filled({0, 0.5}), {0, 0});
  add({}, CaseInput(DType::f32, {0, 3}), CaseInput(DType::f32, {0}), {});
  for (const SampleAttrs& a : {SampleAttrs{}, SampleAttrs{0.5, 3, 0.9}}) {
    cases.push_back({a,
                     {.inputs = {{DType::f32, {b, 2, v}}, CaseInput(DType::f32, {b, 2}).range(0, 0.999)},
                      .tolerance = exact,
                      .dims = {{"B", 5}, {"V", 7}},
                      .gradient = false}});
  }
  return cases;
}

}  // namespace

constinit const Op<SampleAttrs> sample_op{{
    .name = "sample",
    .doc =
        "One class for each row of logits on the last axis. In this order: the logits are divided by `temperature` (up "
        "to 1e-6 the first largest is the result); what is below the `top_k`-th largest is left out (0: nothing; ties "
        "stay); softmax; of the classes in descending order, equal ones by place, the first whose sum reaches `top_p` "
        "are left; the result is the first class, by place, whose running sum exceeds the row's number of the second "
        "operand, f32 in [0, 1), so that a class of probability 0 is never drawn. In f64. No classes give 0; NaN, "
        "+infinity or nothing but -infinity among the logits is an Error. Logits floats of at least 16 bits, results "
        "i64. No gradient.",
    .infer = sample_infer,
    .reference = sample_reference,
    .cases = sample_cases,
    .failures =
        [] {
          const TensorType x{DType::f32, {2, 3}}, r{DType::f32, {2}};
          return std::vector<Failure<SampleAttrs>>{
              {{}, {x}, "1 operands are given, expected 2"},
              {{}, {x.with(DType::i32), r}, "logits are i32[2,3], expected floats"},
              {{}, {x, r.with(DType::f64)}, "numbers are f64[2], expected f32"},
              {{}, {x, x}, "numbers of rank 2 are given for logits f32[2,3]"},
              {{}, {x, {DType::f32, {3}}}, "size of axis 0: 2 is not 3"},
              {{-1, 0, 1}, {x, r}, "temperature is -1, expected 0 or more"},
              {{1, -1, 1}, {x, r}, "top_k is -1, expected 0 or more"},
              {{1, 0, 0}, {x, r}, "top_p is 0, expected 0 to 1, without 0"},
          };
        },
}};

Value sample(Value logits, Value numbers, SampleAttrs attrs) {
  return logits.builder->emit_one(sample_op, attrs, {logits, numbers});
}

std::span<const OpDef* const> sample_ops() {
  static constexpr const OpDef* ops[] = {&sample_op};
  return ops;
}

}  // namespace rlx
