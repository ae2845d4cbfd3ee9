// Loading language models, and text around the tokens of a generator.
#include "generate/language_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "generate/stop_strings.h"
#include "models/decoder_files.h"
#include "models/folder.h"

namespace rlx {

std::string_view finish_name(TextFinish finish) {
  constexpr std::string_view names[] = {"end", "stop", "length", "context", "cancelled"};
  return names[static_cast<std::size_t>(finish)];
}

double Completion::rate() const {
  const double seconds = (total - to_first_token).count();
  return tokens.size() < 2 || seconds <= 0 ? 0 : static_cast<double>(tokens.size() - 1) / seconds;
}

VocabularyData gguf_vocabulary(const GgufFile& file) {
  VocabularyData v;
  v.name = file.path();
  const auto key = [](const char* name) { return std::string("tokenizer.ggml.") + name; };
  v.model = file.get<std::string>(key("model"));
  v.pre = file.get_or<std::string>(key("pre"), "");
  v.tokens = file.get<std::vector<std::string>>(key("tokens"));
  v.scores = file.get_or<std::vector<float>>(key("scores"), {});
  v.token_types = file.get_or<std::vector<std::int32_t>>(key("token_type"), {});
  v.merges = file.get_or<std::vector<std::string>>(key("merges"), {});
  const auto id = [&](const char* name) { return file.find<std::int32_t>(key(name)); };
  v.bos = id("bos_token_id"), v.eos = id("eos_token_id"), v.eot = id("eot_token_id"), v.eom = id("eom_token_id");
  v.unk = id("unknown_token_id"), v.sep = id("seperator_token_id"), v.pad = id("padding_token_id");
  v.mask = id("mask_token_id"), v.cls = id("cls_token_id");
  const auto flag = [&](const char* name) { return file.find<bool>(key(name)); };
  v.add_bos = flag("add_bos_token"), v.add_eos = flag("add_eos_token"), v.add_sep = flag("add_sep_token");
  v.add_space_prefix = flag("add_space_prefix");
  v.remove_extra_whitespaces = flag("remove_extra_whitespaces");
  if (const auto map = file.find<std::vector<std::uint8_t>>(key("precompiled_charsmap"))) {
    v.precompiled_charsmap.assign(map->begin(), map->end());
  }
  return v;
}

Tokenizer load_tokenizer(const std::string& path) {
  if (std::filesystem::is_directory(path)) return Tokenizer::load(path);
  return Tokenizer(gguf_vocabulary(GgufFile(path)));
}

namespace {

// The chat template of a GGUF file, or of a folder's tokenizer_config.json or chat_template.jinja.
std::string read_chat_template(const std::string& path) {
  if (!std::filesystem::is_directory(path)) {
    return GgufFile(path).get_or<std::string>("tokenizer.chat_template", "");
  }
  const std::string jinja = path + "/chat_template.jinja";
  if (std::ifstream file(jinja, std::ios::binary); file) {
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  if (!std::filesystem::exists(path + "/tokenizer_config.json")) return {};
  const ModelFields config =
      ModelFields::from_json(read_json(path, "tokenizer_config.json"), path + "/tokenizer_config.json");
  return config.has("chat_template") && !config.is_list("chat_template") ? config.text("chat_template") : "";
}

Index context_of(const std::string& path, const DecoderConfig& c, Index wanted) {
  require(wanted >= 0, "context is {}, expected 1 or more positions, or 0", wanted);
  require(c.context == 0 || wanted <= c.context, "{}: the model was made for {} positions, not for {}", path, c.context,
          wanted);
  if (wanted > 0) return wanted;
  return c.context == 0 ? 4096 : std::min<Index>(c.context, 4096);
}

struct Opened {
  DecoderConfig config;
  std::shared_ptr<PagedDecoder> decoder;
  Index bytes = 0, count = 0;
};

Opened open(const std::string& path, const Session& session, const LanguageModelOptions& o) {
  DecoderFiles files = open_decoder(path);
  Opened out{.config = files.config};
  for (const std::string& name : files.weights->names()) {
    const Tensor t = files.weights->at(name);
    for (std::size_t p = 0; p < t.type().plane_count(); ++p) out.bytes += static_cast<Index>(t.bytes(p).size());
    out.count += t.count();
  }
  const Index context = context_of(path, files.config, o.context);
  const Graph g = decoder(files.config, *files.weights, {.context = context, .page = o.page, .cache = o.cache});
  const Index pages = (context + o.page - 1) / o.page * o.sequences;
  CompileOptions compile = o.compile;
  compile.encode_activations = !o.exact;
  out.decoder = std::make_shared<PagedDecoder>(
      session, g, CacheOptions{.context = context, .pages = pages, .reuse = o.reuse}, compile);
  return out;
}

}  // namespace

LanguageModel LanguageModel::load(const std::string& path, const LanguageModelOptions& options) {
  LanguageModelOptions o = options;
  require(o.sequences >= 1, "sequences is {}, expected 1 or more", o.sequences);
  require(o.page >= 1, "page is {}, expected 1 or more", o.page);
  require(o.draft.empty() || !o.prompt_lookup, "guesses come from a draft model or from prompt lookup, not from both");
  if (!o.exact) o.compile.encode_activations = true;
  const Session session = cpu_session({.threads = o.threads});
  LanguageModel m(load_tokenizer(path));
  Opened target = open(path, session, o);
  m.config_ = target.config;
  m.weight_bytes_ = target.bytes;
  m.weight_count_ = target.count;
  m.chat_template_ = read_chat_template(path);
  require(m.tokenizer_.vocab_size() <= target.decoder->vocabulary(),
          "{}: the tokenizer has {} tokens, but the model gives {} logits", path, m.tokenizer_.vocab_size(),
          target.decoder->vocabulary());
  GeneratorOptions g{.chunk = o.chunk};
  if (o.prompt_lookup) g.speculate = prompt_lookup();
  if (!o.draft.empty()) {
    Opened draft = open(o.draft, session, o);
    require(draft.decoder->vocabulary() == target.decoder->vocabulary(),
            "{} has a vocabulary of {}, the draft model {} one of {}", path, target.decoder->vocabulary(), o.draft,
            draft.decoder->vocabulary());
    g.speculate = draft_model(std::move(draft.decoder));
  }
  m.generator_ = std::make_unique<Generator>(std::move(target.decoder), std::move(g));
  return m;
}

std::vector<std::int32_t> LanguageModel::end_tokens() const {
  std::vector<std::int32_t> ends;
  for (std::int32_t t = 0; t < tokenizer_.vocab_size(); ++t) {
    if (tokenizer_.ends_generation(t)) ends.push_back(t);
  }
  return ends;
}

Completion LanguageModel::complete(std::string_view prompt, const TextOptions& options, const OnText& on_text) {
  return complete(tokenizer_.encode(prompt), options, on_text);
}

Completion LanguageModel::complete(std::vector<std::int32_t> prompt, const TextOptions& o, const OnText& on_text) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  StopStrings stops(o.stop);
  Detokenizer detokenizer(tokenizer_, {.continues = true});
  Completion c{.prompt_tokens = static_cast<Index>(prompt.size())};
  const Index reused = generator_->counts().reused;
  GenerateOptions g{
      .sampling = o.sampling, .max_tokens = o.max_tokens, .logprobs = o.logprobs, .want_logprob = o.want_logprob};
  if (!o.ignore_end) g.end_tokens = end_tokens();
  const Generator::Request request = generator_->add(std::move(prompt), std::move(g));
  bool done = false;
  bool heard = false;  // since the last run
  const auto give = [&](const std::string& text) {
    c.text += text;
    heard = heard || !text.empty();
    if (!text.empty() && on_text && !on_text(text)) {
      c.finish = TextFinish::cancelled;
      done = true;
    }
  };
  const auto take = [&](GeneratedToken t) {
    if (c.tokens.empty()) c.to_first_token = Clock::now() - begin;
    const Finish finish = t.finish;
    if (finish != Finish::end) give(stops.push(detokenizer.push(t.token)));
    c.tokens.push_back(std::move(t));
    if (done) return;
    if (!stops.stopped() && finish != Finish::none) give(stops.push(detokenizer.flush()));
    if (done) return;
    done = finish != Finish::none || stops.stopped();
    c.finish = stops.stopped()             ? TextFinish::stop
               : finish == Finish::length  ? TextFinish::length
               : finish == Finish::context ? TextFinish::context
                                           : TextFinish::end;
  };
  try {
    while (!done) {
      heard = false;
      for (GeneratedToken& t : generator_->step()) {
        if (t.request == request && !done) take(std::move(t));
      }
      if (done || heard || !on_text || on_text("")) continue;
      c.finish = TextFinish::cancelled;
      done = true;
    }
    if (c.finish != TextFinish::cancelled) give(stops.flush());
  } catch (...) {
    generator_->cancel(request);
    throw;
  }
  generator_->cancel(request);
  c.reused_tokens = generator_->counts().reused - reused;
  c.total = Clock::now() - begin;
  return c;
}

Perplexity perplexity(LanguageModel& model, std::string_view text, const PerplexityOptions& options,
                      const std::function<void(Index, Index, const Perplexity&)>& progress) {
  const Index chunk = options.chunk;
  require(chunk >= 4 && chunk <= model.context(), "chunk is {}, expected 4 to the context of {}", chunk,
          model.context());
  const std::vector<std::int32_t> tokens = model.tokenizer().encode(text);
  Index chunks = static_cast<Index>(tokens.size()) / chunk;
  require(chunks >= 2, "the text has {} tokens, expected at least two chunks of {}", tokens.size(), chunk);
  if (options.most_chunks > 0) chunks = std::min(chunks, options.most_chunks);
  PagedDecoder& d = model.decoder();
  const auto vocabulary = static_cast<std::size_t>(d.vocabulary());
  double sum = 0, squares = 0;
  Perplexity p;
  for (Index c = 0; c < chunks; ++c) {
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(c * chunk);
    std::vector<std::int32_t> part(first, first + static_cast<std::ptrdiff_t>(chunk));
    if (model.tokenizer().adds_bos() && model.tokenizer().bos()) part[0] = *model.tokenizer().bos();
    const PagedDecoder::Sequence s = d.open();
    // The logits behind position `half` tell of the next token, and so on; those behind the last of nothing.
    const Index half = chunk / 2, wanted = chunk - half - 1;
    const std::span all(part);
    std::span<const float> logits;
    try {
      const RunPart before{s, all.first(static_cast<std::size_t>(half)), 0};
      d.run(std::span(&before, 1));
      const RunPart behind{s, all.subspan(static_cast<std::size_t>(half), static_cast<std::size_t>(wanted)), wanted};
      logits = d.run(std::span(&behind, 1));
    } catch (...) {
      d.close(s);
      throw;
    }
    for (Index i = 0; i < wanted; ++i) {
      const double x = -log_probability(logits.subspan(static_cast<std::size_t>(i) * vocabulary, vocabulary),
                                        part[static_cast<std::size_t>(half + 1 + i)]);
      sum += x;
      squares += x * x;
    }
    d.close(s);
    p.tokens += wanted;
    const auto n = static_cast<double>(p.tokens);
    const double mean = sum / n;
    p.value = std::exp(mean);
    p.error = p.value * std::sqrt(std::max(0.0, squares / n - mean * mean) / std::max(1.0, n - 1));
    if (progress) progress(c + 1, chunks, p);
  }
  return p;
}

}  // namespace rlx
