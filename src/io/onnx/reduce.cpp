// Reductions, running sums and positions of extremes.
#include "ops/reduce/reduce.h"

#include <numeric>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/arg_reduce/arg_reduce.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/cumulative/cumulative.h"
#include "ops/log_sum_exp/log_sum_exp.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"

namespace rlx::onnx {

namespace {

struct Reduction {
  Value x;
  std::vector<Index> axes;  // none: the operand is the result
  bool keep = true, nothing = false;
};

// Axes come as an attribute before version `from` and as the second operand from then on.
template <Index from>
Reduction reduction(NodeArgs& n) {
  n.expect(1, 2);
  Reduction r{n[0], {}, n.integer("keepdims", 1) != 0, false};
  const bool noop = n.integer("noop_with_empty_axes", 0) != 0;
  if (const auto given = n.axes(from, 1)) r.axes = *given;
  require(r.axes.size() <= most_axes, "{} axes are given", r.axes.size());
  r.nothing = r.axes.empty() && noop;
  if (r.axes.empty() && !noop) {
    r.axes.resize(static_cast<std::size_t>(r.x.rank()));
    std::iota(r.axes.begin(), r.axes.end(), Index{0});
  }
  return r;
}

template <ReduceKind kind, Index from>
Values reduce_operator(NodeArgs& n) {
  const Reduction r = reduction<from>(n);
  if (r.nothing) return {r.x};
  if (r.x.dtype() != DType::boolean) return {reduce(r.x, {kind, r.axes, r.keep})};
  const Value y = reduce(cast(r.x, DType::u8), {kind, r.axes, r.keep});
  return {cast(y, DType::boolean)};
}

// Reductions of a function of the elements, and a function of the sum.
enum class Norm { l1, l2, square, log_sum, log_sum_exp };

template <Norm norm>
Values norm_operator(NodeArgs& n) {
  const Reduction r = reduction<18>(n);  // of no axes: the functions alone
  switch (norm) {
    case Norm::l1:
      return {sum(abs(r.x), r.axes, r.keep)};
    case Norm::l2:
      return {sqrt(sum(r.x * r.x, r.axes, r.keep))};
    case Norm::square:
      return {sum(r.x * r.x, r.axes, r.keep)};
    case Norm::log_sum:
      return {log(sum(r.x, r.axes, r.keep))};
    case Norm::log_sum_exp:
      return {log_sum_exp(r.x, r.axes, r.keep)};
  }
  return {};
}

template <Value (*f)(Value, Index, bool)>
Values arg_operator(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  const Index axis = axis_of(n.integer("axis", 0), x.rank());
  const bool keep = n.integer("keepdims", 1) != 0;
  if (n.integer("select_last_index", 0) == 0) return {f(x, axis, keep)};
  const Value last = n.known(DType::i64, {x.dim(axis) - 1}, false);
  return {last - f(reversed(x, axis), axis, keep)};
}

template <Value (*f)(Value, Index, bool, bool)>
Values cumulative_operator(NodeArgs& n) {
  n.expect(2, 2);
  return {f(n[0], n.number(1), n.integer("exclusive", 0) != 0, n.integer("reverse", 0) != 0)};
}

Values lp_normalization(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  const Index axis = axis_of(n.integer("axis", -1), x.rank()), p = n.integer("p", 2);
  require(p == 1 || p == 2, "p is {}, expected 1 or 2", p);
  const Value length = p == 1 ? sum(abs(x), {axis}, true) : sqrt(sum(x * x, {axis}, true));
  return {select(equal(length, like(length, 0)), like(x, 0), x / length)};
}

}  // namespace

OperatorRows reduce_rows() {
  static constexpr OperatorRow rows[] = {
      {"ReduceSum", 1, reduce_operator<ReduceKind::sum, 13>},
      {"ReduceMean", 1, reduce_operator<ReduceKind::mean, 18>},
      {"ReduceMax", 1, reduce_operator<ReduceKind::max, 18>},
      {"ReduceMin", 1, reduce_operator<ReduceKind::min, 18>},
      {"ReduceProd", 1, reduce_operator<ReduceKind::prod, 18>},
      {"ReduceL1", 1, norm_operator<Norm::l1>},
      {"ReduceL2", 1, norm_operator<Norm::l2>},
      {"ReduceSumSquare", 1, norm_operator<Norm::square>},
      {"ReduceLogSum", 1, norm_operator<Norm::log_sum>},
      {"ReduceLogSumExp", 1, norm_operator<Norm::log_sum_exp>},
      {"ArgMax", 1, arg_operator<argmax>},
      {"ArgMin", 1, arg_operator<argmin>},
      {"CumSum", 11, cumulative_operator<cumsum>},
      {"CumProd", 26, cumulative_operator<cumprod>},
      {"LpNormalization", 1, lp_normalization},
  };
  return rows;
}

}  // namespace rlx::onnx
