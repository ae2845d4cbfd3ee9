// The choice of types for quantised models.
#include "io/gguf/mix.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/error.h"
#include "core/quote.h"

namespace rlx {

namespace {

constexpr std::array mixes{
    GgufMix{"f32", "F32", 0},        GgufMix{"f16", "F16", 1},        GgufMix{"bf16", "BF16", 32},
    GgufMix{"q4_0", "Q4_0", 2},      GgufMix{"q4_1", "Q4_1", 3},      GgufMix{"q5_0", "Q5_0", 8},
    GgufMix{"q5_1", "Q5_1", 9},      GgufMix{"q8_0", "Q8_0", 7},      GgufMix{"q2_k", "Q2_K", 10},
    GgufMix{"q2_k_s", "Q2_K", 21},   GgufMix{"q3_k_s", "Q3_K", 11},   GgufMix{"q3_k_m", "Q3_K", 12},
    GgufMix{"q3_k_l", "Q3_K", 13},   GgufMix{"q4_k_s", "Q4_K", 14},   GgufMix{"q4_k_m", "Q4_K", 15},
    GgufMix{"q5_k_s", "Q5_K", 16},   GgufMix{"q5_k_m", "Q5_K", 17},   GgufMix{"q6_k", "Q6_K", 18},
    GgufMix{"iq4_nl", "IQ4_NL", 25}, GgufMix{"iq4_xs", "IQ4_XS", 30}, GgufMix{"tq1_0", "TQ1_0", 36},
    GgufMix{"tq2_0", "TQ2_0", 37},   GgufMix{"mxfp4", "MXFP4", 38},   GgufMix{"mxfp4_moe", "MXFP4", 38},
};

enum class Role : std::uint8_t {
  output,
  embedding,
  qkv,
  kv_b,
  value,
  key,
  query,
  attention_output,
  up,
  gate,
  down,
  other
};

struct RoleName {
  std::string_view part;
  Role role;
};

/// Parts of names that tell a tensor's role, those of GGUF files and those of Hugging Face's.
constexpr RoleName role_names[] = {
    {"attn_qkv.weight", Role::qkv},
    {"attn_kv_b.weight", Role::kv_b},
    {"attn_v.weight", Role::value},
    {"v_proj.weight", Role::value},
    {"attn_k.weight", Role::key},
    {"k_proj.weight", Role::key},
    {"attn_q.weight", Role::query},
    {"q_proj.weight", Role::query},
    {"attn_output.weight", Role::attention_output},
    {"o_proj.weight", Role::attention_output},
    {"ffn_up", Role::up},
    {"up_proj", Role::up},
    {"ffn_gate", Role::gate},
    {"gate_proj", Role::gate},
    {"ffn_down", Role::down},
    {"down_proj", Role::down},
};

Role role_of(std::string_view name) {
  if (name == "output.weight" || name == "lm_head.weight") return Role::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight" || name.ends_with("embed_tokens.weight")) {
    return Role::embedding;
  }
  for (const RoleName& r : role_names) {
    if (name.find(r.part) != std::string_view::npos) return r.role;
  }
  return Role::other;
}

/// The first and the last eighth of the layers, and every third of those between.
bool sensitive_layer(Index layer, Index layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

struct Choice {
  std::string_view mix, base;
  const GgufMixFacts& facts;
  Index layer = 0;

  bool is(std::initializer_list<std::string_view> names) const { return std::ranges::find(names, mix) != names.end(); }
  bool early() const { return layer < facts.layers / 8; }
  bool sensitive() const { return sensitive_layer(layer, facts.layers); }
  bool eight_experts() const { return facts.experts == 8; }

  std::string_view output(Index columns, Index block) const {
    if (mix == "mxfp4_moe" || columns % block != 0) return "Q8_0";
    return base == "Q8_0" ? base : "Q6_K";
  }

  std::string_view embedding() const { return is({"tq1_0", "tq2_0"}) ? "Q4_K" : base; }

  std::string_view value() const {
    const bool shared = facts.queries_per_key >= 4;
    std::string_view type = base;
    if (mix == "q2_k") type = shared ? "Q4_K" : "Q3_K";
    if (mix == "q2_k_s" && shared) type = "Q4_K";
    if (mix == "q3_k_m") type = layer < 2 ? "Q5_K" : "Q4_K";
    if (mix == "q3_k_l") type = "Q5_K";
    if (is({"iq4_nl", "iq4_xs"}) && shared) type = "Q5_K";
    if (is({"q4_k_m", "q5_k_m"}) && sensitive()) type = "Q6_K";
    if (mix == "q4_k_s" && layer < 4) type = "Q5_K";
    const bool large = facts.layers == 80 && (facts.architecture == "llama" || facts.architecture == "qwen2");
    if (large && (type == "Q3_K" || type == "Q4_K")) type = "Q5_K";
    return eight_experts() ? "Q8_0" : type;
  }

  std::string_view down() const {
    if (mix == "q2_k") return "Q3_K";
    if (mix == "q2_k_s") return early() ? "Q4_K" : base;
    if (mix == "q3_k_m") return layer < facts.layers / 16 ? "Q5_K" : "Q4_K";
    if (mix == "q3_k_l") return "Q5_K";
    if (is({"q4_k_m", "q5_k_m"})) return sensitive() ? "Q6_K" : base;
    if (mix == "q4_k_s") return early() ? "Q5_K" : base;
    if (is({"iq4_nl", "iq4_xs"})) return early() && !facts.importance ? "Q5_K" : base;
    if (mix == "q4_0" && facts.importance && early()) return "Q4_1";
    if (mix == "q5_0" && facts.importance && early()) return "Q5_1";
    return base;
  }

  std::string_view attention_output() const {
    if (eight_experts()) {
      return is({"q2_k", "q3_k_s", "q3_k_m", "iq4_nl", "q4_k_s", "q4_k_m", "iq4_xs"}) ? "Q5_K" : base;
    }
    if (mix == "q2_k") return "Q3_K";
    if (mix == "q3_k_m") return "Q4_K";
    if (mix == "q3_k_l") return "Q5_K";
    return base;
  }

  std::string_view type(Role role) const {
    switch (role) {
      case Role::embedding:
        return embedding();
      case Role::qkv:
      case Role::kv_b:
      case Role::value:
        return value();
      case Role::key:
        return eight_experts() ? "Q8_0" : base;
      case Role::down:
        return down();
      case Role::attention_output:
        return attention_output();
      case Role::output:
      case Role::query:
      case Role::up:
      case Role::gate:
      case Role::other:
        break;
    }
    return base;
  }
};

/// A type of smaller blocks for rows that are no multiple of `type`'s.
const GgufTensorType& fitting(const GgufTensorType& type, Index columns) {
  struct Row {
    std::string_view from, to;
  };
  constexpr Row rows[] = {{"IQ4_XS", "IQ4_NL"}, {"Q2_K", "Q4_0"}, {"Q3_K", "Q4_0"}, {"TQ1_0", "Q4_0"},
                          {"TQ2_0", "Q4_0"},    {"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}};
  // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): types are rows of a table
  if (columns % type.block == 0) return type;
  for (const Row& r : rows) {
    const GgufTensorType& smaller = *find_gguf_type(r.to);
    if (type.name == r.from && columns % smaller.block == 0) return smaller;
  }
  return *find_gguf_type("F16");
}

}  // namespace

std::span<const GgufMix> gguf_mixes() { return mixes; }

Index gguf_layer(std::string_view name) {
  for (const std::string_view before : {"blk.", "layers."}) {
    const std::size_t at = name.find(before);
    if (at == std::string_view::npos) continue;
    Index n = 0;
    const std::string_view rest = name.substr(at + before.size());
    if (std::from_chars(rest.data(), rest.data() + rest.size(), n).ec == std::errc()) return n;
  }
  return 0;
}

const GgufMix& find_gguf_mix(std::string_view name) {
  std::string wanted;
  for (const char c : name) wanted += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (wanted == "q3_k" || wanted == "q4_k" || wanted == "q5_k") wanted += "_m";
  const auto it = std::ranges::find(mixes, wanted, &GgufMix::name);
  if (it == mixes.end()) {
    std::string known;
    for (const GgufMix& m : mixes) known += (known.empty() ? "" : ", ") + std::string(m.name);
    fail("{} is no type to quantize to, known are {}, and q3_k, q4_k, q5_k for their _m", quote(name), known);
  }
  return *it;
}

GgufMixFacts gguf_mix_facts(const GgufFile& file) {
  GgufMixFacts f;
  f.architecture = file.get_or<std::string>("general.architecture", "");
  const auto number = [&](std::string_view key) {
    const std::optional<GgufValue> v = file.value(f.architecture + "." + std::string(key));
    if (!v) return Index{0};
    if (!v->is_array()) return v->as<Index>();
    const auto all = v->as<std::vector<Index>>();
    return all.empty() ? Index{0} : *std::ranges::max_element(all);
  };
  f.layers = number("block_count");
  const Index heads = number("attention.head_count"), keys = number("attention.head_count_kv");
  f.queries_per_key = keys > 0 ? heads / keys : 1;
  f.experts = number("expert_count");
  f.tied = !file.contains("output.weight");
  return f;
}

bool gguf_quantizes(std::string_view name, std::span<const Index> shape) {
  const bool rows =
      shape.size() >= 2 && std::ranges::any_of(shape.first(shape.size() - 1), [](Index e) { return e > 1; });
  if (!rows || !name.ends_with("weight")) return false;
  constexpr std::string_view kept[] = {"_norm.weight",
                                       "norm.weight",
                                       "layernorm.weight",
                                       "ffn_gate_inp.weight",
                                       "mlp.gate.weight",
                                       "altup",
                                       "laurel",
                                       "per_layer_model_proj",
                                       "position_embd",
                                       "token_types",
                                       "position_embeddings",
                                       "token_type_embeddings",
                                       "wpe.weight",
                                       "ssm_conv1d",
                                       "shortconv.conv.weight",
                                       "time_mix_first.weight",
                                       "time_mix_w0.weight",
                                       "time_mix_w1.weight",
                                       "time_mix_w2.weight",
                                       "time_mix_v0.weight",
                                       "time_mix_v1.weight",
                                       "time_mix_v2.weight",
                                       "time_mix_a0.weight",
                                       "time_mix_a1.weight",
                                       "time_mix_a2.weight",
                                       "time_mix_g1.weight",
                                       "time_mix_g2.weight",
                                       "time_mix_decay_w1.weight",
                                       "time_mix_decay_w2.weight",
                                       "time_mix_lerp_fused.weight",
                                       "attn_rel_b.weight",
                                       ".rel_pos",
                                       ".patch_embd",
                                       ".patch_merger"};
  return std::ranges::none_of(kept, [&](std::string_view k) { return name.find(k) != std::string_view::npos; });
}

const GgufTensorType& gguf_mix_type(const GgufMix& mix, std::string_view name, std::span<const Index> shape,
                                    const GgufMixFacts& facts) {
  const GgufTensorType& base = *find_gguf_type(mix.base);
  if (base.dtype) return base;
  const Choice choice{.mix = mix.name, .base = base.name, .facts = facts, .layer = gguf_layer(name)};
  const Role role = role_of(name);
  const Index columns = shape.back();
  if (role == Role::output || (role == Role::embedding && facts.tied)) {
    return fitting(*find_gguf_type(choice.output(columns, base.block)), columns);
  }
  if (mix.name == "mxfp4_moe") return shape.size() > 2 ? fitting(base, columns) : *find_gguf_type("Q8_0");
  return fitting(*find_gguf_type(choice.type(role)), columns);
}

}  // namespace rlx
