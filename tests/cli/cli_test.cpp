// The program as a user meets it: output, files, exit codes and messages.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "cli/program.h"
#include "core/json.h"
#include "io/npy.h"
#include "tiny_model.h"

namespace rlx {
namespace {

TEST_F(Program, HelpAndVersionSucceed) {
  for (const std::string command :
       {"", "embed", "run", "check", "bench", "inspect", "quantize", "info", "ops", "passes"}) {
    const Result r = run(command + " --help");
    EXPECT_EQ(r.code, 0);
    EXPECT_NE(r.out.find("Example"), std::string::npos) << r.out;
  }
  const Result r = run("--version");
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out.rfind("rlx ", 0), 0U);
}

const char* const two_products =
    "rlx 1\ngraph(%x: f32[N,3])\n  dims(N: 0..8) {\n"
    "  %0 = constant {data=f32[3,2](1,2,3,4,5,6)} : f32[3,2]\n"
    "  %1 = transpose %0 {order=[1,0]} : f32[2,3]\n"
    "  %2 = matmul %x, %1 {transpose_b=true} : f32[N,2]\n"
    "  %3 = exp %2 : f32[N,2]\n  %4 = neg %3 : f32[N,2]\n  %5 = neg %4 : f32[N,2]\n  return %5\n}\n";

TEST_F(Program, PassesAreListed) {
  const Result r = run("passes");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("fold-constants         exact         Computes what depends on constants alone"),
            std::string::npos)
      << r.out;
  const Result json = run("passes --json");
  EXPECT_EQ(json.code, 0);
  JsonDocument::parse(json.out);
  EXPECT_NE(json.out.find("\"name\":\"legalise\""), std::string::npos);
}

TEST_F(Program, PassesShowWhatTheyDo) {
  const std::string graph = write("g.rlx", two_products);
  Result r = run("passes " + graph + " --verify-numerics");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("\nsimplify-algebra "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("\n  double negations: 1\n"), std::string::npos) << r.out;
  r = run("passes " + graph + " --disable simplify-algebra");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out.find("simplify-algebra"), std::string::npos) << r.out;
  r = run("passes " + graph + " --print-after fold-constants");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("\nrlx 1\ngraph(%x: f32[N,3])"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("neg %"), std::string::npos) << "before simplify-algebra: " << r.out;
  r = run("passes " + graph + " --graph");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out.rfind("rlx 1\n", 0), 0U) << r.out;
  EXPECT_EQ(r.out.find("neg %"), std::string::npos) << r.out;
}

TEST_F(Program, PassesRefuseWhatTheyCannotRead) {
  Result r = run("passes " + write("g.rlx", two_products) + " --disable no-pass");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("unknown pass \"no-pass\", expected one of "), std::string::npos) << r.err;
  r = run("passes " + write("g.txt", two_products));
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("unknown kind of file"), std::string::npos) << r.err;
  r = run("passes " + path("nothing.rlx"));
  EXPECT_EQ(r.code, 1);
}

TEST_F(Program, CheckSaysWhatPrecisionCosts) {
  // A matrix that folds to a constant: the text form holds no large one.
  const std::string graph = write(
      "g.rlx",
      "rlx 1\ngraph(%x: f32[N,64])\n  dims(N: 1..8) {\n  %0 = iota {dtype=f32, dims=[64,64], axis=0} : f32[64,64]\n"
      "  %1 = iota {dtype=f32, dims=[64,64], axis=1} : f32[64,64]\n  %2 = mul %0, %1 : f32[64,64]\n"
      "  %3 = sin %2 : f32[64,64]\n  %4 = matmul %x, %3 : f32[N,64]\n  %5 = tanh %4 : f32[N,64]\n  return %5\n}\n");
  Result r = run("check " + graph + " --precision int8 --cosine 0.99");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("products in i8"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("\nproduct alone in i8"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("matmul(f32[N,64], f32[64,64])"), std::string::npos) << r.out;
  r = run("check " + graph + " --precision int8 --cosine 1.5");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find(", less than 1.5"), std::string::npos) << r.err;
  r = run("check " + graph + " --precision bf16");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out.find("product alone"), std::string::npos) << r.out;
  r = run("run " + graph + " --random --precision int4");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("precision is \"int4\", expected f32, bf16, f16 or int8"), std::string::npos) << r.err;
  EXPECT_EQ(run("run " + graph + " --random --precision int8").code, 0);
  EXPECT_EQ(run("bench " + graph + " --runs 1 --precision int8").code, 0);
}

