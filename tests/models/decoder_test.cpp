// Decoders of every architecture against transformers: small models with random weights, from safetensors.
#include "models/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "generate/paged_decoder.h"
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

std::vector<std::string> cases(const char* with = "") {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    if (entry.is_directory() && std::filesystem::exists(entry.path() / with))
      names.push_back(entry.path().filename().string());
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

// The cases of which the format can say all.
class GgufDecoders : public Decoders {};

TEST_P(GgufDecoders, GgufEqualsTransformers) {
  const double worst = error(folder() + "/model.gguf");
  EXPECT_LE(worst, 1e-4);
  RecordProperty("error", fmt::format("{:.2e}", worst));
}

// Logits of all tokens of a sequence, which is run in chunks of this many tokens.
std::vector<float> chunked(PagedDecoder& d, std::span<const std::int32_t> ids, std::size_t chunk) {
  const Index s = d.open();
  std::vector<float> all;
  while (!ids.empty()) {
    const auto part = ids.first(std::min(chunk, ids.size()));
    const RunPart run{s, part, static_cast<Index>(part.size())};
    const std::span<const float> logits = d.run(std::span(&run, 1));
    all.insert(all.end(), logits.begin(), logits.end());
    ids = ids.subspan(part.size());
  }
  d.close(s);
  return all;
}

TEST_P(Decoders, PagedEqualTransformersInAnyChunks) {
  const DecoderFiles files = open_decoder(folder());
  const SafetensorsFile answer(folder() + "/case.safetensors");
  const Tensor ids = answer.at("ids");
  std::vector<std::int32_t> tokens;
  for (const Index id : load<Index>(ids)) tokens.push_back(static_cast<std::int32_t>(id));
  const Graph g = decoder(files.config, *files.weights, {.context = ids.count(), .page = 4});
  PagedDecoder d(cpu_session(), g, {.context = 64, .pages = 40, .reuse = false});
  const std::vector<float> want = chunked(d, tokens, tokens.size());
  const Tensor got = Tensor::of<double>(DType::f32, answer.at("logits").shape(), {want.begin(), want.end()});
  const double worst = relative_error(got, answer.at("logits"));
  EXPECT_LE(worst, 1e-4);
  RecordProperty("error", fmt::format("{:.2e}", worst));
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}, std::size_t{16}})
    EXPECT_EQ(chunked(d, tokens, chunk), want) << "chunks of " << chunk;
  // Two sequences in one run, of which one has begun before.
  const Index a = d.open(), b = d.open();
  const RunPart first{a, std::span(tokens).first(7), 7};
  d.run(std::span(&first, 1));
  const std::vector<RunPart> both{{b, std::span(tokens).first(11), 11}, {a, std::span(tokens).subspan(7, 4), 4}};
  const std::span<const float> logits = d.run(both);
  const std::size_t v = want.size() / tokens.size();
  EXPECT_TRUE(std::equal(logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(11 * v), want.begin()));
  EXPECT_TRUE(std::equal(logits.begin() + static_cast<std::ptrdiff_t>(11 * v), logits.end(),
                         want.begin() + static_cast<std::ptrdiff_t>(7 * v)));
}

// Keys and values are written where they lie: no step copies a pool.
TEST(DecoderStates, AreUpdatedInPlace) {
  for (const DType cache : {DType::f32, DType::f16, DType::bf16}) {
    const DecoderFiles files = open_decoder(data + "/llama");
    const Graph g = decoder(files.config, *files.weights, {.page = 4, .cache = cache});
    const Executable exe = cpu_session().compile(g);
    const RunReport report = exe.report({{"T", 3}, {"B", 2}, {"P", 4}, {"R", 2}, {"S", 4096}});
    const Index pool = 4096 * files.config.key_size() * bits(cache) / 8;
    Index scatters = 0;
    for (const StepReport& s : report.steps) {
      scatters += s.kernel == "scatter_rows" ? 1 : 0;
      EXPECT_TRUE(s.kernel.find("copy") == std::string::npos || s.bytes_written < pool) << s.kernel << " " << s.node;
    }
    EXPECT_EQ(scatters, 2 * files.config.layers);
    EXPECT_LT(report.arena_bytes, pool);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufDecoders, testing::ValuesIn(cases("model.gguf")),
                         [](const auto& i) { return i.param; });
INSTANTIATE_TEST_SUITE_P(All, Decoders, testing::ValuesIn(cases()), [](const auto& i) { return i.param; });

}  // namespace
}  // namespace rlx
