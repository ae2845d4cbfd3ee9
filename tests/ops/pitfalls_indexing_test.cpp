// Known traps of indexing ops that single-op cases do not express: run-time errors, chains, element widths, bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <limits>

#include "autodiff/gradient.h"
#include "core/error.h"
#include "ops/arg_reduce/arg_reduce.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/cumulative/cumulative.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/pad/pad.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter_add/scatter_add.h"
#include "ops/scatter_add_along/scatter_add_along.h"
#include "ops/sizes/sizes.h"
#include "ops/slice/slice.h"
#include "ops/take_along/take_along.h"
#include "ops/topk/topk.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double inf = std::numeric_limits<double>::infinity();

Tensor ints(DType type, std::vector<Index> shape, const std::vector<Index>& values) {
  return Tensor::of<std::int64_t>(type, std::move(shape), values);
}
Tensor floats(std::vector<Index> shape, const std::vector<double>& values) {
  return Tensor::of<double>(DType::f32, std::move(shape), values);
}

// The value of what `make` builds from inputs of these tensors' types.
template <class Make>
Tensor run(const std::vector<Tensor>& in, Make make) {
  Builder b;
  Values v;
  for (const Tensor& t : in) v.push_back(b.input("a" + std::to_string(v.size()), t.type()));
  const Graph g = b.finish({make(v)});
  return evaluate(g, in)[0];
}

// The gradient of the first input for a cotangent of the only output.
template <class Make>
std::vector<double> pull_back(std::vector<Tensor> in, const Tensor& cotangent, Make make) {
  Builder b;
  Values v;
  for (const Tensor& t : in) v.push_back(b.input("a" + std::to_string(v.size()), t.type()));
  const Graph g = gradient(b.finish({make(v)}));
  in.push_back(cotangent);
  return load<double>(evaluate(g, in)[0]);
}

std::vector<Index> whole(const Tensor& t) { return load<Index>(t); }

TEST(Pitfalls, P8_TakeAlongKeepsTheWidthOfEveryElementType) {
  const Tensor at = ints(DType::i64, {2}, {2, 0});
  const auto take = [](const Values& v) { return take_along(v[0], v[1], 0); };
  EXPECT_THAT(whole(run({ints(DType::i64, {3}, {788, 5, 1000000000000}), at}, take)), ElementsAre(1000000000000, 788));
  EXPECT_THAT(whole(run({ints(DType::i32, {3}, {788, 5, 16777217}), at}, take)), ElementsAre(16777217, 788));
  EXPECT_THAT(whole(run({ints(DType::boolean, {3}, {1, 1, 0}), at}, take)), ElementsAre(0, 1));
  const Tensor doubles = Tensor::of<double>(DType::f64, {3}, {788, 5, 1e12 + 0.5});
  EXPECT_THAT(load<double>(run({doubles, at}, take)), ElementsAre(1e12 + 0.5, 788));
}

TEST(Pitfalls, P9_ConcatKeepsTheWidthOfEveryElementType) {
  for (const DType d : all_dtypes()) {
    SCOPED_TRACE(name(d));
    Tensor x(d, {5});
    for (Index i = 0; i < 5; ++i) x.set_code(i, 0x8f3e5a7c91b2d4e6u >> (i * 3));
    if (d == DType::boolean) {
      for (Index i = 0; i < 5; ++i) x.set_code(i, static_cast<std::uint64_t>(i % 2));
    }
    const Tensor y = run({x}, [](const Values& v) { return concat({v[0], v[0], v[0]}, 0); });
    ASSERT_EQ(y.count(), 15);
    for (Index i = 0; i < 15; ++i) EXPECT_EQ(y.code(i), x.code(i % 5)) << i;
  }
}

TEST(Pitfalls, P14_CumsumOfIntegersIsExact) {
  const auto scan = [](const Values& v) { return cumsum(v[0], 0); };
  const auto before = [](const Values& v) { return cumsum(v[0], 0, true); };
  EXPECT_THAT(whole(run({ints(DType::i64, {4}, {1, 1, 0, 1})}, scan)), ElementsAre(1, 2, 2, 3));
  EXPECT_THAT(whole(run({ints(DType::i64, {2}, {16777217, 1})}, scan)), ElementsAre(16777217, 16777218));
  EXPECT_THAT(whole(run({ints(DType::i32, {2}, {16777217, 1})}, scan)), ElementsAre(16777217, 16777218));
  EXPECT_THAT(whole(run({ints(DType::i64, {2}, {9007199254740993, 1})}, scan)),
              ElementsAre(9007199254740993, 9007199254740994));
  EXPECT_THAT(whole(run({ints(DType::i32, {3}, {16777217, 1, 5})}, before)), ElementsAre(0, 16777217, 16777218));
  const Tensor at = run({ints(DType::i64, {4}, {1, 0, 1, 1})},
                        [](const Values& v) { return cumsum(v[0], 0) - constant(*v[0].builder, DType::i64, 1); });
  EXPECT_THAT(whole(at), ElementsAre(0, 0, 1, 2));
}

