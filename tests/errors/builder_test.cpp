// Errors of Builder, OpRegistry and fusion nodes.
#include "ir/builder.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "probe_ops.h"

namespace rlx::test {
namespace {

const Dim steps = Dim::symbol("S", 2, 512);

TEST(BuilderError, Inputs) {
  Builder b;
  b.input("x", {DType::f32, {steps}});
  EXPECT_EQ(error_of([&] { b.input("", {DType::f32, {}}); }), "an input needs a name");
  EXPECT_EQ(error_of([&] { b.input("x", {DType::f32, {}}); }), "input x is declared twice");
  EXPECT_EQ(error_of([&] { b.input("y", {DType::f32, {Dim(-2)}}); }), "input y of type f32[-2] has a negative size");
  EXPECT_EQ(error_of([&] { b.input("y", {DType::f32, {Dim::symbol("S", 1, 2)}}); }),
            "size symbol S has bounds 2..512 and 1..2");
}

TEST(BuilderError, EmitNamesOpTypesAttributesAndRule) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {steps, 3}}), y = b.input("y", {DType::f64, {4}});
  EXPECT_EQ(error_of([&] { reshape(x, {Dim(-3)}); }), "reshape(f32[S,3]) {dims=[-3]}: size -3 is negative");
  EXPECT_EQ(error_of([&] { b.emit(halves_op, Attrs(AxisAttrs{2}), std::vector{x}); }),
            "halves(f32[S,3]) {axis=2}: axis 2 is out of range for rank 2");
  EXPECT_EQ(error_of([&] { b.emit(halves_op, Attrs(AxisAttrs{1}), std::vector{x}); }),
            "halves(f32[S,3]) {axis=1}: an even size to halve: 2 is not 3");
  EXPECT_NE(error_of([&] { x + y; }).find("add(f32[S,3], f64[4]): "), std::string::npos);
}

TEST(BuilderError, ValuesOfOtherBuilders) {
  Builder b, other;
  const Value x = b.input("x", {DType::f32, {}}), far = other.input("x", {DType::f32, {}});
  const std::string message = "a value of another graph, or none, is used as an operand";
  EXPECT_EQ(error_of([&] { x + far; }), message);
  EXPECT_EQ(error_of([&] { b.finish({far}); }), message);
  EXPECT_EQ(error_of([&] { b.finish({Value{}}); }), message);
  EXPECT_EQ(error_of([&] { b.state("s", x, far); }), message);
  EXPECT_EQ(error_of([&] { b.label(far, "x"); }), message);
  other.finish({far});
  const std::string finished = "the builder has finished its graph, a new one needs a new builder";
  EXPECT_EQ(error_of([&] { other.label(far, "gone"); }), finished);
  EXPECT_EQ(error_of([&] { other.input("y", {DType::f32, {}}); }), finished);
  EXPECT_EQ(error_of([&] { other.finish({}); }), finished);
  EXPECT_THROW(far.type(), InternalError);
}

TEST(BuilderError, States) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {}}), y = b.input("y", {DType::f32, {4}}), z = exp(x);
  EXPECT_EQ(error_of([&] { b.state("", x, x); }), "a state needs a name");
  EXPECT_EQ(error_of([&] { b.state("s", z, x); }), "state s does not begin at a graph input");
  EXPECT_EQ(error_of([&] { b.state("s", x, y); }), "state s changes type from f32[] to f32[4]");
  b.state("s", x, z);
  EXPECT_EQ(error_of([&] { b.state("s", y, y); }), "state s is declared twice");
  EXPECT_EQ(error_of([&] { b.state("t", x, x); }), "states s and t begin at the same input");
  b.state("t", y, y);
  EXPECT_EQ(b.finish({}).states.size(), 2u) << "refused states left nothing behind";
}

TEST(BuilderError, Checks) {
  Builder b;
  EXPECT_EQ(error_of([&] { b.check(steps, steps + 1, "why"); }), "why: S is not S+1");
}

TEST(BuilderError, Finish) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {}});
  EXPECT_EQ(error_of([&] { b.finish(std::vector{x}, {"a", "b"}); }), "1 outputs have 2 names");
  EXPECT_EQ(error_of([&] { b.finish(std::vector{x, x}, {"a", "a"}); }), "output a is declared twice");
  EXPECT_EQ(b.finish(std::vector{x, x, x}, {"", "", "a"}).outputs.size(), 3u) << "still usable";
}

TEST(BuilderError, InlineGraph) {
  Builder inner;
  const Graph body = inner.finish({exp(inner.input("p", {DType::f32, {4}}))});
  Builder b;
  const Value x = b.input("x", {DType::f32, {5}});
  EXPECT_EQ(error_of([&] { b.inline_graph(body, {}); }), "a body of 1 inputs is given 0 arguments");
  EXPECT_EQ(error_of([&] { b.inline_graph(body, std::vector{x}); }), "body input p is f32[4], the argument is f32[5]");
}

TEST(BuilderError, MisuseIsOurBug) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}});
  EXPECT_NE(internal_error_of([&] { b.emit(halves_op, Attrs(), std::vector{x}); }).find("attributes of another op"),
            std::string::npos);
  EXPECT_NE(internal_error_of([&] { b.emit(input_op(), Attrs(), {}); }).find("inputs are made by input()"),
            std::string::npos);
}

TEST(RegistryError, NamesOfOps) {
  static constinit const Op<NoAttrs> twin{{.name = "exp", .doc = ""}}, upper{{.name = "Exp", .doc = ""}},
      empty{{.name = "", .doc = ""}}, digit{{.name = "2x", .doc = ""}}, reserved{{.name = "graph", .doc = ""}},
      fine{{.name = "x2", .doc = ""}};
  OpRegistry r;
  EXPECT_EQ(error_of([&] { r.add(twin); }), "op exp is registered twice");
  EXPECT_EQ(error_of([&] { r.add(upper); }), "\"Exp\" is no name of an op: expected small letters, digits and _");
  EXPECT_EQ(error_of([&] { r.add(empty); }), "\"\" is no name of an op: expected small letters, digits and _");
  EXPECT_EQ(error_of([&] { r.add(digit); }), "\"2x\" is no name of an op: expected small letters, digits and _");
  EXPECT_EQ(error_of([&] { r.add(reserved); }), "an op may not be called graph");
  r.add(fine);
  r.add(fine);
  EXPECT_EQ(r.find("x2"), &fine);
  EXPECT_EQ(r.find("x3"), nullptr);
}

}  // namespace
}  // namespace rlx::test
