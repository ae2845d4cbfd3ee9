// Encoders against transformers: small models with random weights, from safetensors and GGUF, texts of two lengths.
#include "models/encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "io/safetensors.h"
#include "models/decoder_files.h"
#include "models/folder.h"

namespace rlx {
namespace {

const std::string data = std::string(RLX_TEST_DATA) + "/encoders";

// The largest difference of states at tokens from the reference's, over its largest state.
double error(const std::string& name, const EncoderConfig& config, const WeightSource& weights) {
  const SafetensorsFile answer(data + "/" + name + "/case.safetensors");
  const Graph g = encoder_graph(config, weights);
  const Tensor got = cpu_session().compile(g).run({{"ids", answer.at("ids")}, {"mask", answer.at("mask")}})[0];
  EXPECT_EQ(got.shape(), answer.at("states").shape());
  const std::vector<double> a = load<double>(got), b = load<double>(answer.at("states")),
                            mask = load<double>(answer.at("mask"));
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (mask[i / static_cast<std::size_t>(config.hidden)] == 0) continue;
    worst = std::max(worst, std::fabs(a[i] - b[i]));
    largest = std::max(largest, std::fabs(b[i]));
  }
  return worst / largest;
}

class Encoders : public testing::TestWithParam<std::string> {};

TEST_P(Encoders, SafetensorsEqualTransformers) {
  const std::string folder = data + "/" + GetParam();
  const auto weights = open_weights(folder);
  const double worst = error(GetParam(), EncoderConfig::from_json(read_json(folder, "config.json")), *weights);
  EXPECT_LE(worst, 1e-4);
  RecordProperty("error", fmt::format("{:.2e}", worst));
}

class GgufEncoders : public testing::TestWithParam<std::string> {};

TEST_P(GgufEncoders, GgufEqualsTransformers) {
  const std::string path = data + "/" + GetParam() + "/model.gguf";
  const GgufFile file(path);
  const GgufWeights weights(file);
  const double worst = error(GetParam(), EncoderConfig::from_gguf(gguf_fields(file), weights), weights);
  EXPECT_LE(worst, 1e-4);
  RecordProperty("error", fmt::format("{:.2e}", worst));
}

INSTANTIATE_TEST_SUITE_P(All, GgufEncoders, testing::Values("bert", "nomic_publisher"),
                         [](const auto& i) { return i.param; });
INSTANTIATE_TEST_SUITE_P(All, Encoders, testing::Values("bert", "nomic", "nomic_publisher"),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace rlx
