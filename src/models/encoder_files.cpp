// Encoders under the names of GGUF files and of Nomic BERT.
#include "models/encoder_files.h"

#include <fmt/ranges.h>

#include "core/error.h"
#include "ops/cast/cast.h"

namespace rlx {

namespace {

constexpr Index largest = Index{1} << 24;

constexpr StoredName gguf_names[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"encoder.layer.{}.attention.self.query", "blk.{}.attn_q"},
    {"encoder.layer.{}.attention.self.key", "blk.{}.attn_k"},
    {"encoder.layer.{}.attention.self.value", "blk.{}.attn_v"},
    {"encoder.layer.{}.attention.self.query", "blk.{}.attn_qkv", Fused::query_key_value},
    {"encoder.layer.{}.attention.self.key", "blk.{}.attn_qkv", Fused::query_key_value},
    {"encoder.layer.{}.attention.self.value", "blk.{}.attn_qkv", Fused::query_key_value},
    {"encoder.layer.{}.attention.output.dense", "blk.{}.attn_output"},
    {"encoder.layer.{}.attention.output.LayerNorm", "blk.{}.attn_output_norm"},
    {"encoder.layer.{}.intermediate.gate", "blk.{}.ffn_gate"},
    {"encoder.layer.{}.intermediate.dense", "blk.{}.ffn_up"},
    {"encoder.layer.{}.output.dense", "blk.{}.ffn_down"},
    {"encoder.layer.{}.output.LayerNorm", "blk.{}.layer_output_norm"},
};

constexpr StoredName nomic_names[] = {
    {"embeddings.word_embeddings", "embeddings.word_embeddings"},
    {"embeddings.token_type_embeddings", "embeddings.token_type_embeddings"},
    {"embeddings.LayerNorm", "emb_ln"},
    {"encoder.layer.{}.attention.self.query", "encoder.layers.{}.attn.Wqkv", Fused::query_key_value},
    {"encoder.layer.{}.attention.self.key", "encoder.layers.{}.attn.Wqkv", Fused::query_key_value},
    {"encoder.layer.{}.attention.self.value", "encoder.layers.{}.attn.Wqkv", Fused::query_key_value},
    {"encoder.layer.{}.attention.output.dense", "encoder.layers.{}.attn.out_proj"},
    {"encoder.layer.{}.attention.output.LayerNorm", "encoder.layers.{}.norm1"},
    {"encoder.layer.{}.intermediate.dense", "encoder.layers.{}.mlp.fc11"},
    {"encoder.layer.{}.intermediate.gate", "encoder.layers.{}.mlp.fc12"},
    {"encoder.layer.{}.output.dense", "encoder.layers.{}.mlp.fc2"},
    {"encoder.layer.{}.output.LayerNorm", "encoder.layers.{}.norm2"},
    {"embeddings.LayerNorm", "embeddings.LayerNorm"},
    {"encoder.layer.{}.attention.self.query", "layers.{}.self_attn.q_proj"},
    {"encoder.layer.{}.attention.self.key", "layers.{}.self_attn.k_proj"},
    {"encoder.layer.{}.attention.self.value", "layers.{}.self_attn.v_proj"},
    {"encoder.layer.{}.attention.output.dense", "layers.{}.self_attn.o_proj"},
    {"encoder.layer.{}.attention.output.LayerNorm", "layers.{}.post_attention_layernorm"},
    {"encoder.layer.{}.intermediate.dense", "layers.{}.mlp.up_proj"},
    {"encoder.layer.{}.intermediate.gate", "layers.{}.mlp.gate_proj"},
    {"encoder.layer.{}.output.dense", "layers.{}.mlp.down_proj"},
    {"encoder.layer.{}.output.LayerNorm", "layers.{}.post_mlp_layernorm"},
};

// Fields that do not concern the values that a forward pass gives.
constexpr std::string_view ignored[] = {
    "model_type",
    "architectures",
    "transformers_version",
    "torch_dtype",
    "dtype",
    "auto_map",
    "auto_map.",
    "attention_probs_dropout_prob",
    "hidden_dropout_prob",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "classifier_dropout",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "initializer_range",
    "tie_word_embeddings",
    "use_cache",
    "use_flash_attn",
    "fused_bias_fc",
    "fused_dropout_add_ln",
    "pad_vocab_size_multiple",
    "summary_",
    "scale_attn_weights",
    "reorder_and_upcast_attn",
    "n_positions",
    "num_labels",
    "max_trained_positions",
    "_name_or_path",
    "id2label.",
    "label2id.",
    "dense_seq_output",
    "layer_norm_eps",
    "add_cross_attention",
};

// Flags of the publisher's configuration that must be off.
constexpr std::string_view off[] = {"causal",
                                    "mlp_fc1_bias",
                                    "mlp_fc2_bias",
                                    "parallel_block",
                                    "prenorm",
                                    "qkv_proj_bias",
                                    "rotary_emb_interleaved",
                                    "scale_attn_by_inverse_layer_idx",
                                    "shared_layernorm_in_parallel_block",
                                    "use_rms_norm",
                                    "use_xentropy",
                                    "parallel_block_tied_norm",
                                    "is_decoder"};

std::string first_of(const ModelFields& f, std::initializer_list<std::string_view> names) {
  for (const std::string_view n : names) {
    if (f.has(n)) return std::string(n);
  }
  return std::string(*names.begin());
}

void check(const EncoderConfig& c, const ModelFields& f) {
  require(c.hidden % c.heads == 0, "{}: a hidden size of {} is not divisible by {} heads", f.description(), c.hidden,
          c.heads);
  require(c.epsilon > 0 && c.epsilon < 1, "{}: the epsilon of norms is {}, expected a number between 0 and 1",
          f.description(), c.epsilon);
  require(c.rotary_theta == 0 || c.rotary_theta > 1, "{}: theta of the rotary embeddings is {}, expected more than 1",
          f.description(), c.rotary_theta);
  const std::vector<std::string> unread = f.unread();
  require(unread.empty(), "{}: fields are not understood: {}", f.description(), fmt::join(unread, ", "));
}

// Rows of a table of `hidden` columns.
Index rows_of_table(const WeightSource& weights, std::string_view name, Index hidden) {
  const Tensor t = weights.at(name);
  require(t.rank() == 2 && t.shape()[1] == hidden, "{}: tensor {} has shape {}, expected rows of {}",
          weights.description(), name, text(t.shape()), hidden);
  return t.shape()[0];
}

}  // namespace