TEST(Pitfalls, P35_ConcatOfValuesThatEndThere) {
  const Tensor y = run({floats({2, 1}, {1, 2}), floats({2, 2}, {3, 4, 5, 6})}, [](const Values& v) {
    return concat({v[0] + like(v[0], 10), v[1] + like(v[1], 20), v[0] + like(v[0], 30)}, 1);
  });
  EXPECT_THAT(load<double>(y), ElementsAre(11, 23, 24, 31, 12, 25, 26, 32));
  // A block that would have to be repeated for every outer row is refused.
  Builder b;
  const Value big = b.input("big", {DType::f32, {2, 3, 4}}), small = b.input("small", {DType::f32, {1, 1, 4}});
  EXPECT_THAT([&] { concat({big, small}, -2); },
              ThrowsMessage<Error>(HasSubstr("size of operand 1 along axis 0: 1 is not 2")));
  EXPECT_THAT([&] { concat(Values{}, 0); }, ThrowsMessage<Error>(HasSubstr("concat of no operands")));
}

TEST(Pitfalls, P40_TopKIndicesAreDistinct) {
  const auto best = [](Index k) { return [k](const Values& v) { return topk(v[0], k).indices; }; };
  EXPECT_THAT(whole(run({floats({4}, {-inf, 5, -inf, -inf})}, best(3))), ElementsAre(1, 0, 2));
  EXPECT_THAT(whole(run({floats({4}, {-inf, -inf, -inf, -inf})}, best(4))), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(whole(run({floats({4}, {2, 7, 7, 1})}, best(2))), ElementsAre(1, 2));
  EXPECT_THAT(whole(run({ints(DType::i64, {3}, {16777216, 16777217, 16777216})}, best(3))), ElementsAre(1, 0, 2));
  const Tensor ones = floats({3}, {1, 10, 100});
  EXPECT_THAT(pull_back({floats({4}, {2, 7, 7, 1})}, ones, [](const Values& v) { return topk(v[0], 3).values; }),
              ElementsAre(100, 1, 10, 0));
}

TEST(Pitfalls, P42_AdjointOfTheExclusiveScan) {
  const Tensor x = floats({4}, {0, 0, 0, 0}), u = floats({4}, {1, 10, 100, 1000});
  const auto scan = [](bool exclusive, bool reverse) {
    return [=](const Values& v) { return cumsum(v[0], 0, exclusive, reverse); };
  };
  EXPECT_THAT(pull_back({x}, u, scan(true, false)), ElementsAre(1110, 1100, 1000, 0));
  EXPECT_THAT(pull_back({x}, u, scan(false, false)), ElementsAre(1111, 1110, 1100, 1000));
  EXPECT_THAT(pull_back({x}, u, scan(true, true)), ElementsAre(0, 1, 11, 111));
  EXPECT_THAT(pull_back({x}, u, scan(false, true)), ElementsAre(1, 11, 111, 1111));
}

TEST(Pitfalls, P93_IndexOutOfRangeIsAnError) {
  const Tensor table = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto rows = [](const Values& v) { return gather(v[0], v[1], 0); };
  for (const DType d : {DType::i32, DType::i64}) {
    EXPECT_THAT(load<double>(run({table, ints(d, {2}, {-1, -3})}, rows)), ElementsAre(5, 6, 1, 2));
    EXPECT_THAT([&] { run({table, ints(d, {2, 2}, {0, 1, 3, 2})}, rows); },
                ThrowsMessage<Error>(HasSubstr("index 3 at [1,0] is out of range for axis 0 of size 3")));
    EXPECT_THAT([&] { run({table, ints(d, {}, {-4})}, rows); },
                ThrowsMessage<Error>(HasSubstr("index -4 at [] is out of range for axis 0 of size 3")));
  }
  EXPECT_THAT([&] { run({table, ints(DType::i64, {1}, {std::numeric_limits<Index>::min()})}, rows); },
              ThrowsMessage<Error>(HasSubstr("index -9223372036854775808 at [0]")));
  EXPECT_THAT([&] { run({table, ints(DType::i64, {1}, {7})}, rows); }, ThrowsMessage<Error>(HasSubstr("gather")));
  EXPECT_THAT([&] { run({floats({0, 2}, {}), ints(DType::i64, {1}, {0})}, rows); },
              ThrowsMessage<Error>(HasSubstr("index 0 at [0] is out of range for axis 0 of size 0")));
}

TEST(Pitfalls, P93_AlsoInTheOtherIndexingOps) {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4}), at = ints(DType::i64, {2, 2}, {0, 1, 1, 2});
  EXPECT_THAT([&] { run({x, at}, [](const Values& v) { return take_along(v[0], v[1], 1); }); },
              ThrowsMessage<Error>(HasSubstr("index 2 at [1,1] is out of range for axis 1 of size 2")));
  EXPECT_THAT([&] { run({x, at}, [](const Values& v) { return scatter_add_along(v[0], v[1], 0, {2, 2}); }); },
              ThrowsMessage<Error>(HasSubstr("index 2 at [1,1] is out of range for axis 0 of size 2")));
  EXPECT_THAT([&] { run({x, at}, [](const Values& v) { return scatter_add(v[0], v[1], 0, 2); }); },
              ThrowsMessage<Error>(HasSubstr("index 2 at [1,1] is out of range for axis 0 of size 2")));
}

