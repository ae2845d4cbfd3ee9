// `rlx inspect` of GGUF files and `rlx quantize`, as a user meets them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/program.h"
#include "core/json.h"
#include "io/gguf/gguf.h"
#include "io/gguf/writer.h"
#include "io/safetensors.h"

namespace rlx {
namespace {

std::string golden(const char* name) { return fmt::format("{}/gguf/{}", RLX_TEST_DATA, name); }

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in\n" << text;
}

/// A model of two matrices in f16 with a norm.
void write_model(const std::string& path) {
  GgufMetadata m;
  m.set("general.architecture", "llama");
  m.set("llama.block_count", std::uint32_t{1});
  m.set("tokenizer.chat_template", "{{ bos }}\n{{ text }}");
  Tensor w(DType::f16, {64, 32}), norm(DType::f32, {32});
  std::vector<double> values;
  for (int i = 0; i < 64 * 32; ++i) values.push_back(std::sin(0.1 * i));
  store(w, values);
  write_gguf(path, m, {{"blk.0.attn_q.weight", w}, {"blk.0.attn_norm.weight", norm}});
}

TEST_F(Program, InspectShowsMetadataAndTensorsOfGguf) {
  Result r = run("inspect -w " + golden("little.gguf"));
  EXPECT_EQ(r.code, 0) << r.err;
  expect_in(r.out, "GGUF model\n");
  expect_in(r.out, "  byte order     little-endian\n");
  expect_in(r.out, "  alignment      64\n");
  expect_in(r.out, "general.architecture  string           test");
  expect_in(r.out, "array.i8              3 x i8           -100, 0, 1");
  expect_in(r.out, "one.u64               u64              9223372036854775813");
  expect_in(r.out, "blocks.q4_0");
  expect_in(r.out, "[3,64]");
  EXPECT_EQ(run("inspect " + golden("little.gguf")).out.find("blocks.q4_0"), std::string::npos);
  r = run("inspect " + golden("split-00002-of-00003.gguf"));
  expect_in(r.out, "  files          3\n");
  expect_in(r.out, "weights: 9 tensors, ");
}

TEST_F(Program, InspectPrintsOneKeyOfGgufInFull) {
  write_model(path("m.gguf"));
  EXPECT_EQ(run("inspect " + path("m.gguf") + " --key tokenizer.chat_template").out, "{{ bos }}\n{{ text }}\n");
  EXPECT_EQ(run("inspect " + golden("big.gguf") + " --key array.i16").out, "-30000\n0\n1\n");
  EXPECT_EQ(run("inspect " + golden("big.gguf") + " --key array.array --json").out, "[[1,2],[3],[4,5,6]]\n");
  EXPECT_EQ(run("inspect " + golden("big.gguf") + " --key array.string").out.rfind("\"\"\n\"a\"\n", 0), 0U);
  Result r = run("inspect " + path("m.gguf") + " --key none");
  EXPECT_EQ(r.code, 1);
  expect_in(r.err, "metadata key 'none' is missing");
  EXPECT_EQ(run("inspect " + path("m.gguf") + " --graph").code, 1);
  write("g.rlx", "rlx 1\n");
  EXPECT_EQ(run("inspect " + path("g.rlx") + " --key a").code, 1);
}

TEST_F(Program, InspectOfGgufIsJson) {
  const Result r = run("inspect --json " + golden("little.gguf"));
  EXPECT_EQ(r.code, 0) << r.err;
  const JsonDocument d = JsonDocument::parse(r.out);
  EXPECT_EQ(d.at("kind").as_string(), "GGUF model");
  EXPECT_EQ(d.at("alignment").as_index(), 64);
  EXPECT_EQ(d.at("metadata").size(), GgufFile(golden("little.gguf")).key_count());
  EXPECT_EQ(d.at("metadata").at(Index{0}).at("value").as_string(), "test");
  EXPECT_EQ(d.at("weights").size(), GgufFile(golden("little.gguf")).count());
  EXPECT_EQ(d.at("types").at(Index{0}).at("type").as_string(), "F32");
}

TEST_F(Program, QuantizeWritesSmallerTypesAndReports) {
  write_model(path("m.gguf"));
  Result r = run("quantize " + path("m.gguf") + " " + path("q.gguf") + " --type q8_0 --threads 1");
  EXPECT_EQ(r.code, 0) << r.err;
  expect_in(r.out, "blk.0.attn_q.weight");
  expect_in(r.out, "2 tensors (1 kept as they are), 2,304 bytes from 4,224, 8.86 bits a weight");
  const GgufFile f(path("q.gguf"));
  EXPECT_EQ(f.entry("blk.0.attn_q.weight").type->name, "Q8_0");
  EXPECT_EQ(f.entry("blk.0.attn_norm.weight").type->name, "F32");
  EXPECT_EQ(f.get<std::string>("tokenizer.chat_template"), "{{ bos }}\n{{ text }}");
  r = run("quantize " + path("m.gguf") + " " + path("k.gguf") + " --type q8_0 --keep 'blk.*' --json");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(JsonDocument::parse(r.out).at("tensors").at(Index{0}).at("to").as_string(), "F16");
  r = run("quantize " + path("m.gguf") + " " + path("k.gguf") + " --type q9");
  EXPECT_EQ(r.code, 1);
  expect_in(r.err, "'q9' is no type to quantize to");
  EXPECT_EQ(run("quantize " + path("m.gguf") + " " + path("k.gguf")).code, 2);
  EXPECT_EQ(run("quantize " + path("m.txt") + " " + path("k.gguf") + " --type q8_0").code, 1);
}

TEST_F(Program, QuantizeReadsFoldersOfSafetensors) {
  Tensor w(DType::bf16, {4, 32});
  std::filesystem::create_directories(path("model"));
  write_safetensors(path("model/model.safetensors"), {{"model.layers.0.mlp.up_proj.weight", w}});
  write("model/config.json", "{\"model_type\":\"llama\"}");
  const Result r = run("quantize " + path("model") + " " + path("q.gguf") + " --type q8_0");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(GgufFile(path("q.gguf")).get<std::string>("general.architecture"), "llama");
}

}  // namespace
}  // namespace rlx
