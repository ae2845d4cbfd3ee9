// Loading a sentence-transformers folder, and its graph.
#include "models/sentence.h"

#include <algorithm>
#include <filesystem>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "models/folder.h"
#include "ops/constant/constant.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"

namespace rlx {

std::string_view pooling_name(Pooling pooling) {
  static constexpr std::string_view names[] = {"mean", "cls", "max", "mean_sqrt_length"};
  return names[static_cast<std::size_t>(pooling)];
}

Value pool(Value x, Value mask, Pooling pooling) {
  if (pooling == Pooling::cls) return squeeze(slice(x, 1, 0, 1), {1});
  const Value weights = unsqueeze(mask, {2});
  if (pooling == Pooling::max) {
    return max(select(greater(weights, like(x, 0)), x, like(x, -1e9)), {1});
  }
  const Value total = sum(x * weights, {1});
  const Value count = maximum(sum(weights, {1}), like(x, 1e-9));
  return total / (pooling == Pooling::mean ? count : sqrt(count));
}

Value normalize_rows(Value x) { return x / maximum(sqrt(sum(x * x, {-1}, true)), like(x, 1e-12)); }

namespace {

// The last part of a module's dotted type name.
std::string_view module_kind(std::string_view type) {
  const std::size_t dot = type.rfind('.');
  return dot == std::string_view::npos ? type : type.substr(dot + 1);
}

Pooling read_pooling(const JsonDocument& config) {
  struct Mode {
    const char* field;
    Pooling pooling;
  };
  static constexpr Mode modes[] = {{"pooling_mode_cls_token", Pooling::cls},
                                   {"pooling_mode_mean_tokens", Pooling::mean},
                                   {"pooling_mode_max_tokens", Pooling::max},
                                   {"pooling_mode_mean_sqrt_len_tokens", Pooling::mean_sqrt_length}};
  std::optional<Pooling> found;
  for (const Mode& m : modes) {
    if (!config.root().get_or(m.field, false)) continue;
    if (found) config.at(m.field).fail_expected("false: another pooling mode is set, several are not supported");
    found = m.pooling;
  }
  for (const char* other : {"pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"}) {
    if (config.root().get_or(other, false)) config.at(other).fail_expected("false");
  }
  if (!found) config.root().fail_expected("an object with one pooling mode that is true");
  return *found;
}

// A module path comes from a file: a plain name below the folder.
std::string module_folder(const std::string& folder, const JsonValue& path) {
  const std::string_view name = path.as_string();
  const bool plain =
      !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
  if (!plain) path.fail_expected("a plain folder name");
  return (std::filesystem::path(folder) / name).string();
}

SentenceConfig read_modules(const std::string& folder) {
  SentenceConfig c;
  const auto modules = read_optional_json(folder, "modules.json");
  if (!modules) return c;
  bool pooled = false;
  for (const JsonValue& module : modules->root().elements()) {
    const std::string_view kind = module_kind(module.at("type").as_string());
    if (kind == "Pooling") {
      const JsonDocument pooling = read_json(module_folder(folder, module.at("path")), "config.json");
      c.pooling = read_pooling(pooling);
      c.dimension = pooling.root().get_or("word_embedding_dimension", Index{0});
      pooled = true;
    } else if (kind == "Normalize") {
      c.normalize = true;
    } else if (kind != "Transformer") {
      module.at("type").fail_expected("a Transformer, Pooling or Normalize module");
    } else if (!module.at("path").as_string().empty()) {
      module.at("path").fail_expected("\"\": the transformer lies in the model's own folder");
    }
  }
  if (!pooled) modules->root().fail_expected("a list with a Pooling module");
  return c;
}

// The sentence configuration's own length wins over the tokenizer's.
Index read_max_tokens(const std::string& folder, const EncoderConfig& encoder, const SentenceOptions& options) {
  const Index most = encoder.max_positions;
  if (options.max_tokens) {
    require(1 <= *options.max_tokens && *options.max_tokens <= most,
            "max tokens is {}, expected 1 to {}, the model's positions", *options.max_tokens, most);
    return *options.max_tokens;
  }
  if (const auto config = read_optional_json(folder, "sentence_bert_config.json")) {
    const auto length = config->find("max_seq_length");
    if (length && !length->is_null()) return std::min(length->as_index(1, Index{1} << 40), most);
  }
  if (const auto config = read_optional_json(folder, "tokenizer_config.json")) {
    const auto length = config->find("model_max_length");
    // Files that mean "no limit" write an enormous number, often as a float.
    if (length && length->kind() == JsonKind::integer) return std::clamp<Index>(length->as_index(), 1, most);
  }
  return most;
}

}  // namespace

SentenceModel SentenceModel::read(const std::string& folder, const SentenceOptions& options) {
  SentenceModel m;
  m.compute_ = options.compute;
  m.encoder_ = EncoderConfig::from_json(read_json(folder, "config.json"));
  m.sentence_ = read_modules(folder);
  require(m.sentence_.dimension == 0 || m.sentence_.dimension == m.encoder_.hidden,
          "{}: the pooling's word_embedding_dimension is {}, the hidden size {}", folder, m.sentence_.dimension,
          m.encoder_.hidden);
  m.sentence_.max_tokens = read_max_tokens(folder, m.encoder_, options);
  m.tokenizer_ = std::make_shared<WordPieceTokenizer>(WordPieceTokenizer::load(folder));
  require(m.tokenizer_->vocab_size() <= m.encoder_.vocab_size, "{}: the tokenizer has {} ids, the embedding {} rows",
          folder, m.tokenizer_->vocab_size(), m.encoder_.vocab_size);

  const std::unique_ptr<WeightSource> weights = open_weights(folder);
  Builder b;
  const Dim batch = Dim::symbol("B", 1, 65536), length = Dim::symbol("S", 1, m.encoder_.max_positions);
  const Value ids = b.input("ids", {DType::i64, {batch, length}});
  const Value mask = b.input("mask", {options.compute, {batch, length}});
  std::optional<StoredWeights> renamed;
  if (encoder_renamed(m.encoder_)) renamed = encoder_weights(*weights, m.encoder_);
  const WeightSource& source = renamed ? static_cast<const WeightSource&>(*renamed) : *weights;
  const Parameters parameters(b, source, options.compute);
  const Parameters scope = renamed ? parameters : encoder_scope(m.encoder_, parameters);
  Value x = rlx::encoder(ids, mask, m.encoder_, scope);
  x = pool(x, mask, m.sentence_.pooling);
  if (m.sentence_.normalize) x = normalize_rows(x);
  const std::vector<std::string> unused = renamed ? renamed->unused() : parameters.unused(encoder_ignored(m.encoder_));
  require(unused.empty(), "{}: {} weights are not part of the model that config.json describes, the first is {}",
          folder, unused.size(), unused.empty() ? "" : unused.front());
  m.graph_ = std::make_shared<Graph>(b.finish(std::span(&x, 1), {"embedding"}));
  return m;
}

Graph SentenceModel::load_graph(const std::string& folder, const SentenceOptions& options) {
  return *read(folder, options).graph_;
}

SentenceModel SentenceModel::load(const std::string& folder, const SentenceOptions& options) {
  SentenceModel m = read(folder, options);
  const std::shared_ptr<const Session> session =
      options.session ? options.session : std::make_shared<const Session>(cpu_session());
  m.executable_ = std::make_shared<const Executable>(session->compile(*m.graph_, options.compile));
  return m;
}

std::vector<Index> SentenceModel::tokens(std::string_view text) const {
  return tokenizer_->encode(text, {.max_tokens = sentence_.max_tokens});
}

std::vector<double> SentenceModel::embed(std::string_view text) const {
  const std::string one(text);
  return std::move(embed(std::span(&one, 1))[0]);
}

std::vector<std::vector<double>> SentenceModel::embed(std::span<const std::string> texts) const {
  std::vector<std::vector<double>> all;
  if (texts.empty()) return all;
  std::vector<std::vector<Index>> ids;
  std::size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, ids.emplace_back(tokens(text)).size());
  const std::size_t rows = texts.size();
  std::vector<Index> padded(rows * longest, 0);
  std::vector<double> real(rows * longest, 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    std::ranges::copy(ids[r], padded.begin() + static_cast<std::ptrdiff_t>(r * longest));
    std::fill_n(real.begin() + static_cast<std::ptrdiff_t>(r * longest), ids[r].size(), 1.0);
  }
  const std::vector<Index> shape{static_cast<Index>(rows), static_cast<Index>(longest)};
  const std::vector<Tensor> out = executable_->run({{"ids", Tensor::of<std::int64_t>(DType::i64, shape, padded)},
                                                    {"mask", Tensor::of<double>(compute_, shape, real)}});
  const std::vector<double> values = rlx::load<double>(out[0]);
  const auto width = static_cast<std::ptrdiff_t>(dimensions());
  for (std::size_t r = 0; r < rows; ++r) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(r) * width;
    all.emplace_back(begin, begin + width);
  }
  return all;
}

}  // namespace rlx
