// rlx bench-llm: speed of a language model in prompts and in single tokens, beside what the memory allows.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "backend/cpu/cpu_device.h"
#include "cli/cli.h"
#include "cli/language.h"
#include "core/error.h"
#include "core/machine_peak.h"
#include "core/thread_pool.h"

namespace rlx::cli {

namespace {

struct BenchLlmArguments {
  ModelArguments model;
  std::vector<Index> prompts{512}, answers{128};
  Index depth = 0;
  int runs = 5;
  bool json = false, steps = false;
};

struct Speed {
  std::string test;
  std::vector<double> rates;  // tokens a second, run by run
  bool decode = false;
  double bytes = 0;  // that a token reads at least: weights, and half of the keys and values on average

  double mean() const { return std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size()); }
  double spread() const {
    double sum = 0;
    for (const double r : rates) sum += (r - mean()) * (r - mean());
    return rates.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(rates.size() - 1));
  }
};

// Appends `count` tokens, at most `step` in a run, and gives the seconds.
double run_tokens(PagedDecoder& d, PagedDecoder::Sequence s, Index count, Index step) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>((i * 7919 + 13) % static_cast<std::size_t>(d.vocabulary()));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (std::span<const std::int32_t> left = tokens; !left.empty();) {
    const auto now = left.first(std::min(left.size(), static_cast<std::size_t>(step)));
    left = left.subspan(now.size());
    const RunPart part{s, now, step == 1 || left.empty() ? 1 : 0};
    d.run(std::span(&part, 1));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Speed measure(PagedDecoder& d, const BenchLlmArguments& a, Index count, bool decode, double weights) {
  Speed s{.test = fmt::format("{}{}{}", decode ? "tg" : "pp", count, a.depth > 0 ? fmt::format("@d{}", a.depth) : ""),
          .decode = decode};
  const double positions = static_cast<double>(a.depth) + static_cast<double>(count) / 2;
  s.bytes = weights + positions * static_cast<double>(d.position_bytes());
  for (int i = 0; i <= a.runs; ++i) {  // the first is not counted
    const PagedDecoder::Sequence sequence = d.open();
    if (a.depth > 0) run_tokens(d, sequence, a.depth, a.model.chunk);
    const double seconds = run_tokens(d, sequence, count, decode ? 1 : a.model.chunk);
    d.close(sequence);
    if (i > 0) s.rates.push_back(static_cast<double>(count) / seconds);
  }
  return s;
}

struct Found {
  std::string mode;
  double weights = 0;  // bytes that a token reads at least
  double bandwidth = 0;
  int threads = 1;
};

Found look(PagedDecoder& d, int threads) {
  const RunReport r = d.executable().report(d.sizes(1, 1, 1, 1));
  Found f{.mode = r.packed_bytes > r.constant_bytes ? "packed" : "mapped", .threads = threads};
  for (const StepReport& s : r.steps) f.weights += static_cast<double>(s.least_weight_bytes);
  f.bandwidth = bandwidth(Traffic::read, Index{256} << 20, {.threads = threads, .repetitions = 3, .seconds = 0.05});
  return f;
}

std::string table(const LanguageModel& m, const BenchLlmArguments& a, const Found& f, const std::vector<Speed>& all) {
  std::string out = fmt::format(
      "model      {} ({}), {:.1f} MiB, {:.1f} M weights\nweights    {}, {} activations, cache {}\nthreads    {}\n"
      "read       {:.1f} GB/s of memory with these threads\n\n{:>12} {:>20} {:>12} {:>9} {:>12} {:>8}\n",
      a.model.path, m.config().architecture, static_cast<double>(m.weight_bytes()) / 0x1p20,
      static_cast<double>(m.weight_count()) / 1e6, f.mode, a.model.exact ? "f32" : "8-bit", a.model.cache, f.threads,
      f.bandwidth / 1e9, "test", "tokens/s", "MB/token", "GB/s", "limit", "of limit");
  for (const Speed& s : all) {
    out += fmt::format("{:>12} {:>20}", s.test, fmt::format("{:.2f} +- {:.2f}", s.mean(), s.spread()));
    if (s.decode) {
      const double limit = f.bandwidth / s.bytes;
      out += fmt::format(" {:>12.2f} {:>9.2f} {:>12.2f} {:>7.1f}%", s.bytes / 1e6, s.bytes * s.mean() / 1e9, limit,
                         100 * s.mean() / limit);
    }
    out += "\n";
  }
  return out;
}

// Steps of a run with one token behind `depth` others, by kernel and result: medians of the times.
std::string step_table(PagedDecoder& d, const BenchLlmArguments& a) {
  const PagedDecoder::Sequence sequence = d.open();
  run_tokens(d, sequence, std::max<Index>(a.depth, 1), a.model.chunk);
  std::vector<std::chrono::nanoseconds> times;
  std::vector<std::vector<double>> all;
  d.time_steps(&times);
  for (int i = 0; i < 25; ++i) {
    run_tokens(d, sequence, 1, 1);
    all.resize(times.size());
    for (std::size_t s = 0; s < times.size(); ++s) all[s].push_back(std::chrono::duration<double>(times[s]).count());
  }
  d.time_steps(nullptr);
  const RunReport r = d.executable().report(d.sizes(1, 1, 1, 1));
  d.close(sequence);
  struct Group {
    int count = 0;
    double seconds = 0, bytes = 0;
  };
  std::map<std::string, Group> groups;
  double total = 0;
  for (std::size_t s = 0; s < all.size(); ++s) {
    std::ranges::nth_element(all[s], all[s].begin() + 12);
    Group& g = groups[r.steps[s].kernel];
    ++g.count;
    g.seconds += all[s][12];
    g.bytes += static_cast<double>(r.steps[s].least_weight_bytes);
    total += all[s][12];
  }
  std::vector<std::pair<std::string, Group>> sorted(groups.begin(), groups.end());
  std::ranges::sort(sorted, [](const auto& x, const auto& y) { return x.second.seconds > y.second.seconds; });
  std::string out = fmt::format("\n{:>6} {:>10} {:>7} {:>9} {:>8}  one token, {:.1f} us in steps\n", "steps", "us",
                                "share", "us each", "GB/s", total * 1e6);
  for (const auto& [name, g] : sorted) {
    out += fmt::format("{:>6} {:>10.1f} {:>6.1f}% {:>9.2f} {:>8.1f}  {}\n", g.count, g.seconds * 1e6,
                       100 * g.seconds / total, g.seconds * 1e6 / g.count, g.bytes / g.seconds / 1e9, name);
  }
  return out;
}

std::string json(const LanguageModel& m, const BenchLlmArguments& a, const Found& f, const std::vector<Speed>& all) {
  std::string out = fmt::format(
      "{{\"model\":{},\"architecture\":{},\"bytes\":{},\"weights\":{},\"mode\":{},\"exact\":{},\"cache\":{},"
      "\"threads\":{},\"read_bandwidth\":{},\"tests\":[",
      json_string(a.model.path), json_string(m.config().architecture), m.weight_bytes(), m.weight_count(),
      json_string(f.mode), a.model.exact, json_string(a.model.cache), f.threads, json_number(f.bandwidth));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Speed& s = all[i];
    out += fmt::format("{}{{\"test\":{},\"tokens_per_second\":{},\"spread\":{},\"runs\":[", i ? "," : "",
                       json_string(s.test), json_number(s.mean()), json_number(s.spread()));
    for (std::size_t k = 0; k < s.rates.size(); ++k) out += (k ? "," : "") + json_number(s.rates[k]);
    out += "]";
    if (s.decode) {
      out +=
          fmt::format(",\"bytes_per_token\":{},\"limit\":{}", json_number(s.bytes), json_number(f.bandwidth / s.bytes));
    }
    out += "}";
  }
  return out + "]}\n";
}

