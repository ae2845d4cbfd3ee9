// The text form: exact texts, attributes of every kind, comments, names, side-file constants, fixed points.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "ir/outline.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"
#include "probe_ops.h"

namespace rlx::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

const char* const sample = R"(rlx 1
graph(%x: f32[B,2*S], %kv: f32[B,S], %w: f32:q4_0@1[64,256], %"b c": f32[T])
  dims(B: 1..8, S: 2..512, T: 2..600) {
  %0 = halves %x {axis=1} : f32[B,S], f32[B,S]
  %1 = add %kv, %0#0 : f32[B,S]
  %2 = fusion %1, %kv : f32[B,S] = graph(%a: f32[B,S], %b: f32[B,S]) {
    %0 = mul %a, %b : f32[B,S]
    %1 = exp %0 : f32[B,S]
    return %1
  } names(%0: "product")
  %3 = constant {data=@k0} : f32[20]
  %4 = constant {data=f32[40](0.5)} : f32[40]
  %5 = exp %1 !1 : f32[B,S]
  %6 = add %"b c", %kv : f32[B,S]
  %7 = decode_q4_0 %w : f32[64,256]
  check T = S "broadcast"
  check S = floordiv(T,2) "concat of \"halves\""
  state kv: %kv -> %1
  state "second one": %"b c" -> %"b c"
  return %0#1, %2 "last", %3, %4, %5, %6, %7
} names(%1: "layer.0/add", %1: "sum", %0#1: "right half")
)";

NamedTensors sample_data() {
  std::vector<double> v(20);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i) / 8;
  return {{"k0", Tensor::of<double>(DType::f32, {20}, v)}};
}

TEST(Text, TheSampleIsItsOwnText) {
  const NamedTensors data = sample_data();
  const Graph g = parse(sample, parse_options(&data));
  verify(g);
  ConstantSink sink;
  EXPECT_EQ(print(g, &sink), sample);
  const NamedTensors kept = sink.take();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_TRUE(identical(kept.at("k0"), data.at("k0")));
  EXPECT_NE(print(g).find("{data=@data}"), std::string::npos) << "without a sink the bytes are not kept";
  EXPECT_EQ(g.labels.size(), 3u);
  EXPECT_EQ(g.nodes[4].op, &halves_op) << "inputs come first, the body is one node";
  EXPECT_EQ(g.states[1].name, "second one");
}

TEST(Text, CommentsAndBlanks) {
  const std::string text =
      "# a graph \"with an open quote\n  rlx 1   # version\r\ngraph ( %x : f32 [ B , 2 * S ] # the input ) {\r\n"
      ") dims ( S : 2 .. 512 , B : 1..8, N: 64..64 )\n{ # }\n"
      "  %left = halves %x { axis = 1 } :f32[B,S],\n f32[B , S]\n"
      "#return %x\n  return %left#1 \"a # b\", %left#0 # the end\n}\t# )";
  const Graph g = parse(text, parse_options());
  EXPECT_EQ(print(g),
            "rlx 1\ngraph(%x: f32[B,2*S])\n  dims(B: 1..8, S: 2..512) {\n"
            "  %0 = halves %x {axis=1} : f32[B,S], f32[B,S]\n  return %0#1 \"a # b\", %0#0\n}\n");
}

TEST(Text, NamesOfInputs) {
  Builder b;
  std::vector<std::string> names{"plain", "_", "a.b-c", "0", "0x", ".", "%", "q\"uo\\te", "tab\t\n\x01", "é", "#", " "};
  Values all;
  for (const std::string& n : names) all.push_back(b.input(n, {DType::f32, {}}));
  const Graph g = b.finish(all, names);
  const Graph back = round_trip(g);
  EXPECT_TRUE(same(g, back));
  EXPECT_EQ(back.input_names, names);
  EXPECT_EQ(back.output_names, names);
}

TEST(Text, ABareNumberAndAQuotedOneAreDifferentNames) {
  const Graph g = parse("rlx 1\ngraph(%\"0\": f32[4]) { %0 = exp %\"0\" : f32[4] return %0, %\"0\" }");
  EXPECT_EQ(g.outputs[1].node, 0u);
  EXPECT_EQ(g.outputs[0].node, 1u);
  round_trip(g);
}

// One knob at a time: text of the attribute, and the graph that reads it back.
std::string knob_text(const KnobAttrs& k) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("S", 2, 512)}});
  const Graph g = b.finish({b.emit_one(knobs_op, k, {x})});
  verify(g);
  const Graph back = round_trip(g);
  EXPECT_TRUE(same(g, back)) << print(g) << print(back);
  return g.nodes[1].attrs.print();
}

