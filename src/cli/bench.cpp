// rlx bench: how long a run takes, step by step if asked, and what memory it needs.
#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>

#include "backend/cpu/cpu_device.h"
#include "cli/cli.h"
#include "cli/explain.h"
#include "cli/model.h"
#include "core/error.h"

namespace rlx::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct BenchArguments {
  std::string path;
  std::vector<std::string> dims, inputs;
  int threads = 0, runs = 50;
  bool steps = false, explain = false, json = false, bf16 = false;
  std::string precision = "f32";
};

double ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

double quantile(std::vector<double> times, double q) {
  std::ranges::sort(times);
  return times[std::min(times.size() - 1, static_cast<std::size_t>(q * static_cast<double>(times.size())))];
}

// Median time of every step over the runs, in ms.
std::vector<double> step_medians(std::size_t steps, const std::vector<std::vector<double>>& times) {
  std::vector<double> median;
  for (std::size_t s = 0; s < steps; ++s) {
    std::vector<double> one;
    for (const auto& run : times) one.push_back(run[s]);
    median.push_back(quantile(one, 0.5));
  }
  return median;
}

std::string step_table(const RunReport& r, const std::vector<double>& median) {
  const double all = std::accumulate(median.begin(), median.end(), 0.0);
  std::string out =
      fmt::format("{:>4} {:>8} {:>6} {:>9} {:>8}  {:<24} {}\n", "step", "us", "%", "GFLOP/s", "GB/s", "kernel", "node");
  for (std::size_t s = 0; s < r.steps.size(); ++s) {
    const StepReport& step = r.steps[s];
    const double seconds = std::max(median[s], 1e-6) / 1e3;
    out +=
        fmt::format("{:>4} {:>8.1f} {:>6.1f} {:>9.1f} {:>8.1f}  {:<24} {}\n", s, median[s] * 1e3,
                    100 * median[s] / std::max(all, 1e-9), static_cast<double>(step.flops) / seconds / 1e9,
                    static_cast<double>(step.bytes_read + step.bytes_written) / seconds / 1e9, step.kernel, step.node);
  }
  return out;
}

// The steps beside their floors, as a table or as JSON.
std::string explanation(const BenchArguments& o, const RunReport& r, int threads, std::vector<double> medians,
                        const Report& passes) {
  for (double& t : medians) t /= 1e3;
  std::vector<std::string> notes;
  for (const Remark& m : passes.remarks) {
    if (m.pass == "legalise") notes.push_back(m.text);
  }
  const MachineRates rates = measure_rates(threads);
  const std::vector<StepFloor> floors = step_floors(r, rates, medians);
  return o.json ? explain_json(r, rates, floors, notes) : explain_table(r, rates, floors, notes);
}