EncoderConfig nomic_from_fields(const ModelFields& f) {
  EncoderConfig c;
  c.model_type = "nomic_bert";
  c.gated = true;
  const auto size = [&](std::initializer_list<std::string_view> names) {
    return f.integer(first_of(f, names), 1, largest);
  };
  c.vocab_size = size({"vocab_size"});
  c.hidden = size({"n_embd", "hidden_size"});
  c.layers = size({"n_layer", "num_hidden_layers"});
  c.heads = size({"n_head", "num_attention_heads"});
  c.intermediate = size({"n_inner", "intermediate_size"});
  c.max_positions = size({"max_trained_positions", "n_positions", "max_position_embeddings"});
  c.token_types = size({"type_vocab_size"});
  c.epsilon = f.real(first_of(f, {"layer_norm_epsilon", "layer_norm_eps"}));
  c.rotary_theta = f.real(first_of(f, {"rotary_emb_base", "rope_parameters.rope_theta", "rope_theta"}));
  const std::string act = first_of(f, {"activation_function", "hidden_act"});
  c.activation = f.text(act) == "swiglu" ? "silu" : f.text(act);
  const auto fixed = [&](std::string_view name, bool ok, std::string_view expected) {
    if (f.has(name) && !ok) f.fail_expected(name, expected);
  };
  fixed("rope_parameters.rope_type", f.text_or("rope_parameters.rope_type", "default") == "default", "\"default\"");
  fixed("rotary_emb_fraction", f.real_or("rotary_emb_fraction", 1) == 1, "1");
  fixed("rotary_emb_scale_base", false, "null");
  fixed("rotary_scaling_factor", false, "null");
  fixed("head_dim", f.integer_or("head_dim", 1, largest, c.hidden / c.heads) == c.hidden / c.heads,
        "the hidden size over the heads");
  for (const std::string_view flag : off) {
    if (f.boolean_or(flag, false)) f.fail_expected(flag, "false");
  }
  f.ignore(ignored);
  check(c, f);
  return c;
}

