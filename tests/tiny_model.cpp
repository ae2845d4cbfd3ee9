// The tiny encoder: files and loops.
#include "tiny_model.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "io/safetensors.h"

namespace rlx::test {

namespace {

using Matrix = std::vector<std::vector<double>>;  // [rows][columns]

Matrix dense(const Matrix& x, const std::vector<double>& w, const std::vector<double>& b) {
  Matrix y;
  for (const auto& row : x) {
    std::vector<double> out = b;
    for (std::size_t o = 0; o < b.size(); ++o) {
      for (std::size_t i = 0; i < row.size(); ++i) out[o] += row[i] * w[o * row.size() + i];
    }
    y.push_back(out);
  }
  return y;
}

Matrix norm(const Matrix& x, const std::vector<double>& gamma, const std::vector<double>& beta) {
  Matrix y = x;
  for (auto& row : y) {
    double mean = 0, variance = 0;
    for (const double v : row) mean += v / static_cast<double>(row.size());
    for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = (row[i] - mean) / std::sqrt(variance + 1e-12) * gamma[i] + beta[i];
  }
  return y;
}

Matrix plus(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < a[i].size(); ++k) a[i][k] += b[i][k];
  }
  return a;
}

Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v, std::size_t heads) {
  const std::size_t length = q.size(), size = q[0].size() / heads;
  Matrix y(length, std::vector<double>(q[0].size(), 0));
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<double> p(length, 0);
      double total = 0;
      for (std::size_t j = 0; j < length; ++j) {
        for (std::size_t d = 0; d < size; ++d) p[j] += q[i][h * size + d] * k[j][h * size + d];
        p[j] = std::exp(p[j] / std::sqrt(static_cast<double>(size)));
        total += p[j];
      }
      for (std::size_t j = 0; j < length; ++j) {
        for (std::size_t d = 0; d < size; ++d) y[i][h * size + d] += p[j] / total * v[j][h * size + d];
      }
    }
  }
  return y;
}

// Names of a layer's parts in each family.
struct Names {
  std::string layer, q, k, v, out, norm1, up, down, norm2;
};
Names names_of(const std::string& type) {
  if (type == "distilbert") {
    return {"transformer.layer.", "attention.q_lin", "attention.k_lin", "attention.v_lin",  "attention.out_lin",
            "sa_layer_norm",      "ffn.lin1",        "ffn.lin2",        "output_layer_norm"};
  }
  return {"encoder.layer.",       "attention.self.query",   "attention.self.key",
          "attention.self.value", "attention.output.dense", "attention.output.LayerNorm",
          "intermediate.dense",   "output.dense",           "output.LayerNorm"};
}

}  // namespace

TinyModel::TinyModel(std::string where, std::string family, const std::string& prefix)
    : folder(std::move(where)), type(std::move(family)), prefix_(prefix) {
  std::filesystem::create_directories(folder + "/1_Pooling");
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 0.5);
  const auto add = [&](const std::string& name, std::vector<Index> shape) {
    Tensor t(DType::f32, std::move(shape));
    std::vector<double> v(static_cast<std::size_t>(t.count()));
    for (double& x : v) x = normal(random);
    store(t, v);
    weights.emplace(prefix_ + name, t);
  };
  const auto layer = [&](const std::string& name, Index in, Index out) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  const auto layer_norm = [&](const std::string& name) {
    add(name + ".weight", {hidden});
    add(name + ".bias", {hidden});
  };
  add("embeddings.word_embeddings.weight", {vocab, hidden});
  add("embeddings.position_embeddings.weight", {positions, hidden});
  if (type == "bert") add("embeddings.token_type_embeddings.weight", {2, hidden});
  layer_norm("embeddings.LayerNorm");
  const Names n = names_of(type);
  for (Index i = 0; i < layers; ++i) {
    const std::string at = n.layer + std::to_string(i) + ".";
    for (const std::string& part : {n.q, n.k, n.v, n.out}) layer(at + part, hidden, hidden);
    layer(at + n.up, hidden, intermediate);
    layer(at + n.down, intermediate, hidden);
    layer_norm(at + n.norm1);
    layer_norm(at + n.norm2);
  }
  write_safetensors(folder + "/model.safetensors", weights);
  if (type == "bert") {
    write("config.json", R"({"model_type": "bert", "vocab_size": 11, "hidden_size": 6, "num_hidden_layers": 2,
      "num_attention_heads": 3, "intermediate_size": 10, "max_position_embeddings": 9, "type_vocab_size": 2,
      "hidden_act": "gelu", "layer_norm_eps": 1e-12})");
  } else {
    write("config.json", R"({"model_type": "distilbert", "vocab_size": 11, "dim": 6, "n_layers": 2, "n_heads": 3,
      "hidden_dim": 10, "max_position_embeddings": 9, "activation": "gelu"})");
  }
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##a\n##b\n##c\n");
  write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  write("1_Pooling/config.json", R"({"word_embedding_dimension": 6, "pooling_mode_cls_token": false,
    "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false, "pooling_mode_mean_sqrt_len_tokens": false})");
  write("sentence_bert_config.json", R"({"max_seq_length": 7, "do_lower_case": false})");
}

void TinyModel::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder + "/" + name, std::ios::binary) << text;
}

std::vector<double> TinyModel::w(const std::string& name) const { return load<double>(weights.at(prefix_ + name)); }

std::vector<double> TinyModel::embed(const std::vector<Index>& ids) const {
  const auto h = static_cast<std::size_t>(hidden);
  const auto row = [&](const std::string& name, std::size_t i) {
    const std::vector<double> all = w(name);
    return std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(i * h),
                               all.begin() + static_cast<std::ptrdiff_t>((i + 1) * h));
  };
  Matrix x;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    x.push_back(row("embeddings.word_embeddings.weight", static_cast<std::size_t>(ids[i])));
    const std::vector<double> position = row("embeddings.position_embeddings.weight", i);
    for (std::size_t k = 0; k < h; ++k) x[i][k] += position[k];
    if (type != "bert") continue;
    const std::vector<double> kind = row("embeddings.token_type_embeddings.weight", 0);
    for (std::size_t k = 0; k < h; ++k) x[i][k] += kind[k];
  }
  x = norm(x, w("embeddings.LayerNorm.weight"), w("embeddings.LayerNorm.bias"));
  const Names n = names_of(type);
  const auto apply = [&](const Matrix& in, const std::string& name) {
    return dense(in, w(name + ".weight"), w(name + ".bias"));
  };
  for (Index i = 0; i < layers; ++i) {
    const std::string at = n.layer + std::to_string(i) + ".";
    const Matrix mixed =
        attend(apply(x, at + n.q), apply(x, at + n.k), apply(x, at + n.v), static_cast<std::size_t>(heads));
    x = norm(plus(x, apply(mixed, at + n.out)), w(at + n.norm1 + ".weight"), w(at + n.norm1 + ".bias"));
    Matrix wide = apply(x, at + n.up);
    for (auto& r : wide) {
      for (double& v : r) v = 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
    }
    x = norm(plus(x, apply(wide, at + n.down)), w(at + n.norm2 + ".weight"), w(at + n.norm2 + ".bias"));
  }
  std::vector<double> mean(h, 0);
  double length = 0;
  for (const auto& r : x) {
    for (std::size_t k = 0; k < h; ++k) mean[k] += r[k] / static_cast<double>(x.size());
  }
  for (const double v : mean) length += v * v;
  for (double& v : mean) v /= std::sqrt(length);
  return mean;
}

}  // namespace rlx::test
