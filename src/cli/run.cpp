// rlx run: a model with inputs from array files. rlx check: optimised against unoptimised, or against given results.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <complex>
#include <memory>

#include "backend/cpu/cpu_device.h"
#include "cli/accuracy.h"
#include "cli/cli.h"
#include "cli/model.h"
#include "cli/support.h"
#include "core/error.h"
#include "io/npy.h"
#include "runtime/evaluate.h"

namespace rlx::cli {

namespace {

struct RunArguments {
  std::string path, archive, precision = "f32";
  std::vector<std::string> inputs, outputs, dims;
  int threads = 0;
  bool random = false, json = false;
};

// Elements as JSON: integers with all digits, a complex number as [real,imaginary].
std::vector<std::string> elements(const Tensor& t) {
  std::vector<std::string> all;
  if (t.dtype() == DType::c64) {
    for (const auto& v : load<std::complex<double>>(t))
      all.push_back(fmt::format("[{},{}]", json_number(v.real()), json_number(v.imag())));
  } else if (t.dtype() == DType::u64) {
    for (const std::uint64_t v : load<std::uint64_t>(t)) all.push_back(std::to_string(v));
  } else if (is_integer(t.dtype())) {
    for (const std::int64_t v : load<std::int64_t>(t)) all.push_back(std::to_string(v));
  } else {
    for (const double v : load<double>(t)) all.push_back(json_number(v));
  }
  return all;
}

std::string first_values(const Tensor& t) {
  std::string out;
  std::vector<std::string> values;
  if (is_integer(t.dtype()) || t.dtype() == DType::c64) {
    values = elements(t);
  } else {
    for (const double v : load<double>(t)) values.push_back(fmt::format("{:.6g}", v));
  }
  for (std::size_t i = 0; i < values.size() && i < 6; ++i) out += " " + values[i];
  return out + (values.size() > 6 ? " …" : "");
}

void run_model(const RunArguments& o) {
  NamedTensors given = read_arrays(o.inputs);
  const Graph g = read_model(o.path, given);
  require(g.states.empty(), "{} has states, which rlx run does not keep", o.path);
  const DimEnv dims = sizes(o.dims, g);
  const NamedTensors in = complete_inputs(std::move(given), o.random, g, dims);
  ProgressBar bar;
  const Executable exe = cpu_session({.threads = o.threads})
                             .compile(g, {.matmul_dtype = product_type(o.precision), .progress = bar.callback()});
  const std::vector<Tensor> results = exe.run(in, {.dims = &dims});
  std::string out;
  std::map<std::string, Tensor> named;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string name = output_name(exe.interface(), i);
    named.emplace(name, results[i]);
    if (!o.json) out += fmt::format("{}  {} {}\n", name, results[i].type().text(), first_values(results[i]));
    if (o.json) {
      out += fmt::format("{}\n{{\"name\":{},\"type\":{},\"values\":[{}]}}", out.empty() ? "" : ",", json_string(name),
                         json_string(results[i].type().text()), fmt::join(elements(results[i]), ","));
    }
  }
  for (const auto& [name, path] : pairs(o.outputs, "--output")) {
    const auto it = named.find(name);
    require(it != named.end(), "--output names {}, which is no output of the model", name);
    write_npy(path, it->second);
  }
  if (!o.archive.empty()) write_npz(o.archive, named);
  print(o.json ? "{\"outputs\":[" + out + "]}\n" : out);
}

struct CheckArguments {
  std::string path, expected, precision = "f32";
  std::vector<std::string> dims, inputs;
  double tolerance = 1e-5, cosine = 0;
  int threads = 0;
  bool no_run = false, json = false;
};

// What cannot be imported, all of it, before anything runs. Whether that is all that was asked for.
bool check_support(const CheckArguments& o) {
  if (!o.path.ends_with(".onnx")) {
    require(!o.json, "--json is for .onnx files");
    return false;
  }
  const Support s = support_of(o.path);
  if (o.json) print(support_json(o.path, s));
  if (!o.json && (o.no_run || !s.problems.empty())) print(support_table(o.path, s));
  if (s.error.empty()) return o.json;
  throw Error(s.problems.empty() ? s.error : s.error.substr(0, s.error.find('\n')));
}

// One line an output; whether all are close enough.
bool compare(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const Executable& exe, double tolerance,
             const std::string& where, std::string& out) {
  bool ok = true;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = difference(got[i], want[i]);
    out += fmt::format("{:<28} {:<24} {:>10.2e} {:>10.0e}  {}\n", output_name(exe.interface(), i), where, d, tolerance,
                       d <= tolerance ? "ok" : "differs");
    ok &= d <= tolerance;
  }
  return ok;
}

// What a shorter type of products costs, on inputs from files or made up.
void check_precision(const CheckArguments& o, const Graph& g, DType type) {
  const DimEnv given = sizes(o.dims, g);
  NamedTensors in;
  if (o.expected.empty()) {
    in = complete_inputs(read_arrays(o.inputs), true, g, given, 16);
  } else {
    for (auto& [name, value] : read_npz(o.expected)) {
      if (std::ranges::find(g.input_names, name) != g.input_names.end()) in.emplace(name, std::move(value));
    }
  }
  double worst = 1;
  print(accuracy_table(cpu_session({.threads = o.threads}), g, type, in, given, worst));
  require(worst >= o.cosine, "{}: the cosine of an output is {:.6f}, less than {}", o.path, worst, o.cosine);
}

