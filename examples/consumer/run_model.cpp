// Loads what is given and runs it: run_model MODEL.onnx computes with inputs of ones, run_model FOLDER TEXT... gives
// the similarity of each text to the first.
#include <rlx/io.h>
#include <rlx/models.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

static void run_onnx(const std::string& path) {
  const rlx::Graph graph = rlx::import_onnx(path);
  const rlx::Executable model = rlx::cpu_session().compile(graph);
  rlx::NamedTensors inputs;
  for (const auto& port : model.interface().inputs) {
    std::vector<rlx::Index> shape;  // the smallest sizes that the model allows, but at least 2
    for (const rlx::Dim& d : port.type.dims)
      shape.push_back(std::min(std::max<rlx::Index>(d.bounds().lo, 2), d.bounds().hi));
    rlx::Tensor ones(port.type.dtype, shape);
    rlx::store(ones, std::vector<double>(static_cast<std::size_t>(ones.count()), 1.0));
    inputs[port.name] = ones;
  }
  for (const rlx::Tensor& y : model.run(inputs)) {
    const std::vector<double> values = rlx::load<double>(y);
    std::printf("%s", y.type().text().c_str());
    for (std::size_t i = 0; i < std::min<std::size_t>(values.size(), 4); ++i) std::printf(" %.5f", values[i]);
    std::printf("\n");
  }
}

static void compare_texts(const std::string& folder, std::vector<std::string> texts) {
  if (texts.empty()) texts = {"A cat sits on the mat.", "A kitten rests on a rug."};
  const rlx::SentenceModel model = rlx::SentenceModel::load(folder);
  const std::vector<std::vector<double>> rows = model.embed(texts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    double similarity = 0;
    for (std::size_t k = 0; k < rows[i].size(); ++k) similarity += rows[0][k] * rows[i][k];
    std::printf("%6.3f  %s\n", similarity, texts[i].c_str());
  }
}

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: run_model MODEL.onnx | run_model FOLDER [TEXT...]\n");
    return 2;
  }
  const std::string path = argv[1];
  if (path.ends_with(".onnx"))
    run_onnx(path);
  else
    compare_texts(path, {argv + 2, argv + argc});
} catch (const std::exception& e) {
  std::fprintf(stderr, "run_model: %s\n", e.what());
  return 1;
}