TEST_F(Program, CheckListsWhatAModelHasThatIsMissing) {
  // IR version 8, operators 17; y = Nothing(x), x an f32.
  using namespace std::string_literals;
  const std::string hostile = write("m.onnx",
                                    "\x08\x08\x42\x02\x10\x11\x3a\x23"
                                    "\x0a\x0f\x0a\x01x\x12\x01y\x22\x07Nothing"
                                    "\x5a\x0b\x0a\x01x\x12\x06\x0a\x04\x08\x01\x12\x00"
                                    "\x62\x03\x0a\x01y"s);
  const std::string good = std::string(RLX_TEST_DATA) + "/onnx/perceptron_legacy.onnx";
  Result r = run("check " + hostile + " --no-run");
  EXPECT_EQ(r.code, 1) << r.out;
  EXPECT_NE(r.out.find("node       operator (version)"), std::string::npos) << r.out << r.err;
  EXPECT_NE(r.out.find("\n0          Nothing (17) "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("operands    x: f32[]"), std::string::npos) << r.out;
  r = run("check " + hostile + " --json");
  EXPECT_EQ(r.code, 1);
  const JsonDocument list = JsonDocument::parse(r.out);
  EXPECT_EQ(list.at("problems").size(), 1);
  EXPECT_NE(r.out.find("\"supported\":false"), std::string::npos);
  r = run("check " + good + " --no-run");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("every node can be imported"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("compiles, as "), std::string::npos) << r.out;
  r = run("check " + good + " --json");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("\"supported\":true"), std::string::npos) << r.out;
  EXPECT_EQ(run("check " + write("g.rlx", two_products) + " --no-run").code, 0);
  EXPECT_EQ(run("check " + write("g.rlx", two_products) + " --json").code, 1);
}

