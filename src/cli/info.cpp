// rlx info: what this build is and what it found on the machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "backend/cpu/cpu_device.h"
#include "backend/opencl/opencl.h"
#include "cli/cli.h"
#include "cli/version.h"
#include "core/child_process.h"
#include "core/levels.h"
#include "core/thread_pool.h"
#include "ir/op_table.h"
#include "ir/print.h"

namespace rlx::cli {

namespace {

// The processor's own name for itself.
std::string processor() {
  for (const std::string& line : read_lines("/proc/cpuinfo")) {
    if (line.starts_with("model name") && line.find(':') != std::string::npos)
      return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

// A line for each OpenCL device. A driver may end the process that asks it (PoCL does where /sys is not mounted), so a
// child asks.
std::vector<std::string> opencl_lines() {
  const ChildResult asked = run_in_child([] {
    std::string text;
    for (const DeviceProperties& d : opencl_devices()) text += fmt::format("{}: {}\n", d.name, d.description);
    return text;
  });
  if (!asked.died.empty()) return {fmt::format("an OpenCL driver ended the process that asked it: {}", asked.died)};
  std::vector<std::string> lines;
  std::istringstream text(asked.text);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

struct Facts {
  std::string cpu, levels, json_levels, devices, json_devices;
  int threads = usable_processors();
  std::size_t ops = 0, kernels = 0;
};

Facts facts() {
  Facts f{.cpu = processor()};
  for (const Level l : available_levels()) {
    f.levels += (f.levels.empty() ? "" : " ") + std::string(level_name(l));
    f.json_levels += (f.json_levels.empty() ? "" : ",") + json_string(level_name(l));
  }
  const auto device = cpu_device();
  for (const OpDef* op : OpRegistry().all()) {
    ++f.ops;
    f.kernels += !device->makers().find(op).empty();
  }
  for (const std::string& line : opencl_lines()) {
    f.devices += "\n             " + line;
    f.json_devices += (f.json_devices.empty() ? "" : ",") + json_string(line);
  }
  return f;
}

void info(bool json) {
  const Facts f = facts();
  if (json) {
    print(fmt::format(
        "{{\"version\":{},\"compiler\":{},\"build\":{},\"text_format\":{},\"processor\":{},\"level\":{},"
        "\"levels\":[{}],\"threads\":{},\"ops\":{},\"ops_with_kernels\":{},\"opencl\":[{}]}}\n",
        json_string(version), json_string(RLX_COMPILER), json_string(RLX_BUILD_TYPE), text_version, json_string(f.cpu),
        json_string(level_name(level())), f.json_levels, f.threads, f.ops, f.kernels, f.json_devices));
    return;
  }
  print(fmt::format(
      "rlx          {}\ncompiler     {}\nbuild        {}\ntext format  {}\nprocessor    {}\nlevel        {} (of {})\n"
      "threads      {}\nops          {}, {} with kernels of level {}, the others by their definition\nOpenCL       "
      "{}\n",
      version, RLX_COMPILER, RLX_BUILD_TYPE, text_version, f.cpu, level_name(level()), f.levels, f.threads, f.ops,
      f.kernels, level_name(level()), f.devices.empty() ? "no device" : f.devices.substr(14)));
}

}  // namespace

void add_info(CLI::App& app, std::function<void()>& run) {
  auto json = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand("info", "Version, build, and the instruction levels of this machine.");
  c->add_flag("--json", *json, "Print JSON, to head a bug report");
  c->footer("Example:\n  rlx info --json");
  c->callback([json, &run] { run = [json] { info(*json); }; });
}

}  // namespace rlx::cli