TEST(Pitfalls, P93_KnownIndicesAreCheckedWhenTheNodeIsMade) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {3, 2}});
  const std::string message = "index 3 is out of range for axis 0 of size 3";
  const Value three = constant(b, std::vector<Index>{0, 3});
  EXPECT_THAT([&] { gather(x, three); }, ThrowsMessage<Error>(HasSubstr(message)));
  EXPECT_THAT([&] { scatter_add(x, constant(b, std::vector<Index>{0, 1, 3}), 0, 3); },
              ThrowsMessage<Error>(HasSubstr(message)));
  const Value y = b.input("y", {DType::f32, {3}});
  EXPECT_THAT([&] { take_along(y, three, 0); }, ThrowsMessage<Error>(HasSubstr(message)));
  EXPECT_THAT([&] { scatter_add_along(slice(y, 0, 0, 2), three, 0, {3}); }, ThrowsMessage<Error>(HasSubstr(message)));
  const Value symbolic = b.input("s", {DType::f32, {Dim::symbol("S", 1, 4)}});
  EXPECT_NO_THROW(gather(symbolic, three));  // S may be 4
  EXPECT_THAT([&] { gather(symbolic, constant(b, std::vector<Index>{-5})); },
              ThrowsMessage<Error>(HasSubstr("index -5 is out of range for axis 0 of size S")));
}

TEST(Pitfalls, R16_GatherOnAnInnerAxis) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {2, 3, 4}}), i = b.input("i", {DType::i64, {5}});
  EXPECT_EQ(gather(x, i, 1).type().text(), "f32[2,5,4]");
  EXPECT_EQ(gather(x, b.input("j", {DType::i32, {5, 6}}), -1).type().text(), "f32[2,3,5,6]");
  EXPECT_EQ(gather(x, b.input("k", {DType::i32, {}}), 0).type().text(), "f32[3,4]");
}

TEST(Pitfalls, R21_IntegersBeyondTheMantissaOfF32) {
  const Index n = 16777217;
  const Tensor x = ints(DType::i32, {2}, {n, n - 1}), at = ints(DType::i64, {1}, {0});
  EXPECT_THAT(whole(run({x, at}, [](const Values& v) { return gather(v[0], v[1]); })), ElementsAre(n));
  EXPECT_THAT(whole(run({x}, [](const Values& v) { return slice(v[0], 0, 0, 1); })), ElementsAre(n));
  EXPECT_THAT(whole(run({x}, [](const Values& v) { return pad(v[0], 0, 0, 1); })), ElementsAre(n, n - 1, 0));
  EXPECT_THAT(whole(run({x}, [](const Values& v) { return concat({v[0], v[0]}, 0); })),
              ElementsAre(n, n - 1, n, n - 1));
  EXPECT_THAT(whole(run({x}, [](const Values& v) { return topk(v[0], 1).values; })), ElementsAre(n));
  EXPECT_THAT(whole(run({x}, [](const Values& v) { return argmin(v[0], 0, true); })), ElementsAre(1));
  EXPECT_THAT(
      whole(run({x, ints(DType::i64, {2}, {1, 1})}, [](const Values& v) { return scatter_add(v[0], v[1], 0, 2); })),
      ElementsAre(0, 2 * n - 1));
}

