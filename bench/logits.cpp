// Logits of a language model for one sequence of tokens, for comparison with other programs.
// Usage: rlx_bench_logits MODEL IDS.npy OUT.npy, with MODEL a GGUF file or a folder and IDS i32[T]
#include <fmt/core.h>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "io/npy.h"
#include "models/decoder.h"
#include "models/decoder_files.h"

int main(int count, char** arguments) {
  using namespace rlx;
  try {
    require(count == 4, "usage: rlx_bench_logits MODEL IDS.npy OUT.npy");
    const DecoderFiles files = open_decoder(arguments[1]);
    const Tensor ids = read_npy(arguments[2]);
    const Graph graph = decoder_uncached(files.config, *files.weights, {.context = ids.count()});
    write_npy(arguments[3], cpu_session().compile(graph).run({{"ids", ids}})[0]);
  } catch (const std::exception& e) {
    fmt::print(stderr, "rlx_bench_logits: {}\n", e.what());
    return 1;
  }
  return 0;
}
