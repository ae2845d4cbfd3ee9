// The reference evaluator and State: binding of sizes, run-time checks, names, exclusive states, failed runs.
#include "runtime/evaluate.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "probe_ops.h"

namespace rlx::test {
namespace {

const Dim batch = Dim::symbol("B", 1, 8), steps = Dim::symbol("S", 2, 16);

Tensor zeros(std::vector<Index> shape, DType d = DType::f32) { return {d, std::move(shape)}; }

Graph two_inputs() {
  Builder b;
  const Value x = b.input("x", {DType::f32, {batch, steps}}), y = b.input("y", {DType::f32, {batch, steps * 2}});
  return b.finish({exp(x), y});
}

std::string bind_error(const Graph& g, const std::vector<Tensor>& in, const DimEnv& dims = {}) {
  return error_of([&] { bind_dims(g, in, dims); });
}

TEST(BindDims, ReadsSymbolsFromShapes) {
  EXPECT_EQ(bind_dims(two_inputs(), std::vector{zeros({3, 4}), zeros({3, 8})}), (DimEnv{{"B", 3}, {"S", 4}}));
}

TEST(BindDims, EveryError) {
  const Graph g = two_inputs();
  EXPECT_EQ(bind_error(g, {zeros({3, 4})}), "1 inputs are given, the graph has 2");
  EXPECT_EQ(bind_error(g, {zeros({3, 4}, DType::f64), zeros({3, 8})}), "input x is f64[3,4], expected f32[B,S]");
  EXPECT_EQ(bind_error(g, {zeros({3}), zeros({3, 8})}), "input x is f32[3], expected f32[B,S]");
  EXPECT_EQ(bind_error(g, {zeros({9, 4}), zeros({9, 8})}),
            "input x is f32[9,4]: size 9 of B is outside its bounds 1..8");
  EXPECT_EQ(bind_error(g, {zeros({3, 1}), zeros({3, 2})}),
            "input x is f32[3,1]: size 1 of S is outside its bounds 2..16");
  EXPECT_EQ(bind_error(g, {zeros({3, 4}), zeros({2, 8})}), "input y is f32[2,8]: size symbol B is 3 and 2");
  EXPECT_EQ(bind_error(g, {zeros({3, 4}), zeros({3, 9})}), "input y is f32[3,9]: size 2*S is 9, expected 8");
  EXPECT_EQ(bind_error(g, {zeros({3, 4}), zeros({3, 8})}, {{"S", 5}}), "input x is f32[3,4]: size symbol S is 5 and 4");

  Builder b;
  const Graph alone = b.finish({b.input("x", {DType::f32, {steps * 2}})});
  EXPECT_EQ(bind_error(alone, {zeros({8})}), "size symbol S has no value: no input shows it alone");
  EXPECT_EQ(bind_error(alone, {zeros({8})}, {{"S", 1}}), "size symbol S is 1, outside its bounds 2..16");
  EXPECT_EQ(bind_error(alone, {zeros({8})}, {{"S", 4}}), "");

  Builder q;
  const Graph fixed = q.finish({q.input("x", {DType::f32, {Dim(4)}})});
  EXPECT_EQ(bind_error(fixed, {zeros({5})}), "input x is f32[5]: size 4 is 5, expected 4");
}

TEST(BindDims, EncodedInputs) {
  Builder b;
  const Graph g = b.finish({b.input("w", TensorType(DType::f32, {steps, 64}, q4_0, 1))});
  EXPECT_EQ(bind_dims(g, std::vector{encode_q4_0({2, 64}, 1, 1)}), (DimEnv{{"S", 2}}));
  EXPECT_EQ(bind_error(g, {zeros({2, 64})}), "input w is f32[2,64], expected f32:q4_0@1[S,64]");
  const TensorType along_rows(DType::f32, {64, 64}, q4_0, 0);
  EXPECT_EQ(bind_error(g, {Tensor(along_rows, {Bytes::allocate(18 * 2 * 64)})}),
            "input w is f32:q4_0@0[64,64], expected f32:q4_0@1[S,64]");
}

TEST(Evaluate, ErrorsNameTheNode) {
  Builder b;
  const Value x = b.input("x", {DType::i32, {2}}), y = b.input("y", {DType::i32, {2}});
  const Graph g = b.finish({x / y});
  const std::string message =
      error_of([&] { evaluate(g, std::vector{zeros({2}, DType::i32), zeros({2}, DType::i32)}); });
  EXPECT_EQ(message, "%2 = div(i32[2], i32[2]): integer 0 is divided by 0");
}

TEST(Evaluate, ByName) {
  const Graph g = two_inputs();
  EXPECT_EQ(evaluate(g, NamedTensors{{"y", zeros({1, 4})}, {"x", zeros({1, 2})}}).size(), 2u);
  EXPECT_EQ(error_of([&] { evaluate(g, NamedTensors{{"x", zeros({1, 2})}}); }), "input y is missing");
  EXPECT_EQ(error_of([&] { evaluate(g, NamedTensors{{"x", zeros({1, 2})}, {"y", zeros({1, 4})}, {"z", zeros({})}}); }),
            "the graph has no input \"z\"");
}

// total: running sum; copy: the previous input. The run divides, so that it can fail.
Graph running_sum() {
  Builder b;
  const Value total = b.input("total", {DType::i64, {batch}}), before = b.input("before", {DType::i64, {batch}});
  const Value x = b.input("x", {DType::i64, {batch}}), d = b.input("d", {DType::i64, {batch}});
  b.state("sum", total, total + x);
  b.state("copy", before, x);
  return b.finish({total, before, x / d});
}

Tensor integers(const std::vector<std::int64_t>& v) {
  const auto n = static_cast<Index>(v.size());
  return Tensor::of<std::int64_t>(DType::i64, {n}, v);
}

TEST(State, KeepsNewValuesAndReadsOldOnes) {
  const Graph g = running_sum();
  State state(g, {{"B", 2}});
  EXPECT_EQ(load<std::int64_t>(state.at("sum")), (std::vector<std::int64_t>{0, 0}));
  const auto run = [&](std::int64_t a) {
    return evaluate(g, NamedTensors{{"x", integers({a, 1})}, {"d", integers({1, 1})}}, &state);
  };
  run(5);
  const std::vector<Tensor> out = run(7);
  EXPECT_EQ(load<std::int64_t>(out[0]), (std::vector<std::int64_t>{5, 1})) << "outputs see the old value";
  EXPECT_EQ(load<std::int64_t>(out[1]), (std::vector<std::int64_t>{5, 1}));
  EXPECT_EQ(load<std::int64_t>(state.at("sum")), (std::vector<std::int64_t>{12, 2}));
  EXPECT_EQ(load<std::int64_t>(state.at("copy")), (std::vector<std::int64_t>{7, 1}));
}

TEST(State, AFailedRunKeepsTheOldValuesAndLetsGo) {
  const Graph g = running_sum();
  State state(g, {{"B", 2}});
  state.set("sum", integers({3, 4}));
  EXPECT_NE(error_of([&] { evaluate(g, NamedTensors{{"x", integers({1, 1})}, {"d", integers({1, 0})}}, &state); }), "");
  EXPECT_EQ(load<std::int64_t>(state.at("sum")), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(load<std::int64_t>(state.at("copy")), (std::vector<std::int64_t>{0, 0}));
  const State::Hold again(state);
}

TEST(State, HeldTwiceIsAnError) {
  const Graph g = running_sum();
  State state(g, {{"B", 2}});
  {
    const State::Hold hold(state);
    EXPECT_EQ(error_of([&] { const State::Hold second(state); }), "the state is in use by another run");
    EXPECT_EQ(error_of([&] { evaluate(g, NamedTensors{{"x", integers({1, 1})}, {"d", integers({1, 1})}}, &state); }),
              "the state is in use by another run");
    EXPECT_NE(error_of([&] { const State::Hold third(state); }), "") << "a refused hold does not let go of the first";
  }
  const State::Hold free(state);
}

TEST(State, EveryError) {
  const Graph g = running_sum();
  State state(g, {{"B", 2}});
  const NamedTensors in{{"x", integers({1, 1})}, {"d", integers({1, 1})}};
  EXPECT_EQ(error_of([&] { evaluate(g, in); }), "the graph has 2 states, but no State is given");
  NamedTensors more = in;
  more.emplace("total", integers({1, 1}));
  EXPECT_EQ(error_of([&] { evaluate(g, more, &state); }), "input total comes from state sum");
  EXPECT_EQ(error_of([&] { state.set("sum", integers({1, 2, 3})); }), "state sum is i64[2], the new value i64[3]");
  EXPECT_EQ(error_of([&] { state.set("other", integers({1})); }), "there is no state \"other\"");
  EXPECT_EQ(error_of([&] { (void)state.at("other"); }), "there is no state \"other\"");
  EXPECT_EQ(error_of([&] { State(g, {}); }), "size symbol B has no value");
  EXPECT_EQ(error_of([&] { State(g, {{"B", 9}}); }), "size symbol B is 9, outside its bounds 1..8");
  State empty;
  EXPECT_EQ(error_of([&] { evaluate(g, in, &empty); }), "there is no state \"sum\"");
  State wide(g, {{"B", 3}});
  EXPECT_EQ(error_of([&] { evaluate(g, in, &wide); }), "input x is i64[2]: size symbol B is 3 and 2");

  Builder b;
  const Value w = b.input("w", TensorType(DType::f32, {2, 64}, q4_0, 1));
  b.state("w", w, w);
  const Graph encoded = b.finish({});
  EXPECT_EQ(error_of([&] { State(encoded, {}); }),
            "state w has the encoded type f32:q4_0@1[2,64], expected a dense one");
}

TEST(Evaluate, ValuesAreFreedButOutputsStay) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {2}}), y = exp(x);
  const Graph g = b.finish({y, neg(y), y, x});
  const std::vector<Tensor> out = evaluate(g, std::vector{zeros({2})});
  EXPECT_TRUE(identical(out[0], out[2]));
  EXPECT_EQ(load<double>(out[1]), (std::vector<double>{-1, -1}));
  EXPECT_EQ(load<double>(out[3]), (std::vector<double>{0, 0}));
}

TEST(Evaluate, SizesThatBecomeNegativeAreErrors) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {steps}});
  b.check(steps - 4, batch, "room");
  const Graph g = b.finish({x});
  EXPECT_EQ(error_of([&] { evaluate(g, std::vector{zeros({3})}, {.dims = {{"B", 1}}}); }),
            "room: S-4 is -1, B is 1, they must be equal");
}

}  // namespace
}  // namespace rlx::test
