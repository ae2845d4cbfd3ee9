// rlx ops: the ops that a graph can hold, with attributes and rules.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>

#include "cli/cli.h"
#include "core/error.h"
#include "ir/op_table.h"

namespace rlx::cli {

namespace {

struct OpsOptions {
  std::string name;
  bool json = false;
};

// Up to the first full stop behind which a new sentence begins.
std::string first_sentence(std::string_view doc) {
  for (std::size_t i = 0; i + 2 < doc.size(); ++i) {
    const bool begins = doc[i + 2] == '`' || std::isupper(static_cast<unsigned char>(doc[i + 2])) != 0;
    if (doc[i] == '.' && doc[i + 1] == ' ' && begins) return std::string(doc.substr(0, i + 1));
  }
  return std::string(doc);
}

// How reverse mode gets through the op.
std::string_view gradient_kind(const OpDef& op) {
  if (op.has_vjp()) return "rule";
  return op.has_definition() ? "definition" : "none";
}

std::string json_op(const OpDef& op) {
  std::string attributes;
  for (const AttrInfo& a : op.describe_attrs()) {
    attributes += fmt::format("{}{{\"name\":{},\"kind\":{},\"default\":{}}}", attributes.empty() ? "" : ",",
                              json_string(a.name), json_string(a.kind), json_string(a.standard));
  }
  return fmt::format(
      "{{\"name\":{},\"summary\":{},\"doc\":{},\"attributes\":[{}],\"elementwise\":{},\"commutative\":{},"
      "\"definition\":{},\"gradient\":{},\"reference\":{}}}",
      json_string(op.name()), json_string(first_sentence(op.doc())), json_string(op.doc()), attributes,
      (op.traits() & elementwise) != 0, (op.traits() & commutative) != 0, op.has_definition(),
      json_string(gradient_kind(op)), op.has_reference());
}

std::string json_list(std::span<const OpDef* const> ops) {
  std::string out = "{\"ops\":[";
  for (std::size_t i = 0; i < ops.size(); ++i) out += (i ? ",\n" : "\n") + json_op(*ops[i]);
  return out + "]}\n";
}

// The text in lines of at most 100 bytes, broken at blanks.
std::string wrapped(std::string_view text) {
  constexpr std::size_t width = 100;
  std::string out;
  while (text.size() > width) {
    const std::size_t blank = text.rfind(' ', width);
    const std::size_t end = blank == text.npos ? text.find(' ') : blank;
    if (end == text.npos) break;
    out += std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(end + 1);
  }
  return out + std::string(text) + "\n";
}

std::string plain_op(const OpDef& op) {
  std::string out = std::string(op.name()) + "\n" + wrapped(op.doc());
  for (const AttrInfo& a : op.describe_attrs()) {
    out += fmt::format("  {:<14} {}, {} unless given\n", a.name, a.kind, a.standard);
  }
  return out + fmt::format("definition {}, gradient {}, reference {}\n", op.has_definition() ? "yes" : "no",
                           gradient_kind(op), op.has_reference() ? "yes" : "no");
}

std::string plain_list(std::span<const OpDef* const> ops) {
  std::string out;
  for (const OpDef* op : ops) {
    out += fmt::format("{:<18} {}{}{}  {}", op->name(), op->has_definition() ? 'd' : '-', gradient_kind(*op)[0],
                       op->has_reference() ? 'r' : '-', fit(first_sentence(op->doc()), 96));
    out.resize(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out + fmt::format(
                   "{} ops. Marks: definition (d or -), gradient (r: rule, d: that of the definition, n: none), "
                   "reference (r or -). \"rlx ops NAME\" shows one in full.\n",
                   ops.size());
}

void list_ops(const OpsOptions& o) {
  const OpRegistry registry;
  std::vector<const OpDef*> ops = registry.all();
  if (!o.name.empty()) {
    const OpDef* op = registry.find(o.name);
    require(op != nullptr, "unknown op \"{}\": \"rlx ops\" lists them all", o.name);
    ops = {op};
  }
  if (o.json) {
    print(json_list(ops));
  } else {
    print(o.name.empty() ? plain_list(ops) : plain_op(*ops[0]));
  }
}

}  // namespace

void add_ops(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<OpsOptions>();
  CLI::App* c = app.add_subcommand("ops", "The ops that a graph can hold, with attributes and rules.");
  c->add_option("name", o->name, "Show only this op, in full");
  c->add_flag("--json", o->json, "Print JSON: names, documentation, attributes, rules");
  c->footer("Examples:\n  rlx ops\n  rlx ops log_sum_exp\n  rlx ops --json");
  c->callback([o, &run] { run = [o] { list_ops(*o); }; });
}

}  // namespace rlx::cli