TEST_F(Program, InspectWritesAPage) {
  const std::string graph = write("g.rlx", two_products), page = path("page.html");
  Result r = run("inspect " + graph + " --html " + page + " --time --threads 1 --dim N=5");
  EXPECT_EQ(r.code, 0) << r.err;
  const std::string text = read("page.html");
  EXPECT_EQ(text.rfind("<!DOCTYPE html>", 0), 0U);
  for (const char* part : {"<title>g.rlx</title>", "id=\"b0\"", "data-from=\"0\"", "matmul", "f32[N,2]", "sizes N=5",
                           "a run on 1 thread", "<table>", "output 0", "Arena: "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  for (const char* link : {"src=", "href=", "@import", "fetch("}) EXPECT_EQ(text.find(link), std::string::npos) << link;
  r = run("inspect " + std::string(RLX_TEST_DATA) + "/onnx/classic_17.onnx --html " + page);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(read("page.html").find("layer_norm"), std::string::npos);
  // Text of the model is text in the page.
  const std::string hostile = write("h.rlx",
                                    "rlx 1\ngraph(%x: f32[2]) {\n  %0 = exp %x : f32[2]\n"
                                    "  return %0 \"</script><script>alert(1)</script>\"\n}\n");
  EXPECT_EQ(run("inspect " + hostile + " --html " + page).code, 0);
  EXPECT_EQ(read("page.html").find("<script>alert"), std::string::npos);
  r = run("inspect " + graph + " --time");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("--time is for --html"), std::string::npos) << r.err;
}

TEST_F(Program, RunReadsArraysAndWritesThem) {
  const std::string graph = write("g.rlx", two_products);
  write_npy(path("x.npy"), Tensor::of<double>(DType::f32, {2, 3}, {0, 0, 0, 0.1, 0, 0}));
  Result r = run("run " + graph + " --input x=" + path("x.npy") + " --output 0=" + path("y.npy") + " --npz " +
                 path("all.npz"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out.rfind("0  f32[2,2]  1 1 1.10517", 0), 0U) << r.out;
  EXPECT_TRUE(identical(read_npy(path("y.npy")), NpzFile(path("all.npz")).at("0")));
  r = run("run " + graph + " --random --dim N=3 --json");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(JsonDocument::parse(r.out).at("outputs").size(), 1);
  r = run("run " + graph);
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("input x is missing"), std::string::npos) << r.err;
  r = run("run " + graph + " --input y=" + path("x.npy"));
  EXPECT_NE(r.err.find("--input names y, the model's inputs are x"), std::string::npos) << r.err;
  r = run("run " + graph + " --random --dim M=3");
  EXPECT_NE(r.err.find("--dim names M, the model's sizes are N"), std::string::npos) << r.err;
  r = run("run " + graph + " --random --dim N=9");
  EXPECT_NE(r.err.find("--dim N is 9, outside its bounds 0..8"), std::string::npos) << r.err;
  r = run("run " + graph + " --random --dim N=x");
  EXPECT_NE(r.err.find("--dim N is \"x\", expected a number"), std::string::npos) << r.err;
  r = run("run " + graph + " --input x");
  EXPECT_NE(r.err.find("--input is \"x\", expected NAME=VALUE"), std::string::npos) << r.err;
}

TEST_F(Program, CheckComparesWithTheDefinitionAndWithGivenResults) {
  const std::string graph = write("g.rlx", two_products);
  Result r = run("check " + graph);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("N=7"), std::string::npos) << r.out;
  write_npz(path("good.npz"), {{"x", Tensor::of<double>(DType::f32, {1, 3}, {0, 0, 0})},
                               {"0", Tensor::of<double>(DType::f32, {1, 2}, {1, 1})}});
  EXPECT_EQ(run("check " + graph + " --expected " + path("good.npz")).code, 0);
  write_npz(path("bad.npz"), {{"x", Tensor::of<double>(DType::f32, {1, 3}, {0, 0, 0})},
                              {"0", Tensor::of<double>(DType::f32, {1, 2}, {1, 1.1})}});
  r = run("check " + graph + " --expected " + path("bad.npz"));
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.out.find("differs"), std::string::npos) << r.out;
  EXPECT_NE(r.err.find("results differ by more than 1e-05"), std::string::npos) << r.err;
  write_npz(path("less.npz"), {{"x", Tensor::of<double>(DType::f32, {1, 3}, {0, 0, 0})}});
  r = run("check " + graph + " --expected " + path("less.npz"));
  EXPECT_NE(r.err.find("has no array 0, an output of the model"), std::string::npos) << r.err;
}

TEST_F(Program, BenchTimesRuns) {
  const std::string graph = write("g.rlx", two_products);
  Result r = run("bench " + graph + " --dim N=5 --runs 3 --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const JsonDocument d = JsonDocument::parse(r.out);
  EXPECT_EQ(d.at("sizes").as_string(), "N=5");
  EXPECT_EQ(d.at("runs").as_index(), 3);
  r = run("bench " + graph + " --runs 2 --steps");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("matmul"), std::string::npos) << r.out;
  EXPECT_EQ(run("bench " + graph + " --runs 0").code, 1);
}