void bench(const BenchArguments& o) {
  require(o.runs >= 1, "{} runs are asked for, expected at least 1", o.runs);
  const auto begin = Clock::now();
  NamedTensors given = read_arrays(o.inputs);
  const Graph g = read_model(o.path, given);
  require(g.states.empty(), "{} has states, which rlx bench does not keep", o.path);
  const auto loaded = Clock::now();
  const Session session = cpu_session({.threads = o.threads});
  ProgressBar bar;
  Report passes;
  const Executable exe = session.compile(
      g, {.matmul_dtype = product_type(o.bf16 ? "bf16" : o.precision), .progress = bar.callback()}, {}, &passes);
  const auto compiled = Clock::now();
  const NamedTensors in = complete_inputs(std::move(given), true, g, sizes(o.dims, g), 16);
  DimEnv dims = sizes_of(in, g, sizes(o.dims, g)), found;
  const auto first = Clock::now();
  (void)exe.run(in, {.dims = &dims, .found = &found});
  const double first_run = ms(Clock::now() - first);
  std::vector<double> times;
  std::vector<std::vector<double>> steps;
  std::vector<std::chrono::nanoseconds> step_times;
  for (int i = 0; i < o.runs; ++i) {
    const auto start = Clock::now();
    (void)exe.run(in, {.dims = &dims, .step_times = o.steps || o.explain ? &step_times : nullptr});
    times.push_back(ms(Clock::now() - start));
    if (!o.steps && !o.explain) continue;
    std::vector<double>& one = steps.emplace_back();
    for (const auto t : step_times) one.push_back(ms(t));
  }
  dims.merge(found);
  const RunReport r = exe.report(dims);
  const std::vector<double> medians = steps.empty() ? std::vector<double>() : step_medians(r.steps.size(), steps);
  std::string where;
  for (const auto& [name, value] : dims) where += fmt::format("{}{}={}", where.empty() ? "" : " ", name, value);
  if (o.json) {
    return print(fmt::format(
        "{{\"sizes\":{},\"threads\":{},\"load_ms\":{:.3f},\"compile_ms\":{:.3f},\"first_ms\":{:.3f},\"runs\":{},"
        "\"min_ms\":{:.4f},\"median_ms\":{:.4f},\"p95_ms\":{:.4f},\"steps\":{},\"arena_bytes\":{},\"packed_bytes\":{}{}"
        "}}"
        "\n",
        json_string(where), session.threads(), ms(loaded - begin), ms(compiled - loaded), first_run, o.runs,
        quantile(times, 0), quantile(times, 0.5), quantile(times, 0.95), r.steps.size(), r.arena_bytes, r.packed_bytes,
        o.explain ? ",\"explain\":" + explanation(o, r, session.threads(), medians, passes) : ""));
  }
  std::string out = o.steps && !o.explain ? step_table(r, medians) + "\n" : "";
  if (o.explain) out = explanation(o, r, session.threads(), medians, passes) + "\n";
  out += fmt::format("sizes      {}\nthreads    {}\nload       {:.1f} ms\ncompile    {:.1f} ms\nfirst run  {:.2f} ms\n",
                     where.empty() ? "all fixed" : where, session.threads(), ms(loaded - begin), ms(compiled - loaded),
                     first_run);
  out += fmt::format("run        {:.3f} ms median of {}, fastest {:.3f}, 95 % within {:.3f}\n", quantile(times, 0.5),
                     o.runs, quantile(times, 0), quantile(times, 0.95));
  out += fmt::format("steps      {}\narena      {} bytes\nweights    {} bytes packed, {} as they are\n", r.steps.size(),
                     grouped(r.arena_bytes), grouped(r.packed_bytes), grouped(r.constant_bytes));
  print(out);
}

}  // namespace

void add_bench(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<BenchArguments>();
  CLI::App* c = app.add_subcommand("bench", "Time a model on made-up or given inputs.");
  c->add_option("model", o->path, "Model folder, .onnx file, or a graph in text form (.rlx)")->required();
  c->add_option("--dim", o->dims, "NAME=SIZE; sizes that are not given are 16, or the nearest that the model allows");
  c->add_option("--input", o->inputs, "NAME=FILE.npy; inputs that are not given are made up");
  c->add_option("--runs", o->runs, "Runs that are timed, after one that is not");
  c->add_option("--threads", o->threads, "Threads, 0: as many as the process may use");
  c->add_option("--precision", o->precision, precision_help)->capture_default_str();
  c->add_flag("--bf16", o->bf16, "The same as --precision bf16");
  c->add_flag("--steps", o->steps, "Time every step");
  c->add_flag("--explain", o->explain,
              "Time every step beside its floor, show the largest gaps, and say why each kernel was chosen");
  c->add_flag("--json", o->json, "Print JSON");
  c->footer("Example:\n  rlx bench all-MiniLM-L6-v2 --dim B=1 --dim S=128 --steps");
  c->callback([o, &run] { run = [o] { bench(*o); }; });
}

}  // namespace rlx::cli
