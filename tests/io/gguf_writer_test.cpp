// The GGUF writer: round trips byte for byte, splits, refusals; quantising and the choice of types.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "codecs/codec.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "io/bounded.h"
#include "io/gguf/quantize.h"
#include "io/gguf/writer.h"
#include "io/gguf_maker.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

std::string golden(const std::string& name) { return fmt::format("{}/gguf/{}", RLX_TEST_DATA, name); }

/// Copies a model, tensor by tensor. Big-endian tensors that have no codec cannot be read and are left out.
std::vector<std::string> copy(const GgufFile& f, const std::string& path, GgufSplits splits = {}) {
  std::vector<GgufPlan> plans;
  for (const GgufEntry& e : f.tensors()) {
    if (f.form().big && !e.type->dtype && find_codec(e.type->codec) == nullptr) continue;
    plans.push_back({std::string(e.name), e.type, e.shape});
  }
  GgufWriter w(path, GgufMetadata(f), plans, splits);
  for (const GgufPlan& p : plans) w.write(f.form().big ? f.at(p.name).plane().data : f.bytes(p.name).data);
  w.commit();
  return w.paths();
}

TEST(GgufWriter, CopiesOfReferenceFilesAreEqualByteForByte) {
  const std::string path = make_folder() + "/copy.gguf";
  EXPECT_EQ(copy(GgufFile(golden("little.gguf")), path), std::vector<std::string>{path});
  EXPECT_TRUE(read_text(path) == read_text(golden("little.gguf")));
}

TEST(GgufWriter, SplitModelsAreEqualByteForByte) {
  const std::string folder = make_folder();
  const auto paths = copy(GgufFile(golden("split-00001-of-00003.gguf")), folder + "/split.gguf", {.tensors = 4});
  ASSERT_EQ(paths.size(), 3u);
  for (const std::string& p : paths) EXPECT_TRUE(read_text(p) == read_text(golden(fs::path(p).filename().string())));
  EXPECT_EQ(GgufFile(paths[1]).count(), 9);
}

TEST(GgufWriter, OtherFormsBecomeVersion3) {
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    for (const bool big : {false, true}) {
      const std::string path = make_folder() + "/a.gguf";
      copy(open_gguf(small_gguf(version, big).out), path);
      EXPECT_TRUE(read_text(path) == small_gguf(3).out);
    }
  }
  const GgufFile big(golden("big.gguf"));
  const std::string path = make_folder() + "/a.gguf";
  copy(big, path);
  const GgufFile f(path);
  ASSERT_EQ(f.key_count(), big.key_count());
  for (Index i = 0; i < f.key_count(); ++i) EXPECT_EQ(f.value(i).describe(), big.value(i).describe());
  EXPECT_EQ(f.value("array.array")->elements()[2].as<std::vector<int>>(), (std::vector<int>{4, 5, 6}));
  for (const GgufEntry& e : f.tensors()) EXPECT_TRUE(identical(f.at(e.name), big.at(e.name))) << e.name;
}

