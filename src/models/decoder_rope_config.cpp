// Reading the rotary embeddings of a decoder.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/decoder_table.h"

namespace rlx {

namespace {

struct Kind {
  std::string_view name;
  RopeScaling scaling;
};

constexpr Kind kinds[] = {{"default", RopeScaling::none},      {"none", RopeScaling::none},
                          {"linear", RopeScaling::linear},     {"dynamic", RopeScaling::ntk},
                          {"yarn", RopeScaling::yarn},         {"llama3", RopeScaling::llama3},
                          {"longrope", RopeScaling::longrope}, {"su", RopeScaling::longrope}};

RopeScaling kind_of(const ModelFields& f, const std::string& field) {
  const std::string wanted = f.text(field);
  std::string known;
  for (const Kind& k : kinds) {
    if (k.name == wanted) return k.scaling;
    known += (known.empty() ? "" : ", ") + std::string(k.name);
  }
  f.fail_expected(field, "one of " + known);
}

double logarithmic(double factor, double scale) { return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1; }

void check(const RopeConfig& rope, const DecoderReading& r) {
  const std::string& file = r.f.description();
  require(rope.dims > 0 && rope.dims % 2 == 0 && rope.dims <= r.c.head_size,
          "{}: {} elements of heads of {} are rotated, expected an even number", file, rope.dims, r.c.head_size);
  require(rope.theta > 1, "{}: theta of the rotary embeddings is {}, expected more than 1", file, rope.theta);
  require(rope.factor > 0, "{}: the factor of the rotary embeddings is {}, expected more than 0", file, rope.factor);
  require(rope.scaling == RopeScaling::none || rope.original > 0,
          "{}: rotary embeddings scaled as {} need the original number of positions", file,
          rope_scaling_name(rope.scaling));
  for (const auto* list : {&rope.short_factors, &rope.long_factors}) {
    const bool positive = std::ranges::all_of(*list, [](double d) { return d > 0; });
    require(list->empty() || (static_cast<Index>(list->size()) == rope.dims / 2 && positive),
            "{}: rotary embeddings have {} factors, expected {} positive numbers", file, list->size(), rope.dims / 2);
  }
}

// --- config.json ---

// Rotary embeddings whose parameters lie in the object `at`, with theta and the rotated part beside it in older files.
class HfRope {
 public:
  HfRope(DecoderReading& r, std::string at) : r_(r), at_(std::move(at)) {}

  RopeConfig read(double theta) {
    RopeConfig rope;
    const ModelFields& f = r_.f;
    const std::string type = f.has(in("rope_type")) ? in("rope_type") : in("type");
    if (f.has(type)) rope.scaling = kind_of(f, type);
    f.ignore(std::vector<std::string_view>{"rope_parameters.type", "rope_scaling.type"});
    rope.theta = real("rope_theta", f.real_or("rope_theta", theta));
    const double part = real("partial_rotary_factor", f.real_or("partial_rotary_factor", 1));
    rope.dims = static_cast<Index>(static_cast<double>(r_.c.head_size) * part);
    rope.original = f.integer_or("original_max_position_embeddings", 1, Index{1} << 40,
                                 f.integer_or(in("original_max_position_embeddings"), 1, Index{1} << 40, r_.c.context));
    rope.factor = real("factor", static_cast<double>(r_.c.context) / static_cast<double>(rope.original));
    if (rope.scaling == RopeScaling::yarn) yarn(rope);
    if (rope.scaling == RopeScaling::longrope) longrope(rope);
    if (rope.scaling == RopeScaling::llama3) {
      rope.low_factor = f.real(in("low_freq_factor"));
      rope.high_factor = f.real(in("high_freq_factor"));
    }
    return rope;
  }

 private:
  std::string in(std::string_view name) const { return at_ + "." + std::string(name); }
  double real(std::string_view name, double fallback) const { return r_.f.real_or(in(name), fallback); }

  void yarn(RopeConfig& rope) const {
    rope.beta_fast = real("beta_fast", 32);
    rope.beta_slow = real("beta_slow", 1);
    rope.truncate = r_.f.boolean_or(in("truncate"), true);
    const double scale = real("mscale", 0), all = real("mscale_all_dim", 0);
    const bool both = scale != 0 && all != 0;
    const double own =
        both ? logarithmic(rope.factor, scale) / logarithmic(rope.factor, all) : logarithmic(rope.factor, 1);
    rope.attention_factor = real("attention_factor", own);
  }

  void longrope(RopeConfig& rope) const {
    rope.short_factors = r_.f.reals(in("short_factor"));
    rope.long_factors = r_.f.reals(in("long_factor"));
    const double log_original = std::log(static_cast<double>(rope.original));
    const double own = rope.factor <= 1 ? 1 : std::sqrt(1 + std::log(rope.factor) / log_original);
    rope.attention_factor = real("attention_factor", own);
  }

  DecoderReading& r_;
  std::string at_;
};

void read_hf(DecoderReading& r, const Architecture& a) {
  const bool nested =
      r.f.has("rope_parameters.full_attention.rope_type") || r.f.has("rope_parameters.full_attention.rope_theta");
  const bool modern = r.f.has("rope_parameters.rope_type") || r.f.has("rope_parameters.rope_theta");
  const std::string at = modern || nested ? "rope_parameters" : "rope_scaling";
  r.c.rope = HfRope(r, nested ? at + ".full_attention" : at).read(a.theta);
  if (!r.c.local) return;
  if (nested) {
    r.c.local_rope = HfRope(r, at + ".sliding_attention").read(10000);
  } else {
    r.c.local_rope = {.dims = r.c.rope.dims, .theta = r.f.real_or("rope_local_base_freq", 10000)};
  }
}

// --- GGUF ---

void read_gguf(DecoderReading& r, const Architecture& a) {
  RopeConfig rope;
  rope.pairing = a.gguf_pairing;
  rope.dims = r.size_or("rope.dimension_count", "", r.c.head_size);
  rope.theta = r.real_or("rope.freq_base", "", 10000);
  const std::string type = r.name("rope.scaling.type", "");
  if (r.f.has(type)) rope.scaling = kind_of(r.f, type);
  rope.original = r.size_or("rope.scaling.original_context_length", "", r.c.context);
  rope.factor = r.real_or("rope.scaling.factor", "", r.real_or("rope.scale_linear", "", 1));
  if (rope.factor == 0) rope.factor = 1;
  if (!r.f.has(type) && rope.factor != 1) rope.scaling = RopeScaling::linear;
  if (rope.scaling == RopeScaling::yarn) {
    rope.beta_fast = r.real_or("rope.scaling.yarn_beta_fast", "", 32);
    rope.beta_slow = r.real_or("rope.scaling.yarn_beta_slow", "", 1);
    rope.attention_factor = logarithmic(rope.factor, 1);
  }
  rope.attention_factor *= r.real_or("rope.scaling.attn_factor", "", 1);
  r.f.ignore(std::vector<std::string_view>{r.name("rope.scaling.finetuned", "")});
  r.c.rope = rope;
  if (!r.c.local) return;
  r.c.local_rope = {.pairing = rope.pairing, .dims = rope.dims, .theta = r.real_or("rope.freq_base_swa", "", 10000)};
}

}  // namespace

void read_rope(DecoderReading& r, const Architecture& a) {
  r.gguf() ? read_gguf(r, a) : read_hf(r, a);
  check(r.c.rope, r);
  if (r.c.local) check(r.c.local_rope, r);
}

}  // namespace rlx
