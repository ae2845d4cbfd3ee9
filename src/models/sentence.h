// Sentence embedding models: a folder in the sentence-transformers layout becomes a tokenizer and a graph.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/encoder.h"
#include "runtime/session.h"
#include "text/wordpiece.h"

namespace rlx {

enum class Pooling : std::uint8_t { mean, cls, max, mean_sqrt_length };
std::string_view pooling_name(Pooling pooling);

/// What the folder's own files say about going from hidden states to one vector.
struct SentenceConfig {
  Index max_tokens = 0;
  Pooling pooling = Pooling::mean;
  bool normalize = false;
  Index dimension = 0;  // of hidden states, as the pooling's configuration states it; 0: not stated
};

struct SentenceOptions {
  /// Longer texts are cut to this many tokens, [CLS] and [SEP] included, instead of the folder's own number.
  std::optional<Index> max_tokens;
  /// Element type of weights and arithmetic: f32 or f64.
  DType compute = DType::f32;
  /// Where the model runs; by default a session on the CPU with as many threads as the process may use.
  std::shared_ptr<const Session> session = nullptr;
  CompileOptions compile = {};
};

/// A sentence embedding model. Immutable after loading; safe to use from several threads.
class SentenceModel {
 public:
  /// Loads a folder: config.json and model.safetensors (or its index), tokenizer.json or vocab.txt, and, where present,
  /// modules.json with the pooling and sentence_bert_config.json. Without modules.json: mean pooling, no normalisation.
  /// The length is that of sentence_bert_config.json, else the tokenizer's own, else the position table's. Throws Error
  /// that names the file, the field and the value for anything missing, damaged or not understood, weights included.
  static SentenceModel load(const std::string& folder, const SentenceOptions& options = {});
  /// The graph alone, not compiled.
  static Graph load_graph(const std::string& folder, const SentenceOptions& options = {});

  /// Embedding of a text, `dimensions()` numbers.
  std::vector<double> embed(std::string_view text) const;
  /// Embeddings of several texts in one run, padded to the longest; each has the bits that it has alone.
  std::vector<std::vector<double>> embed(std::span<const std::string> texts) const;
  std::vector<Index> tokens(std::string_view text) const;

  Index dimensions() const { return encoder_.hidden; }
  /// Inputs `ids` i64[B,S] and `mask` [B,S]; output `embedding` [B,dimensions].
  const Graph& graph() const { return *graph_; }
  const Executable& executable() const { return *executable_; }
  const EncoderConfig& encoder() const { return encoder_; }
  const SentenceConfig& sentence() const { return sentence_; }
  const WordPieceTokenizer& tokenizer() const { return *tokenizer_; }

 private:
  static SentenceModel read(const std::string& folder, const SentenceOptions& options);

  EncoderConfig encoder_;
  SentenceConfig sentence_;
  DType compute_ = DType::f32;
  std::shared_ptr<const WordPieceTokenizer> tokenizer_;
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Executable> executable_;
};

/// One vector [B,H] from hidden states x [B,S,H] over the positions where `mask` [B,S] is 1.
Value pool(Value x, Value mask, Pooling pooling);
/// Rows divided by their length, but at least by 1e-12.
Value normalize_rows(Value x);

}  // namespace rlx
