// The page of rlx inspect --html: drawing, table and memory picture.
#include "cli/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "cli/cli.h"
#include "cli/layout.h"
#include "cli/page_assets.h"
#include "cli/plan.h"
#include "ir/op.h"
#include "ir/outline.h"
#include "ir/print.h"
#include "ops/constant/constant.h"

namespace rlx::cli {

namespace {

constexpr double character = 7.3, line_height = 16;
constexpr std::size_t longest_line = 42, most_drawn = 6000;

struct Family {
  const char *name, *colour;
};
constexpr Family families[] = {{"input", "#e9edf1"},       {"product, convolution", "#bcd6f5"},
                               {"attention", "#d9c8f0"},   {"norm, softmax, reduction", "#bfe5cf"},
                               {"elementwise", "#fbe0b5"}, {"moves data", "#dfe3e8"},
                               {"control", "#f6c6c6"}};

std::size_t family_of_op(std::string_view op, bool is_elementwise) {
  const auto has = [&](std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(parts, [&](std::string_view p) { return op.find(p) != op.npos; });
  };
  if (has({"matmul", "conv"})) return 1;
  if (has({"attention"})) return 2;
  if (has({"norm", "softmax", "reduce", "log_sum_exp", "pool", "cumulative", "quantize_rows"})) return 3;
  if (op == "if" || op == "while" || op == "scan" || op == "call") return 6;
  return is_elementwise || op == "cast" || has({"quantize"}) ? 4 : 5;
}

// A fused region belongs to the weightiest of its ops.
std::size_t family_of(const Node& n) {
  if (is_input(n)) return 0;
  if (n.op != &fusion_op() || n.bodies.empty()) return family_of_op(n.op->name(), (n.op->traits() & elementwise) != 0);
  std::size_t best = 5;
  for (const Node& inner : n.bodies[0]->nodes) {
    if (is_input(inner) || inner.op == &constant_op) continue;
    const std::size_t f = family_of(inner);
    if (f < best) best = f;
  }
  return best;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return out;
}

// A JSON string that may stand inside of a script.
std::string script_string(std::string_view text) {
  std::string out;
  for (const char c : json_string(text)) out += c == '<' ? "\\u003c" : std::string(1, c);
  return out;
}

std::string cut(std::string text, std::size_t width = longest_line) {
  if (text.size() <= width) return text;
  std::size_t at = width - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;  // not inside of a character
  return text.substr(0, at) + "\u2026";
}

std::string duration(double seconds) {
  return seconds >= 1e-3 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.1f} \u00b5s", seconds * 1e6);
}

std::string size_text(Index bytes) {
  const auto b = static_cast<double>(bytes);
  if (bytes < 10240) return fmt::format("{} B", bytes);
  return bytes < 10 << 20 ? fmt::format("{:.1f} KiB", b / 1024) : fmt::format("{:.1f} MiB", b / 1048576);
}

// Ops of a region, repeated ones counted: `matmul + add + gelu`.
std::string region_text(const Graph& body) {
  std::vector<std::pair<std::string, int>> ops;
  for (const Node& n : body.nodes) {
    if (is_input(n) || n.op == &constant_op || n.op->name() == "broadcast") continue;
    const std::string name(n.op->name());
    const auto it = std::ranges::find(ops, name, &std::pair<std::string, int>::first);
    if (it == ops.end()) {
      ops.emplace_back(name, 1);
    } else {
      ++it->second;
    }
  }
  std::string out;
  for (const auto& [name, count] : ops)
    out += fmt::format("{}{}{}", out.empty() ? "" : " + ", name, count > 1 ? fmt::format(" \u00d7{}", count) : "");
  return out;
}

class Page {
 public:
  explicit Page(const PageContent& c) : c_(c), g_(c.lowered) {
    for (std::size_t i = 0; i < c.report.steps.size(); ++i) step_of_text_.emplace(c.report.steps[i].node, i);
    for (const Label& l : g_.labels) labels_.emplace(l.at.node, l.text);
    for (const double s : c.seconds) total_ += s;
    for (const double s : c.seconds) most_ = std::max(most_, s);
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      if (g_.nodes[i].op == &constant_op || (is_input(g_.nodes[i]) && g_.users(i).empty())) continue;
      drawn_.emplace(i, ids_.size());
      ids_.push_back(i);
    }
  }

