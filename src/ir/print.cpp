// Printing the text form.
#include "ir/print.h"

#include <algorithm>

namespace rlx {

namespace {

bool is_label(std::string_view s) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !s.empty() && letter(s[0]) &&
         std::ranges::all_of(s, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

std::string name_text(std::string_view s) { return is_label(s) ? std::string(s) : quote(s); }

// The symbols of a graph and, by `outer`, of those around it.
struct Symbols {
  const DimSymbols& own;
  const Symbols* outer = nullptr;
};

bool declared(const Symbols* s, const std::string& name) {
  for (; s; s = s->outer) {
    if (s->own.contains(name)) return true;
  }
  return false;
}

class Printer {
 public:
  Printer(std::string& out, ConstantSink* sink) : out_(out), sink_(sink) {}

  void graph(const Graph& g, const Symbols* outer, const std::string& pad) {
    const std::vector<std::string> names = node_names(g);
    const Symbols symbols{g.symbols, outer};
    header(g, outer, pad, names);
    for (Id i = 0; i < g.nodes.size(); ++i) {
      if (!is_input(g.nodes[i])) node(g, i, symbols, pad + "  ", names);
    }
    for (const Check& c : g.checks) {
      out_ += pad + "  check " + c.left.text() + " = " + c.right.text() + " " + quote(c.why) + "\n";
    }
    for (const StatePair& s : g.states) {
      out_ += pad + "  state " + name_text(s.name) + ": " + reference(g, s.input, names) + " -> " +
              reference(g, s.output, names) + "\n";
    }
    out_ += pad + "  return";
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      out_ += (i ? ", " : " ") + reference(g, g.outputs[i], names);
      if (!g.output_names[i].empty()) out_ += " " + quote(g.output_names[i]);
    }
    out_ += "\n" + pad + "}";
    labels(g, names);
  }

 private:
  static std::vector<std::string> node_names(const Graph& g) {
    std::vector<std::string> names(g.nodes.size());
    for (std::size_t i = 0; i < g.inputs.size(); ++i) names[g.inputs[i]] = "%" + name_text(g.input_names[i]);
    std::size_t next = 0;
    for (Id i = 0; i < g.nodes.size(); ++i) {
      if (!is_input(g.nodes[i])) names[i] = "%" + std::to_string(next++);
    }
    return names;
  }

  static std::string reference(const Graph& g, Operand o, const std::vector<std::string>& names) {
    return g.nodes[o.node].results.size() == 1 ? names[o.node] : names[o.node] + "#" + std::to_string(o.result);
  }

  void header(const Graph& g, const Symbols* outer, const std::string& pad, const std::vector<std::string>& names) {
    out_ += "graph(";
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      const Id id = g.inputs[i];
      out_ += (i ? ", " : "") + names[id] + ": " + g.nodes[id].results[0].text();
    }
    out_ += ")";
    std::string symbols;
    for (const auto& [name, b] : g.symbols) {
      if (declared(outer, name)) continue;
      symbols += (symbols.empty() ? "" : ", ") + name + ": " + std::to_string(b.lo) + ".." + std::to_string(b.hi);
    }
    if (!symbols.empty()) out_ += "\n" + pad + "  dims(" + symbols + ")";
    out_ += " {\n";
  }

  void node(const Graph& g, Id id, const Symbols& symbols, const std::string& pad,
            const std::vector<std::string>& names) {
    const Node& n = g.nodes[id];
    out_ += pad + names[id] + " = ";
    out_ += n.op->name();
    for (std::size_t i = 0; i < n.operands.size(); ++i) out_ += (i ? ", " : " ") + reference(g, n.operands[i], names);
    if (const std::string a = n.attrs.print(sink_); !a.empty()) out_ += " {" + a + "}";
    if (n.instance) out_ += " !" + std::to_string(n.instance);
    out_ += " :";
    for (std::size_t i = 0; i < n.results.size(); ++i) out_ += (i ? ", " : " ") + n.results[i].text();
    for (std::size_t i = 0; i < n.bodies.size(); ++i) {
      out_ += i ? ", " : " = ";
      graph(*n.bodies[i], &symbols, pad);
    }
    out_ += "\n";
  }

  void labels(const Graph& g, const std::vector<std::string>& names) {
    if (g.labels.empty()) return;
    out_ += " names(";
    for (std::size_t i = 0; i < g.labels.size(); ++i) {
      out_ += (i ? ", " : "") + reference(g, g.labels[i].at, names) + ": " + quote(g.labels[i].text);
    }
    out_ += ")";
  }

  std::string& out_;
  ConstantSink* sink_;
};

}  // namespace

std::string print(const Graph& g, ConstantSink* sink) {
  std::string out = "rlx " + std::to_string(text_version) + "\n";
  Printer(out, sink).graph(g, nullptr, "");
  return out + "\n";
}

}  // namespace rlx
