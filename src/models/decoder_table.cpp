// The rows of the table of decoder architectures, and their features.
#include "models/decoder_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace rlx {

namespace {

constexpr Index most = Index{1} << 31;

// --- names of tensors ---

constexpr StoredName common_gguf_names[] = {
    {"token_embedding", "token_embd"},
    {"position_embedding", "position_embd"},
    {"final_norm", "output_norm"},
    {"head", "output"},
    {"layers.{}.attention_norm", "blk.{}.attn_norm"},
    {"layers.{}.query", "blk.{}.attn_q"},
    {"layers.{}.key", "blk.{}.attn_k"},
    {"layers.{}.value", "blk.{}.attn_v"},
    {"layers.{}.query", "blk.{}.attn_qkv", Fused::query_key_value},
    {"layers.{}.key", "blk.{}.attn_qkv", Fused::query_key_value},
    {"layers.{}.value", "blk.{}.attn_qkv", Fused::query_key_value},
    {"layers.{}.out", "blk.{}.attn_output"},
    {"layers.{}.query_norm", "blk.{}.attn_q_norm"},
    {"layers.{}.key_norm", "blk.{}.attn_k_norm"},
    {"layers.{}.attention_post_norm", "blk.{}.post_attention_norm"},
    {"layers.{}.ffn_norm", "blk.{}.ffn_norm"},
    {"layers.{}.gate", "blk.{}.ffn_gate"},
    {"layers.{}.up", "blk.{}.ffn_up"},
    {"layers.{}.down", "blk.{}.ffn_down"},
    {"layers.{}.ffn_post_norm", "blk.{}.post_ffw_norm"},
    {"layers.{}.router", "blk.{}.ffn_gate_inp"},
    {"layers.{}.experts.gate", "blk.{}.ffn_gate_exps"},
    {"layers.{}.experts.up", "blk.{}.ffn_up_exps"},
    {"layers.{}.experts.down", "blk.{}.ffn_down_exps"},
    {"layers.{}.experts.<>.gate", "blk.{}.ffn_gate.<>"},
    {"layers.{}.experts.<>.up", "blk.{}.ffn_up.<>"},
    {"layers.{}.experts.<>.down", "blk.{}.ffn_down.<>"},
};

constexpr StoredName phi3_gguf_names[] = {
    {"layers.{}.gate", "blk.{}.ffn_up", Fused::gate_up},
    {"layers.{}.up", "blk.{}.ffn_up", Fused::gate_up},
};

constexpr StoredName common_hf_names[] = {
    {"token_embedding", "model.embed_tokens"},
    {"final_norm", "model.norm"},
    {"head", "lm_head"},
    {"layers.{}.query", "model.layers.{}.self_attn.q_proj"},
    {"layers.{}.key", "model.layers.{}.self_attn.k_proj"},
    {"layers.{}.value", "model.layers.{}.self_attn.v_proj"},
    {"layers.{}.out", "model.layers.{}.self_attn.o_proj"},
    {"layers.{}.query_norm", "model.layers.{}.self_attn.q_norm"},
    {"layers.{}.key_norm", "model.layers.{}.self_attn.k_norm"},
    {"layers.{}.attention_norm", "model.layers.{}.input_layernorm"},
    {"layers.{}.gate", "model.layers.{}.mlp.gate_proj"},
    {"layers.{}.up", "model.layers.{}.mlp.up_proj"},
    {"layers.{}.down", "model.layers.{}.mlp.down_proj"},
};

constexpr StoredName llama_names[] = {
    {"layers.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
};

constexpr StoredName gemma_names[] = {
    {"layers.{}.attention_post_norm", "model.layers.{}.post_attention_layernorm"},
    {"layers.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"},
    {"layers.{}.ffn_post_norm", "model.layers.{}.post_feedforward_layernorm"},
};

constexpr StoredName phi3_names[] = {
    {"layers.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"layers.{}.query", "model.layers.{}.self_attn.qkv_proj", Fused::query_key_value},
    {"layers.{}.key", "model.layers.{}.self_attn.qkv_proj", Fused::query_key_value},
    {"layers.{}.value", "model.layers.{}.self_attn.qkv_proj", Fused::query_key_value},
    {"layers.{}.gate", "model.layers.{}.mlp.gate_up_proj", Fused::gate_up},
    {"layers.{}.up", "model.layers.{}.mlp.gate_up_proj", Fused::gate_up},
};

constexpr StoredName gpt2_names[] = {
    {"token_embedding", "transformer.wte"},
    {"position_embedding", "transformer.wpe"},
    {"final_norm", "transformer.ln_f"},
    {"layers.{}.attention_norm", "transformer.h.{}.ln_1"},
    {"layers.{}.query", "transformer.h.{}.attn.c_attn", Fused::query_key_value, true},
    {"layers.{}.key", "transformer.h.{}.attn.c_attn", Fused::query_key_value, true},
    {"layers.{}.value", "transformer.h.{}.attn.c_attn", Fused::query_key_value, true},
    {"layers.{}.out", "transformer.h.{}.attn.c_proj", Fused::no, true},
    {"layers.{}.ffn_norm", "transformer.h.{}.ln_2"},
    {"layers.{}.up", "transformer.h.{}.mlp.c_fc", Fused::no, true},
    {"layers.{}.down", "transformer.h.{}.mlp.c_proj", Fused::no, true},
};

constexpr StoredName mixtral_names[] = {
    {"layers.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"layers.{}.router", "model.layers.{}.block_sparse_moe.gate"},
    {"layers.{}.experts.<>.gate", "model.layers.{}.block_sparse_moe.experts.<>.w1"},
    {"layers.{}.experts.<>.up", "model.layers.{}.block_sparse_moe.experts.<>.w3"},
    {"layers.{}.experts.<>.down", "model.layers.{}.block_sparse_moe.experts.<>.w2"},
};

constexpr StoredName qwen3_moe_names[] = {
    {"layers.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"layers.{}.router", "model.layers.{}.mlp.gate"},
    {"layers.{}.experts.<>.gate", "model.layers.{}.mlp.experts.<>.gate_proj"},
    {"layers.{}.experts.<>.up", "model.layers.{}.mlp.experts.<>.up_proj"},
    {"layers.{}.experts.<>.down", "model.layers.{}.mlp.experts.<>.down_proj"},
};

// --- features ---

void all_windows(DecoderConfig& c, Index window) { c.windows.assign(static_cast<std::size_t>(c.layers), window); }

// Layers whose type is a window by a list of types or flags; false where there is no such list.
bool listed_windows(DecoderReading& r, Index window) {
  const std::string name = r.name("attention.sliding_window_pattern", "layer_types");
  if (!r.f.is_list(name)) return false;
  std::vector<bool> local;
  if (r.gguf()) {
    for (const double flag : r.f.reals(name)) local.push_back(flag != 0);
  } else {
    for (const std::string& type : r.f.texts(name)) {
      if (type != "sliding_attention" && type != "full_attention")
        r.f.fail_expected(name, "a list of sliding_attention and full_attention");
      local.push_back(type == "sliding_attention");
    }
  }
  if (static_cast<Index>(local.size()) != r.c.layers)
    r.f.fail_expected(name, fmt::format("a list of {} entries, one a layer", r.c.layers));
  all_windows(r.c, 0);
  for (std::size_t i = 0; i < local.size(); ++i) r.c.windows[i] = local[i] ? window : 0;
  return true;
}

// All layers see a window.
void window(DecoderReading& r) {
  const Index size = r.size_or("attention.sliding_window", "sliding_window", 0);
  if (!listed_windows(r, size)) all_windows(r.c, size);
}

void gguf_window(DecoderReading& r) {
  if (r.gguf()) window(r);
}

void mistral_window(DecoderReading& r) {
  window(r);
  if (!r.gguf() && !r.f.stated("sliding_window")) all_windows(r.c, 4096);
}

// Windows of the layers from `max_window_layers` on, where they are in use at all.
void late_windows(DecoderReading& r) {
  if (r.gguf()) return;
  const bool used = r.f.boolean_or("use_sliding_window", false);
  const Index size = r.size_or("", "sliding_window", 4096), first = r.size_or("", "max_window_layers", 28);
  if (listed_windows(r, used ? size : 0) || !used) return;
  all_windows(r.c, 0);
  for (Index i = first; i < r.c.layers; ++i) r.c.windows[static_cast<std::size_t>(i)] = size;
}

// Every layer but each `period`-th sees a window.
void periodic_windows(DecoderReading& r, Index size, Index period) {
  constexpr std::string_view gguf_name = "attention.sliding_window_pattern";
  constexpr std::string_view hf_names = "sliding_window_pattern|_sliding_window_pattern";
  if (!r.f.is_list(r.name(gguf_name, hf_names))) period = r.size_or(gguf_name, hf_names, period);
  if (listed_windows(r, size)) return;
  all_windows(r.c, 0);
  for (Index i = 0; i < r.c.layers; ++i) {
    if (period > 0 && (i + 1) % period != 0) r.c.windows[static_cast<std::size_t>(i)] = size;
  }
}

void gemma2_windows(DecoderReading& r) {
  periodic_windows(r, r.size_or("attention.sliding_window", "sliding_window", 4096), 2);
}

// Layers with a window have rotary embeddings of their own.
void gemma3_windows(DecoderReading& r) {
  periodic_windows(r, r.size_or("attention.sliding_window", "sliding_window", r.gguf() ? 0 : 4096), 6);
  r.c.local = true;
}

void soft_caps(DecoderReading& r) {
  const auto cap = [&](std::string_view name, double fallback) {
    return r.real_or(name, name, r.f.stated(r.name(name, name)) ? 0 : fallback);
  };
  r.c.attention_cap = cap("attn_logit_softcapping", 50);
  r.c.logit_cap = cap("final_logit_softcapping", 30);
}

void final_cap(DecoderReading& r) {
  r.c.attention_cap = r.real_or("", "attn_logit_softcapping", 0);
  r.c.logit_cap = r.real_or("final_logit_softcapping", "final_logit_softcapping", 0);
}

// The 27 B models scale scores by what a head would have of the hidden size; GGUF metadata tells them by their depth.
template <Index depth>
void gemma_scale(DecoderReading& r) {
  r.c.embedding_scale = std::sqrt(static_cast<double>(r.c.hidden));
  if (r.gguf()) {
    const Index share = r.c.hidden / r.c.heads;
    if (r.c.layers == depth) r.c.attention_scale = 1 / std::sqrt(static_cast<double>(share));
    return;
  }
  r.c.attention_scale = 1 / std::sqrt(r.real_or("", "query_pre_attn_scalar", 256));
}

void multipliers(DecoderReading& r) {
  r.c.embedding_scale = r.real_or("embedding_scale", "embedding_multiplier", 1);
  r.c.residual_scale = r.real_or("residual_scale", "residual_multiplier", 1);
  r.c.attention_scale = r.real_or("attention.scale", "attention_multiplier", r.gguf() ? 0 : 1);
  const double divisor = r.real_or("logit_scale", "logits_scaling", 1);
  require(divisor != 0, "{}: {} is 0", r.f.description(), r.name("logit_scale", "logits_scaling"));
  r.c.logit_scale = 1 / divisor;
}

void learned_positions(DecoderReading& r) {
  r.c.learned_positions = true;
  if (r.gguf()) return;
  for (const std::string_view flag : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) {
    if (r.f.boolean_or(flag, false)) r.f.fail_expected(flag, "false");
  }
  if (!r.f.boolean_or("scale_attn_weights", true)) r.f.fail_expected("scale_attn_weights", "true");
}

void experts(DecoderReading& r) {
  ExpertsConfig& e = r.c.experts;
  e.count = r.gguf() ? r.size_or("expert_count", "", 0) : r.size("", "num_local_experts|num_experts");
  e.used = r.size_or("expert_used_count", "num_experts_per_tok", 0);
  if (e.count == 0) return;
  e.ffn = r.size_or("expert_feed_forward_length", "moe_intermediate_size", r.c.ffn);
  const std::string used = r.name("expert_used_count", "num_experts_per_tok");
  if (e.used < 1 || e.used > e.count) r.f.fail_expected(used, fmt::format("a number from 1 to {}", e.count));
}

void gguf_experts(DecoderReading& r) {
  if (r.gguf()) experts(r);
}

// Some layers may have no experts; whether weights add up to 1 is a field.
void qwen_experts(DecoderReading& r) {
  experts(r);
  if (r.gguf()) {
    const std::string norm = r.name("expert_weights_norm", "");
    r.c.experts.normalise = r.f.boolean_or(norm, true);
    return;
  }
  r.c.experts.normalise = r.f.boolean_or("norm_topk_prob", false);
  if (r.f.integer_or("decoder_sparse_step", 0, most, 1) != 1) r.f.fail_expected("decoder_sparse_step", "1");
  if (r.f.has("mlp_only_layers") && !r.f.reals("mlp_only_layers").empty())
    r.f.fail_expected("mlp_only_layers", "an empty list");
}

constexpr DecoderFeature llama_features[] = {gguf_window, gguf_experts};
constexpr DecoderFeature mistral_features[] = {mistral_window};
constexpr DecoderFeature mixtral_features[] = {window, experts};
constexpr DecoderFeature phi3_features[] = {window};
constexpr DecoderFeature qwen_features[] = {late_windows};
constexpr DecoderFeature qwen_moe_features[] = {late_windows, qwen_experts};
constexpr DecoderFeature gemma2_features[] = {gemma2_windows, soft_caps, gemma_scale<46>};
constexpr DecoderFeature gemma3_features[] = {gemma3_windows, final_cap, gemma_scale<62>};
constexpr DecoderFeature granite_features[] = {multipliers};
constexpr DecoderFeature gpt2_features[] = {learned_positions};

using enum RopePairing;

constexpr Architecture rows[] = {
    {.gguf = "llama",
     .hf = "llama",
     .activation = "silu",
     .gguf_pairing = gptj,
     .hf_names = llama_names,
     .features = llama_features},
    {.gguf = "llama",
     .hf = "mistral",
     .activation = "silu",
     .gguf_pairing = gptj,
     .hf_names = llama_names,
     .features = mistral_features},
    {.gguf = "llama",
     .hf = "mixtral",
     .activation = "silu",
     .gguf_pairing = gptj,
     .theta = 1e6,
     .hf_names = mixtral_names,
     .features = mixtral_features},
    {.gguf = "qwen2", .hf = "qwen2", .activation = "silu", .hf_names = llama_names, .features = qwen_features},
    {.gguf = "qwen3",
     .hf = "qwen3",
     .qk_norm = QkNorm::head,
     .activation = "silu",
     .hf_names = llama_names,
     .features = qwen_features},
    {.gguf = "qwen3moe",
     .hf = "qwen3_moe",
     .qk_norm = QkNorm::head,
     .activation = "silu",
     .hf_names = qwen3_moe_names,
     .features = qwen_moe_features},
    {.gguf = "gemma2",
     .hf = "gemma2",
     .post_norm = true,
     .activation = "gelu_pytorch_tanh",
     .shifted_norms = true,
     .tied = true,
     .hf_names = gemma_names,
     .features = gemma2_features},
    {.gguf = "gemma3",
     .hf = "gemma3_text",
     .post_norm = true,
     .qk_norm = QkNorm::head,
     .activation = "gelu_pytorch_tanh",
     .theta = 1e6,
     .shifted_norms = true,
     .tied = true,
     .hf_names = gemma_names,
     .features = gemma3_features},
    {.gguf = "phi3",
     .hf = "phi3",
     .activation = "silu",
     .hf_names = phi3_names,
     .gguf_names = phi3_gguf_names,
     .features = phi3_features},
    {.gguf = "granite",
     .hf = "granite",
     .activation = "silu",
     .gguf_pairing = gptj,
     .hf_names = llama_names,
     .features = granite_features},
    {.gguf = "olmo2",
     .hf = "olmo2",
     .pre_norm = false,
     .post_norm = true,
     .qk_norm = QkNorm::whole,
     .activation = "silu",
     .hf_names = gemma_names},
    {.gguf = "gpt2",
     .hf = "gpt2",
     .norm = NormKind::layer,
     .activation = "gelu_new",
     .gated = false,
     .rotary = false,
     .tied = true,
     .hf_names = gpt2_names,
     .features = gpt2_features},
};

}  // namespace

std::span<const Architecture> architectures() { return rows; }

const Architecture& architecture_of(const ModelFields& f, std::string_view field, bool gguf) {
  const std::string wanted = f.text(field);
  std::vector<std::string_view> known;
  for (const Architecture& a : rows) {
    const std::string_view name = gguf ? a.gguf : a.hf;
    if (name == wanted) return a;
    if (known.empty() || known.back() != name) known.push_back(name);
  }
  fail("{}: {} \"{}\" is unknown, expected one of {}", f.description(), field, wanted, fmt::join(known, ", "));
}

const Architecture& architecture_of(const DecoderConfig& config) {
  for (const Architecture& a : rows) {
    if ((config.from_gguf ? a.gguf : a.hf) == config.architecture) return a;
  }
  fail("architecture \"{}\" is unknown", config.architecture);
}

StoredWeights decoder_weights(const WeightSource& source, const DecoderConfig& config) {
  const Architecture& a = architecture_of(config);
  const std::span<const StoredName> own = config.from_gguf ? a.gguf_names : a.hf_names;
  const std::span<const StoredName> common =
      config.from_gguf ? std::span<const StoredName>(common_gguf_names) : std::span<const StoredName>(common_hf_names);
  std::vector<StoredName> names(own.begin(), own.end());
  names.insert(names.end(), common.begin(), common.end());
  return {
      source,
      std::move(names),
      {.query = config.query_size(), .key = config.key_size(), .ffn = config.ffn, .norm_offset = config.norm_offset},
      "token_embedding"};
}

}  // namespace rlx