EncoderConfig EncoderConfig::from_gguf(const ModelFields& f, const WeightSource& weights) {
  EncoderConfig c;
  c.gguf = true;
  const std::string architecture = f.text("general.architecture");
  const bool nomic = architecture == "nomic-bert";
  if (!nomic && architecture != "bert") f.fail_expected("general.architecture", "bert or nomic-bert");
  const std::string at = architecture + ".";
  const auto size = [&](std::string_view name) { return f.integer(at + std::string(name), 1, largest); };
  c.model_type = nomic ? "nomic_bert" : "bert";
  c.gated = nomic;
  c.activation = nomic ? "silu" : "gelu";
  c.hidden = size("embedding_length");
  c.layers = size("block_count");
  c.heads = size("attention.head_count");
  c.intermediate = size("feed_forward_length");
  c.max_positions = size("context_length");
  c.epsilon = f.real(at + "attention.layer_norm_epsilon");
  if (nomic) c.rotary_theta = f.real_or(at + "rope.freq_base", 10000);
  const Index head = c.hidden / c.heads;
  for (const std::string_view field : {"rope.dimension_count", "attention.key_length", "attention.value_length"}) {
    const std::string name = at + std::string(field);
    if (f.integer_or(name, 1, largest, head) != head) f.fail_expected(name, std::to_string(head));
  }
  if (f.boolean_or(at + "attention.causal", false)) f.fail_expected(at + "attention.causal", "false");
  c.vocab_size = rows_of_table(weights, "token_embd.weight", c.hidden);
  c.token_types = weights.contains("token_types.weight") ? rows_of_table(weights, "token_types.weight", c.hidden) : 0;
  const std::string pooling = at + "pooling_type", vocabulary = at + "vocab_size";
  const std::string_view other[] = {"general.", "tokenizer.", "split.", "quantize.", pooling, vocabulary};
  f.ignore(other);
  check(c, f);
  return c;
}

bool encoder_renamed(const EncoderConfig& config) { return config.gguf || config.model_type == "nomic_bert"; }

StoredWeights encoder_weights(const WeightSource& source, const EncoderConfig& config) {
  std::vector<StoredName> names;
  if (config.gguf) {
    names.assign(std::begin(gguf_names), std::end(gguf_names));
  } else {
    names.assign(std::begin(nomic_names), std::end(nomic_names));
  }
  return {source,
          std::move(names),
          {.query = config.hidden, .key = config.hidden, .ffn = config.intermediate},
          "embeddings.word_embeddings"};
}

Graph encoder_graph(const EncoderConfig& config, const WeightSource& weights) {
  Builder b;
  const Dim batch = Dim::symbol("B", 1), length = Dim::symbol("S", 1, config.max_positions);
  const Value ids = b.input("ids", {DType::i64, {batch, length}}),
              mask = b.input("mask", {DType::f32, {batch, length}});
  std::optional<StoredWeights> renamed;
  if (encoder_renamed(config)) renamed = encoder_weights(weights, config);
  const Parameters p(b, renamed ? static_cast<const WeightSource&>(*renamed) : weights);
  const Value y = encoder(ids, mask, config, renamed ? p : encoder_scope(config, p));
  std::vector<std::string> left = renamed ? renamed->unused() : p.unused(encoder_ignored(config));
  require(left.empty(), "{}: tensors are not understood: {}", weights.description(), fmt::join(left, ", "));
  return b.finish(std::span(&y, 1), {"states"});
}

}  // namespace rlx
