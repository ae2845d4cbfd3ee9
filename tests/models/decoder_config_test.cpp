// Descriptions of decoders: what is read, older spellings, and what is refused.
#include "models/decoder_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "codecs/codec.h"
#include "core/error.h"
#include "models/decoder.h"
#include "models/stored_weights.h"
#include "runtime/evaluate.h"

namespace rlx {
namespace {

std::string refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

void expect_refused(const std::function<void()>& f, const std::string& part) {
  const std::string message = refused(f);
  EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

// A config.json with these members beside those every llama has.
DecoderConfig from_json(const std::string& more) {
  const std::string text = R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "vocab_size": 9,
    "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5)" +
                           (more.empty() ? "" : ", " + more) + "}";
  return decoder_config_from_json(JsonDocument::parse(text), "config.json");
}

ModelFields metadata(const std::string& architecture) {
  ModelFields f("a.gguf");
  f.set("general.architecture", architecture);
  const auto set = [&](const std::string& name, ModelFields::Value v) {
    f.set(architecture + "." + name, std::move(v));
  };
  set("block_count", Index{6});
  set("context_length", Index{64});
  set("embedding_length", Index{32});
  set("feed_forward_length", Index{64});
  set("attention.head_count", Index{4});
  set("attention.layer_norm_rms_epsilon", 1e-5);
  return f;
}

TEST(DecoderConfigs, OlderSpellingsOfRotaryEmbeddings) {
  const DecoderConfig modern = from_json(R"("rope_parameters": {"rope_type": "linear", "rope_theta": 500.0,
    "factor": 4.0})");
  EXPECT_EQ(modern.rope.scaling, RopeScaling::linear);
  EXPECT_EQ(modern.rope.theta, 500);
  EXPECT_EQ(modern.rope.factor, 4);
  for (const std::string type : {"type", "rope_type"}) {
    const DecoderConfig old = from_json(R"("rope_theta": 500.0, "rope_scaling": {")" + type + R"(": "linear",
      "factor": 4.0})");
    EXPECT_EQ(old.rope, modern.rope) << type;
  }
  EXPECT_EQ(from_json("").rope.theta, 10000);
  EXPECT_EQ(from_json(R"("rope_scaling": null)").rope.scaling, RopeScaling::none);
}

TEST(DecoderConfigs, WindowsByLayer) {
  ModelFields f = metadata("gemma3");
  f.set("gemma3.attention.sliding_window", Index{16});
  EXPECT_EQ(decoder_config_from_gguf(f).windows, (std::vector<Index>{16, 16, 16, 16, 16, 0}));
  f.set("gemma3.attention.sliding_window_pattern", Index{3});
  EXPECT_EQ(decoder_config_from_gguf(f).windows, (std::vector<Index>{16, 16, 0, 16, 16, 0}));
  f.set("gemma3.attention.sliding_window_pattern", std::vector<double>{0, 1, 1, 0, 0, 0});
  EXPECT_EQ(decoder_config_from_gguf(f).windows, (std::vector<Index>{0, 16, 16, 0, 0, 0}));
  f.set("gemma3.attention.sliding_window_pattern", std::vector<double>{0, 1});
  expect_refused([&] { decoder_config_from_gguf(f); }, "a list of 6 entries, one a layer");
}

TEST(DecoderConfigs, AllThatIsNotUnderstoodIsListed) {
  expect_refused([] { from_json(R"("alpha": 1, "rope_scaling": {"rope_type": "default", "beta": 2})"); },
                 "config.json: fields are not understood: alpha, rope_scaling.beta");
  ModelFields f = metadata("llama");
  f.set("llama.delta", true);
  f.set("llama.ssm.gamma", Index{1});
  f.set("other.thing", Index{1});
  f.set("tokenizer.ggml.model", std::string("gpt2"));
  expect_refused([&] { decoder_config_from_gguf(f); },
                 "a.gguf: fields are not understood: llama.delta, llama.ssm.gamma, other.thing");
  expect_refused([] { decoder_config_from_gguf(metadata("mamba")); },
                 "general.architecture \"mamba\" is unknown, expected one of llama, qwen2, qwen3, qwen3moe, gemma2, "
                 "gemma3, phi3, granite, olmo2, gpt2");
  expect_refused([] { decoder_config_from_json(JsonDocument::parse(R"({"model_type": "t5"})"), "c"); },
                 "model_type \"t5\" is unknown, expected one of llama, mistral, mixtral");
}

TEST(DecoderConfigs, ValuesThatDoNotFit) {
  const std::map<std::string, std::string> wrong{
      {R"("rope_scaling": {"rope_type": "spiral"})", "rope_scaling.rope_type is \"spiral\", expected one of default"},
      {R"("rope_theta": 1.0)", "theta of the rotary embeddings is 1, expected more than 1"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": 0.0})", "factor of the rotary embeddings is 0"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": "2"})", "rope_scaling.factor is \"2\", expected a finite"},
      {R"("rope_scaling": {"rope_type": "llama3", "factor": 2.0})", "rope_scaling.low_freq_factor is missing"},
      {R"("rope_scaling": {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0, 0.0, 1.0, 1.0]})",
       "expected 4 positive numbers"},
      {R"("partial_rotary_factor": 0.4)", "3 elements of heads of 8 are rotated, expected an even number"},
      {R"("head_dim": 7)", "7 elements of heads of 7 are rotated"},
      {R"("use_bidirectional_attention": true)", "use_bidirectional_attention is true, expected false"},
      {R"("is_encoder_decoder": true)", "is_encoder_decoder is true, expected false"},
      {R"("tie_word_embeddings": 1)", "tie_word_embeddings is 1, expected true or false"},
      {R"("quantization_config": {"bits": 4})", "fields are not understood: quantization_config.bits"}};
  for (const auto& [more, message] : wrong) expect_refused([&, &m = more] { from_json(m); }, message);
  ModelFields f = metadata("llama");
  f.set("llama.attention.head_count_kv", Index{3});
  expect_refused([&] { decoder_config_from_gguf(f); }, "4 heads are not divisible by 3 heads of keys and values");
  f.set("llama.attention.head_count_kv", std::vector<double>{2, 2, 2, 2, 4, 2});
  expect_refused([&] { decoder_config_from_gguf(f); }, "llama.attention.head_count_kv is list of 6 numbers");
  f.set("llama.attention.head_count_kv", std::vector<double>{2, 2, 2, 2, 2, 2});
  EXPECT_EQ(decoder_config_from_gguf(f).kv_heads, 2);
  f.set("llama.expert_count", Index{4});
  f.set("llama.expert_used_count", Index{5});
  expect_refused([&] { decoder_config_from_gguf(f); }, "llama.expert_used_count is 5, expected a number from 1 to 4");
  f.set("llama.block_count", Index{-1});
  expect_refused([&] { decoder_config_from_gguf(f); }, "llama.block_count is -1, expected an integer from 1");
}

// --- weights ---

NamedTensors llama_weights(const DecoderConfig& c, const std::string& prefix) {
  NamedTensors all;
  double seed = 1;
  const auto add = [&](const std::string& name, std::vector<Index> shape) {
    Tensor t(DType::f32, std::move(shape));
    std::vector<double> v(static_cast<std::size_t>(t.count()));
    for (double& x : v) x = std::sin(seed += 1.7) * 0.4;
    store(t, v);
    all.insert_or_assign(prefix + name + ".weight", std::move(t));
  };
  add("embed_tokens", {c.vocab, c.hidden});
  add("norm", {c.hidden});
  const std::string l = "layers.0.";
  add(l + "input_layernorm", {c.hidden});
  add(l + "post_attention_layernorm", {c.hidden});
  add(l + "self_attn.q_proj", {c.query_size(), c.hidden});
  add(l + "self_attn.k_proj", {c.key_size(), c.hidden});
  add(l + "self_attn.v_proj", {c.key_size(), c.hidden});
  add(l + "self_attn.o_proj", {c.hidden, c.query_size()});
  add(l + "mlp.gate_proj", {c.ffn, c.hidden});
  add(l + "mlp.up_proj", {c.ffn, c.hidden});
  add(l + "mlp.down_proj", {c.hidden, c.ffn});
  return all;
}

std::vector<double> logits(const DecoderConfig& c, const NamedTensors& weights) {
  const Graph g = decoder_uncached(c, MemoryWeights(weights));
  return load<double>(evaluate(g, {{"ids", Tensor::of<Index>(DType::i32, {5}, {1, 8, 0, 3, 3})}})[0]);
}

TEST(DecoderTensors, NamesWithoutTheModelsOwn) {
  const DecoderConfig c = from_json(R"("tie_word_embeddings": true)");
  EXPECT_EQ(logits(c, llama_weights(c, "")), logits(c, llama_weights(c, "model.")));
}

TEST(DecoderTensors, AllThatAreNotUnderstoodAreListed) {
  const DecoderConfig c = from_json(R"("tie_word_embeddings": true)");
  NamedTensors w = llama_weights(c, "model.");
  w.emplace("model.layers.0.self_attn.rotary_emb.inv_freq", Tensor(DType::f32, {4}));
  w.emplace("lm_head.weight", w.at("model.embed_tokens.weight"));
  EXPECT_NO_THROW(logits(c, w));
  w.emplace("model.layers.1.self_attn.q_proj.weight", Tensor(DType::f32, {32, 32}));
  w.emplace("adapter", Tensor(DType::f32, {1}));
  expect_refused([&] { logits(c, w); }, "tensors are not understood: adapter, model.layers.1.self_attn.q_proj.weight");
}

TEST(DecoderTensors, MissingOnesAndOtherShapes) {
  const DecoderConfig c = from_json("");
  NamedTensors w = llama_weights(c, "model.");
  expect_refused([&] { logits(c, w); }, "there is no head, and the embedding is not said to be one");
  w.emplace("lm_head.weight", Tensor(DType::f32, {c.vocab, c.hidden}));
  EXPECT_NO_THROW(logits(c, w));
  w.insert_or_assign("model.layers.0.mlp.up_proj.weight", Tensor(DType::f32, {c.ffn, c.hidden + 1}));
  expect_refused([&] { logits(c, w); }, "has shape [64,33], expected [64,32]");
  w.erase("model.layers.0.mlp.up_proj.weight");
  expect_refused([&] { logits(c, w); }, "layers.0.up.weight");
}

TEST(DecoderTensors, RowsShareTheBytes) {
  Tensor t(DType::f32, {6, 64});
  for (Index i = 0; i < t.count(); ++i) t.set_code(i, 0x3f800000 + static_cast<std::uint64_t>(i));
  const Tensor part = rows_of(t, 2, 3);
  EXPECT_EQ(part.bytes().data(), t.bytes().data() + 2 * 64 * 4);
  EXPECT_EQ(part.shape(), (std::vector<Index>{3, 64}));
  const Tensor coded = encode(t, *find_codec("q8_0")), some = rows_of(coded, 2, 3);
  EXPECT_EQ(load<double>(decode(some)), load<double>(rows_of(decode(coded), 2, 3)));
  EXPECT_EQ(some.bytes().data(), coded.bytes().data() + 2 * 2 * 34);
  const Tensor stack = t.reshaped({3, 2, 64});
  EXPECT_EQ(load<double>(matrix_of(stack, 1)), load<double>(rows_of(t, 2, 2)));
  expect_refused([&] { rows_of(t, 4, 3); }, "rows 4 to 7");
  EXPECT_EQ(transposed(t).code(3), t.code(3 * 64));
}

// Matrices in blocks mean what they decode to.
TEST(DecoderTensors, EncodedMatrices) {
  const DecoderConfig c = from_json(R"("tie_word_embeddings": true)");
  NamedTensors coded = llama_weights(c, "model."), dense = coded;
  for (auto& [name, t] : coded) {
    if (t.rank() != 2) continue;
    t = encode(t, *find_codec("q8_0"));
    dense.insert_or_assign(name, decode(t));
  }
  const std::vector<double> a = logits(c, coded), b = logits(c, dense);
  for (std::size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

}  // namespace
}  // namespace rlx
