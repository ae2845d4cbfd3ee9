// A small llama with random weights and a tokenizer of single bytes and a few pieces, as a GGUF file.
#pragma once

#include <cmath>
#include <random>

#include "io/gguf/writer.h"

namespace rlx::test {

struct TinyGguf {
  Index hidden = 32, layers = 2, heads = 4, kv_heads = 2, ffn = 48, context = 256;
  unsigned seed = 1;
  std::string chat_template =
      "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{{ eos_token }}{% endfor %}"
      "{% if add_generation_prompt %}<|assistant|>{% endif %}";

  static std::vector<std::string> pieces() {
    std::vector<std::string> all{"<unk>", "<s>", "</s>"};
    for (int byte = 0; byte < 256; ++byte) all.push_back(fmt::format("<0x{:02X}>", byte));
    for (const char* p : {"\u2581", "a", "b", "c", "ab", "bc", "abc", "\u2581a", "\u2581abc", "\u00e9", "<|user|>",
                          "<|assistant|>", "<|system|>"}) {
      all.emplace_back(p);
    }
    return all;
  }

  void write(const std::string& path) const {
    const std::vector<std::string> tokens = pieces();
    std::vector<float> scores;
    std::vector<std::int32_t> types;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      scores.push_back(-static_cast<float>(i));
      const bool special = tokens[i].starts_with("<|");
      types.push_back(i == 0 ? 2 : i < 3 || special ? 3 : i < 259 ? 6 : 1);
    }
    const auto n = [](Index x) { return static_cast<std::uint32_t>(x); };
    GgufMetadata m;
    m.set("general.architecture", std::string("llama"));
    m.set("llama.block_count", n(layers));
    m.set("llama.context_length", n(context));
    m.set("llama.embedding_length", n(hidden));
    m.set("llama.feed_forward_length", n(ffn));
    m.set("llama.attention.head_count", n(heads));
    m.set("llama.attention.head_count_kv", n(kv_heads));
    m.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    m.set("llama.rope.dimension_count", n(hidden / heads));
    m.set("tokenizer.ggml.model", std::string("llama"));
    m.set("tokenizer.ggml.tokens", tokens);
    m.set("tokenizer.ggml.scores", scores);
    m.set("tokenizer.ggml.token_type", types);
    m.set("tokenizer.ggml.bos_token_id", n(1));
    m.set("tokenizer.ggml.eos_token_id", n(2));
    m.set("tokenizer.ggml.unknown_token_id", n(0));
    m.set("tokenizer.ggml.add_bos_token", true);
    if (!chat_template.empty()) m.set("tokenizer.chat_template", chat_template);
    write_gguf(path, m, tensors(static_cast<Index>(tokens.size())));
  }

 private:
  std::vector<std::pair<std::string, Tensor>> tensors(Index vocabulary) const {
    std::mt19937_64 random(seed);
    std::vector<std::pair<std::string, Tensor>> all;
    const auto add = [&](const std::string& name, std::vector<Index> shape) {
      Index count = 1;
      for (const Index d : shape) count *= d;
      const double range = shape.size() == 1 ? 0 : 2.5 / std::sqrt(static_cast<double>(shape.back()));
      std::vector<double> values(static_cast<std::size_t>(count));
      for (double& x : values) {
        x = shape.size() == 1 ? 1 : range * (static_cast<double>(random() >> 11) * 0x1p-52 - 1);
      }
      all.emplace_back(name, Tensor::of<double>(DType::f32, std::move(shape), values));
    };
    const Index head = hidden / heads;
    add("token_embd.weight", {vocabulary, hidden});
    for (Index i = 0; i < layers; ++i) {
      const std::string p = fmt::format("blk.{}.", i);
      add(p + "attn_norm.weight", {hidden});
      add(p + "attn_q.weight", {hidden, hidden});
      add(p + "attn_k.weight", {kv_heads * head, hidden});
      add(p + "attn_v.weight", {kv_heads * head, hidden});
      add(p + "attn_output.weight", {hidden, hidden});
      add(p + "ffn_norm.weight", {hidden});
      add(p + "ffn_gate.weight", {ffn, hidden});
      add(p + "ffn_up.weight", {ffn, hidden});
      add(p + "ffn_down.weight", {hidden, ffn});
    }
    add("output_norm.weight", {hidden});
    add("output.weight", {vocabulary, hidden});
    return all;
  }
};

}  // namespace rlx::test
