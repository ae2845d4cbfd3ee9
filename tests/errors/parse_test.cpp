// Errors of the text form and of attributes: line, column, what was found and expected.
#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"
#include "probe_ops.h"

namespace rlx::test {
namespace {

std::string error(std::string_view text) {
  const NamedTensors data{{"k0", Tensor(DType::f32, {4})}};
  return error_of([&] { parse(text, parse_options(&data)); });
}
// A graph of inputs x: f32[4], y: f32[S] with this body.
std::string in_body(const std::string& body) {
  return error("rlx 1\ngraph(%x: f32[4], %y: f32[S]) dims(S: 2..9) {\n" + body + "\n}\n");
}
// A knobs node with these attributes.
std::string in_attrs(const std::string& attrs) { return in_body("%0 = knobs %x {" + attrs + "} : f32[4] return %0"); }

TEST(ParseError, File) {
  EXPECT_EQ(error(""), "line 1, column 1: expected \"rlx\" before \"\"");
  EXPECT_EQ(error("onnx"), "line 1, column 1: expected \"rlx\" before \"onnx\"");
  EXPECT_EQ(error("rlxx 1"), "line 1, column 1: expected \"rlx\" before \"rlxx 1\"");
  EXPECT_EQ(error("rlx one"), "line 1, column 5: expected an integer before \"one\"");
  EXPECT_EQ(error("rlx 99999999999999999999"), "line 1, column 5: integer \"99999999999999999999\" is out of range");
  EXPECT_EQ(error("rlx 2\ngraph() {return}"), "line 1, column 6: text form 2 is unknown, this program reads 1");
  EXPECT_EQ(error("rlx 1\ngraph() {return} more"), "line 2, column 18: text goes on behind the graph: \"more\"");
  EXPECT_EQ(error("rlx 1\ngrapf() {return}"), "line 2, column 1: expected \"graph\" before \"grapf() {return}\"");
  EXPECT_EQ(error("rlx 1\ngraph {return}"), "line 2, column 7: expected \"(\" before \"{return}\"");
}

TEST(ParseError, Inputs) {
  EXPECT_EQ(error("rlx 1\ngraph(%x: f32[4] {return}"), "line 2, column 26: the list of inputs does not end");
  EXPECT_EQ(error("rlx 1\ngraph(x: f32[4]) {return}"), "line 2, column 7: expected \"%\" before \"x: f32[4]) {retu\"");
  EXPECT_EQ(error("rlx 1\ngraph(%x f32[4]) {return}"), "line 2, column 10: expected \":\" before \"f32[4]) {return}\"");
  EXPECT_EQ(error("rlx 1\ngraph(%x: f32[4] %y: f32[]) {return}"),
            "line 2, column 18: expected \",\" before \"%y: f32[]) {retu\"");
  EXPECT_EQ(error("rlx 1\ngraph(%x: f32[4], %x: f32[4]) {return}"), "line 2, column 29: input x is declared twice");
  EXPECT_EQ(error("rlx 1\ngraph(%\"\": f32[4]) {return}"), "line 2, column 18: an input needs a name");
  EXPECT_EQ(error("rlx 1\ngraph(%: f32[4]) {return}"), "line 2, column 8: expected a name before \": f32[4]) {retur\"");
  EXPECT_EQ(error("rlx 1\ngraph(%\"x: f32[4]) {return}"),
            "line 2, column 28: string \"x: f32[4]) {return}\" does not end");
  EXPECT_EQ(error("rlx 1\ngraph(%x: f32[-4]) {return}"),
            "line 2, column 18: input x of type f32[-4] has a negative size");
}

TEST(ParseError, Types) {
  const auto type = [](const std::string& t) { return error("rlx 1\ngraph(%x: " + t + ") dims(S: 2..9) {return}"); };
  EXPECT_EQ(type("f33[4]").substr(0, 60), "line 2, column 14: unknown element type \"f33\", expected one ");
  EXPECT_EQ(type("f32 4"), "line 2, column 15: expected \"[\" before \"4) dims(S: 2..9)\"");
  EXPECT_EQ(type("f32[4;2]"), "line 2, column 16: expected \",\" before \";2]) dims(S: 2..\"");
  EXPECT_EQ(type("f32[,]"), "line 2, column 15: expected a size before \",]) dims(S: \"");
  EXPECT_EQ(type("f32[Q]"), "line 2, column 16: unknown size symbol \"Q\"");
  EXPECT_EQ(type("f32:q9@0[4]"), "line 2, column 17: unknown encoding \"q9\"");
  EXPECT_EQ(type("f32:q4_0[4]"), "line 2, column 19: expected \"@\" before \"[4]) dims(S: 2..\"");
  EXPECT_EQ(type("f32:q4_0@x[4]"), "line 2, column 20: expected an integer before \"x[4]) dims(S: 2.\"");
  EXPECT_EQ(type("f32:q4_0@1[64]"), "line 2, column 25: axis 1 is out of range for rank 1");
  std::string long_type = "f32[1";
  for (int i = 0; i < 64; ++i) long_type += ",1";
  EXPECT_EQ(type(long_type + "]"), "line 2, column 143: a type has more than 64 sizes");
}

TEST(ParseError, Symbols) {
  const auto dims = [](const std::string& d) { return error("rlx 1\ngraph(%x: f32[4])\ndims" + d + " {return}"); };
  EXPECT_EQ(error("rlx 1\ngraph(%x: f32[4])\ndims S: 2..9 {return}"),
            "line 3, column 6: expected \"(\" before \"S: 2..9 {return}\"");
  EXPECT_EQ(dims("()"), "line 3, column 6: expected a name before \") {return}\"");
  EXPECT_EQ(dims("(S 2..9)"), "line 3, column 8: expected \":\" before \"2..9) {return}\"");
  EXPECT_EQ(dims("(S: x)"), "line 3, column 9: expected an integer before \"x) {return}\"");
  EXPECT_EQ(dims("(S: 2..9, S: 2..9)"), "line 3, column 22: size symbol S is declared twice");
  EXPECT_EQ(dims("(S: 9..2)"), "line 3, column 13: size symbol S has bounds 9..2, expected 0 <= low <= high");
  EXPECT_EQ(dims("(S: -1..2)"), "line 3, column 14: size symbol S has bounds -1..2, expected 0 <= low <= high");
  EXPECT_EQ(dims("(max: 1..2)"), "line 3, column 15: size symbol max has the name of an operation");
  EXPECT_EQ(dims("(a.b: 1..2)"),
            "line 3, column 15: size symbol \"a.b\" is not an identifier of at most 64 characters");
  EXPECT_EQ(dims("(S: 2..9"), "line 3, column 14: expected \")\" before \"{return}\"");
  EXPECT_EQ(error("rlx 1\ngraph(%x: f32[S]) dims(S: 2..9) {\n%0 = fusion %x : f32[S] = graph(%a: f32[S]) dims(S: 2..9) "
                  "{ return %a } return %0 }"),
            "line 3, column 57: size symbol S is declared twice");
}

TEST(ParseError, Nodes) {
  EXPECT_EQ(in_body(""), "line 4, column 1: expected \"%\" before \"}\n\"");
  EXPECT_EQ(in_body("exp %x : f32[4]"), "line 3, column 1: expected \"%\" before \"exp %x : f32[4]\n\"");
  EXPECT_EQ(in_body("%0 exp %x : f32[4]"), "line 3, column 4: expected \"=\" before \"exp %x : f32[4]\n\"");
  EXPECT_EQ(in_body("%0 = expp %x : f32[4]"), "line 3, column 10: unknown op \"expp\"");
  EXPECT_EQ(in_body("%0 = exp %x : f32[4]\n%0 = exp %y : f32[S]"), "line 4, column 3: %0 is defined twice");
  EXPECT_EQ(in_body("%x = exp %x : f32[4]"), "line 3, column 3: %x is defined twice");
  EXPECT_EQ(in_body("%0 = exp %q : f32[4]"), "line 3, column 12: unknown value %q");
  EXPECT_EQ(in_body("%0 = exp %0 : f32[4]"), "line 3, column 12: unknown value %0");
  EXPECT_EQ(in_body("%0 = exp %x#1 : f32[4]"), "line 3, column 14: %x#1 is out of range: the node has 1 results");
  EXPECT_EQ(in_body("%0 = exp %x#-1 : f32[4]"), "line 3, column 15: %x#-1 is out of range: the node has 1 results");
  EXPECT_EQ(in_body("%0 = exp %x#y : f32[4]"), "line 3, column 13: expected an integer before \"y : f32[4]\n}\n\"");
  EXPECT_EQ(in_body("%0 = halves %x : f32[2], f32[2] %1 = exp %0 : f32[2]"),
            "line 3, column 44: %0 has 2 results: write %0#0");
  EXPECT_EQ(in_body("%0 = exp %x, %y : f32[4]"),
            "line 3, column 1: exp(f32[4], f32[S]): 2 operands are given, expected 1");
  EXPECT_EQ(in_body("%0 = exp %x : f32[5]"), "line 3, column 1: %0 states f32[5], inferred is f32[4]");
  EXPECT_EQ(in_body("%0 = exp %x : f32[4], f32[4]"), "line 3, column 1: %0 states 2 results, 1 are inferred");
  EXPECT_EQ(in_body("%0 = exp %x"), "line 4, column 1: expected \":\" before \"}\n\"");
  EXPECT_EQ(in_body("%0 = exp %x !-1 : f32[4]"), "line 3, column 16: instance -1 is out of range");
  EXPECT_EQ(in_body("%0 = exp %x !4294967296 : f32[4]"), "line 3, column 24: instance 4294967296 is out of range");
  EXPECT_EQ(in_body("%0 = exp %x {} : f32[4]\nreturn %0"), "");
  EXPECT_EQ(in_body("%0 = exp %x {axis=1} : f32[4]"), "line 3, column 19: unknown attribute \"axis\", expected none");
  EXPECT_EQ(in_body("%0 = input : f32[4]"), "line 3, column 11: unknown op \"input\"");
}

TEST(ParseError, Ends) {
  EXPECT_EQ(in_body("return %x"), "");
  EXPECT_EQ(in_body("return %x,"), "line 4, column 1: expected \"%\" before \"}\n\"");
  EXPECT_EQ(in_body("return %x %y"), "line 3, column 11: expected \"}\" before \"%y\n}\n\"");
  EXPECT_EQ(in_body("return %x \"a\", %y \"a\""), "line 3, column 1: output a is declared twice");
  EXPECT_EQ(in_body("return %x \"a"), "line 5, column 1: string \"a\n}\n\" does not end");
  EXPECT_EQ(in_body("return %x} names(%x \"a\")"), "line 3, column 21: expected \":\" before \"\"a\")\n}\n\"");
  EXPECT_EQ(in_body("return %x} names(%q: \"a\")"), "line 3, column 20: unknown value %q");
  EXPECT_EQ(in_body("return %x} names(%x: a)"), "line 3, column 22: expected \"\"\" before \"a)\n}\n\"");
  EXPECT_EQ(in_body("return %x} names()"), "line 3, column 18: expected \"%\" before \")\n}\n\"");
}

TEST(ParseError, StatesAndChecks) {
  EXPECT_EQ(in_body("state s %x -> %x"), "line 3, column 9: expected \":\" before \"%x -> %x\n}\n\"");
  EXPECT_EQ(in_body("state s: %x %x"), "line 3, column 13: expected \"->\" before \"%x\n}\n\"");
  EXPECT_EQ(in_body("state s: %x -> %y"), "line 3, column 18: state s changes type from f32[4] to f32[S]");
  EXPECT_EQ(in_body("%0 = exp %x : f32[4] state s: %0 -> %0"),
            "line 3, column 39: state s does not begin at a graph input");
  EXPECT_EQ(in_body("state s: %x -> %x state s: %y -> %y"), "line 3, column 36: state s is declared twice");
  EXPECT_EQ(in_body("state s: %x -> %x state t: %x -> %x"),
            "line 3, column 36: states s and t begin at the same input");
  EXPECT_EQ(in_body("state \"\": %x -> %x"), "line 3, column 19: a state needs a name");
  EXPECT_EQ(in_body("check S 4 \"x\""), "line 3, column 9: expected \"=\" before \"4 \"x\"\n}\n\"");
  EXPECT_EQ(in_body("check S = 4"), "line 4, column 1: expected \"\"\" before \"}\n\"");
  EXPECT_EQ(in_body("check S = 1 \"x\" return"), "line 3, column 16: x: S is not 1");
  EXPECT_EQ(in_body("%0 = add %x, %y : f32[4] return %0"),
            "line 3, column 26: the check 4 = S \"broadcast\" is missing");
}

TEST(ParseError, Bodies) {
  EXPECT_EQ(in_body("%0 = fusion %x : f32[4] return"),
            "line 3, column 1: fusion(f32[4]): 0 bodies are given, expected 1");
  EXPECT_EQ(in_body("%0 = fusion %x : f32[4] = graph(%a: f32[5]) { return %a }"),
            "line 3, column 1: fusion(f32[4]): operand 0 is f32[4], body input a is f32[5]");
  EXPECT_EQ(in_body("%0 = fusion %x : f32[4] = graph() { return }"),
            "line 3, column 1: fusion(f32[4]): 1 operands are given, the body has 0 inputs");
  EXPECT_EQ(in_body("%0 = fusion %x : f32[4] = graph(%a: f32[4]) { state s: %a -> %a return %a }"),
            "line 3, column 1: fusion(f32[4]): a body holds no state pairs");
  EXPECT_EQ(in_body("%0 = fusion %x : f32[4] = graph(%a: f32[4]) { return %x }"),
            "line 3, column 56: unknown value %x");
  EXPECT_EQ(in_body("%0 = fusion %x : = graph(%a: f32[4]) { return } return"),
            "line 3, column 1: fusion(f32[4]): no results");
  std::string deep = "rlx 1\ngraph() {";
  for (int i = 0; i < 100; ++i) deep += "%0 = fusion : f32[] = graph() {";
  EXPECT_EQ(error(deep), "line 2, column 1023: bodies are nested deeper than 32");
}

TEST(AttributeError, Lists) {
  EXPECT_EQ(in_attrs("count=1 flag=true"), "line 3, column 24: expected \",\" before \"flag=true} :\"");
  EXPECT_EQ(in_attrs("count=1, count=2"), "line 3, column 30: attribute count is given twice");
  EXPECT_EQ(in_attrs("count 1"), "line 3, column 22: expected \"=\" before \"1} : f32[4] \"");
  EXPECT_EQ(in_attrs("=1"), "line 3, column 16: expected a name before \"=1} : f32[4]\"");
  EXPECT_EQ(
      in_attrs("kount=1"),
      "line 3, column 22: unknown attribute \"kount\", expected one of flag, count, ratio, word, dtype, size, shade, "
      "limit, extent, note, flags, counts, ratios, words, dtypes, sizes, shades, data");
  EXPECT_EQ(in_attrs("counts=[1"), "line 3, column 25: attribute counts: expected \"]\" before \"} : f32[4] r\"");
  EXPECT_EQ(in_attrs("counts=[1,]"),
            "line 3, column 26: attribute counts: expected an integer before \"]} : f32[4] \"");
  EXPECT_EQ(in_attrs("counts=1"), "line 3, column 23: attribute counts: expected \"[\" before \"1} : f32[4] \"");
}

TEST(AttributeError, Values) {
  EXPECT_EQ(in_attrs("flag=1"), "line 3, column 21: attribute flag: expected \"false\" before \"1} : f32[4] \"");
  EXPECT_EQ(in_attrs("flag=trueish"), "line 3, column 21: attribute flag: expected \"false\" before \"trueish} : f\"");
  EXPECT_EQ(in_attrs("count=x"), "line 3, column 22: attribute count: expected an integer before \"x} : f32[4] \"");
  EXPECT_EQ(in_attrs("count=9223372036854775808"),
            "line 3, column 22: attribute count: integer \"9223372036854775808} : f\" is out of range");
  EXPECT_EQ(in_attrs("count=1.5"), "line 3, column 23: expected \",\" before \".5} : f32[4]\"");
  EXPECT_EQ(in_attrs("ratio=x"), "line 3, column 22: attribute ratio: expected a number before \"x} : f32[4] \"");
  EXPECT_EQ(in_attrs("ratio=1e999"),
            "line 3, column 22: attribute ratio: number \"1e999} : f32[4] return %\" is out of range");
  EXPECT_EQ(in_attrs("word=x"), "line 3, column 21: attribute word: expected \"\"\" before \"x} : f32[4] \"");
  EXPECT_EQ(in_attrs("word=\"a"),
            "line 5, column 1: attribute word: string \"a} : f32[4] return %0\n}\n\" does not end");
  EXPECT_EQ(in_attrs("word=\"\\q\""), "line 3, column 23: attribute word: unknown escape \"\\q\"");
  EXPECT_EQ(in_attrs("word=\"\\xg0\""), "line 3, column 23: attribute word: unknown escape \"\\x\"");
  EXPECT_EQ(in_attrs("dtype=f99").substr(0, 58), "line 3, column 25: attribute dtype: unknown element type \"");
  EXPECT_EQ(in_attrs("size=Q"), "line 3, column 22: attribute size: unknown size symbol \"Q\"");
  EXPECT_EQ(in_attrs("shade=grey"),
            "line 3, column 26: attribute shade: \"grey\" is unknown, expected one of light, dark, none_at_all");
  EXPECT_EQ(in_attrs("limit=non"), "line 3, column 22: attribute limit: expected a number before \"non} : f32[4\"");
}

TEST(AttributeError, Constants) {
  const auto data = [](const std::string& text) { return in_attrs("data=" + text); };
  EXPECT_EQ(data("f32[2](1,2)"), "");
  EXPECT_EQ(data("f32[2,0](5)"), "") << "a splat of nothing";
  EXPECT_EQ(data("@k0"), "");
  EXPECT_EQ(data("@k1"), "line 3, column 24: attribute data: no data named \"@k1\" was given");
  EXPECT_EQ(data("f32[-1](1)"), "line 3, column 27: attribute data: extent -1 of a constant is negative");
  EXPECT_EQ(data("f32[3](1,2)"), "line 3, column 32: attribute data: constant f32[3] lists 2 values");
  EXPECT_EQ(data("f32[3]()"), "line 3, column 29: attribute data: constant f32[3] lists 0 values");
  EXPECT_EQ(data("f32[2] 1"), "line 3, column 28: attribute data: expected \"(\" before \"1} : f32[4] \"");
  EXPECT_EQ(data("f32[4611686018427387904,4](0)"),
            "line 3, column 47: attribute data: size of a constant overflows 63 bits");
  EXPECT_EQ(data("f32[1025](0)"),
            "line 3, column 30: attribute data: an inline constant has 1025 elements, at most 1024");
  EXPECT_EQ(data("u8[20](1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20)"),
            "line 3, column 67: attribute data: an inline constant lists more than 16 values");
  EXPECT_EQ(data("i8[1](300)"), "line 3, column 30: attribute data: 300 is out of range for i8");
  EXPECT_EQ(data("i8[1](-129)"), "line 3, column 31: attribute data: -129 is out of range for i8");
  EXPECT_EQ(data("u4[1](-1)"), "line 3, column 29: attribute data: -1 is out of range for u4");
  EXPECT_EQ(data("i4[2](-8,8)"), "line 3, column 31: attribute data: 8 is out of range for i4");
  EXPECT_EQ(data("bool[1](2)"), "line 3, column 30: attribute data: 2 is out of range for bool");
  EXPECT_EQ(data("u64[1](-1)"), "line 3, column 28: attribute data: expected a natural number before \"-1)} : f32[4\"");
  EXPECT_EQ(data("u64[1](18446744073709551616)"),
            "line 3, column 28: attribute data: number \"18446744073709551616)} :\" is out of range");
  EXPECT_EQ(data("c64[1](1)"), "line 3, column 27: attribute data: constants of type c64 are not written inline");
}

TEST(ParseError, FloatConstantsBeyondTheirType) {
  const auto read = [](const std::string& data, const std::string& type) {
    const std::string text = "rlx 1\ngraph() {\n  %0 = constant {data=" + data + "} : " + type + "\n  return %0\n}\n";
    return error_of([&] { parse(text); });
  };
  EXPECT_NE(read("f16[1](65520)", "f16[1]").find("65520 is out of range for f16"), std::string::npos);
  EXPECT_NE(read("f32[1](-1e39)", "f32[1]").find("-1e+39 is out of range for f32"), std::string::npos);
  EXPECT_NE(read("f8e4m3[1](1000)", "f8e4m3[1]").find("1000 is out of range for f8e4m3"), std::string::npos);
  for (const std::string data : {"f16[1](65504)", "f16[1](inf)", "f8e4m3[1](448)", "f32[1](-inf)", "f32[1](1e-50)"}) {
    EXPECT_EQ(read(data, data.substr(0, data.find('('))), "") << data;
  }
}

}  // namespace
}  // namespace rlx::test