TEST(Indexing, BitsAreCopied) {  // a signalling NaN with a payload, and -0
  Tensor x(DType::f32, {3});
  const std::array<std::uint64_t, 3> codes{0x7fa12345u, 0x80000000u, 0xffc00001u};
  for (Index i = 0; i < 3; ++i) x.set_code(i, codes[static_cast<std::size_t>(i)]);
  const Tensor all = ints(DType::i64, {3}, {2, 1, 0});
  const auto expect_reversed = [&](const Tensor& y) {
    for (Index i = 0; i < 3; ++i) EXPECT_EQ(y.code(i), codes[static_cast<std::size_t>(2 - i)]);
  };
  expect_reversed(run({x, all}, [](const Values& v) { return gather(v[0], v[1]); }));
  expect_reversed(run({x, all}, [](const Values& v) { return take_along(v[0], v[1], 0); }));
  expect_reversed(run({x}, [](const Values& v) { return reversed(v[0], 0); }));
  expect_reversed(run({x}, [](const Values& v) { return pad(v[0], {{3}, {2}, {-1}, 0}); }));
  expect_reversed(run({x}, [](const Values& v) {
    return concat({slice(v[0], 0, 2, 3), slice(v[0], 0, 1, 2), slice(v[0], 0, 0, 1)}, 0);
  }));
}

TEST(Indexing, ScatterAddIsASumOfMaskedUpdates) {
  const Tensor u = floats({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), at = ints(DType::i64, {5}, {3, 0, 3, -1, 1});
  const Tensor got = run({u, at}, [](const Values& v) { return scatter_add(v[0], v[1], 0, 4); });
  const Tensor want = run({u, at}, [](const Values& v) {
    Builder& b = *v[0].builder;
    const Value zero = constant(b, DType::i64, 0), four = constant(b, DType::i64, 4);
    const Value row = reshape(select(less(v[1], zero), v[1] + four, v[1]), {1, 5, 1});
    const Value hit = equal(iota(b, DType::i64, {4, 1, 1}, 0), row);
    return sum(select(hit, reshape(v[0], {1, 5, 2}), like(v[0], 0)), {1});
  });
  EXPECT_EQ(load<double>(got), load<double>(want));
}

TEST(Indexing, ShapeArithmeticStaysSymbolic) {
  Builder b;
  const Dim n = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 64);
  const Value x = b.input("x", {DType::f32, {n, s, 12}});
  const Value shape = shape_of(x);
  const Value first = gather(shape, constant(b, std::vector<Index>{0}));
  const Value second = gather(shape, constant(b, DType::i64, -2));  // rank 0
  const Value heads = constant(b, std::vector<Index>{3, -1});
  const Value target =
      concat({first, reshape(second, {1}), slice(heads, 0, 0, 1), constant(b, std::vector<Index>{4})}, 0);
  ASSERT_NE(b.known(target), nullptr);
  EXPECT_EQ(*b.known(target), (std::vector<Dim>{n, s, 3, 4}));
  const Value backwards = slice(target, {{3}, {2}, {-2}});
  EXPECT_EQ(*b.known(backwards), (std::vector<Dim>{4, s}));
  EXPECT_TRUE(b.graph().checks.empty());
}