  std::string html() {
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
        "charset=\"utf-8\">\n<title>{0}</title>\n<style>{1}</style>\n"
        "</head>\n<body>\n<header><h1>{0}</h1><div class=\"facts\">{2}</div>\n<nav><button data-tab=\"graph\" "
        "class=\"on\">Graph</button><button data-tab=\"steps\">Steps</button><button "
        "data-tab=\"memory\">Memory</button>"
        "</nav></header>\n<main id=\"graph\" class=\"on\"><div id=\"canvas\">{3}</div>\n<div class=\"tools\"><button "
        "id=\"fit\">whole</button><button id=\"one\">readable</button><input id=\"find\" placeholder=\"find an op, a "
        "name, a type\"></div>\n<div class=\"legend\">{4}</div>\n<div id=\"side\">{5}</div></main>\n<main id=\"steps\">"
        "<div class=\"sheet\">{6}</div></main>\n<main id=\"memory\"><div class=\"sheet\">{7}</div></main>\n"
        "<script>const model = {{nodes: {{{8}}}}};\n{9}</script>\n</body>\n</html>\n",
        escaped(c_.title), page_style, facts(), drawing(), legend(), opening(), steps(), memory(), nodes(),
        page_script);
  }

 private:
  const StepReport* step(Id id, std::size_t* number = nullptr) const {
    const auto it = step_of_text_.find(describe(g_, id));
    if (it == step_of_text_.end()) return nullptr;
    if (number) *number = it->second;
    return &c_.report.steps[it->second];
  }

  std::string name_of(Id id) const {
    const auto input = std::ranges::find(g_.inputs, id);
    if (input != g_.inputs.end()) return g_.input_names[static_cast<std::size_t>(input - g_.inputs.begin())];
    const auto it = labels_.find(id);
    return it == labels_.end() ? "" : it->second;
  }

  std::string head(Id id) const {
    const Node& n = g_.nodes[id];
    if (is_input(n)) return "input " + name_of(id);
    if (n.op == &fusion_op() && !n.bodies.empty()) return region_text(*n.bodies[0]);
    return std::string(n.op->name());
  }

  double share(Id id) const {
    std::size_t number = 0;
    return total_ > 0 && step(id, &number) ? c_.seconds[number] / total_ : 0;
  }

  std::vector<std::string> lines(Id id) const {
    const Node& n = g_.nodes[id];
    std::vector<std::string> all{cut(head(id)), cut(n.results[0].text())};
    const StepReport* s = step(id);
    std::size_t number = 0;
    if (s && total_ > 0) {
      step(id, &number);
      all.push_back(cut(fmt::format("{}  {}  {:.1f} %", s->kernel, duration(c_.seconds[number]), 100 * share(id))));
    } else if (s && s->kernel != n.op->name()) {
      all.push_back(cut(s->kernel));
    }
    for (std::size_t i = 0; i < g_.outputs.size(); ++i) {
      if (g_.outputs[i].node == id)
        all.push_back(cut("\u2192 output " + (g_.output_names[i].empty() ? std::to_string(i) : g_.output_names[i])));
    }
    return all;
  }

  std::string drawing() const {
    if (ids_.size() > most_drawn)
      return fmt::format(
          "<div class=\"empty\">{} nodes are too many to draw; see the steps.</div><svg viewBox=\"0 0 1 "
          "1\"></svg>",
          ids_.size());
    std::vector<Box> boxes;
    std::vector<Arrow> arrows;
    std::vector<std::vector<std::string>> texts;
    for (const Id id : ids_) {
      const auto& all = texts.emplace_back(lines(id));
      std::size_t widest = 0;
      for (const std::string& l : all) widest = std::max(widest, fit_width(l));
      const double bar = total_ > 0 ? 6 : 0;
      boxes.push_back(
          {static_cast<double>(widest) * character + 20, static_cast<double>(all.size()) * line_height + 12 + bar});
      std::set<std::size_t> from;
      for (const Operand o : g_.nodes[id].operands) {
        const auto it = drawn_.find(o.node);
        if (it != drawn_.end() && from.insert(it->second).second) arrows.push_back({it->second, drawn_.at(id)});
      }
    }
    const Drawing d = layered(boxes, arrows);
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" preserveAspectRatio=\"xMidYMin "
        "meet\"><defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" "
        "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#7d8894\"/></marker></defs>\n",
        d.width, d.height);
    for (std::size_t i = 0; i < arrows.size(); ++i) out += arrow(arrows[i], d.routes[i]);
    for (std::size_t i = 0; i < ids_.size(); ++i) out += box(ids_[i], boxes[i], d.centres[i], texts[i]);
    return out + "</svg>";
  }

  // Characters, not bytes.
  static std::size_t fit_width(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  }

  std::string arrow(const Arrow& a, const std::vector<Point>& route) const {
    std::string path = fmt::format("M{:.1f} {:.1f}", route[0].x, route[0].y);
    for (std::size_t i = 1; i < route.size(); ++i) {
      const Point &p = route[i - 1], &q = route[i];
      const double half = (p.y + q.y) / 2;
      path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", p.x, half, q.x, half, q.x, q.y);
    }
    return fmt::format("<path class=\"arrow\" data-from=\"{}\" data-to=\"{}\" d=\"{}\" marker-end=\"url(#tip)\"/>\n",
                       ids_[a.from], ids_[a.to], path);
  }

  std::string box(Id id, const Box& b, Point at, const std::vector<std::string>& texts) const {
    const Node& n = g_.nodes[id];
    const double x = at.x - b.width / 2, y = at.y - b.height / 2;
    const bool region = n.op == &fusion_op();
    std::string out = fmt::format(
        "<g class=\"box\" id=\"b{}\"><title>{}</title><rect class=\"body\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" rx=\"{}\" fill=\"{}\" stroke=\"#7d8894\" stroke-width=\"{}\"/>",
        id, escaped(describe(g_, id)), x, y, b.width, b.height, is_input(n) ? 14 : 5, families[family_of(n)].colour,
        region ? "1.6" : "0.8");
    if (region)  // a second edge: a group of ops
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"none\" "
          "stroke=\"#7d8894\" "
          "stroke-width=\"0.6\"/>",
          x + 3, y + 3, b.width - 6, b.height - 6);
    if (const double part = most_ > 0 ? share(id) * total_ / most_ : 0; part > 0.005)
      out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"4\" fill=\"#e8743b\"/>", x + 5,
                         y + b.height - 6, (b.width - 10) * part);
    for (std::size_t i = 0; i < texts.size(); ++i)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\"{}>{}</text>", at.x,
                         y + 17 + static_cast<double>(i) * line_height,
                         i == 0 ? " font-weight=\"600\"" : " class=\"type\"", escaped(texts[i]));
    return out + "</g>\n";
  }

  static std::string legend() {
    std::string out;
    for (const Family& f : families)
      out += fmt::format("<span><i style=\"background:{};border:1px solid #7d8894\"></i>{}</span>", f.colour, f.name);
    return out;
  }

  std::string facts() const {
    std::size_t fused = 0, weights = 0;
    for (const Node& n : g_.nodes) {
      fused += n.op == &fusion_op();
      weights += n.op == &constant_op;
    }
    std::string out =
        fmt::format("<b>{}</b> nodes as read, <b>{}</b> as run and <b>{}</b> constants; <b>{}</b> fused groups",
                    grouped(Index(c_.source.nodes.size())), grouped(Index(g_.nodes.size() - weights)),
                    grouped(Index(weights)), fused);
    if (!c_.report.steps.empty()) {
      out += fmt::format("; <b>{}</b> steps, arena <b>{}</b>, constants <b>{}</b>, packed <b>{}</b>",
                         c_.report.steps.size(), size_text(c_.report.arena_bytes), size_text(c_.report.constant_bytes),
                         size_text(c_.report.packed_bytes));
    }
    if (total_ > 0)
      out += fmt::format("; <b>{}</b> a run on {} thread{}", duration(total_), c_.threads, c_.threads == 1 ? "" : "s");
    std::string sizes;
    for (const auto& [name, value] : c_.report.dims) sizes += fmt::format(" {}={}", name, value);
    if (!sizes.empty()) out += "; sizes" + escaped(sizes);
    return out;
  }

  std::string opening() const {
    std::string out =
        "<h2>Click a box</h2><p>Drag to move, turn the wheel to zoom. Boxes with a double edge are fused "
        "groups. Constants are not drawn.</p>";
    if (!c_.no_report.empty()) out += "<p>" + escaped(c_.no_report) + "</p>";
    for (const std::string& note : c_.notes) out += "<p>" + escaped(note) + "</p>";
    return out;
  }

  std::string nodes() const {
    std::string out;
    for (const Id id : ids_) {
      std::string list;
      const auto fact = [&](std::string_view key, const std::string& value) {
        if (!value.empty()) list += fmt::format("[{},{}],", script_string(key), script_string(value));
      };
      node_facts(id, fact);
      std::string texts;
      for (const GraphPtr& body : g_.nodes[id].bodies)
        texts += fmt::format("[\"body\",{}],", script_string(print(*body).substr(0, 6000)));
      out += fmt::format("{}: {{head: {}, facts: [{}], texts: [{}]}},\n", id, script_string(head(id)), list, texts);
    }
    return out;
  }

  template <class Fact>
  void node_facts(Id id, const Fact& fact) const {
    const Node& n = g_.nodes[id];
    fact("node", fmt::format("%{}", id));
    fact("op", is_input(n) ? "input" : std::string(n.op->name()));
    fact("name", name_of(id));
    fact("attributes", is_input(n) ? "" : n.attrs.print());
    Index weights = 0;
    for (const Operand o : n.operands) {
      const bool constant = g_.nodes[o.node].op == &constant_op;
      if (constant) {
        const Tensor& data = g_.nodes[o.node].attrs.as<ConstantAttrs>().data;
        for (std::size_t p = 0; p < data.type().plane_count(); ++p) weights += static_cast<Index>(data.bytes(p).size());
      }
      fact(constant ? "constant" : "reads",
           fmt::format("{}{}", constant ? "" : fmt::format("%{} ", o.node), g_.type(o).text()));
    }
    for (const TensorType& t : n.results) fact("makes", t.text());
    if (weights > 0) fact("weights", size_text(weights));
    std::size_t number = 0;
    const StepReport* s = step(id, &number);
    if (!s) return;
    fact("kernel", s->kernel);
    fact("step", std::to_string(number));
    if (total_ > 0) fact("time", fmt::format("{}, {:.1f} %", duration(c_.seconds[number]), 100 * share(id)));
    if (s->flops > 0) fact("operations", grouped(s->flops));
    if (s->flops > 0 && total_ > 0 && c_.seconds[number] > 0)
      fact("speed", fmt::format("{:.1f} GFLOP/s", static_cast<double>(s->flops) / c_.seconds[number] / 1e9));
    fact("read", size_text(s->bytes_read));
    fact("written", size_text(s->bytes_written));
    for (const std::string& why : s->declined) fact("not used", why);
  }

  std::string steps() const {
    if (c_.report.steps.empty()) return "<div class=\"empty\">" + escaped(c_.no_report) + "</div>";
    std::unordered_map<std::string, Id> id_of;
    for (const Id id : ids_) id_of.emplace(describe(g_, id), id);
    std::string out = fmt::format(
        "<p>Double-click a row to see its node in the graph; click a head to sort.</p><table><thead><tr><th "
        "class=\"n\">step</th>{}<th>kernel</th><th class=\"n\">operations</th><th class=\"n\">read</th><th "
        "class=\"n\">written</th><th>node</th></tr></thead><tbody>\n",
        total_ > 0 ? "<th class=\"n\">time</th><th class=\"n\">share</th>" : "");
    for (std::size_t i = 0; i < c_.report.steps.size(); ++i) {
      const StepReport& s = c_.report.steps[i];
      const auto it = id_of.find(s.node);
      out += fmt::format("<tr{}><td class=\"n\">{}</td>",
                         it == id_of.end() ? "" : fmt::format(" data-node=\"{}\"", it->second), i);
      if (total_ > 0) {
        const double t = c_.seconds[i];
        out += fmt::format(
            "<td class=\"n\" data-v=\"{:.9f}\">{}</td><td class=\"n\" data-v=\"{:.9f}\">{:.1f} % <span class=\"bar\" "
            "style=\"width:{:.0f}px\"></span></td>",
            t, duration(t), t, 100 * t / total_, 80 * t / most_);
      }
      out += fmt::format(
          "<td>{}</td><td class=\"n\" data-v=\"{}\">{}</td><td class=\"n\" data-v=\"{}\">{}</td><td class=\"n\" "
          "data-v=\"{}\">{}</td><td class=\"node\">{}</td></tr>\n",
          escaped(s.kernel), s.flops, grouped(s.flops), s.bytes_read, size_text(s.bytes_read), s.bytes_written,
          size_text(s.bytes_written), escaped(s.node));
    }
    return out + "</tbody></table>";
  }

  std::string memory() const {
    if (c_.report.steps.empty()) return "<div class=\"empty\">" + escaped(c_.no_report) + "</div>";
    return "<p>One column a step; every value in the arena is a box over the steps that touch it, at its place in "
           "memory. "
           "Point at one to see what it is.</p>" +
           memory_svg(c_.report, "Arena");
  }

  const PageContent& c_;
  const Graph& g_;
  std::unordered_map<std::string, std::size_t> step_of_text_;
  std::unordered_map<Id, std::string> labels_;
  std::vector<Id> ids_;
  std::unordered_map<Id, std::size_t> drawn_;
  double total_ = 0, most_ = 0;
};

}  // namespace

std::string page(const PageContent& content) { return Page(content).html(); }

}  // namespace rlx::cli
