// TfIdfVectorizer: how often known runs of numbers appear in sequences.
#include <set>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"

namespace rlx::onnx {

namespace {

constexpr Index longest_gram = 64, most_skips = 64;

// The known runs of one length, one after the other.
struct Grams {
  Index length = 0, count = 0;
  std::vector<Index> numbers;
};

std::vector<Grams> grams_of(NodeArgs& n, Index shortest, Index longest) {
  const auto pool = n.integers("pool_int64s"), starts = n.integers("ngram_counts");
  require(pool && starts && !starts->empty(), "pool_int64s and ngram_counts are needed");
  std::vector<Grams> all;
  std::set<std::vector<Index>> seen;
  const auto total = static_cast<Index>(pool->size());
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const Index begin = (*starts)[i], end = i + 1 < starts->size() ? (*starts)[i + 1] : total;
    const auto length = static_cast<Index>(i) + 1;
    require(0 <= begin && begin <= end && end <= total && (end - begin) % length == 0,
            "runs of {} numbers lie between {} and {} of {}", length, begin, end, total);
    const bool counts = shortest <= length && length <= longest;
    Grams g{counts ? length : -length, (end - begin) / length, {pool->begin() + begin, pool->begin() + end}};
    for (Index k = 0; counts && k < g.count; ++k) {
      const auto from = g.numbers.begin() + k * length;
      require(seen.emplace(from, from + length).second, "a run of {} numbers is known twice", length);
    }
    all.push_back(std::move(g));
  }
  return all;
}

// How often each run stands in each row of x, [B,C], whole numbers of which are left out between two: [B,count] in i64.
Value counted(Value x, const Grams& g, Index distance) {
  const Dim count = x.dim(1) - (g.length - 1) * distance;
  Builder& b = *x.builder;
  if (count.bounds().hi <= 0) return broadcast(constant(b, DType::i64, 0), {x.dim(0), g.count});
  require(count.bounds().lo >= 0, "rows of {} may be shorter than runs of {} numbers", x.dim(1).text(), g.length);
  const Value table = constant(b, Tensor::of<std::int64_t>(DType::i64, {g.count, g.length}, g.numbers));
  std::optional<Value> found;
  for (Index k = 0; k < g.length; ++k) {
    const Value at = reshape(slice(x, 1, k * distance, count + k * distance), {x.dim(0), count, 1});
    const Value here = equal(at, reshape(slice(table, 1, k, k + 1), {g.count}));
    found = found ? bitwise_and(*found, here) : here;
  }
  return sum(cast(*found, DType::i64), {1});
}

// Of each result the run that it counts; the number behind the last run where there is none.
std::vector<Index> runs_of_results(const std::vector<Index>& results, Index runs) {
  Index most = -1;
  for (const Index r : results) {
    require(r >= 0 && r < (Index{1} << 24), "a run is counted in result {}", r);
    most = std::max(most, r);
  }
  std::vector<Index> from(static_cast<std::size_t>(most + 1), runs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Index& at = from[static_cast<std::size_t>(results[i])];
    require(at == runs, "two runs are counted in result {}", results[i]);
    at = static_cast<Index>(i);
  }
  return from;
}

// The standard's text numbers weights as runs, its reference as results: they must say the same.
Value weighted(NodeArgs& n, Value counts, const std::vector<Index>& results) {
  const std::string mode = n.string("mode", "");
  require(mode == "TF" || mode == "IDF" || mode == "TFIDF", "mode is {}, expected TF, IDF or TFIDF", in_quotes(mode));
  const auto weights = n.reals("weights");
  if (mode == "TF") return counts;
  const Value there = cast(less(like(counts, 0), counts), DType::f32), amount = mode == "IDF" ? there : counts;
  if (!weights) return amount;
  require(weights->size() == results.size(), "{} weights are given for {} runs", weights->size(), results.size());
  std::vector<double> by_run;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto to = static_cast<std::size_t>(results[i]);
    require(to < weights->size() && (*weights)[to] == (*weights)[i],
            "the weight of run {} is not that of its result {}", i, results[i]);
    by_run.push_back(static_cast<double>((*weights)[i]));
  }
  return amount * constant(n.builder(), Tensor::of<double>(DType::f32, {static_cast<Index>(by_run.size())}, by_run));
}

Values tf_idf_vectorizer(NodeArgs& n) {
  n.expect(1, 1);
  require(!n.given("pool_strings"), "pool_strings is not supported");
  const Index shortest = n.integer("min_gram_length"), longest = n.integer("max_gram_length");
  const Index skips = n.integer("max_skip_count");
  require(1 <= shortest && shortest <= longest && longest <= longest_gram,
          "runs have {} to {} numbers, expected 1 to {}", shortest, longest, longest_gram);
  require(0 <= skips && skips <= most_skips, "max_skip_count is {}, expected 0 to {}", skips, most_skips);
  require(n[0].rank() == 1 || n[0].rank() == 2, "x is {}, expected rank 1 or 2", n[0].type().text());
  require(is_integer(n[0].dtype()), "x is {}, expected integers", n[0].type().text());
  const bool one = n[0].rank() == 1;
  const Value whole = cast(n[0], DType::i64), x = one ? unsqueeze(whole, {0}) : whole;
  Values parts;
  Index runs = 0;
  for (const Grams& g : grams_of(n, shortest, longest)) {
    runs += g.count;
    if (g.count == 0) continue;
    Value counts = broadcast(constant(n.builder(), DType::i64, 0), {x.dim(0), g.count});
    for (Index d = 1; g.length > 0 && d <= (g.length == 1 ? 1 : skips + 1); ++d) counts = counts + counted(x, g, d);
    parts.push_back(counts);
  }
  const auto results = n.integers("ngram_indexes");
  require(results && static_cast<Index>(results->size()) == runs && runs > 0, "ngram_indexes has not {} elements",
          runs);
  const Value amounts = weighted(n, cast(concat(parts, 1), DType::f32), *results);
  const Value none = broadcast(like(amounts, 0), {x.dim(0), 1});
  const std::vector<Index> from = runs_of_results(*results, runs);
  const Value order =
      constant(n.builder(), Tensor::of<std::int64_t>(DType::i64, {static_cast<Index>(from.size())}, from));
  const Value y = gather(concat({amounts, none}, 1), order, 1);
  return {one ? squeeze(y, {0}) : y};
}

}  // namespace

OperatorRows ngram_rows() {
  static constexpr OperatorRow rows[] = {{"TfIdfVectorizer", 9, tf_idf_vectorizer}};
  return rows;
}

}  // namespace rlx::onnx