void check(const CheckArguments& o) {
  if (check_support(o)) return;
  const Graph g = read_model(o.path);
  if (o.no_run) {
    const std::size_t steps = cpu_session({.threads = o.threads}).optimise(g).nodes.size();
    return print(fmt::format("{}: compiles, as {} nodes\n", o.path, grouped(static_cast<Index>(steps))));
  }
  require(g.states.empty(), "{} has states, which rlx check does not keep", o.path);
  if (const auto type = product_type(o.precision)) return check_precision(o, g, *type);
  require(o.inputs.empty(), "--input is for --precision, give results with --expected");
  const DimEnv given = sizes(o.dims, g);
  ProgressBar bar;
  const Executable exe = cpu_session({.threads = o.threads}).compile(g, {.progress = bar.callback()});
  std::string out = fmt::format("{:<28} {:<24} {:>10} {:>10}\n", "output", "sizes", "difference", "allowed");
  bool ok = true;
  if (!o.expected.empty()) {
    const std::map<std::string, Tensor> arrays = read_npz(o.expected);
    NamedTensors in;
    std::vector<Tensor> want;
    for (const std::string& name : g.input_names) {
      require(arrays.contains(name), "{} has no array {}, an input of the model", o.expected, name);
      in.emplace(name, arrays.at(name));
    }
    for (std::size_t i = 0; i < exe.interface().outputs.size(); ++i) {
      const std::string name = output_name(exe.interface(), i);
      require(arrays.contains(name), "{} has no array {}, an output of the model", o.expected, name);
      want.push_back(arrays.at(name));
    }
    const std::vector<Tensor> got = exe.run(in, {.dims = &given});
    for (std::size_t i = 0; i < got.size(); ++i)
      require(got[i].type() == want[i].type(), "{} is {} in {}, the model gives {}", output_name(exe.interface(), i),
              want[i].type().text(), o.expected, got[i].type().text());
    ok = compare(got, want, exe, o.tolerance, o.expected, out);
  } else {
    for (const Index wish : {1, 2, 7, 16}) {
      const DimEnv dims = complete_sizes(g, given, wish);
      std::string where;
      for (const auto& [name, value] : dims) where += fmt::format("{}{}={}", where.empty() ? "" : " ", name, value);
      const NamedTensors in = made_up_inputs(g, dims, static_cast<unsigned>(wish));
      ok &=
          compare(exe.run(in, {.dims = &dims}), evaluate(g, in, nullptr, {.dims = dims}), exe, o.tolerance, where, out);
      if (g.symbols.size() == given.size()) break;
    }
  }
  print(out);
  require(ok, "{}: results differ by more than {:.0e}", o.path, o.tolerance);
}

}  // namespace

void add_run(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<RunArguments>();
  CLI::App* c = app.add_subcommand("run", "Run a model on inputs from array files.");
  c->add_option("model", o->path, "Model folder, .onnx file, or a graph in text form (.rlx)")->required();
  c->add_option("--input", o->inputs, "NAME=FILE.npy; one for every input");
  c->add_flag("--random", o->random, "Make up the inputs that are not given");
  c->add_option("--dim", o->dims, "NAME=SIZE of a size that no given input shows");
  c->add_option("--output", o->outputs, "NAME=FILE.npy to write");
  c->add_option("--npz", o->archive, "Write all outputs to this archive");
  c->add_option("--threads", o->threads, "Threads, 0: as many as the process may use");
  c->add_option("--precision", o->precision, precision_help)->capture_default_str();
  c->add_flag("--json", o->json, "Print JSON with all values");
  c->footer("Example:\n  rlx run model.onnx --input input_ids=ids.npy --input attention_mask=mask.npy --npz out.npz");
  c->callback([o, &run] { run = [o] { run_model(*o); }; });
}

void add_check(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<CheckArguments>();
  CLI::App* c = app.add_subcommand(
      "check", "List what rlx cannot do of a model; compare it compiled with its definition or given results.");
  c->add_option("model", o->path, "Model folder, .onnx file, or a graph in text form (.rlx)")->required();
  c->add_option("--expected", o->expected, "Archive (.npz) with inputs and expected outputs by name");
  c->add_option("--dim", o->dims, "NAME=SIZE; other sizes take several values");
  c->add_option("--tolerance", o->tolerance, "Allowed difference, relative to the largest value of an output");
  c->add_option("--threads", o->threads, "Threads, 0: as many as the process may use");
  c->add_option("--precision", o->precision, "Report what products in bf16, f16 or int8 change, against f32")
      ->capture_default_str();
  c->add_option("--input", o->inputs, "NAME=FILE.npy for --precision; inputs that are not given are made up");
  c->add_flag("--no-run", o->no_run,
              "Only list what of an .onnx file cannot be imported, with operands and attributes");
  c->add_flag("--json", o->json, "The same as JSON");
  c->add_option("--cosine", o->cosine, "Least cosine of an output that --precision allows")->capture_default_str();
  c->footer(
      "Examples:\n  rlx check all-MiniLM-L6-v2\n  rlx check model.onnx --no-run\n  rlx check model.onnx --expected "
      "results.npz --tolerance 1e-4\n"
      "  rlx check model.onnx --precision int8 --input input_ids=ids.npy --cosine 0.99");
  c->callback([o, &run] { run = [o] { check(*o); }; });
}

}  // namespace rlx::cli
