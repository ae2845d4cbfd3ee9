// rlx inspect: what is in a model folder, a weights file, an array file or a graph in text form.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "backend/cpu/cpu_device.h"
#include "cli/cli.h"
#include "cli/gguf.h"
#include "cli/model.h"
#include "cli/page.h"
#include "cli/plan.h"
#include "core/error.h"
#include "core/os_posix.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "ir/print.h"
#include "models/sentence.h"

namespace rlx::cli {

namespace {

struct InspectOptions {
  std::string path;
  std::vector<std::string> dims;
  std::string svg, html, key;
  int threads = 0;
  bool json = false, weights = false, graph = false, plan = false, time = false;
};

struct Weight {
  std::string name, type, shape;
  Index bytes = 0;
};

// What every kind of file is turned into before it is printed.
struct Summary {
  std::string kind;
  std::vector<std::pair<std::string, std::string>> facts;  // in order; values as text
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
  std::map<std::string, Index> ops;
  std::vector<Weight> weights;
  std::string graph;
};

void add_graph(Summary& s, const Graph& g) {
  for (std::size_t i = 0; i < g.inputs.size(); ++i)
    s.inputs.emplace_back(g.input_names[i], g.nodes[g.inputs[i]].results[0].text());
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const std::string name = g.output_names[i].empty() ? std::to_string(i) : g.output_names[i];
    s.outputs.emplace_back(name, g.type(g.outputs[i]).text());
  }
  for (const Node& n : g.nodes) {
    if (!is_input(n)) ++s.ops[std::string(n.op->name())];
  }
  for (const auto& [name, b] : g.symbols) s.facts.emplace_back("size " + name, fmt::format("{}..{}", b.lo, b.hi));
  s.facts.emplace_back("nodes", std::to_string(g.nodes.size()));
  s.graph = print(g);
}

void add_weights(Summary& s, const SafetensorsModel& model) {
  for (const std::string& name : model.names()) {
    const SafetensorsEntry e = model.find(name);
    s.weights.push_back(
        {name, e.dtype ? std::string(rlx::name(*e.dtype)) : std::string(e.format), text(e.shape), e.end - e.begin});
  }
  s.facts.emplace_back("files", std::to_string(model.files().size()));
}

Summary inspect_folder(const std::string& path) {
  const SentenceModel model = SentenceModel::load(path);
  const EncoderConfig& e = model.encoder();
  Summary s{.kind = "sentence embedding model"};
  s.facts = {{"architecture", e.model_type},
             {"layers", std::to_string(e.layers)},
             {"hidden size", std::to_string(e.hidden)},
             {"heads", std::to_string(e.heads)},
             {"vocabulary", std::to_string(e.vocab_size)},
             {"positions", std::to_string(e.max_positions)},
             {"max tokens", std::to_string(model.sentence().max_tokens)},
             {"pooling", std::string(pooling_name(model.sentence().pooling))},
             {"normalised", model.sentence().normalize ? "yes" : "no"}};
  add_graph(s, model.graph());
  add_weights(s, SafetensorsModel(path));
  return s;
}

Summary inspect_array(const std::string& path) {
  const Tensor t = read_npy(path);
  Summary s{.kind = "array"};
  s.weights.push_back({std::filesystem::path(path).stem().string(), std::string(name(t.dtype())), text(t.shape()),
                       static_cast<Index>(t.bytes().size())});
  return s;
}

Summary inspect_archive(const std::string& path) {
  Summary s{.kind = "archive of arrays"};
  for (const auto& [array, t] : read_npz(path)) {
    s.weights.push_back({array, std::string(name(t.dtype())), text(t.shape()), static_cast<Index>(t.bytes().size())});
  }
  return s;
}

Summary inspect_graph(const std::string& path) {
  Summary s{.kind = path.ends_with(".onnx") ? "ONNX model" : "graph"};
  add_graph(s, read_model(path));
  return s;
}

Summary inspect_file(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (std::filesystem::is_directory(path)) return inspect_folder(path);
  if (extension == ".npy") return inspect_array(path);
  if (extension == ".npz") return inspect_archive(path);
  if (extension == ".rlx" || extension == ".onnx") return inspect_graph(path);
  require(extension == ".safetensors" || extension == ".json" || !std::filesystem::exists(path),
          "{}: unknown kind of file, expected a model folder, .onnx, .gguf, .safetensors, .safetensors.index.json, "
          ".npy, .npz or .rlx (a graph in text form)",
          path);
  Summary s{.kind = "weights"};
  add_weights(s, SafetensorsModel(path));
  return s;
}

Index total_bytes(const Summary& s) {
  Index n = 0;
  for (const Weight& w : s.weights) n += w.bytes;
  return n;
}

std::string plain(const Summary& s, bool weights) {
  std::string out = s.kind + "\n";
  const auto row = [&](std::string_view a, std::string_view b) { out += fmt::format("  {:<14} {}\n", a, b); };
  for (const auto& [name, value] : s.facts) row(name, value);
  for (const auto& [name, type] : s.inputs) row("input", name + "  " + type);
  for (const auto& [name, type] : s.outputs) row("output", name + "  " + type);
  if (!s.ops.empty()) {
    out += "ops\n";
    for (const auto& [name, count] : s.ops) row(name, grouped(count));
  }
  if (!s.weights.empty()) {
    out += fmt::format("weights: {} tensors, {} bytes\n", grouped(static_cast<Index>(s.weights.size())),
                       grouped(total_bytes(s)));
    std::size_t width = 0;
    for (const Weight& w : s.weights) width = std::max(width, w.name.size());
    for (const Weight& w : s.weights) {
      if (weights)
        out += fmt::format("  {}  {:<5} {:<16} {:>14}\n", fit(w.name, std::min<std::size_t>(width, 80)), w.type,
                           w.shape, grouped(w.bytes));
    }
  }
  return out;
}

std::string json_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, const char* a, const char* b) {
  std::string s = "[";
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    s += fmt::format("{}{{\"{}\":{},\"{}\":{}}}", i ? "," : "", a, json_string(pairs[i].first), b,
                     json_string(pairs[i].second));
  }
  return s + "]";
}