TEST(Indexing, ClampedSlicesFollowOnnx) {
  const Tensor x = floats({5}, {0, 1, 2, 3, 4});
  const auto cut = [&](Index start, Index end, Index step) {
    return load<double>(run({x}, [&](const Values& v) { return clamped_slice(v[0], 0, start, end, step); }));
  };
  EXPECT_THAT(cut(1, 1000, 1), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(cut(-2, 5, 1), ElementsAre(3, 4));
  EXPECT_THAT(cut(-1000, -3, 1), ElementsAre(0, 1));
  EXPECT_THAT(cut(3, 1, 1), ElementsAre());
  EXPECT_THAT(cut(7, 9, 1), ElementsAre());
  EXPECT_THAT(cut(0, 5, 3), ElementsAre(0, 3));
  EXPECT_THAT(cut(-1, -1000, -1), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(cut(1000, 0, -2), ElementsAre(4, 2));
  EXPECT_THAT(cut(2, -1, -1), ElementsAre());
  Builder b;
  const Dim s = Dim::symbol("S", 4, 16);
  const Value y = b.input("y", {DType::f32, {s}});
  EXPECT_EQ(clamped_slice(y, 0, -3, 1000).type().text(), "f32[3]");
  EXPECT_EQ(clamped_slice(y, 0, 0, s).at, y.at);
  EXPECT_THAT([&] { clamped_slice(y, 0, s - 5, s); },
              ThrowsMessage<Error>(HasSubstr("start S-5 may be negative or not")));
  EXPECT_THAT([&] { clamped_slice(y, 0, 0, 1, 0); }, ThrowsMessage<Error>(HasSubstr("step of axis 0 is 0")));
  EXPECT_THAT([&] { slice(y, 0, 0, 1, 0); }, ThrowsMessage<Error>(HasSubstr("step of axis 0 is 0")));
}

TEST(Indexing, SlicesAlongOneAxis) {
  const Tensor x = floats({5}, {0, 1, 2, 3, 4});
  const auto cut = [&](Index start, Index end, Index step) {
    return load<double>(run({x}, [&](const Values& v) { return slice(v[0], 0, start, end, step); }));
  };
  EXPECT_THAT(cut(1, 4, 1), ElementsAre(1, 2, 3));
  EXPECT_THAT(cut(0, 5, 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(cut(0, 4, 2), ElementsAre(0, 2));
  EXPECT_THAT(cut(4, -1, -1), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(cut(4, 0, -3), ElementsAre(4, 1));
  EXPECT_THAT(cut(2, 2, 1), ElementsAre());
}

TEST(Indexing, WhatSizesDoNotShowIsCheckedInTheRun) {
  const Dim s = Dim::symbol("S", 0, 16), k = Dim::symbol("K", 0, 16);
  const Tensor three = floats({3}, {7, 9, 8});
  const auto with = [&](auto make, const DimEnv& dims) {
    Builder b;
    const Graph g = b.finish({make(b.input("x", {DType::f32, {s}}))});
    return evaluate(g, std::vector<Tensor>{three}, {false, dims})[0];
  };
  const auto head = [&](Value x) { return slice(x, 0, 0, k); };
  EXPECT_THAT(load<double>(with(head, {{"K", 3}})), ElementsAre(7, 9, 8));
  EXPECT_THAT([&] { with(head, {{"K", 4}}); }, ThrowsMessage<Error>(HasSubstr("end of axis 0")));
  const auto best = [&](Value x) { return topk(x, k).indices; };
  EXPECT_THAT(whole(with(best, {{"K", 2}})), ElementsAre(1, 2));
  EXPECT_THAT([&] { with(best, {{"K", 4}}); }, ThrowsMessage<Error>(HasSubstr("k along axis 0")));
  const auto inside = [&](Value x) { return pad(x, {{k}, {1}, {}, 0}); };
  EXPECT_THAT(load<double>(with(inside, {{"K", 5}})), ElementsAre(0, 7, 9, 8, 0));
  EXPECT_THAT([&] { with(inside, {{"K", 3}}); }, ThrowsMessage<Error>(HasSubstr("end of axis 0")));
  Builder b;
  const Graph g = b.finish({argmax(b.input("x", {DType::f32, {s}}), 0)});
  EXPECT_THAT([&] { evaluate(g, std::vector<Tensor>{floats({0}, {})}); },
              ThrowsMessage<Error>(HasSubstr("size of axis 0")));
}

TEST(Indexing, OperandsOfUnprovedEqualSizesHaveGradients) {
  Builder b;
  const Dim s = Dim::symbol("S", 1, 8), t = Dim::symbol("T", 1, 8);
  const Value x = b.input("x", {DType::f32, {2, s}}), y = b.input("y", {DType::f32, {1, t}});
  const Graph g = gradient(b.finish({concat({x, y}, 0)}));
  const std::vector<Tensor> in{floats({2, 2}, {1, 2, 3, 4}), floats({1, 2}, {5, 6}),
                               floats({3, 2}, {1, 2, 3, 4, 5, 6})};
  const std::vector<Tensor> grads = evaluate(g, in);
  EXPECT_THAT(load<double>(grads[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(load<double>(grads[1]), ElementsAre(5, 6));
}

TEST(Indexing, RowsOfALargeTable) {  // the size of a real vocabulary
  Tensor table(DType::f32, {30522, 384});
  for (Index c = 0; c < 384; ++c) table.set_code(30521 * 384 + c, std::bit_cast<std::uint32_t>(static_cast<float>(c)));
  const Tensor y =
      run({table, ints(DType::i64, {1, 2}, {30521, 0})}, [](const Values& v) { return gather(v[0], v[1]); });
  const std::vector<double> row = load<double>(y);
  for (std::size_t c = 0; c < 384; ++c) ASSERT_EQ(row[c], static_cast<double>(c));
  EXPECT_EQ(row[384], 0);
}

}  // namespace
}  // namespace rlx::test
