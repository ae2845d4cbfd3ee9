// The encoder graph; a table of names says how the two families differ.
#include "models/encoder.h"

#include "core/error.h"
#include "models/decoder_config.h"
#include "models/encoder_files.h"
#include "nn/layers.h"
#include "ops/broadcast/broadcast.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

constexpr Index largest_size = Index{1} << 24;

// Names of one family: of fields in config.json, and of parameters.
struct Family {
  std::string_view type, prefix;
  std::string_view hidden, layers, heads, intermediate, activation;
  std::string_view layer, query, key, value, out, attention_norm, up, down, output_norm;
  bool token_types;
};

constexpr Family families[] = {
    {"bert", "bert", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act",
     "encoder.layer", "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
     "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm", true},
    {"distilbert", "distilbert", "dim", "n_layers", "n_heads", "hidden_dim", "activation", "transformer.layer",
     "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm", "ffn.lin1",
     "ffn.lin2", "output_layer_norm", false},
    // Under the names that encoder_weights gives.
    {"nomic_bert", "nomic_bert", "", "", "", "", "", "encoder.layer", "attention.self.query", "attention.self.key",
     "attention.self.value", "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense",
     "output.dense", "output.LayerNorm", true},
};

const Family& family_of(std::string_view type) {
  std::string known;
  for (const Family& f : families) {
    if (f.type == type) return f;
    known += (known.empty() ? "" : ", ") + std::string(f.type);
  }
  fail("model type \"{}\" is unknown, expected one of {}", type, known);
}

void check_fixed(const JsonValue& config, std::string_view field, std::string_view expected) {
  const auto value = config.find(field);
  if (value && !value->is_null() && value->as_string() != expected)
    value->fail_expected("\"" + std::string(expected) + "\"");
}

// Tables of rotary embeddings; nothing where positions are learned.
using Angles = std::optional<RotaryTables>;

Value layer(Value x, Value mask, const EncoderConfig& c, const Family& f, const Angles& angles, const Parameters& p) {
  const AttentionNames names{f.query, f.key, f.value};
  const Value mixed = angles ? self_attention(x, mask, p, names, c.hidden, c.heads, *angles)
                             : self_attention(x, mask, p, names, c.hidden, c.heads);
  const Value attended =
      layer_norm(x + linear(mixed, p.in(f.out), c.hidden, c.hidden), p.in(f.attention_norm), c.hidden, c.epsilon);
  const Value up = linear(attended, p.in(f.up), c.hidden, c.intermediate);
  const Value wide =
      c.gated ? activation(linear(attended, p.in("intermediate.gate"), c.hidden, c.intermediate), c.activation) * up
              : activation(up, c.activation);
  return layer_norm(attended + linear(wide, p.in(f.down), c.intermediate, c.hidden), p.in(f.output_norm), c.hidden,
                    c.epsilon);
}

}  // namespace

EncoderConfig EncoderConfig::from_json(const JsonDocument& document) {
  const JsonValue config = document.root();
  EncoderConfig c;
  c.model_type = config.at("model_type").as_string();
  const Family& f = family_of(c.model_type);
  if (f.hidden.empty()) return nomic_from_fields(ModelFields::from_json(document, "config.json"));
  const auto size = [&](std::string_view field) { return config.at(field).as_index(1, largest_size); };
  c.vocab_size = size("vocab_size");
  c.hidden = size(f.hidden);
  c.layers = config.at(f.layers).as_index(1, 4096);
  c.heads = size(f.heads);
  c.intermediate = size(f.intermediate);
  c.max_positions = size("max_position_embeddings");
  if (f.token_types) c.token_types = config.at("type_vocab_size").as_index(1, 4096);
  c.activation = config.at(f.activation).as_string();
  if (f.token_types) c.epsilon = config.at("layer_norm_eps").as_double();
  require(c.epsilon > 0 && c.epsilon < 1, "layer_norm_eps is {}, expected a number between 0 and 1", c.epsilon);
  require(c.hidden % c.heads == 0, "{} is {}, not divisible by {} {}", f.hidden, c.hidden, f.heads, c.heads);
  check_fixed(config, "position_embedding_type", "absolute");
  for (const std::string_view flag : {"is_decoder", "add_cross_attention", "sinusoidal_pos_embds"}) {
    if (config.get_or(flag, false)) config.at(flag).fail_expected("false");
  }
  return c;
}

Parameters encoder_scope(const EncoderConfig& config, const Parameters& p) {
  const Parameters below = p.in(family_of(config.model_type).prefix);
  return below.has("embeddings.word_embeddings.weight") ? below : p;
}

std::vector<std::string> encoder_ignored(const EncoderConfig& config) {
  std::vector<std::string> names{"pooler.",
                                 "cls.",
                                 "qa_outputs.",
                                 "classifier.",
                                 "pre_classifier.",
                                 "vocab_transform.",
                                 "vocab_layer_norm.",
                                 "vocab_projector.",
                                 "embeddings.position_ids",
                                 "embeddings.token_type_ids"};
  const std::string prefix = std::string(family_of(config.model_type).prefix) + ".";
  names.push_back(prefix + "pooler.");
  names.push_back(prefix + "embeddings.position_ids");
  names.push_back(prefix + "embeddings.token_type_ids");
  return names;
}

Value encoder(Value ids, Value mask, const EncoderConfig& c, const Parameters& p) {
  const Family& f = family_of(c.model_type);
  const Parameters e = p.in("embeddings");
  Value x = embedding(ids, e.in("word_embeddings"), c.vocab_size, c.hidden);
  if (c.rotary_theta == 0) {
    const Value positions = e.in("position_embeddings").take("weight", {c.max_positions, c.hidden});
    x = x + slice(positions, 0, 0, ids.dim(1));
  }
  if (c.token_types > 0) {
    x = x + slice(e.in("token_type_embeddings").take("weight", {c.token_types, c.hidden}), 0, 0, 1);
  }
  x = layer_norm(x, e.in("LayerNorm"), c.hidden, c.epsilon);
  Angles angles;
  if (c.rotary_theta != 0) {
    const RopeConfig rope{.dims = c.hidden / c.heads, .theta = c.rotary_theta};
    angles = rotary_tables(iota(p.builder(), DType::i64, {ids.dim(1)}), rope_frequencies(rope, c.max_positions));
  }
  for (Index i = 0; i < c.layers; ++i) {
    x = layer(x, mask, c, f, angles, p.in(f.layer).in(std::to_string(i)));
    p.builder().label(x, fmt::format("{}.{}", f.layer, i));
  }
  return x;
}

}  // namespace rlx