TEST_F(Program, BenchExplainsWhereTheTimeGoes) {
  const std::string graph = write("g.rlx", two_products);
  Result r = run("bench " + graph + " --dim N=5 --runs 2 --threads 1 --explain --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const JsonDocument d = JsonDocument::parse(r.out);
  const JsonValue e = d.at("explain");
  EXPECT_EQ(e.at("threads").as_index(), 1);
  EXPECT_GT(e.at("peak").at("f32").as_double(), 1e8);
  EXPECT_GT(e.at("peak").at("i8").as_double(), 1e8);
  for (const JsonValue speed : e.at("bandwidth").elements()) EXPECT_GT(speed.at("bytes_per_second").as_double(), 1e7);
  ASSERT_EQ(e.at("steps").size(), d.at("steps").as_index());
  const JsonValue product = e.at("steps").at(Index{0});
  EXPECT_EQ(product.at("kernel").as_string(), "matmul_fused");
  EXPECT_EQ(product.at("flops").as_index(), 2 * 5 * 3 * 2);
  EXPECT_EQ(product.at("arithmetic").as_string(), "f32");
  EXPECT_EQ(product.at("least_bytes").as_index(), 4 * (5 * 3 + 5 * 2)) << "x and the result";
  EXPECT_EQ(product.at("least_weight_bytes").as_index(), 4 * 3 * 2) << "not what its packed form takes";
  EXPECT_GT(product.at("floor_us").as_double(), 0);
  EXPECT_GE(product.at("declined").size(), 1) << "kernels of regions that are asked before";
  EXPECT_GE(e.at("worst").size(), 1);
  r = run("bench " + graph + " --runs 2 --explain");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("largest gaps between time and floor\n"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("after others declined\n    - "), std::string::npos) << r.out;
}

TEST_F(Program, ExplainCountsTheRowsOfATableThatAreReadAndStridedOperandsOnce) {
  const std::string graph = write("g.rlx",
                                  "rlx 1\ngraph(%t: f32[1000,4], %i: i64[3], %x: f32[64,48]) {\n"
                                  "  %0 = gather %t, %i : f32[3,4]\n"
                                  "  %1 = slice %x {starts=[0,16], sizes=[64,16]} : f32[64,16]\n"
                                  "  %2 = softmax %1 : f32[64,16]\n  return %0, %2\n}\n");
  const Result r = run("bench " + graph + " --runs 1 --threads 1 --explain --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const JsonDocument d = JsonDocument::parse(r.out);
  const JsonValue steps = d.at("explain").at("steps");
  ASSERT_EQ(steps.size(), 3) << "softmax reads a copy";
  EXPECT_EQ(steps.at(Index{0}).at("least_bytes").as_index(), 4 * 12 + 8 * 3 + 4 * 12);
  EXPECT_EQ(steps.at(Index{1}).at("least_bytes").as_index(), 2 * 4 * 64 * 16) << r.out;
  EXPECT_EQ(steps.at(Index{2}).at("declined").at(Index{0}).as_string(),
            "strided operands: softmax reads and writes dense tensors");
}

TEST_F(Program, InspectShowsThePlanAndDrawsTheMemory) {
  const std::string graph = write("g.rlx", two_products);
  Result r = run("inspect " + graph + " --plan --svg " + path("m.svg"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("plan for cpu N=8\n"), std::string::npos) << r.out;
  EXPECT_EQ(read("m.svg").rfind("<svg ", 0), 0U);
  r = run("inspect " + graph + " --plan --json");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_GE(JsonDocument::parse(r.out).at("steps").size(), 1);
  EXPECT_EQ(run("inspect " + graph + " --plan --dim N=9").code, 1);
}

TEST_F(Program, UsageErrorsExitWith2) {
  for (const std::string arguments : {"", "nonsense", "embed", "inspect", "embed x --max-tokens -3", "info --what"}) {
    const Result r = run(arguments);
    EXPECT_EQ(r.code, 2) << arguments;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err, "") << arguments;
  }
}

TEST_F(Program, InfoIsJson) {
  const Result r = run("info --json");
  ASSERT_EQ(r.code, 0);
  const JsonDocument d = JsonDocument::parse(r.out);
  EXPECT_GE(d.at("ops").as_index(), 50);
  EXPECT_GE(d.at("levels").size(), 1);
  EXPECT_EQ(run("info").code, 0);
}

TEST_F(Program, OpsAreListedAndDescribed) {
  const Result r = run("ops --json");
  ASSERT_EQ(r.code, 0);
  const JsonDocument d = JsonDocument::parse(r.out);
  EXPECT_GE(d.at("ops").size(), 50);
  const Result list = run("ops");
  EXPECT_EQ(list.code, 0);
  EXPECT_NE(list.out.find("\nsoftmax            drr  Exponentials"), std::string::npos) << list.out;
  const Result one = run("ops log_sum_exp");
  EXPECT_EQ(one.code, 0);
  EXPECT_NE(one.out.find("  keep           bool, false unless given\ndefinition yes, gradient rule, reference yes\n"),
            std::string::npos)
      << one.out;
  const Result json = run("ops log_sum_exp --json");
  EXPECT_NE(json.out.find("{\"name\":\"keep\",\"kind\":\"bool\",\"default\":\"false\"}"), std::string::npos)
      << json.out;
}

TEST_F(Program, AnUnknownOpIsBadInput) {
  const Result r = run("ops sofmax");
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.err, "rlx: unknown op \"sofmax\": \"rlx ops\" lists them all\n");
}

TEST_F(Program, EmbedsLines) {
  const test::TinyModel tiny(path("model"), "bert");
  const std::string texts = write("texts.txt", "a b\r\n\nc \"quoted\"\n");
  const Result plain = run("embed " + tiny.folder + " " + texts);
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(std::count(plain.out.begin(), plain.out.end(), '\n'), 3);

  const Result json = run("embed " + tiny.folder + " " + texts + " --json --similarity -o " + path("v.npy"));
  ASSERT_EQ(json.code, 0) << json.err;
  const JsonDocument d = JsonDocument::parse(json.out);
  ASSERT_EQ(d.at("texts").size(), 3);
  EXPECT_EQ(d.at("texts").at(Index{0}).at("text").as_string(), "a b");
  EXPECT_EQ(d.at("texts").at(Index{0}).at("tokens").as_index(), 4);
  EXPECT_EQ(d.at("texts").at(Index{1}).at("text").as_string(), "");
  EXPECT_EQ(d.at("texts").at(Index{2}).at("embedding").size(), 6);
  EXPECT_NEAR(d.at("similarity").at(Index{1}).at(Index{1}).as_double(), 1, 1e-6);
  EXPECT_EQ(read_npy(path("v.npy")).shape(), (std::vector<Index>{3, 6}));

  const Result table = run("embed " + tiny.folder + " " + texts + " -s");
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.out.find("1.000"), std::string::npos);

  const Result same = run("embed " + tiny.folder + " " + texts + " -s --f64 --expect " + path("v.npy"));
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_NE(same.out.find("largest difference"), std::string::npos);
  const Result other = run("embed " + tiny.folder + " " + texts + " -s --max-tokens 2 --expect " + path("v.npy"));
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("largest difference"), std::string::npos);
}

