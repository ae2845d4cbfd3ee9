// The program `rlx`: commands, errors and exit codes.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "cli/cli.h"
#include "cli/version.h"
#include "core/error.h"

namespace {

int report(const char* kind, const char* text, int code) {
  std::fprintf(stderr, "rlx: %s%s\n", kind, text);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rlx;
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"rlx runs machine-learning models from their own files.", "rlx"};
  app.set_version_flag("--version", std::string("rlx ") + cli::version);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  rlx embed MODEL_DIR texts.txt --similarity\n"
      "  echo 'a line of text' | rlx embed MODEL_DIR --json\n"
      "  rlx run model.onnx --input x=x.npy\n"
      "  rlx check model.onnx\n"
      "  rlx bench MODEL_DIR --dim S=128\n"
      "  rlx chat model.gguf\n"
      "  rlx generate model.gguf --prompt 'Once upon a time'\n"
      "  rlx bench-llm model.gguf\n"
      "  rlx inspect MODEL_DIR\n"
      "  rlx ops softmax\n"
      "  rlx info --json\n"
      "\nExit codes: 0 success, 1 bad input, 2 bad usage, 3 device failure, 70 internal error.");
  std::function<void()> run;
  cli::add_embed(app, run);
  cli::add_run(app, run);
  cli::add_check(app, run);
  cli::add_bench(app, run);
  cli::add_chat(app, run);
  cli::add_generate(app, run);
  cli::add_perplexity(app, run);
  cli::add_bench_llm(app, run);
  cli::add_inspect(app, run);
  cli::add_quantize(app, run);
  cli::add_info(app, run);
  cli::add_ops(app, run);
  cli::add_passes(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? cli::success : cli::bad_usage;
  }
  try {
    run();
    return cli::success;
  } catch (const Error& e) {
    return report("", e.what(), cli::bad_input);
  } catch (const DeviceError& e) {
    return report("device: ", e.what(), cli::device);
  } catch (const std::bad_alloc&) {
    return report("", "out of memory", cli::bad_input);
  } catch (const std::exception& e) {
    return report("", e.what(), cli::internal);
  }
}
