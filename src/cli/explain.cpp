// Where the time of a run goes: floors, gaps, reasons.
#include "cli/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "cli/cli.h"
#include "core/machine_peak.h"
#include "core/thread_pool.h"

namespace rlx::cli {

double MachineRates::peak(DType type) const {
  const auto it = std::ranges::find(peaks, type, &Peak::type);
  return it == peaks.end() ? peak(DType::f32) : it->operations;
}

double MachineRates::speed(Index working_set) const {
  double found = speeds.front().bytes;
  for (const Speed& s : speeds) {
    if (s.working_set <= working_set) found = s.bytes;
  }
  return found;
}

MachineRates measure_rates(int threads) {
  MachineRates r{.threads = std::clamp(threads, 1, usable_processors()), .peaks = {}, .speeds = {}};
  const PeakOptions options{.threads = r.threads, .repetitions = 7};
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::i8})
    r.peaks.push_back({type, multiply_add_rate(type, level(), options)});
  constexpr Index kib = 1024, mib = 1024 * kib;
  double above = 0;
  std::vector<MachineRates::Speed> speeds;
  // A larger set is never faster: what is measured so is noise in the smaller one.
  for (const Index bytes : {128 * mib, 32 * mib, 8 * mib, 1 * mib, 256 * kib, 32 * kib}) {
    const double best = std::max(bandwidth(Traffic::read, bytes, options), bandwidth(Traffic::copy, bytes, options));
    above = std::max(above, best);
    speeds.push_back({bytes, above});
  }
  r.speeds.assign(speeds.rbegin(), speeds.rend());
  return r;
}

std::vector<StepFloor> step_floors(const RunReport& report, const MachineRates& rates,
                                   const std::vector<double>& seconds) {
  Index weights = 0;
  for (const StepReport& s : report.steps) weights += s.least_weight_bytes;
  std::vector<StepFloor> floors;
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    const StepReport& s = report.steps[i];
    const double compute = static_cast<double>(s.flops) / rates.peak(s.arithmetic);
    const double memory = static_cast<double>(s.least_weight_bytes) / rates.speed(weights) +
                          static_cast<double>(s.least_bytes) / rates.speed(s.least_bytes);
    floors.push_back({seconds[i], std::max(compute, memory), memory > compute});
  }
  return floors;
}

std::vector<Gap> worst_gaps(const RunReport& report, const std::vector<StepFloor>& floors) {
  std::map<std::string, Gap> by_work;
  for (std::size_t i = 0; i < floors.size(); ++i) {
    const StepReport& s = report.steps[i];
    Gap& g = by_work[s.kernel + s.node.substr(std::min(s.node.find('='), s.node.size()))];  // without the node's number
    g.steps.push_back(i);
    g.lost += floors[i].seconds - floors[i].floor;
  }
  std::vector<Gap> gaps;
  for (auto& [work, gap] : by_work) gaps.push_back(std::move(gap));
  std::ranges::sort(gaps, std::greater{}, &Gap::lost);
  gaps.resize(std::min<std::size_t>(gaps.size(), 5));
  return gaps;
}

static std::string bound_of(const StepReport& s, const StepFloor& f) {
  return f.memory || s.flops == 0 ? "bytes" : fmt::format("{} operations", name(s.arithmetic));
}

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

static StepFloor total(const std::vector<StepFloor>& floors) {
  StepFloor all;
  for (const StepFloor& f : floors) {
    all.seconds += f.seconds;
    all.floor += f.floor;
  }
  return all;
}

// Kernels with the reasons of those that were asked before them, and the steps that each such choice was made for.
static std::map<std::pair<std::string, std::vector<std::string>>, std::vector<std::size_t>> choices(
    const RunReport& r) {
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<std::size_t>> found;
  for (std::size_t i = 0; i < r.steps.size(); ++i) found[{r.steps[i].kernel, r.steps[i].declined}].push_back(i);
  return found;
}

static std::string numbers(const std::vector<std::size_t>& steps) {
  constexpr std::size_t most = 8;
  return fmt::format("{} step{} ({}{})", steps.size(), steps.size() == 1 ? "" : "s",
                     fmt::join(std::span(steps).first(std::min(most, steps.size())), " "),
                     steps.size() > most ? " ..." : "");
}

static std::string rates_text(const MachineRates& rates) {
  std::string out = fmt::format("peak, {} thread{}: ", rates.threads, rates.threads == 1 ? "" : "s");
  for (const MachineRates::Peak& p : rates.peaks) out += fmt::format(" {} {:.1f}", name(p.type), p.operations / 1e9);
  out += " GFLOP/s\nbytes, GB/s: ";
  for (const MachineRates::Speed& s : rates.speeds)
    out += fmt::format(" {} KiB {:.1f}", grouped(s.working_set / 1024), s.bytes / 1e9);
  return out + "\n";
}