void bench_llm(BenchLlmArguments a) {
  require(a.runs >= 1, "{} runs are asked for, expected at least 1", a.runs);
  Index longest = 1;
  for (const auto* counts : {&a.prompts, &a.answers}) {
    for (const Index n : *counts) longest = std::max(longest, n);
  }
  if (a.model.context == 0) a.model.context = a.depth + longest;
  LanguageModel model = a.model.load();
  PagedDecoder& d = model.decoder();
  const Found f = look(d, a.model.threads > 0 ? a.model.threads : usable_processors());
  std::vector<Speed> all;
  for (const Index n : a.prompts) {
    if (n > 0) all.push_back(measure(d, a, n, false, f.weights));
  }
  for (const Index n : a.answers) {
    if (n > 0) all.push_back(measure(d, a, n, true, f.weights));
  }
  print(a.json ? json(model, a, f, all) : table(model, a, f, all) + (a.steps ? step_table(d, a) : ""));
}

}  // namespace

void add_bench_llm(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<BenchLlmArguments>();
  CLI::App* c = app.add_subcommand("bench-llm", "Time a language model: prompts, and tokens one by one.");
  o->model.add(*c);
  c->add_option("-p,--prompt", o->prompts, "Tokens of a prompt; several tests by commas, 0: none")
      ->delimiter(',')
      ->capture_default_str();
  c->add_option("-n,--tokens", o->answers, "Tokens that are run one by one, likewise")
      ->delimiter(',')
      ->capture_default_str();
  c->add_option("-d,--depth", o->depth, "Tokens that are there before")->check(CLI::NonNegativeNumber);
  c->add_option("-r,--runs", o->runs, "Runs of a test, after one that does not count")->capture_default_str();
  c->add_flag("--steps", o->steps, "Time the steps of one token");
  c->add_flag("--json", o->json, "Print JSON");
  c->footer(
      "The limit of single tokens is the bandwidth of memory over the bytes that a token reads: all weights but the\n"
      "rows of the embedding that are not looked up, and the keys and values of the positions before it.\n\n"
      "Example:\n  rlx bench-llm model.gguf -p 128,512 -n 128 -t 2");
  c->callback([o, &run] { run = [o] { bench_llm(*o); }; });
}

}  // namespace rlx::cli