TEST(Text, AttributesOfEveryKind) {
  const Dim s = Dim::symbol("S", 2, 512);
  EXPECT_EQ(knob_text({}), "");
  EXPECT_EQ(knob_text({.flag = true, .count = -9223372036854775807 - 1}), "flag=true, count=-9223372036854775808");
  EXPECT_EQ(knob_text({.ratio = 0.1}), "ratio=0.1");
  EXPECT_EQ(knob_text({.ratio = -0.0}), "ratio=-0");
  EXPECT_EQ(knob_text({.ratio = 0.0}), "ratio=0");
  EXPECT_EQ(knob_text({.ratio = inf}), "ratio=inf");
  EXPECT_EQ(knob_text({.ratio = -inf}), "ratio=-inf");
  EXPECT_EQ(knob_text({.ratio = std::nan("")}), "ratio=nan");
  EXPECT_EQ(knob_text({.ratio = 5e-324}), "ratio=5e-324");
  EXPECT_EQ(knob_text({.ratio = 1.7976931348623157e308}), "ratio=1.7976931348623157e+308");
  EXPECT_EQ(knob_text({.word = "a \"b\"\n\\\x7f"}), "word=\"a \\\"b\\\"\\n\\\\\\x7f\"");
  EXPECT_EQ(knob_text({.word = ""}), "word=\"\"");
  EXPECT_EQ(knob_text({.dtype = DType::f8e4m3}), "dtype=f8e4m3");
  EXPECT_EQ(knob_text({.size = s * 2 - 1}), "size=2*S-1");
  EXPECT_EQ(knob_text({.size = floordiv(s, 3) * -1}), "size=-floordiv(S,3)");
  EXPECT_EQ(knob_text({.shade = Shade::none_at_all}), "shade=none_at_all");
  EXPECT_EQ(knob_text({.limit = 2.5}), "limit=2.5");
  EXPECT_EQ(knob_text({.extent = s}), "extent=S");
  EXPECT_EQ(knob_text({.note = "none"}), "note=\"none\"");
  EXPECT_EQ(knob_text({.flags = {true, false}, .counts = {1, -2}}), "flags=[true,false], counts=[1,-2]");
  EXPECT_EQ(knob_text({.ratios = {-0.0, inf, 1e30}}), "ratios=[-0,inf,1e+30]");
  EXPECT_EQ(knob_text({.words = {"", ",]"}, .dtypes = {DType::i4, DType::boolean}}),
            "words=[\"\",\",]\"], dtypes=[i4,bool]");
  EXPECT_EQ(knob_text({.sizes = {s, 3}, .shades = {Shade::dark}}), "sizes=[S,3], shades=[dark]");
}

TEST(Text, NanWithAPayloadOrSignKeepsItsBits) {
  KnobAttrs k;
  for (const std::uint64_t bits : {0x7FF8000000000001u, 0xFFF8000000000000u, 0x7FF0000000000001u}) {
    k.ratio = decode_float(DType::f64, bits);
    knob_text(k);
  }
}

TEST(Text, InlineConstants) {
  const auto text = [](Tensor t) { return knob_text({.data = std::move(t)}); };
  const auto f = [](DType d, const std::vector<double>& v) {
    return Tensor::of<double>(d, {static_cast<Index>(v.size())}, v);
  };
  EXPECT_EQ(text(f(DType::f32, {1, -0.0, 0.1})), "data=f32[3](1,-0,0.10000000149011612)");
  EXPECT_EQ(text(f(DType::f64, {inf, -inf, std::nan("")})), "data=f64[3](inf,-inf,nan)");
  EXPECT_EQ(text(f(DType::f16, {1e-7, 65504})), "data=f16[2](1.1920928955078125e-07,65504)");
  EXPECT_EQ(text(f(DType::e8m0, {4})), "data=e8m0[1](4)");
  EXPECT_EQ(text(f(DType::boolean, {0, 1})), "data=bool[2](0,1)");
  EXPECT_EQ(text(Tensor::of<std::uint64_t>(DType::u64, {2}, {~std::uint64_t{0}, std::uint64_t{1} << 63})),
            "data=u64[2](18446744073709551615,9223372036854775808)");
  EXPECT_EQ(text(Tensor::of<std::int64_t>(DType::i4, {2}, {-8, 7})), "data=i4[2](-8,7)");
  EXPECT_EQ(text(Tensor(DType::f32, {2, 0})), "data=f32[2,0]()");
  EXPECT_EQ(text(Tensor::scalar(DType::f32, 2)), "data=f32[](2)");
  EXPECT_EQ(text(Tensor::of<double>(DType::u8, {2, 8}, std::vector<double>(16, 3))), "data=u8[2,8](3)") << "a splat";
}