TEST(GgufWriter, MetadataOfEveryTypeComesBack) {
  GgufMetadata m;
  m.set("b", true);
  m.set("u8", std::uint8_t{200});
  m.set("i16", std::int16_t{-5});
  m.set("u32", std::uint32_t{7});
  m.set("i64", std::int64_t{-7});
  m.set("f", 1.5f);
  m.set("d", -0.1);
  m.set("s", "text");
  m.set("vs", std::vector<std::string>{"a", ""});
  m.set("vb", std::vector<bool>{true, false});
  m.set("vf", std::vector<float>{1, 2});
  m.set("u32", std::uint32_t{8});  // keeps its place
  m.set("gone", 1);
  m.erase("gone");
  const std::string path = make_folder() + "/a.gguf";
  write_gguf(path, m, {{"x", Tensor::of<double>(DType::f32, {1, 2}, {3, 4})}});
  const GgufFile f(path);
  EXPECT_EQ(f.key_count(), 11);
  EXPECT_TRUE(f.get<bool>("b"));
  EXPECT_EQ(f.value("u8")->describe(), "u8 200");
  EXPECT_EQ(f.value("i16")->describe(), "i16 -5");
  EXPECT_EQ(f.key(3), "u32");
  EXPECT_EQ(f.value("u32")->describe(), "u32 8");
  EXPECT_EQ(f.value("i64")->describe(), "i64 -7");
  EXPECT_EQ(f.value("f")->describe(), "f32 1.5");
  EXPECT_EQ(f.value("d")->describe(), "f64 -0.1");
  EXPECT_EQ(f.get<std::string>("s"), "text");
  EXPECT_EQ(f.get<std::vector<std::string>>("vs"), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(f.get<std::vector<bool>>("vb"), (std::vector<bool>{true, false}));
  EXPECT_EQ(f.get<std::vector<float>>("vf"), (std::vector<float>{1, 2}));
  EXPECT_EQ(load<double>(f.at("x")), (std::vector<double>{3, 4}));
}

TEST(GgufWriter, RefusesWhatTheReaderWouldRefuse) {
  const std::string path = make_folder() + "/a.gguf";
  const auto one = [&](std::string name, std::vector<Index> shape, std::string_view type) {
    return [=] { const GgufWriter w(path, {}, {{name, find_gguf_type(type), shape}}); };
  };
  EXPECT_TRUE(refuses(one("", {1}, "F32"), "tensor name '' has 0 bytes, expected 1 to 63"));
  EXPECT_TRUE(refuses(one(std::string(64, 'a'), {1}, "F32"), "has 64 bytes"));
  EXPECT_TRUE(refuses(one("\xff", {1}, "F32"), "of UTF-8"));
  EXPECT_TRUE(refuses(one("t", {}, "F32"), "has the shape [], expected 1 to 4 extents"));
  EXPECT_TRUE(refuses(one("t", {1, 1, 1, 1, 1}, "F32"), "expected 1 to 4 extents"));
  EXPECT_TRUE(refuses(one("t", {0, 2}, "F32"), "has the shape [0,2]"));
  EXPECT_TRUE(refuses(one("t", {2, 31}, "Q8_0"), "has rows of 31 elements, Q8_0 needs a multiple of 32"));
  EXPECT_TRUE(refuses([&] { GgufMetadata().set("", 1); }, "metadata key '' has 0 bytes"));
  EXPECT_TRUE(refuses([&] { GgufMetadata().set("general.alignment", 32); }, "expected a power of two"));
  EXPECT_TRUE(refuses([&] { GgufMetadata().set("general.alignment", 24u); }, "expected a power of two"));
  const GgufTensorType* f32 = find_gguf_type("F32");
  EXPECT_TRUE(refuses([&] { const GgufWriter w(path, {}, {{"a", f32, {1}}, {"a", f32, {1}}}); }, "is there twice"));
  GgufWriter w(path, {}, {{"a", f32, {2}}});
  EXPECT_TRUE(refuses([&] { w.commit(); }, "0 of 1 tensors are written, tensor 'a' is missing"));
  EXPECT_TRUE(refuses([&] { w.write(Tensor(DType::f32, {3})); }, "takes 8 bytes, 12 were given"));
  w.write(Tensor(DType::f32, {2}));
  EXPECT_TRUE(refuses([&] { w.write(Tensor(DType::f32, {2})); }, "all 1 tensors are written already"));
  EXPECT_FALSE(fs::exists(path));
  w.commit();
  EXPECT_TRUE(fs::exists(path));
  EXPECT_TRUE(refuses([&] { write_gguf(path, {}, {{"a", Tensor(DType::u8, {2})}}); }, "have no type for u8[2]"));
}

TEST(GgufMix, TypesOfTheTensorsOfAModel) {
  const GgufMixFacts facts{.architecture = "llama", .layers = 32, .queries_per_key = 1, .tied = false};
  const auto type = [&](std::string_view mix, std::string_view name, std::vector<Index> shape = {4096, 4096}) {
    return gguf_mix_type(find_gguf_mix(mix), name, shape, facts).name;
  };
  EXPECT_EQ(type("q4_k", "blk.10.attn_q.weight"), "Q4_K");
  EXPECT_EQ(type("q4_k_m", "output.weight"), "Q6_K");
  EXPECT_EQ(type("q4_k_m", "token_embd.weight"), "Q4_K");
  EXPECT_EQ(type("q4_k_m", "blk.0.ffn_down.weight"), "Q6_K");
  EXPECT_EQ(type("q4_k_m", "blk.5.ffn_down.weight"), "Q4_K");
  EXPECT_EQ(type("q4_k_m", "blk.6.attn_v.weight"), "Q6_K");
  EXPECT_EQ(type("q4_k_m", "blk.31.ffn_down.weight"), "Q6_K");
  EXPECT_EQ(type("q4_k_s", "blk.3.attn_v.weight"), "Q5_K");
  EXPECT_EQ(type("q4_k_s", "blk.4.attn_v.weight"), "Q4_K");
  EXPECT_EQ(type("q8_0", "output.weight"), "Q8_0");
  EXPECT_EQ(type("q4_0", "output.weight"), "Q6_K");
  EXPECT_EQ(type("q4_0", "output.weight", {100, 576}), "Q8_0");
  EXPECT_EQ(type("f16", "output.weight"), "F16");
  EXPECT_EQ(type("q2_k", "blk.9.attn_output.weight"), "Q3_K");
  // Rows that are no multiple of 256, and rows that are no multiple of 32.
  EXPECT_EQ(type("q4_k", "blk.5.attn_q.weight", {576, 576}), "Q5_0");
  EXPECT_EQ(type("q5_k", "blk.5.attn_q.weight", {576, 576}), "Q5_1");
  EXPECT_EQ(type("q6_k", "blk.5.attn_q.weight", {576, 576}), "Q8_0");
  EXPECT_EQ(type("q2_k", "blk.5.attn_q.weight", {576, 576}), "Q4_0");
  EXPECT_EQ(type("iq4_xs", "blk.5.attn_q.weight", {576, 576}), "IQ4_NL");
  EXPECT_EQ(type("q4_k", "blk.5.attn_q.weight", {4, 100}), "F16");
  EXPECT_TRUE(refuses([] { find_gguf_mix("q9"); }, "'q9' is no type to quantize to, known are f32, f16"));
}

TEST(GgufMix, WhatIsQuantised) {
  const std::vector<Index> matrix{64, 64}, vector{64}, line{1, 64};
  EXPECT_TRUE(gguf_quantizes("blk.0.attn_q.weight", matrix));
  EXPECT_TRUE(gguf_quantizes("token_embd.weight", matrix));
  EXPECT_TRUE(gguf_quantizes("blk.0.ffn_gate_exps.weight", std::vector<Index>{8, 64, 64}));
  EXPECT_FALSE(gguf_quantizes("blk.0.attn_q.weight", vector));
  EXPECT_FALSE(gguf_quantizes("blk.0.attn_q.weight", line));
  EXPECT_FALSE(gguf_quantizes("blk.0.attn_q.bias", matrix));
  EXPECT_FALSE(gguf_quantizes("blk.0.attn_norm.weight", matrix));
  EXPECT_FALSE(gguf_quantizes("blk.0.ffn_gate_inp.weight", matrix));
  EXPECT_FALSE(gguf_quantizes("model.layers.0.input_layernorm.weight", matrix));
}

TEST(GgufQuantize, Patterns) {
  EXPECT_TRUE(matches_pattern("blk.0.attn_q.weight", "*attn_q*"));
  EXPECT_TRUE(matches_pattern("blk.0.attn_q.weight", "blk.?.attn_q.weight"));
  EXPECT_TRUE(matches_pattern("", "*"));
  EXPECT_TRUE(matches_pattern("aab", "*ab"));
  EXPECT_FALSE(matches_pattern("abc", "*ab"));
  EXPECT_FALSE(matches_pattern("abc", ""));
  EXPECT_FALSE(matches_pattern("abc", "a?"));
}

/// A small model whose weights are smooth numbers, at `path`.
void write_model(const std::string& path, DType dtype) {
  GgufMetadata m;
  m.set("general.architecture", "llama");
  m.set("llama.block_count", std::uint32_t{1});
  const auto tensor = [&](const std::vector<Index>& shape, DType type) {
    Tensor t(type, shape);
    std::vector<double> values(static_cast<std::size_t>(t.count()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.37 * static_cast<double>(i * i % 1009));
    store(t, values);
    return t;
  };
  write_gguf(path, m,
             {{"token_embd.weight", tensor({40, 256}, dtype)},
              {"blk.0.attn_q.weight", tensor({256, 256}, dtype)},
              {"blk.0.attn_norm.weight", tensor({256}, dtype)},
              {"blk.0.ffn_down_exps.weight", tensor({2, 3, 256}, dtype)}});
}

TEST(GgufQuantize, EveryThreadCountGivesTheSameFile) {
  const std::string folder = make_folder(), in = folder + "/in.gguf";
  write_model(in, DType::bf16);
  const QuantizeInput input = quantize_input(GgufFile(in));
  const auto run = [&](int threads, const std::string& name) {
    ThreadPool pool(threads);
    return quantize_gguf(input, folder + name, {.mix = &find_gguf_mix("q8_0")}, pool);
  };
  const QuantizeReport a = run(1, "/a.gguf"), b = run(3, "/b.gguf");
  EXPECT_TRUE(read_text(folder + "/a.gguf") == read_text(folder + "/b.gguf"));
  const GgufFile f(folder + "/a.gguf");
  EXPECT_EQ(f.get<Index>("general.file_type"), 7);
  ASSERT_EQ(a.tensors.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const QuantizedTensor& q = a.tensors[i];
    EXPECT_EQ(q.error, b.tensors[i].error);
    const bool norm = q.name == "blk.0.attn_norm.weight";
    EXPECT_EQ(q.to->name, norm ? "F32" : "Q8_0") << q.name;
    // The error again, by hand.
    const auto x = load<double>(quantize_input(GgufFile(in)).at(q.name));
    const auto y = load<double>(norm ? f.at(q.name) : decode(f.at(q.name)));
    double difference = 0, value = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      difference += (x[k] - y[k]) * (x[k] - y[k]);
      value += x[k] * x[k];
    }
    EXPECT_NEAR(q.error, std::sqrt(difference / value), 1e-9);
    EXPECT_LT(q.error, 0.01);
    EXPECT_EQ(q.error == 0, norm);
  }
}

TEST(GgufQuantize, KeptTensorsAndPlainTypes) {
  const std::string folder = make_folder(), in = folder + "/in.gguf", out = folder + "/out.gguf";
  write_model(in, DType::f16);
  ThreadPool pool(1);
  quantize_gguf(quantize_input(GgufFile(in)), out, {.mix = &find_gguf_mix("q8_0"), .keep = {"*embd*"}}, pool);
  const GgufFile f(out), before(in);
  EXPECT_EQ(f.entry("token_embd.weight").type->name, "F16");
  EXPECT_TRUE(identical(f.at("token_embd.weight"), before.at("token_embd.weight")));
  EXPECT_EQ(f.entry("blk.0.attn_q.weight").type->name, "Q8_0");
  const std::string back = folder + "/back.gguf";
  quantize_gguf(quantize_input(f), back, {.mix = &find_gguf_mix("f32")}, pool);
  EXPECT_TRUE(identical(GgufFile(back).at("blk.0.attn_q.weight"), decode(f.at("blk.0.attn_q.weight"))));
}

TEST(GgufQuantize, WeightsOfSafetensors) {
  const std::string folder = make_folder();
  Tensor w(DType::f32, {4, 64}), norm(DType::bf16, {64});
  store(w, std::vector<double>(256, 0.5));
  write_safetensors(folder + "/model.safetensors",
                    {{"model.layers.1.mlp.up_proj.weight", w}, {"model.norm.weight", norm}});
  ThreadPool pool(1);
  const auto model = std::make_shared<const SafetensorsModel>(folder);
  const QuantizeInput input = quantize_input(model, "llama");
  EXPECT_EQ(input.facts.layers, 2);
  quantize_gguf(input, folder + "/out.gguf", {.mix = &find_gguf_mix("q8_0")}, pool);
  const GgufFile f(folder + "/out.gguf");
  EXPECT_EQ(f.entry("model.layers.1.mlp.up_proj.weight").type->name, "Q8_0");
  EXPECT_EQ(f.entry("model.norm.weight").type->name, "F32");
  EXPECT_EQ(f.get<std::string>("general.architecture"), "llama");
}

TEST(GgufQuantize, ImportanceFilesOfBothForms) {
  const std::string folder = make_folder(), gguf = folder + "/a.gguf", old = folder + "/a.dat";
  write_gguf(gguf, {},
             {{"w.in_sum2", Tensor::of<double>(DType::f32, {2, 2}, {2, 4, 9, 3})},
              {"w.counts", Tensor::of<double>(DType::f32, {2, 1}, {2, 0})}});
  EXPECT_EQ(read_importance(gguf).at("w"), (std::vector<float>{1, 2, 1, 1}));
  GgufMaker m{.version = 1};
  m.u32(1).text("w").u32(2).u32(2).u32(0x40000000).u32(0x40800000);
  write_text(old, m.out);
  EXPECT_EQ(read_importance(old).at("w"), (std::vector<float>{1, 2}));
  for (std::size_t n = 1; n < m.out.size(); ++n) {
    write_text(old, m.out.substr(0, n));
    EXPECT_TRUE(refuses([&] { read_importance(old); }, "a.dat'")) << n;
  }
  write_text(old, GgufMaker{.version = 1}.u32(1).text("w").u32(1).u32(1).u32(0x7fc00000).out);
  EXPECT_TRUE(refuses([&] { read_importance(old); }, "has negative or infinite numbers"));
  write_text(old, GgufMaker{.version = 1}.u32(1).text("w").u32(0).u32(1).u32(0).out);
  EXPECT_TRUE(refuses([&] { read_importance(old); }, "has 0 calls and 1 values"));
  write_gguf(gguf, {}, {{"w", Tensor(DType::f32, {2})}});
  EXPECT_TRUE(refuses([&] { read_importance(gguf); }, "so it is no importance file"));
}

TEST(GgufQuantize, ImportanceMustFit) {
  const std::string folder = make_folder(), in = folder + "/in.gguf";
  write_model(in, DType::f32);
  ThreadPool pool(1);
  const QuantizeInput input = quantize_input(GgufFile(in));
  const ImportanceTable wrong{{"blk.0.attn_q.weight", std::vector<float>(255, 1)}},
      right{{"blk.0.ffn_down_exps.weight", std::vector<float>(512, 1)}};
  EXPECT_TRUE(refuses(
      [&] {
        quantize_gguf(input, folder + "/a", {.mix = &find_gguf_mix("q4_0"), .keep = {"*embd*"}, .importance = &wrong},
                      pool);
      },
      "the importance of tensor 'blk.0.attn_q.weight' has 255 numbers, its shape [256,256] needs 256"));
  quantize_gguf(input, folder + "/a", {.mix = &find_gguf_mix("q4_0"), .keep = {"*embd*"}, .importance = &right}, pool);
  EXPECT_EQ(GgufFile(folder + "/a").entry("blk.0.ffn_down_exps.weight").type->name, "Q4_0");
}

}  // namespace
}  // namespace rlx::test
