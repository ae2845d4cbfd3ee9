// rlx info: what this build is and what it found on the machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <thread>

#include "cli/cli.h"
#include "cli/version.h"
#include "core/levels.h"
#include "ir/op_table.h"
#include "ir/print.h"

namespace rlx::cli {

namespace {

void info(bool json) {
  const std::size_t ops = OpRegistry().all().size();
  std::string levels, json_levels;
  for (const Level l : available_levels()) {
    levels += (levels.empty() ? "" : " ") + std::string(level_name(l));
    json_levels += (json_levels.empty() ? "" : ",") + json_string(level_name(l));
  }
  const unsigned threads = std::thread::hardware_concurrency();
  if (json) {
    print(
        fmt::format("{{\"version\":{},\"compiler\":{},\"build\":{},\"text_format\":{},\"level\":{},\"levels\":[{}],"
                    "\"threads\":{},\"ops\":{}}}\n",
                    json_string(version), json_string(RLX_COMPILER), json_string(RLX_BUILD_TYPE), text_version,
                    json_string(level_name(level())), json_levels, threads, ops));
    return;
  }
  print(
      fmt::format("rlx          {}\ncompiler     {}\nbuild        {}\ntext format  {}\nlevel        {} (of "
                  "{})\nthreads      {}\nops          {}\n",
                  version, RLX_COMPILER, RLX_BUILD_TYPE, text_version, level_name(level()), levels, threads, ops));
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
