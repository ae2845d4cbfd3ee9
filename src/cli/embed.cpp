// rlx embed: lines of text in, vectors or a table of similarities out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "cli/cli.h"
#include "cli/model.h"
#include "core/error.h"
#include "io/npy.h"
#include "models/sentence.h"

namespace rlx::cli {

namespace {

struct EmbedOptions {
  std::string model, input = "-", output, expect, precision = "f32";
  Index max_tokens = 0;
  double tolerance = 1e-6;
  bool json = false, similarity = false, f64 = false, bf16 = false;
};

struct Embedded {
  std::string text;
  Index tokens = 0;
  std::vector<double> vector;
};

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb);
}

std::string similarity_table(const std::vector<Embedded>& all) {
  std::string out = fmt::format("{:>4}  {}", "", fit("text", 48));
  for (std::size_t k = 0; k < all.size(); ++k) out += fmt::format(" {:>6}", k + 1);
  out += "\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    out += fmt::format("{:>4}  {}", i + 1, fit(all[i].text, 48));
    for (std::size_t k = 0; k < all.size(); ++k) out += fmt::format(" {:>6.3f}", cosine(all[i].vector, all[k].vector));
    out += "\n";
  }
  return out;
}

std::string json_list(const std::vector<double>& values) {
  std::string s = "[";
  for (std::size_t i = 0; i < values.size(); ++i) s += (i ? "," : "") + json_number(values[i]);
  return s + "]";
}

std::string json_output(const std::vector<Embedded>& all, bool similarity) {
  std::string out = "{\"texts\":[";
  for (std::size_t i = 0; i < all.size(); ++i) {
    out += fmt::format("{}\n{{\"text\":{},\"tokens\":{},\"embedding\":{}}}", i ? "," : "", json_string(all[i].text),
                       all[i].tokens, json_list(all[i].vector));
  }
  out += "]";
  if (similarity) {
    out += ",\n\"similarity\":[";
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<double> row;
      for (const Embedded& other : all) row.push_back(cosine(all[i].vector, other.vector));
      out += (i ? ",\n" : "\n") + json_list(row);
    }
    out += "]";
  }
  return out + "}\n";
}

std::string plain_output(const std::vector<Embedded>& all) {
  std::string out;
  for (const Embedded& e : all) {
    for (std::size_t i = 0; i < e.vector.size(); ++i)
      out += fmt::format("{}{}", i ? " " : "", static_cast<float>(e.vector[i]));
    out += "\n";
  }
  return out;
}

// The largest difference from vectors that a file holds; an Error beyond `tolerance`.
void compare(const std::vector<Embedded>& all, Index dimensions, const EmbedOptions& o) {
  const Tensor want = read_npy(o.expect);
  const std::vector<Index> shape{static_cast<Index>(all.size()), dimensions};
  require(want.shape() == shape, "{} has shape {}, the embeddings {}", o.expect, text(want.shape()), text(shape));
  const std::vector<double> values = load<double>(want);
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double got = all[i / static_cast<std::size_t>(dimensions)].vector[i % static_cast<std::size_t>(dimensions)];
    const double difference = std::fabs(got - values[i]);
    worst = difference > worst || std::isnan(difference) ? difference : worst;
  }
  require(worst <= o.tolerance, "largest difference from {} is {:.2e}, more than {:.2e}", o.expect, worst, o.tolerance);
  if (!o.json)
    print(fmt::format("largest difference from {}: {:.2e} (at most {:.2e} allowed)\n", o.expect, worst, o.tolerance));
}

void embed(const EmbedOptions& o) {
  require(std::isfinite(o.tolerance) && o.tolerance >= 0, "tolerance is {}, expected a number of at least 0",
          o.tolerance);
  SentenceOptions options;
  if (o.max_tokens != 0) options.max_tokens = o.max_tokens;
  if (o.f64) options.compute = DType::f64;
  options.compile.matmul_dtype = product_type(o.bf16 ? "bf16" : o.precision);
  ProgressBar bar;
  options.compile.progress = bar.callback();
  const SentenceModel model = SentenceModel::load(o.model, options);
  std::vector<Embedded> all;
  for (std::string& line : read_lines(o.input)) {
    Embedded e;
    e.tokens = static_cast<Index>(model.tokens(line).size());
    e.vector = model.embed(line);
    e.text = std::move(line);
    all.push_back(std::move(e));
  }
  if (!o.output.empty()) {
    std::vector<double> values;
    for (const Embedded& e : all) values.insert(values.end(), e.vector.begin(), e.vector.end());
    write_npy(o.output, Tensor::of<double>(o.f64 ? DType::f64 : DType::f32,
                                           {static_cast<Index>(all.size()), model.dimensions()}, values));
  }
  if (o.json) {
    print(json_output(all, o.similarity));
  } else if (o.similarity) {
    print(similarity_table(all));
  } else if (o.output.empty()) {
    print(plain_output(all));
  }
  if (!o.expect.empty()) compare(all, model.dimensions(), o);
}

}  // namespace

void add_embed(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<EmbedOptions>();
  CLI::App* c = app.add_subcommand("embed", "Sentence embeddings of lines of text.");
  c->add_option("model", o->model,
                "Folder in the sentence-transformers layout: config.json, model.safetensors, tokenizer.json, …")
      ->required();
  c->add_option("input", o->input, "File with one text a line; - is standard input")->capture_default_str();
  c->add_flag("-s,--similarity", o->similarity, "Print a table of cosine similarities instead of vectors");
  c->add_flag("--json", o->json, "Print JSON: texts, token counts, embeddings (and similarity)");
  c->add_option("-o,--output", o->output, "Write the vectors to this .npy file, [lines, dimensions]");
  c->add_option("--expect", o->expect,
                "Compare the vectors with this .npy file; exit code 1 if any number differs by more than --tolerance");
  c->add_option("--tolerance", o->tolerance, "Largest difference that --expect allows")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  c->add_option("--max-tokens", o->max_tokens, "Cut texts to this many tokens instead of the model's own number")
      ->check(CLI::PositiveNumber);
  c->add_flag("--f64", o->f64, "Compute in double precision");
  c->add_option("--precision", o->precision, precision_help)->capture_default_str();
  c->add_flag("--bf16", o->bf16, "The same as --precision bf16: faster, about three digits");
  c->footer(
      "Without other options each line of output is one vector.\n\nExamples:\n"
      "  rlx embed all-MiniLM-L6-v2 texts.txt --similarity\n"
      "  rlx embed all-MiniLM-L6-v2 texts.txt --output vectors.npy\n"
      "  echo hello | rlx embed all-MiniLM-L6-v2 --json");
  c->callback([o, &run] { run = [o] { embed(*o); }; });
}

}  // namespace rlx::cli