TEST_F(Program, BadInputExitsWith1AndSaysWhat) {
  const test::TinyModel tiny(path("model"), "bert");
  const std::string texts = write("texts.txt", "a\n");
  const auto expect = [&](const std::string& arguments, const std::string& message) {
    const Result r = run(arguments);
    EXPECT_EQ(r.code, 1) << arguments << "\n" << r.err;
    EXPECT_EQ(r.err.rfind("rlx: ", 0), 0U) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_NE(r.err.find(message), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
  };
  expect("embed " + path("nowhere") + " " + texts, "config.json");
  expect("embed " + tiny.folder + " " + path("nothing.txt"), "nothing.txt");
  expect("embed " + tiny.folder + " " + path("model"), "model");
  expect("embed " + tiny.folder + " " + texts + " --tolerance nan", "tolerance is nan");
  expect("embed " + tiny.folder + " " + texts + " --output " + path("model"), "it is no regular file");
  expect("embed " + tiny.folder + " " + texts + " --max-tokens 99", "max tokens is 99, expected 1 to 9");
  expect("inspect " + path("nowhere"), "nowhere");
  expect("inspect " + texts, "unknown kind of file");
  write("broken.safetensors", "12345678{");
  expect("inspect " + path("broken.safetensors"), "broken.safetensors");
  write("broken.rlx", "rlx 1\ngraph(%x: f32[2]) {\n  %0 = nonsense %x : f32[2]\n  return %0\n}\n");
  expect("inspect " + path("broken.rlx"), "unknown op \"nonsense\"");
}

TEST_F(Program, InspectsEveryKind) {
  const test::TinyModel tiny(path("model"), "distilbert");
  const Result folder = run("inspect " + tiny.folder);
  ASSERT_EQ(folder.code, 0) << folder.err;
  EXPECT_NE(folder.out.find("attention"), std::string::npos);
  const Result json = run("inspect " + tiny.folder + " --json --graph");
  ASSERT_EQ(json.code, 0) << json.err;
  const JsonDocument d = JsonDocument::parse(json.out);
  EXPECT_EQ(d.at("ops").at("attention").as_index(), 2);
  EXPECT_EQ(d.at("weights").size(), static_cast<Index>(tiny.weights.size()));
  EXPECT_EQ(d.at("graph").as_string().substr(0, 5), "rlx 1");

  const Result weights = run("inspect -w " + tiny.folder + "/model.safetensors");
  ASSERT_EQ(weights.code, 0) << weights.err;
  EXPECT_NE(weights.out.find("embeddings.LayerNorm.bias"), std::string::npos);
  write_npy(path("x.npy"), Tensor::of<double>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}));
  const Result array = run("inspect -w " + path("x.npy"));
  EXPECT_NE(array.out.find("[2,3]"), std::string::npos) << array.err;
  const std::string graph = "rlx 1\ngraph(%x: f32[2]) {\n  %0 = exp %x : f32[2]\n  return %0\n}\n";
  write("g.rlx", graph);
  EXPECT_EQ(run("inspect --graph " + path("g.rlx")).out, graph);
}

