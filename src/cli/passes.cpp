// rlx passes: the passes that prepare a graph for a device, and what each does to a model.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "backend/cpu/cpu_device.h"
#include "cli/cli.h"
#include "cli/model.h"
#include "core/error.h"
#include "ir/print.h"
#include "passes/legalise.h"
#include "runtime/pass_evaluator.h"

namespace rlx::cli {

namespace {

struct PassesOptions {
  std::string path;
  std::vector<std::string> disable, print_after;
  bool verify_numerics = false, graph = false, json = false;
};

std::string exactness(const Pass& p) { return p.tolerance == 0 ? "exact" : fmt::format("within {:.0e}", p.tolerance); }

void list(const PassesOptions& o) {
  std::string out;
  if (o.json) {
    for (const Pass& p : default_passes()) {
      out += fmt::format("{}{{\"name\":{},\"doc\":{},\"tolerance\":{}}}", out.empty() ? "" : ",\n", json_string(p.name),
                         json_string(p.doc), json_number(p.tolerance));
    }
    return print("{\"passes\":[\n" + out + "]}\n");
  }
  for (const Pass& p : default_passes()) out += fmt::format("{:<22} {:<13} {}\n", p.name, exactness(p), p.doc);
  print(out +
        "Passes run in this order. \"exact\": results keep every bit. \"rlx passes MODEL\" shows what each does.\n");
}

double milliseconds(std::chrono::nanoseconds t) { return static_cast<double>(t.count()) / 1e6; }

// Remarks that are whole graphs, of --print-after, stand by themselves.
bool is_text_form(const Remark& r) { return r.text.starts_with(fmt::format("rlx {}\n", text_version)); }

std::string plain(const Report& report) {
  std::string out = fmt::format("{:<22} {:>9} {:>9} {:>10}\n", "pass", "before", "after", "ms");
  for (const Report::Timing& t : report.timings) {
    out += fmt::format("{:<22} {:>9} {:>9} {:>10.2f}\n", t.pass, grouped(static_cast<Index>(t.nodes_before)),
                       grouped(static_cast<Index>(t.nodes_after)), milliseconds(t.time));
    for (const Remark& r : report.remarks) {
      if (r.pass == t.pass) out += is_text_form(r) ? r.text : "  " + r.text + "\n";
    }
  }
  for (const Remark& r : report.remarks) {
    if (r.pass.empty()) out += r.text + "\n";
  }
  return out;
}

std::string json(const Report& report, const Graph& g, bool graph) {
  std::string passes, remarks;
  for (const Report::Timing& t : report.timings) {
    passes +=
        fmt::format("{}\n{{\"name\":{},\"nodes_before\":{},\"nodes_after\":{},\"ms\":{}}}", passes.empty() ? "" : ",",
                    json_string(t.pass), t.nodes_before, t.nodes_after, json_number(milliseconds(t.time)));
  }
  for (const Remark& r : report.remarks) {
    remarks += fmt::format("{}\n{{\"pass\":{},\"text\":{}}}", remarks.empty() ? "" : ",", json_string(r.pass),
                           json_string(r.text));
  }
  return fmt::format("{{\"passes\":[{}],\"remarks\":[{}]{}}}\n", passes, remarks,
                     graph ? ",\"graph\":" + json_string(print(g)) : "");
}

void show(const PassesOptions& o) {
  const Graph g = read_model(o.path);
  const std::shared_ptr<Device> cpu = cpu_device();
  const DeviceInfo device{.name = cpu->info().name, .accepts = accepts_by(cpu->makers())};
  const CompileOptions options{.disabled = {o.disable.begin(), o.disable.end()},
                               .print_after = {o.print_after.begin(), o.print_after.end()},
                               .verify_numerics = o.verify_numerics};
  Report report;
  PassContext context{device, options, report};
  use_reference(context);
  const Graph result = run_passes(g, default_passes(), context);
  if (o.json) {
    print(json(report, result, o.graph));
  } else if (o.graph) {
    print(rlx::print(result));
  } else {
    print(plain(report));
  }
}

}  // namespace

void add_passes(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<PassesOptions>();
  CLI::App* c = app.add_subcommand("passes", "How a graph is prepared for the CPU, pass by pass.");
  c->add_option("path", o->path, "Model folder, .onnx file, or a graph in text form (.rlx); none: the list of passes");
  c->add_option("--disable", o->disable, "Leave out this pass; may be given several times");
  c->add_option("--print-after", o->print_after, "Print the graph after this pass; may be given several times");
  c->add_flag("--verify-numerics", o->verify_numerics,
              "Compare results before and after every pass on random inputs, and name the pass that changes them");
  c->add_flag("-g,--graph", o->graph, "Print the graph that comes out, in text form");
  c->add_flag("--json", o->json, "Print JSON");
  c->footer(
      "Examples:\n"
      "  rlx passes\n"
      "  rlx passes all-MiniLM-L6-v2\n"
      "  rlx passes graph.rlx --print-after fold-constants\n"
      "  rlx passes graph.rlx --disable absorb-layout --verify-numerics");
  c->callback([o, &run] { run = [o] { o->path.empty() ? list(*o) : show(*o); }; });
}

}  // namespace rlx::cli