std::string json(const Summary& s, const InspectOptions& o) {
  std::string out = fmt::format("{{\"path\":{},\"kind\":{},\"facts\":{},\"inputs\":{},\"outputs\":{},\"ops\":{{",
                                json_string(o.path), json_string(s.kind), json_pairs(s.facts, "name", "value"),
                                json_pairs(s.inputs, "name", "type"), json_pairs(s.outputs, "name", "type"));
  bool first = true;
  for (const auto& [name, count] : s.ops) {
    out += fmt::format("{}{}:{}", first ? "" : ",", json_string(name), count);
    first = false;
  }
  out += fmt::format("}},\"weight_bytes\":{},\"weights\":[", total_bytes(s));
  for (std::size_t i = 0; i < s.weights.size(); ++i) {
    const Weight& w = s.weights[i];
    out += fmt::format("{}\n{{\"name\":{},\"type\":{},\"shape\":{},\"bytes\":{}}}", i ? "," : "", json_string(w.name),
                       json_string(w.type), w.shape, w.bytes);
  }
  out += "]";
  if (o.graph) out += ",\"graph\":" + json_string(s.graph);
  return out + "}\n";
}

// The plan of the compiled model at the sizes asked for; the picture goes to a file.
void inspect_plan(const InspectOptions& o) {
  const Graph g = read_model(o.path);
  const DimEnv dims = complete_sizes(g, sizes(o.dims, g), 16);
  ProgressBar bar;
  const RunReport r = cpu_session().compile(g, {.progress = bar.callback()}).report(dims);
  if (!o.svg.empty()) {
    AtomicFile file(o.svg);
    file.write(memory_svg(r, std::filesystem::path(o.path).filename().string()));
    file.commit();
  }
  if (o.plan) print(o.json ? plan_json(r) : plan_table(r));
}