TEST_F(Program, RunPrintsEveryElementType) {
  write_npy(path("z.npy"), Tensor::of<std::complex<double>>(DType::c64, {2}, {{1, -2}, {0.5, 3}}));
  write_npy(path("n.npy"), Tensor::of<std::int64_t>(DType::i64, {2}, {9007199254740993, -1}));
  const std::string model = write("m.rlx", "rlx 1\ngraph(%z: c64[2], %n: i64[2]) {\n  return %z, %n\n}\n");
  const std::string inputs = " --input z=" + path("z.npy") + " --input n=" + path("n.npy");
  const Result plain = run("run " + model + inputs);
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_NE(plain.out.find("[1,-2] [0.5,3]"), std::string::npos) << plain.out;
  const Result json = run("run " + model + inputs + " --json");
  EXPECT_NE(json.out.find("[[1,-2],[0.5,3]]"), std::string::npos) << json.out;
  EXPECT_NE(json.out.find("[9007199254740993,-1]"), std::string::npos) << json.out;
  EXPECT_EQ(run("check " + model).code, 0);
}

TEST_F(Program, StandardInputThatCannotBeReadIsAnError) {
  const test::TinyModel tiny(path("model"), "bert");
  const std::string command =
      std::string(RLX_PROGRAM) + " embed " + tiny.folder + " - <" + folder_ + " 2>" + path("err");
  const int status = std::system(command.c_str());  // NOLINT(bugprone-command-processor)
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(read("err").find("standard input: reading failed"), std::string::npos) << read("err");
}

TEST_F(Program, AFullDiskIsAnError) {
  const test::TinyModel tiny(path("model"), "bert");
  const std::string texts = write("texts.txt", "a\n");
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const std::string command =
      std::string(RLX_PROGRAM) + " embed " + tiny.folder + " " + texts + " >/dev/full 2>" + path("err");
  const int status = std::system(command.c_str());  // NOLINT(bugprone-command-processor)
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(read("err").find("standard output"), std::string::npos);
}

}  // namespace
}  // namespace rlx
