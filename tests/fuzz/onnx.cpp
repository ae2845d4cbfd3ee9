// Fuzzes the ONNX reader and importer: every message, every tensor, the graph that comes out.
#include "io/onnx/onnx.h"

#include "fuzz.h"
#include "io/onnx/tensors.h"
#include "ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  using namespace rlx;
  const Bytes file = fuzz::copy(data, size);
  fuzz::run([&] {
    const auto model = onnx::read_model(file, "fuzz");
    onnx::TensorLoader loader(*model, FileMode::map, false);
    for (const onnx::TensorProto& t : model->graph.initializers) fuzz::run([&] { fuzz::touch(loader.load(t)); });
  });
  return fuzz::run([&] { verify(import_onnx(file, "fuzz")); });
}