// Medians of the steps' times over a few runs on made-up inputs.
std::vector<double> step_seconds(const Executable& exe, const Graph& g, const DimEnv& dims) {
  constexpr std::size_t runs = 9;
  const NamedTensors in = complete_inputs({}, true, g, dims, 16);
  std::vector<std::chrono::nanoseconds> times;
  std::vector<std::vector<double>> all;
  for (std::size_t i = 0; i <= runs; ++i) {
    (void)exe.run(in, {.dims = &dims, .step_times = &times});
    all.resize(times.size());
    for (std::size_t s = 0; i > 0 && s < times.size(); ++s)
      all[s].push_back(std::chrono::duration<double>(times[s]).count());
  }
  std::vector<double> medians;
  for (std::vector<double>& one : all) {
    std::ranges::nth_element(one, one.begin() + runs / 2);
    medians.push_back(one[runs / 2]);
  }
  return medians;
}

// The page of the compiled model.
void inspect_page(const InspectOptions& o) {
  const Graph g = read_model(o.path);
  const Session session = cpu_session({.threads = o.threads});
  PageContent c{.title = std::filesystem::path(o.path).lexically_normal().filename().string(),
                .source = g,
                .lowered = session.optimise(g),
                .threads = session.threads()};
  const Executable exe = session.compile(g);
  const DimEnv dims = complete_sizes(g, sizes(o.dims, g), 16);
  try {
    c.report = exe.report(dims);
  } catch (const Error& e) {
    c.no_report = fmt::format("There is no plan ahead of a run: {}.", e.what());
  }
  if (o.time && c.no_report.empty()) c.seconds = step_seconds(exe, g, dims);
  AtomicFile file(o.html);
  file.write(page(c));
  file.commit();
}

void inspect(const InspectOptions& o) {
  require(!o.time || !o.html.empty(), "--time is for --html");
  if (!o.html.empty()) return inspect_page(o);
  if (o.plan || !o.svg.empty()) return inspect_plan(o);
  if (o.path.ends_with(".gguf")) {
    require(!o.graph, "{} holds weights, not a graph", o.path);
    return print(show_gguf(o.path, {.json = o.json, .tensors = o.weights, .key = o.key}));
  }
  require(o.key.empty(), "--key shows metadata of .gguf files, {} is none", o.path);
  const Summary s = inspect_file(o.path);
  if (o.json) {
    print(json(s, o));
  } else if (o.graph) {
    require(!s.graph.empty(), "{} holds {}, not a graph", o.path, s.kind);
    print(s.graph);
  } else {
    print(plain(s, o.weights));
  }
}

}  // namespace

void add_inspect(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<InspectOptions>();
  CLI::App* c = app.add_subcommand("inspect", "What is in a model or a file: ops, types, weights.");
  c->add_option("path", o->path,
                "Model folder, .onnx, .gguf, .safetensors file or index, .npy, .npz, or a graph in text form (.rlx)")
      ->required();
  c->add_flag("-w,--weights", o->weights, "List every weight with type, shape and bytes");
  c->add_option("-k,--key", o->key, "Print one metadata key of a .gguf file in full");
  c->add_flag("-g,--graph", o->graph, "Print the graph in text form");
  c->add_flag("-p,--plan", o->plan, "Compile the model and print its steps and memory");
  c->add_option("--svg", o->svg, "Compile the model and draw its memory plan into this file");
  c->add_option("--html", o->html,
                "Compile the model and write a page with its graph, steps and memory into this file");
  c->add_flag("--time", o->time, "Run the model on made-up inputs, for the page to show the time of every step");
  c->add_option("--threads", o->threads, "Threads of these runs, 0: as many as the process may use");
  c->add_option("--dim", o->dims, "NAME=SIZE for the plan; other sizes are 16, or the nearest that the model allows");
  c->add_flag("--json", o->json, "Print JSON");
  c->footer(
      "Examples:\n"
      "  rlx inspect all-MiniLM-L6-v2\n"
      "  rlx inspect all-MiniLM-L6-v2 --plan --svg memory.svg --dim S=128\n"
      "  rlx inspect model.onnx --html page.html --time\n"
      "  rlx inspect all-MiniLM-L6-v2 --graph\n"
      "  rlx inspect model.safetensors --weights\n"
      "  rlx inspect model.gguf --key tokenizer.chat_template");
  c->callback([o, &run] { run = [o] { inspect(*o); }; });
}

}  // namespace rlx::cli