std::string explain_table(const RunReport& r, const MachineRates& rates, const std::vector<StepFloor>& floors,
                          const std::vector<std::string>& notes) {
  const StepFloor all = total(floors);
  std::string out = fmt::format("{:>4} {:>9} {:>9} {:>7} {:>6} {:>9} {:>7}  {:<16} {:<24} {}\n", "step", "us",
                                "floor us", "reached", "share", "GFLOP/s", "GB/s", "bound by", "kernel", "node");
  const auto line = [&](std::size_t i) {
    const StepReport& s = r.steps[i];
    const StepFloor& f = floors[i];
    const double seconds = std::max(f.seconds, 1e-9);
    return fmt::format("{:>4} {:>9.1f} {:>9.1f} {:>6.1f}% {:>5.1f}% {:>9.1f} {:>7.1f}  {:<16} {:<24} {}\n", i,
                       f.seconds * 1e6, f.floor * 1e6, percent(f.floor, f.seconds), percent(f.seconds, all.seconds),
                       static_cast<double>(s.flops) / seconds / 1e9,
                       static_cast<double>(s.least_bytes + s.least_weight_bytes) / seconds / 1e9, bound_of(s, f),
                       s.kernel, s.node);
  };
  for (std::size_t i = 0; i < r.steps.size(); ++i) out += line(i);
  out += fmt::format("{:>4} {:>9.1f} {:>9.1f} {:>6.1f}%\n\n{}\nlargest gaps between time and floor\n", "all",
                     all.seconds * 1e6, all.floor * 1e6, percent(all.floor, all.seconds), rates_text(rates));
  for (const Gap& g : worst_gaps(r, floors)) {
    const std::size_t i = g.steps.front();
    out += fmt::format("  {:>8.1f} us lost, {:>4.1f} % of the run: {}, {}, bound by {}: {}\n", g.lost * 1e6,
                       percent(g.lost, all.seconds), numbers(g.steps), r.steps[i].kernel,
                       bound_of(r.steps[i], floors[i]), r.steps[i].node);
  }
  out += "\nkernels and why they were chosen\n";
  for (const auto& [choice, steps] : choices(r)) {
    out += fmt::format("  {}, {}: ", choice.first, numbers(steps));
    out += choice.second.empty() ? "the first that was asked\n" : "after others declined\n";
    for (const std::string& why : choice.second) out += "    - " + why + "\n";
  }
  for (const std::string& n : notes) out += "  note: " + n + "\n";
  for (const std::string& n : r.remarks) out += "  note: " + n + "\n";
  return out;
}

std::string explain_json(const RunReport& r, const MachineRates& rates, const std::vector<StepFloor>& floors,
                         const std::vector<std::string>& notes) {
  const auto texts = [](const std::vector<std::string>& all) {
    std::string out;
    for (const std::string& one : all) out += (out.empty() ? "" : ",") + json_string(one);
    return out;
  };
  std::string peaks, speeds, steps;
  for (const MachineRates::Peak& p : rates.peaks)
    peaks += fmt::format("{}\"{}\":{:.4g}", peaks.empty() ? "" : ",", name(p.type), p.operations);
  for (const MachineRates::Speed& s : rates.speeds)
    speeds += fmt::format("{}{{\"bytes\":{},\"bytes_per_second\":{:.4g}}}", speeds.empty() ? "" : ",", s.working_set,
                          s.bytes);
  for (std::size_t i = 0; i < r.steps.size(); ++i) {
    const StepReport& s = r.steps[i];
    steps += fmt::format(
        "{}\n{{\"kernel\":{},\"node\":{},\"us\":{:.2f},\"floor_us\":{:.3f},\"bound\":{},\"flops\":{},"
        "\"arithmetic\":\"{}\",\"least_bytes\":{},\"least_weight_bytes\":{},\"declined\":[{}]}}",
        i == 0 ? "" : ",", json_string(s.kernel), json_string(s.node), floors[i].seconds * 1e6, floors[i].floor * 1e6,
        floors[i].memory ? "\"bytes\"" : "\"operations\"", s.flops, name(s.arithmetic), s.least_bytes,
        s.least_weight_bytes, texts(s.declined));
  }
  std::string worst;
  for (const Gap& g : worst_gaps(r, floors)) {
    worst += fmt::format("{}{{\"steps\":[{}],\"lost_us\":{:.2f}}}", worst.empty() ? "" : ",", fmt::join(g.steps, ","),
                         g.lost * 1e6);
  }
  std::vector<std::string> all_notes = notes;
  all_notes.insert(all_notes.end(), r.remarks.begin(), r.remarks.end());
  return fmt::format(
      "{{\"threads\":{},\"peak\":{{{}}},\"bandwidth\":[{}],\"steps\":[{}],\"worst\":[{}],\"notes\":[{}]}}",
      rates.threads, peaks, speeds, steps, worst, texts(all_notes));
}

}  // namespace rlx::cli
