// Logits of a language model for one sequence of tokens, for comparison with other programs.
// Usage: rlx_bench_logits MODEL IDS.npy OUT.npy [fast], with MODEL a GGUF file or a folder and IDS i32[T]; fast:
// activations in 8-bit blocks
#include <fmt/core.h>

#include <string_view>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "io/npy.h"
#include "models/decoder.h"
#include "models/decoder_files.h"

int main(int count, char** arguments) {
  using namespace rlx;
  try {
    const bool fast = count == 5 && std::string_view(arguments[4]) == "fast";
    require(count == 4 || fast, "usage: rlx_bench_logits MODEL IDS.npy OUT.npy [fast]");
    const DecoderFiles files = open_decoder(arguments[1]);
    const Tensor ids = read_npy(arguments[2]);
    const Graph graph = decoder_uncached(files.config, *files.weights, {.context = ids.count()});
    const Executable program = cpu_session().compile(graph, {.encode_activations = fast});
    write_npy(arguments[3], program.run({{"ids", ids}})[0]);
  } catch (const std::exception& e) {
    fmt::print(stderr, "rlx_bench_logits: {}\n", e.what());
    return 1;
  }
  return 0;
}
