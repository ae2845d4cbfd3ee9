// Decoders of every architecture against transformers: small models with random weights, from safetensors.
#include "models/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "io/safetensors.h"
#include "models/decoder_files.h"

namespace rlx {
namespace {

const std::string data = std::string(RLX_TEST_DATA) + "/decoders";

double relative_error(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = load<double>(got), b = load<double>(want);
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    worst = std::max(worst, std::fabs(a[i] - b[i]));
    largest = std::max(largest, std::fabs(b[i]));
  }
  return worst / largest;
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

class Decoders : public testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return data + "/" + GetParam(); }

  // The largest difference of logits from the reference's, over its largest logit.
  double error(const std::string& path) const {
    const DecoderFiles files = open_decoder(path);
    const SafetensorsFile answer(folder() + "/case.safetensors");
    const Tensor ids = answer.at("ids");
    const Graph g = decoder_uncached(files.config, *files.weights, {.context = ids.count()});
    const Tensor got = cpu_session().compile(g).run({{"ids", ids}})[0];
    EXPECT_EQ(got.shape(), answer.at("logits").shape());
    return relative_error(got, answer.at("logits"));
  }
};

TEST_P(Decoders, SafetensorsEqualTransformers) {
  const double worst = error(folder());
  EXPECT_LE(worst, 1e-4);
  RecordProperty("error", fmt::format("{:.2e}", worst));
}

TEST_P(Decoders, GgufEqualsTransformers) {
  const std::string file = folder() + "/model.gguf";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "the format cannot say all of this model";
  const double worst = error(file);
  EXPECT_LE(worst, 1e-4);
  RecordProperty("error", fmt::format("{:.2e}", worst));
}

INSTANTIATE_TEST_SUITE_P(All, Decoders, testing::ValuesIn(cases()), [](const auto& i) { return i.param; });

}  // namespace
}  // namespace rlx
