// unique: rows that compare equal are one.
#include "ops/unique/unique.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "ir/measure.h"
#include "ops/gather/gather.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar_reference.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"

namespace rlx {

namespace {

std::vector<TensorType> unique_infer(const UniqueAttrs&, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  const bool numbers =
      is_arithmetic_float(x.dtype) || x.dtype == DType::boolean || (is_integer(x.dtype) && bits(x.dtype) >= 8);
  require(numbers && !x.encoding, "element type {} is not supported, cast first", x.text());
  require(x.rank() == 2, "operand is {}, expected a matrix", x.text());
  const TensorType list{DType::i64, {x.dim(0)}};
  return {list, list, list, {DType::i64, {}}};
}

// -1, 0, 1; NaN is above all numbers and equal to itself.
template <class T>
int order(T a, T b) {
  if (a < b) return -1;
  if (b < a) return 1;
  return static_cast<int>(a != a) - static_cast<int>(b != b);  // NOLINT(misc-redundant-expression): NaN alone
}

template <class T>
int row_order(const T* a, const T* b, Index width) {
  for (Index i = 0; i < width; ++i) {
    if (const int o = order(a[i], b[i]); o != 0) return o;
  }
  return 0;
}

// Compares each row with all different ones so far, and then the different ones with one another.
template <class T>
void unique_rows(const UniqueAttrs& a, const RefArgs& r) {
  const Index rows = r.in[0].shape()[0], width = r.in[0].shape()[1];
  const std::vector<T> x = load<T>(r.in[0]);
  const auto row = [&](Index i) { return x.data() + i * width; };
  std::vector<Index> first, counts, inverse;
  for (Index i = 0; i < rows; ++i) {
    std::size_t k = 0;
    while (k < first.size() && row_order(row(first[k]), row(i), width) != 0) ++k;
    if (k == first.size()) {
      first.push_back(i);
      counts.push_back(0);
    }
    ++counts[k];
    inverse.push_back(static_cast<Index>(k));
  }
  std::vector<std::size_t> sorted(first.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  if (a.sorted) {
    std::ranges::sort(sorted,
                      [&](std::size_t i, std::size_t j) { return row_order(row(first[i]), row(first[j]), width) < 0; });
  }
  std::vector<Index> place(first.size()), firsts(static_cast<std::size_t>(rows), 0), numbers = firsts;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    place[sorted[k]] = static_cast<Index>(k);
    firsts[k] = first[sorted[k]];
    numbers[k] = counts[sorted[k]];
  }
  for (Index& i : inverse) i = place[static_cast<std::size_t>(i)];
  store(r.out[0], firsts);
  store(r.out[1], inverse);
  store(r.out[2], numbers);
  store(r.out[3], std::vector<Index>{static_cast<Index>(first.size())});
}

void unique_reference(const UniqueAttrs& a, const RefArgs& r) {
  detail::visit_domain<base::reals | base::integers>(r.in[0].dtype(), [&]<class T>() { unique_rows<T>(a, r); });
}

std::vector<Case<UniqueAttrs>> unique_cases() {
  const Dim b = Dim::symbol("B", 0, 16), s = Dim::symbol("S", 0, 4);
  const double nan = std::nan("");
  std::vector<Case<UniqueAttrs>> cases;
  const auto add = [&](bool sorted, CaseInput x, std::vector<double> first, std::vector<double> inverse,
                       std::vector<double> counts, double number) {
    cases.push_back({{sorted},
                     {.inputs = {std::move(x)},
                      .expected = {std::move(first), std::move(inverse), std::move(counts), {number}},
                      .tolerance = exact,
                      .expected_tolerance = exact,
                      .gradient = false}});
  };
  const CaseInput six = CaseInput(DType::f32, {6, 1}).filled({2, 1, 1, 3, 4, 3});
  add(true, six, {1, 0, 3, 4, 0, 0}, {1, 0, 0, 2, 3, 2}, {2, 1, 2, 1, 0, 0}, 4);
  add(false, six, {0, 1, 3, 4, 0, 0}, {0, 1, 1, 2, 3, 2}, {1, 2, 2, 1, 0, 0}, 4);
  const CaseInput rows = CaseInput(DType::i32, {3, 2}).filled({1, 0, 1, -1, 1, 0});
  add(true, rows, {1, 0, 0}, {1, 0, 1}, {1, 2, 0}, 2);
  add(true, CaseInput(DType::f32, {4, 1}).filled({nan, 0, -0.0, nan}), {1, 0, 0, 0}, {1, 0, 0, 1}, {2, 2, 0, 0}, 2);
  add(true, CaseInput(DType::boolean, {3, 1}).filled({1, 0, 1}), {1, 0, 0}, {1, 0, 1}, {1, 2, 0}, 2);
  add(true, CaseInput(DType::i64, {2, 1}).filled({1099511627776.0, -5}), {1, 0}, {1, 0}, {1, 1}, 2);
  add(true, CaseInput(DType::f32, {0, 3}), {}, {}, {}, 0);
  add(false, CaseInput(DType::f32, {3, 0}), {0, 0, 0}, {0, 0, 0}, {3, 0, 0}, 1);
  for (const bool sorted : {true, false}) {
    cases.push_back(
        {{sorted}, {.inputs = {CaseInput(DType::i32, {b, s}).range(0, 2)}, .tolerance = exact, .dims = {{"B", 11}}}});
  }
  return cases;
}

}  // namespace

constinit const Op<UniqueAttrs> unique_op{{
    .name = "unique",
    .doc =
        "The different rows of a matrix: where each comes first, which of them each row is, how often each comes, and "
        "how many there are; the first and third results have as many places as rows, of which the rest is 0. "
        "`sorted`: in ascending order, element by element, NaN last; else in the order in which they come first. NaN "
        "is equal to itself, -0 to 0. Floats of at least 16 bits, integers of at least 8 and bool; all results i64. "
        "The builder function gives the slices along an axis: their number is a size that a run finds. No gradient "
        "(that of the slices is one of gather).",
    .infer = unique_infer,
    .reference = unique_reference,
    .cases = unique_cases,
    .failures =
        [] {
          return std::vector<Failure<UniqueAttrs>>{
              {{}, {}, "0 operands are given, expected 1"},
              {{}, {{DType::f32, {2}}}, "operand is f32[2], expected a matrix"},
              {{}, {{DType::c64, {2, 1}}}, "element type c64[2,1] is not supported, cast first"},
          };
        },
}};

UniqueValues unique(Value x, Index axis, bool sorted) {
  Builder& b = *x.builder;
  axis = x.type().axis(axis);
  std::vector<Index> order{axis};
  Dim width = 1;
  for (Index i = 0; i < x.rank(); ++i) {
    if (i == axis) continue;
    order.push_back(i);
    width = width * x.dim(i);
  }
  const Dim& rows = x.dim(axis);
  const Value matrix = reshape(transpose(x, order), {rows, width});
  const Values v = b.emit(unique_op, Attrs(UniqueAttrs{sorted}), std::span(&matrix, 1));
  const Dim number = measure(v[3], rows);
  const Value first = slice(v[0], 0, 0, number);
  return {gather(x, first, axis), first, v[1], slice(v[2], 0, 0, number)};
}

std::span<const OpDef* const> unique_ops() {
  static constexpr const OpDef* ops[] = {&unique_op};
  return ops;
}

}  // namespace rlx
