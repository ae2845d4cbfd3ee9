// Reading a decoder's architecture from GGUF metadata and from config.json.
#include "models/decoder_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/decoder_table.h"

namespace rlx {

namespace {

constexpr Index largest_size = Index{1} << 28;

// Fields of config.json that do not concern the values that a forward pass gives.
constexpr std::string_view hf_ignored[] = {
    "model_type",
    "architectures",
    "transformers_version",
    "torch_dtype",
    "dtype",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "unk_token_id",
    "sep_token_id",
    "use_cache",
    "initializer_range",
    "attention_dropout",
    "hidden_dropout",
    "resid_pdrop",
    "embd_pdrop",
    "attn_pdrop",
    "pretraining_tp",
    "_name_or_path",
    "auto_map",
    "auto_map.",
    "output_router_logits",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "cache_implementation",
    "task_specific_params",
    "task_specific_params.",
    "summary_",
    "n_ctx",
    "gradient_checkpointing",
    "is_llama_config",
    "reorder_and_upcast_attn",
    "id2label.",
    "label2id.",
    "_attn_implementation_autoset",
    "hidden_act",
    "transformers.js_config.",
    "chunk_size_feed_forward",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "problem_type",
    "max_window_layers",

};

// Flags that must be off, since they change the forward pass.
constexpr std::string_view hf_off[] = {"is_encoder_decoder", "rope_interleaved", "use_bidirectional_attention",
                                       "add_cross_attention", "use_mrope"};

void check_sizes(const DecoderConfig& c, const ModelFields& f) {
  require(c.heads % c.kv_heads == 0, "{}: {} heads are not divisible by {} heads of keys and values", f.description(),
          c.heads, c.kv_heads);
  require(c.epsilon >= 0 && c.epsilon < 1, "{}: the epsilon of norms is {}, expected a number from 0 to 1",
          f.description(), c.epsilon);
  for (const double scale :
       {c.embedding_scale, c.residual_scale, c.logit_scale, c.attention_scale, c.attention_cap, c.logit_cap}) {
    require(std::isfinite(scale) && scale >= 0, "{}: a multiplier or soft cap is {}, expected a positive number",
            f.description(), scale);
  }
}

void refuse_unread(const ModelFields& f) {
  const std::vector<std::string> unread = f.unread();
  require(unread.empty(), "{}: fields are not understood: {}", f.description(), fmt::join(unread, ", "));
}

// What every architecture has.
void read_common(DecoderReading& r, const Architecture& a) {
  DecoderConfig& c = r.c;
  c.norm = a.norm;
  c.pre_norm = a.pre_norm;
  c.post_norm = a.post_norm;
  c.qk_norm = a.qk_norm;
  c.gated = a.gated;
  c.activation = a.activation;
  c.layers = r.size("block_count", "num_hidden_layers|n_layer");
  require(c.layers <= 4096, "{}: {} layers, expected at most 4096", r.f.description(), c.layers);
  c.hidden = r.size("embedding_length", "hidden_size|n_embd");
  c.heads = r.size("attention.head_count", "num_attention_heads|n_head");
  c.kv_heads = r.size_or("attention.head_count_kv", "num_key_value_heads", c.heads);
  c.context = r.size("context_length", "max_position_embeddings|n_positions");
  c.head_size = r.size_or("attention.key_length", "head_dim", 0);
  if (c.head_size == 0) {
    require(c.hidden % c.heads == 0, "{}: a hidden size of {} is not divisible by {} heads", r.f.description(),
            c.hidden, c.heads);
    c.head_size = c.hidden / c.heads;
  }
  c.ffn = r.size_or("feed_forward_length", "intermediate_size|n_inner", a.gated ? 0 : 4 * c.hidden);
  c.vocab = r.size_or("vocab_size", "vocab_size", 0);
  const bool rms = c.norm == NormKind::rms;
  c.epsilon = r.real_or(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
                        "rms_norm_eps|layer_norm_epsilon", rms ? 1e-6 : 1e-5);
  c.windows.assign(static_cast<std::size_t>(c.layers), 0);
}

void read_features(DecoderReading& r, const Architecture& a) {
  read_common(r, a);
  for (const DecoderFeature feature : a.features) feature(r);
  if (a.rotary) read_rope(r, a);
  require(r.c.ffn > 0 || r.c.experts.count > 0, "{}: the size of the feed-forward part is missing", r.f.description());
}

}  // namespace

std::string DecoderReading::name(std::string_view gguf, std::string_view hf) const {
  if (c.from_gguf) return gguf.empty() ? std::string() : prefix_ + std::string(gguf);
  const std::string_view first = hf.substr(0, hf.find('|'));
  for (std::string_view rest = hf; !rest.empty();) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    if (f.has(rest.substr(0, bar))) return std::string(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return std::string(first);
}

bool DecoderReading::has(std::string_view gguf, std::string_view hf) const { return f.has(name(gguf, hf)); }

Index DecoderReading::size(std::string_view gguf, std::string_view hf) const {
  return f.integer(name(gguf, hf), 1, largest_size);
}

Index DecoderReading::size_or(std::string_view gguf, std::string_view hf, Index fallback) const {
  return f.integer_or(name(gguf, hf), 0, largest_size, fallback);
}

double DecoderReading::real_or(std::string_view gguf, std::string_view hf, double fallback) const {
  return f.real_or(name(gguf, hf), fallback);
}

DecoderConfig decoder_config_from_gguf(const ModelFields& metadata) {
  DecoderConfig c;
  c.from_gguf = true;
  const Architecture& a = architecture_of(metadata, "general.architecture", true);
  c.architecture = a.gguf;
  DecoderReading r(c, metadata, c.architecture + ".");
  read_features(r, a);
  require(r.size_or("attention.value_length", "", c.head_size) == c.head_size,
          "{}: heads of keys have {} elements, those of values another number", metadata.description(), c.head_size);
  check_sizes(c, metadata);
  const std::string layout = r.name("tensor_data_layout", "");
  const std::string_view other[] = {layout, "general.", "tokenizer.", "split.", "quantize.", "GGUF.", "mradermacher."};
  metadata.ignore(other);
  refuse_unread(metadata);
  return c;
}

DecoderConfig decoder_config_from_hf(const ModelFields& config) {
  DecoderConfig c;
  const Architecture& a = architecture_of(config, "model_type", false);
  c.architecture = a.hf;
  DecoderReading r(c, config, "");
  read_features(r, a);
  c.norm_offset = a.shifted_norms ? 1 : 0;
  const std::string act = r.name("", "hidden_activation|hidden_act|activation_function");
  c.activation = config.text_or(act, a.activation);
  c.tied = config.boolean_or("tie_word_embeddings", a.tied);
  require(c.vocab > 0, "{}: vocab_size is missing", config.description());
  if (config.has("attention_bias")) c.attention_bias = config.boolean("attention_bias");
  if (config.has("mlp_bias")) c.ffn_bias = config.boolean("mlp_bias");
  for (const std::string_view flag : hf_off) {
    if (config.boolean_or(flag, false)) config.fail_expected(flag, "false");
  }
  check_sizes(c, config);
  config.ignore(hf_ignored);
  refuse_unread(config);
  return c;
}

DecoderConfig decoder_config_from_json(const JsonDocument& config, const std::string& description) {
  return decoder_config_from_hf(ModelFields::from_json(config, description));
}

}  // namespace rlx
