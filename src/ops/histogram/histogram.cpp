// histogram: ones, added where the elements' intervals are.
#include "ops/histogram/histogram.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter/scatter.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

constexpr Index most_bins = Index{1} << 30;

TensorType histogram_infer(const HistogramAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  require((c.in[0].dtype == DType::f32 || c.in[0].dtype == DType::f64) && !c.in[0].encoding,
          "element type {} is not supported, cast first", c.in[0].text());
  require(0 <= a.bins && a.bins <= most_bins, "{} bins are asked for, expected 0 to {}", a.bins, most_bins);
  return {DType::f32, {a.bins}};
}

bool empty(const HistogramAttrs& a) { return a.bins == 0 || !(a.max > a.min); }

// What falls outside is counted in a bin of its own, which is cut off.
Value histogram_definition(const HistogramAttrs& a, const DefineArgs& d) {
  const Value x = reshape(d[0], {d[0].type().count()});
  Builder& b = *x.builder;
  const Value zeros = broadcast(constant(b, DType::i64, 0), {a.bins + 1});
  if (empty(a)) return cast(slice(zeros, 0, 0, a.bins), DType::f32);
  const Value wide = cast(x, DType::f64);
  const Value inside = bitwise_and(less_equal(like(wide, a.min), wide), less_equal(wide, like(wide, a.max)));
  const Value place = (wide - like(wide, a.min)) * like(wide, static_cast<double>(a.bins)) / like(wide, a.max - a.min);
  const Value bin = minimum(cast(floor(place), DType::i64), constant(b, DType::i64, static_cast<double>(a.bins - 1)));
  const Value to = select(inside, bin, constant(b, DType::i64, static_cast<double>(a.bins)));
  const Value ones = broadcast(constant(b, DType::i64, 1), x.type().dims);
  return cast(slice(scatter(zeros, ones, to, 0, ScatterKind::add), 0, 0, a.bins), DType::f32);
}

void histogram_reference(const HistogramAttrs& a, const RefArgs& r) {
  std::vector<double> counts(static_cast<std::size_t>(a.bins), 0);
  for (const double v : load<double>(r.in[0])) {
    if (empty(a) || !(a.min <= v && v <= a.max)) continue;
    const auto bin = static_cast<Index>(std::floor((v - a.min) * static_cast<double>(a.bins) / (a.max - a.min)));
    ++counts[static_cast<std::size_t>(std::min(bin, a.bins - 1))];
  }
  store(r.out[0], counts);
}

std::vector<Case<HistogramAttrs>> histogram_cases() {
  const Dim b = Dim::symbol("B", 0, 16);
  std::vector<Case<HistogramAttrs>> cases;
  const auto add = [&](HistogramAttrs a, CaseInput x, std::vector<double> out) {
    cases.push_back({a,
                     {.inputs = {std::move(x)},
                      .expected = {std::move(out)},
                      .tolerance = exact,
                      .expected_tolerance = exact,
                      .gradient = false}});
  };
  const CaseInput eight = CaseInput(DType::f32, {2, 4}).filled({0, 0.25, 0.5, 0.75, 1, -0.1, 1.1, std::nan("")});
  add({4, 0, 1}, eight, {1, 1, 1, 2});
  add({2, 0.5, 0.5}, eight, {0, 0});
  add({2, 1, 0}, eight, {0, 0});
  add({0, 0, 1}, eight, {});
  add({3, 0, 1}, CaseInput(DType::f32, {}).filled({0.5}), {0, 1, 0});
  add({2, 0, 1}, CaseInput(DType::f32, {0}), {0, 0});
  cases.push_back({{7, -1, 1}, {.inputs = {{DType::f32, {b, 9}}}, .tolerance = exact, .gradient = false}});
  return cases;
}

}  // namespace

constinit const Op<HistogramAttrs> histogram_op{{
    .name = "histogram",
    .doc =
        "Numbers of elements in `bins` equal intervals between `min` and `max`, each with its lower end, the last also "
        "with its upper one. NaN and elements outside are left out. No bins or an interval without length give zeros. "
        "Elements f32 or f64, counted in f64 intervals; results f32. No gradient.",
    .infer = histogram_infer,
    .definition = histogram_definition,
    .reference = histogram_reference,
    .cases = histogram_cases,
    .failures =
        [] {
          return std::vector<Failure<HistogramAttrs>>{
              {{}, {}, "0 operands are given, expected 1"},
              {{}, {{DType::i32, {2}}}, "element type i32[2] is not supported, cast first"},
              {{-1, 0, 1}, {{DType::f32, {2}}}, "-1 bins are asked for, expected 0 to 1073741824"},
          };
        },
}};

Value histogram(Value x, Index bins, double min, double max) {
  return x.builder->emit_one(histogram_op, HistogramAttrs{bins, min, max}, {x});
}

std::span<const OpDef* const> histogram_ops() {
  static constexpr const OpDef* ops[] = {&histogram_op};
  return ops;
}

}  // namespace rlx
