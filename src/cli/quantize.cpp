// rlx quantize: the weights of a model in smaller types.
#include "io/gguf/quantize.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/cli.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "models/folder.h"

namespace rlx::cli {

namespace {

struct QuantizeArguments {
  std::string in, out, type, importance;
  std::vector<std::string> keep;
  Index split_megabytes = 0;
  int threads = 0;
  bool json = false;
};

QuantizeInput open_input(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.ends_with(".gguf")) return quantize_input(GgufFile(path));
  const bool folder = fs::is_directory(path);
  require(folder || path.ends_with(".safetensors") || path.ends_with(".json") || !fs::exists(path),
          "{}: expected a .gguf file, a .safetensors file or index, or a folder that holds one", path);
  std::string architecture = "unknown";
  const std::string home = folder ? path : fs::path(path).parent_path().string();
  if (const auto config = read_optional_json(home, "config.json")) {
    architecture = config->root().get_or("model_type", architecture.c_str());
  }
  return quantize_input(std::make_shared<const SafetensorsModel>(path), architecture);
}

/// The type that a tensor had, as GGUF files call it.
std::string_view type_before(const QuantizedTensor& t) { return gguf_type_of(t.from).name; }

std::string table(const QuantizeReport& r, double seconds) {
  std::string out =
      fmt::format("{:<40} {:>18} {:>7} {:>7} {:>14} {:>10}\n", "tensor", "shape", "from", "to", "bytes", "error");
  Index before = 0, after = 0, same = 0;
  double elements = 0;
  for (const QuantizedTensor& t : r.tensors) {
    before += t.bytes_before;
    after += t.bytes_after;
    elements += static_cast<double>(t.from.count().constant());
    if (type_before(t) == t.to->name) {
      ++same;
      continue;
    }
    out += fmt::format("{} {:>18} {:>7} {:>7} {:>14} {:>10.3e}\n", fit(t.name, 40), text(t.from.dims), type_before(t),
                       t.to->name, grouped(t.bytes_after), t.error);
  }
  out += fmt::format("{} tensors ({} kept as they are), {} bytes from {}, {:.2f} bits a weight, {:.1f} s\n",
                     grouped(static_cast<Index>(r.tensors.size())), grouped(same), grouped(after), grouped(before),
                     elements > 0 ? 8 * static_cast<double>(after) / elements : 0, seconds);
  for (const std::string& p : r.paths) out += p + "\n";
  return out;
}

std::string json(const QuantizeReport& r, double seconds) {
  std::string out = fmt::format("{{\"seconds\":{:.3f},\"files\":[", seconds);
  for (std::size_t i = 0; i < r.paths.size(); ++i) out += (i > 0 ? "," : "") + json_string(r.paths[i]);
  out += "],\"tensors\":[";
  for (std::size_t i = 0; i < r.tensors.size(); ++i) {
    const QuantizedTensor& t = r.tensors[i];
    out += fmt::format(
        "{}\n{{\"name\":{},\"shape\":{},\"from\":\"{}\",\"to\":\"{}\",\"bytes_before\":{},\"bytes\":{},\"error\":{}}}",
        i > 0 ? "," : "", json_string(t.name), text(t.from.dims), type_before(t), t.to->name, t.bytes_before,
        t.bytes_after, json_number(t.error));
  }
  return out + "]}\n";
}

void quantize(const QuantizeArguments& a) {
  require(a.split_megabytes >= 0, "--split-size is {}, expected 0 or more megabytes", a.split_megabytes);
  const GgufMix& mix = find_gguf_mix(a.type);
  const QuantizeInput input = open_input(a.in);
  ImportanceTable importance;
  if (!a.importance.empty()) importance = read_importance(a.importance);
  ProgressBar bar;
  ThreadPool pool(a.threads);
  const auto begin = std::chrono::steady_clock::now();
  const QuantizeReport r = quantize_gguf(input, a.out,
                                         {.mix = &mix,
                                          .keep = a.keep,
                                          .importance = a.importance.empty() ? nullptr : &importance,
                                          .splits = {.tensors = 0, .bytes = a.split_megabytes * 1'000'000},
                                          .progress = bar.callback()},
                                         pool);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  print(a.json ? json(r, seconds) : table(r, seconds));
}

}  // namespace

void add_quantize(CLI::App& app, std::function<void()>& run) {
  auto a = std::make_shared<QuantizeArguments>();
  CLI::App* c = app.add_subcommand("quantize", "Write the weights of a model in smaller types, as a GGUF file.");
  c->add_option("in", a->in, "A .gguf file (of a split model any of them), or a .safetensors file, index or folder")
      ->required();
  c->add_option("out", a->out, "The .gguf file to write")->required();
  std::string types;
  for (const GgufMix& m : gguf_mixes()) types += (types.empty() ? "" : ", ") + std::string(m.name);
  c->add_option("-t,--type", a->type, "Type of most matrices: " + types)->required();
  c->add_option("--importance", a->importance, "Importance matrix as llama.cpp writes it (.gguf or .dat)");
  c->add_option("--keep", a->keep, "Tensors that stay as they are: names with * and ?");
  c->add_option("--split-size", a->split_megabytes, "Begin a new file after so many megabytes");
  c->add_option("--threads", a->threads, "Threads; 0: all processors");
  c->add_flag("--json", a->json, "Print JSON");
  c->footer(
      "The choice of types is llama.cpp's: norms, vectors and routers stay f32, the output layer gets more bits, rows\n"
      "that are no multiple of 256 get types of smaller blocks. The error is the root mean square of the difference,\n"
      "relative to that of the weights. Tensors of safetensors files keep their names.\n"
      "Examples:\n"
      "  rlx quantize model-f16.gguf model-q4_k.gguf --type q4_k\n"
      "  rlx quantize model.gguf small.gguf --type q4_0 --keep 'token_embd*' --importance imatrix.gguf");
  c->callback([a, &run] { run = [a] { quantize(*a); }; });
}

}  // namespace rlx::cli
