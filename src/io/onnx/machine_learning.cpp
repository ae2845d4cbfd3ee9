// Operators of the domain ai.onnx.ml that work on tensors alone.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/softmax/softmax.h"
#include "ops/take_along/take_along.h"

namespace rlx::onnx {

namespace {

Values binarizer(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  return {cast(less(like(x, n.real("threshold", 0)), x), x.dtype())};
}

// Columns of the last axis; a vector is one row.
Values array_feature_extractor(NodeArgs& n) {
  n.expect(2, 2);
  const Value y = gather(n[0], reshape(n[1], {n[1].type().count()}), n[0].rank() - 1);
  return {y.rank() == 1 ? unsqueeze(y, {0}) : y};
}

// --- trees ---

constexpr std::size_t most_nodes = std::size_t{1} << 22;
constexpr Index deepest_tree = 200;

enum Mode : int { leq, lt, gte, gt, eq, neq, member };

// Inner nodes of all trees. A node whose number is `count` or more is leaf number - count.
struct Forest {
  std::vector<Index> feature, when_true, when_false, roots;
  std::vector<double> split;
  std::vector<int> mode;
  std::vector<bool> nan_is_true;
  std::size_t count() const { return mode.size(); }
};

std::vector<Index> listed(NodeArgs& n, std::string_view name, std::size_t count) {
  const auto list = n.integers(name);
  require(list && list->size() == count, "attribute {} has {} elements, expected {}", in_quotes(name),
          list ? list->size() : 0, count);
  return *list;
}

std::vector<double> numbers(NodeArgs& n, std::string_view name, std::size_t count) {
  const auto t = n.tensor(name);
  require(t && static_cast<std::size_t>(t->count()) == count && !is_complex(t->dtype()),
          "tensor {} has not {} elements", in_quotes(name), count);
  return load<double>(*t);
}

// Nodes as the file has them; numbers of leaves, counted from 0, become negative: -1 - leaf.
Forest forest_of(NodeArgs& n, std::size_t leaves) {
  Forest f;
  const auto features = n.integers("nodes_featureids");
  require(features && !features->empty() && features->size() <= most_nodes, "the trees have no nodes, or too many");
  f.feature = *features;
  const std::size_t count = f.feature.size();
  f.split = numbers(n, "nodes_splits", count);
  for (const double m : numbers(n, "nodes_modes", count)) {
    require(m >= static_cast<int>(leq) && m <= static_cast<int>(member), "a node has mode {}, expected 0 to 6", m);
    f.mode.push_back(static_cast<int>(m));
  }
  const auto child = [&](std::string_view ids, std::string_view leafs) {
    std::vector<Index> to = listed(n, ids, count);
    const std::vector<Index> is_leaf = listed(n, leafs, count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t most = is_leaf[i] != 0 ? leaves : count;
      require(to[i] >= 0 && static_cast<std::size_t>(to[i]) < most, "a branch leads to {} of {}", to[i], most);
      if (is_leaf[i] != 0) to[i] = -1 - to[i];
    }
    return to;
  };
  f.when_true = child("nodes_truenodeids", "nodes_trueleafs");
  f.when_false = child("nodes_falsenodeids", "nodes_falseleafs");
  f.nan_is_true.assign(count, false);
  if (n.given("nodes_missing_value_tracks_true")) {
    const std::vector<Index> tracks = listed(n, "nodes_missing_value_tracks_true", count);
    for (std::size_t i = 0; i < count; ++i) f.nan_is_true[i] = tracks[i] != 0;
  }
  f.roots = n.integers("tree_roots").value_or(std::vector<Index>{});
  require(!f.roots.empty(), "there are no trees");
  for (const Index r : f.roots) require(r >= 0 && static_cast<std::size_t>(r) < count, "a root is node {}", r);
  return f;
}

// A node that tests membership becomes one node of equality for every member.
void expand_members(NodeArgs& n, Forest& f) {
  const auto listed_members = n.tensor("membership_values");
  const std::vector<double> members = listed_members ? load<double>(*listed_members) : std::vector<double>();
  std::size_t at = 0;
  const std::size_t count = f.count();
  for (std::size_t i = 0; i < count; ++i) {
    if (f.mode[i] != member) continue;
    std::vector<double> set;
    for (; at < members.size() && !std::isnan(members[at]); ++at) set.push_back(members[at]);
    require(at < members.size(), "membership_values ends before node {}", i);
    ++at;
    f.mode[i] = eq;
    if (set.empty()) set.push_back(std::numeric_limits<double>::quiet_NaN());  // equal to nothing
    f.split[i] = set[0];
    const Index otherwise = f.when_false[i];
    std::size_t last = i;
    for (std::size_t k = 1; k < set.size(); ++k) {
      f.when_false[last] = static_cast<Index>(f.count());
      last = f.count();
      f.feature.push_back(f.feature[i]);
      f.when_true.push_back(f.when_true[i]);
      f.when_false.push_back(otherwise);
      f.split.push_back(set[k]);
      f.mode.push_back(eq);
      f.nan_is_true.push_back(f.nan_is_true[i]);
    }
    require(f.count() <= most_nodes, "the trees have too many nodes");
  }
}

// Steps from a root to the farthest leaf.
Index depth_of(const Forest& f) {
  std::vector<Index> level = f.roots;
  Index depth = 0;
  for (; !level.empty(); ++depth) {
    require(depth <= deepest_tree, "a tree is deeper than {}, or has no end", deepest_tree);
    std::vector<Index> next;
    for (const Index i : level) {
      for (const Index to : {f.when_true[static_cast<std::size_t>(i)], f.when_false[static_cast<std::size_t>(i)]}) {
        if (to >= 0) next.push_back(to);
      }
    }
    std::ranges::sort(next);
    next.erase(std::ranges::unique(next).begin(), next.end());
    level = std::move(next);
  }
  return depth;
}

Value whole_numbers(NodeArgs& n, const std::vector<Index>& v) {
  return constant(n.builder(), Tensor::of<std::int64_t>(DType::i64, {static_cast<Index>(v.size())}, v));
}

Value compared(Mode mode, Value x, Value split) {
  switch (mode) {
    case leq:
      return less_equal(x, split);
    case lt:
      return less(x, split);
    case gte:
      return greater_equal(x, split);
    case gt:
      return greater(x, split);
    case neq:
      return not_equal(x, split);
    case eq:
    case member:
      break;
  }
  return equal(x, split);
}

// Where every row of x ends in every tree: -1 - leaf, [N,T].
Value leaves_reached(NodeArgs& n, const Forest& f, Value x) {
  const auto trees = static_cast<Index>(f.roots.size());
  const Value feature = whole_numbers(n, f.feature), yes = whole_numbers(n, f.when_true),
              no = whole_numbers(n, f.when_false);
  const Value split = constant(n.builder(), Tensor::of<double>(x.dtype(), {static_cast<Index>(f.count())}, f.split));
  const bool tracks = std::ranges::find(f.nan_is_true, true) != f.nan_is_true.end();
  const std::vector<Index> follow(f.nan_is_true.begin(), f.nan_is_true.end());
  const std::vector<Index> modes(f.mode.begin(), f.mode.end());
  Value at = broadcast(reshape(whole_numbers(n, f.roots), {1, trees}), {x.dim(0), trees});
  for (Index step = depth_of(f); step > 0; --step) {
    const Value zero = like(at, 0), inner = maximum(at, zero);
    const Value v = take_along(x, gather(feature, inner, 0), 1), s = gather(split, inner, 0);
    std::optional<Value> take;
    for (int mode = leq; mode < member; ++mode) {
      if (std::ranges::find(f.mode, mode) == f.mode.end()) continue;
      const Value here = compared(static_cast<Mode>(mode), v, s);
      const Value its = equal(gather(whole_numbers(n, modes), inner, 0), like(at, mode));
      take = take ? select(its, here, *take) : here;
    }
    if (tracks) {
      const Value follows = not_equal(gather(whole_numbers(n, follow), inner, 0), zero);
      take = bitwise_or(*take, bitwise_and(follows, not_equal(v, v)));
    }
    at = select(less(at, zero), at, select(*take, gather(yes, inner, 0), gather(no, inner, 0)));
  }
  return at;
}

Values tree_ensemble(NodeArgs& n) {
  n.expect(1, 1);
  n.ignore("nodes_hitrates");
  const Value x = n[0];
  require(x.rank() == 2 && is_arithmetic_float(x.dtype()), "x is {}, expected floats of rank 2", x.type().text());
  const Index targets = n.integer("n_targets"), way = n.integer("aggregate_function", 1);
  const Index behind = n.integer("post_transform", 0);
  require(way == 0 || way == 1, "aggregate_function {} is not supported, 0 (AVERAGE) and 1 (SUM) are", way);
  require(behind >= 0 && behind <= 2, "post_transform {} is not supported, 0 to 2 are", behind);
  require(targets > 0, "n_targets is {}, expected more than 0", targets);
  const auto ids = n.integers("leaf_targetids");
  require(ids.has_value() && !ids->empty(), "there are no leaves");
  for (const Index i : *ids) require(i >= 0 && i < targets, "a leaf has target {} of {}", i, targets);
  const std::vector<double> weights = numbers(n, "leaf_weights", ids->size());
  Forest f = forest_of(n, ids->size());
  expand_members(n, f);
  const Value minus = constant(n.builder(), DType::i64, -1), leaf = minus - leaves_reached(n, f, x);
  const Value weight = gather(
      constant(n.builder(), Tensor::of<double>(x.dtype(), {static_cast<Index>(weights.size())}, weights)), leaf, 0);
  const Value target = iota(n.builder(), DType::i64, {1, 1, targets}, 2);
  const Value its = equal(unsqueeze(gather(whole_numbers(n, *ids), leaf, 0), {2}), target);
  Value y = sum(select(its, unsqueeze(weight, {2}), like(weight, 0)), {1});
  if (way == 0) y = y / like(y, static_cast<double>(f.roots.size()));
  return {behind == 0 ? y : behind == 1 ? softmax(y, 1) : sigmoid(y)};
}

}  // namespace

OperatorRows machine_learning_rows() {
  static constexpr OperatorRow rows[] = {
      {"Binarizer", 1, binarizer},
      {"ArrayFeatureExtractor", 1, array_feature_extractor},
      {"TreeEnsemble", 5, tree_ensemble},
  };
  return rows;
}

}  // namespace rlx::onnx
