// The list of what an ONNX model has that rlx lacks, as a table and as JSON.
#include "cli/support.h"

#include <fmt/format.h>

#include "cli/cli.h"
#include "core/error.h"

namespace rlx::cli {

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string operator_text(const OnnxProblem& p) {
  if (p.op.empty()) return "(input)";
  const std::string version = p.version < 0 ? "no version" : std::to_string(p.version);
  return fmt::format("{}{}{} ({})", p.domain, p.domain.empty() ? "" : ".", p.op, version);
}

std::string listed(const Pairs& all, std::string_view between) {
  std::string out;
  for (const auto& [name, value] : all) {
    out += out.empty() ? "" : ", ";
    out += name.empty() ? value : fmt::format("{}{}{}", name, between, value);
  }
  return out;
}

std::string json_pairs(const Pairs& all, const char* value_name) {
  std::string out;
  for (const auto& [name, value] : all) {
    out += fmt::format("{}{{\"name\":{},\"{}\":{}}}", out.empty() ? "" : ",", json_string(name), value_name,
                       json_string(value));
  }
  return "[" + out + "]";
}

}  // namespace

Support support_of(const std::string& path) {
  Support s;
  OnnxOptions options;
  options.on_problem = [&](const OnnxProblem& p) { s.problems.push_back(p); };
  try {
    s.nodes = import_onnx(path, options).nodes.size();
  } catch (const Error& e) {
    s.error = e.what();
  }
  return s;
}

std::string support_table(const std::string& path, const Support& s) {
  if (s.error.empty())
    return fmt::format("{}: every node can be imported, as {} nodes\n", path, grouped(Index(s.nodes)));
  if (s.problems.empty()) return fmt::format("{}: no list, the file itself is not well formed\n", path);
  std::string out = fmt::format("{:<10} {:<36} {:<28} {}\n", "node", "operator (version)", "name", "why");
  for (const OnnxProblem& p : s.problems) {
    out += fmt::format("{:<10} {} {} {}\n", p.position.empty() ? "-" : p.position, fit(operator_text(p), 36),
                       fit(p.name.empty() && !p.results.empty() ? "-> " + p.results[0] : p.name, 28), p.why);
    if (!p.operands.empty()) out += fmt::format("{:<10}   operands    {}\n", "", listed(p.operands, ": "));
    if (!p.attributes.empty()) out += fmt::format("{:<10}   attributes  {}\n", "", listed(p.attributes, " = "));
  }
  return out;
}

std::string support_json(const std::string& path, const Support& s) {
  std::string problems;
  for (const OnnxProblem& p : s.problems) {
    std::string results;
    for (const std::string& r : p.results) results += (results.empty() ? "" : ",") + json_string(r);
    problems += fmt::format(
        "{}\n{{\"position\":{},\"name\":{},\"op\":{},\"domain\":{},\"version\":{},\"why\":{},\"operands\":{},"
        "\"attributes\":{},\"results\":[{}]}}",
        problems.empty() ? "" : ",", json_string(p.position), json_string(p.name), json_string(p.op),
        json_string(p.domain), p.version, json_string(p.why), json_pairs(p.operands, "type"),
        json_pairs(p.attributes, "value"), results);
  }
  return fmt::format("{{\"model\":{},\"supported\":{},\"nodes\":{},\"error\":{},\"problems\":[{}]}}\n",
                     json_string(path), s.error.empty(), s.nodes, json_string(s.error), problems);
}

}  // namespace rlx::cli