// What a number in the text would not give back exactly goes to the side file.
TEST(Text, InexactConstantsGoToTheSideFile) {
  const auto text = [](Tensor t) { return knob_text({.data = std::move(t)}); };
  Tensor odd(DType::boolean, {1});
  odd.set_code(0, 7);
  EXPECT_EQ(text(odd), "data=@data");
  Tensor payload(DType::f16, {1});
  payload.set_code(0, 0x7E01);
  EXPECT_EQ(text(payload), "data=@data");
  Tensor signalling(DType::f32, {1});
  signalling.set_code(0, 0x7F800001);
  EXPECT_EQ(text(signalling), "data=@data");
  Tensor infinite(DType::f8e5m2, {1});
  infinite.set_code(0, 0x7C);
  EXPECT_EQ(text(infinite), "data=@data") << "infinity saturates when it is encoded";
  EXPECT_EQ(text(Tensor(DType::c64, {1})), "data=@data");
  std::vector<double> v(17);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
  EXPECT_EQ(text(Tensor::of<double>(DType::u8, {17}, v)), "data=@data");
}

TEST(Text, LargeSplatsOfFewCharactersDoNotTakeMuchMemory) {
  Builder b;
  const std::string text =
      print(b.finish({constant(b, Tensor(DType::f32, {1024})), constant(b, Tensor(DType::f32, {1025}))}));
  EXPECT_NE(text.find("f32[1024](0)"), std::string::npos);
  EXPECT_NE(text.find("@data} : f32[1025]"), std::string::npos);
}

TEST(Text, TheSideFileSharesStorage) {
  Builder b;
  std::vector<double> v(40);
  v[3] = 1;
  const Tensor t = Tensor::of<double>(DType::f32, {40}, v);
  const Value x = constant(b, t), y = constant(b, t.reshaped({4, 10}));
  const Graph g = b.finish({x, y, exp(x)});
  ConstantSink sink;
  const std::string text = print(g, &sink);
  EXPECT_NE(text.find("@k0} : f32[40]"), std::string::npos);
  EXPECT_NE(text.find("@k1} : f32[4,10]"), std::string::npos);
  EXPECT_EQ(sink.take().size(), 2u);
}

TEST(Text, BodiesInBodies) {
  const char* const text = R"(rlx 1
graph(%x: f32[S])
  dims(S: 2..512) {
  %0 = fusion %x : f32[S], f32[S] = graph(%a: f32[S]) {
    %0 = fusion %a : f32[S] = graph(%a: f32[S]) {
      %0 = exp %a : f32[S]
      return %0
    }
    %1 = neg %0 : f32[S]
    return %1, %0 "inner"
  }
  return %0#0, %0#1
}
)";
  const Graph g = parse(text);
  verify(g);
  EXPECT_EQ(print(g), text);
}

TEST(Text, ABodyMayDeclareASymbolOfItsOwn) {
  const char* const text = R"(rlx 1
graph(%x: f32[S])
  dims(S: 2..512) {
  %0 = fusion %x : f32[S] = graph(%a: f32[S])
    dims(T: 1..4) {
    %0 = iota {dtype=f32, dims=[T]} : f32[T]
    return %a
  }
  return %0
}
)";
  const Graph g = parse(text);
  verify(g);
  EXPECT_EQ(print(g), text);
}

// The body between does not use S.
TEST(Text, ASymbolOfTheOutermostGraphIsNotDeclaredAgain) {
  const char* const text = R"(rlx 1
graph(%x: f32[S], %y: f32[])
  dims(S: 2..512) {
  %0 = fusion %y : f32[] = graph(%a: f32[]) {
    %0 = fusion %a : f32[] = graph(%a: f32[]) {
      %0 = iota {dtype=f32, dims=[S]} : f32[S]
      return %a
    }
    return %0
  }
  return %x, %0
}
)";
  const Graph g = parse(text);
  verify(g);
  EXPECT_EQ(print(g), text);
}

TEST(Text, AFusionWithoutOperands) {
  const char* const text = R"(rlx 1
graph() {
  %0 = fusion : f32[] = graph() {
    %0 = constant {data=f32[](2)} : f32[]
    %1 = exp %0 : f32[]
    return %1
  }
  return %0
}
)";
  const Graph g = parse(text);
  verify(g);
  EXPECT_EQ(print(g), text);
}

TEST(Text, ChecksKeepTheirOrder) {
  const char* const text = R"(rlx 1
graph(%x: f32[S], %y: f32[T], %z: f32[U])
  dims(S: 2..512, T: 2..512, U: 2..512) {
  %0 = add %y, %x : f32[S]
  %1 = add %z, %x : f32[S]
  check U = T "mine"
  check U = S "broadcast"
  check T = S "broadcast"
  return %0, %1
}
)";
  const Graph g = parse(text);
  verify(g);
  EXPECT_EQ(print(g), text);
}

}  // namespace
}  // namespace rlx::test
