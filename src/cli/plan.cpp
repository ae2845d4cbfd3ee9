// The plan of a compiled model: table, JSON, picture.
#include "cli/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/cli.h"

namespace rlx::cli {

std::string plan_table(const RunReport& r) {
  std::string sizes;
  for (const auto& [name, value] : r.dims) sizes += fmt::format(" {}={}", name, value);
  std::string out = fmt::format("plan for {}{}\n{:>5} {:>12} {:>12} {:>14}  {:<24} {}\n", r.device, sizes, "step",
                                "read", "written", "operations", "kernel", "node");
  for (std::size_t s = 0; s < r.steps.size(); ++s) {
    const StepReport& step = r.steps[s];
    out += fmt::format("{:>5} {:>12} {:>12} {:>14}  {:<24} {}\n", s, grouped(step.bytes_read),
                       grouped(step.bytes_written), grouped(step.flops), step.kernel, step.node);
  }
  Index values = 0, bytes = 0, shared = 0;
  for (const BufferReport& b : r.buffers) {
    if (b.kind != "arena") continue;
    ++values;
    bytes += b.bytes;
    shared += b.shared;
  }
  out += fmt::format("arena      {} bytes for {} values of {} bytes, {} of them in place\n", grouped(r.arena_bytes),
                     grouped(values), grouped(bytes), grouped(shared));
  out +=
      fmt::format("constants  {} bytes as they are, {} packed\n", grouped(r.constant_bytes), grouped(r.packed_bytes));
  for (const std::string& remark : r.remarks) out += "note: " + remark + "\n";
  return out;
}

std::string plan_json(const RunReport& r) {
  std::string steps, buffers, sizes;
  for (const auto& [name, value] : r.dims)
    sizes += fmt::format("{}{}:{}", sizes.empty() ? "" : ",", json_string(name), value);
  for (const StepReport& s : r.steps) {
    steps += fmt::format(
        "{}\n{{\"kernel\":{},\"node\":{},\"items\":{},\"grain\":{},\"flops\":{},\"bytes_read\":{},\"bytes_written\":{},"
        "\"waits_for\":[{}]}}",
        steps.empty() ? "" : ",", json_string(s.kernel), json_string(s.node), s.items, s.grain, s.flops, s.bytes_read,
        s.bytes_written, fmt::join(s.waits_for, ","));
  }
  for (const BufferReport& b : r.buffers) {
    buffers += fmt::format(
        "{}\n{{\"value\":{},\"kind\":{},\"bytes\":{},\"offset\":{},\"begin\":{},\"end\":{},\"in_place\":{}}}",
        buffers.empty() ? "" : ",", json_string(b.value), json_string(b.kind), b.bytes, b.offset, b.begin, b.end,
        b.shared);
  }
  return fmt::format(
      "{{\"device\":{},\"sizes\":{{{}}},\"arena_bytes\":{},\"constant_bytes\":{},\"packed_bytes\":{},\"steps\":[{}],"
      "\"buffers\":[{}]}}\n",
      json_string(r.device), sizes, r.arena_bytes, r.constant_bytes, r.packed_bytes, steps, buffers);
}

static std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string memory_svg(const RunReport& r, const std::string& title) {
  constexpr double left = 70, top = 40, width = 900, height = 420;
  constexpr const char* colours[] = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#edc948"};
  const double steps = std::max<double>(1, static_cast<double>(r.steps.size()));
  const double bytes = std::max<double>(1, static_cast<double>(r.arena_bytes));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"24\" font-size=\"14\">{3}: {4} bytes, {5} steps</text>\n",
      left + width + 20, top + height + 50, left, escaped(title), grouped(r.arena_bytes), r.steps.size());
  for (int i = 0; i <= 4; ++i) {
    const double y = top + height * (1 - i / 4.0), x = left + width * i / 4.0;
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}h{2:.1f}\" stroke=\"#ddd\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5:.0f} KiB</text><text x=\"{6:.1f}\" y=\"{7:.1f}\" "
        "text-anchor=\"middle\">{8:.0f}</text>\n",
        left, y, width, left - 6, y + 4, bytes * i / 4.0 / 1024, x, top + height + 18, steps * i / 4.0);
  }
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">step</text>\n", left + width / 2,
                     top + height + 36);
  std::size_t number = 0;
  for (const BufferReport& b : r.buffers) {
    if (b.kind != "arena" || b.shared || b.bytes == 0) continue;
    const double x = left + width * b.begin / steps, w = width * (b.end + 1 - b.begin) / steps;
    const double h = height * static_cast<double>(b.bytes) / bytes;
    const double y = top + height * (1 - static_cast<double>(b.offset) / bytes) - h;
    const std::string kernel = b.begin < r.steps.size() ? r.steps[b.begin].kernel : "";
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" fill-opacity=\"0.75\" "
        "stroke=\"white\" stroke-width=\"0.5\"><title>{} ({}): {} bytes at {}, steps {} to {}</title></rect>\n",
        x, y, w, h, colours[number++ % std::size(colours)], escaped(b.value), escaped(kernel), grouped(b.bytes),
        grouped(b.offset), b.begin, b.end);
  }
  return out + "</svg>\n";
}

}  // namespace rlx::cli
