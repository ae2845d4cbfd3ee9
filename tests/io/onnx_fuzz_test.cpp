// The corpus that the fuzzer of ONNX models keeps, and fresh mutants of the models of the tests: each is refused by an
// Error or runs; nothing else leaves the import, the passes or the run.
#include <gtest/gtest.h>

#include <array>

#include "fuzz/onnx_mutator.h"
#include "fuzz/onnx_program.h"
#include "io/bounded.h"
#include "io/npy.h"
#include "io/zip.h"
#include "mutate.h"

namespace rlx::test {
namespace {

using fuzz::Outcome;
using Counts = std::array<int, 4>;

// Counts how far a model comes, or fails with what is no refusal.
void run_model(const std::string& text, Counts& counts, const std::string& what) {
  try {
    ++counts[static_cast<std::size_t>(fuzz::run_model(bytes_of(text), text.size()))];
  } catch (const std::exception& e) {
    ADD_FAILURE() << what << ": " << e.what();
  }
}

// Small models of tests/data/onnx/NAME.npz.
std::vector<std::string> models_of(const std::string& name) {
  std::vector<std::string> all;
  for (const auto& [entry, t] : read_npz(std::string(RLX_TEST_DATA) + "/onnx/" + name)) {
    const auto bytes = t.bytes();
    if (entry.ends_with("/model") && bytes.size() <= 3000)
      all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return all;
}

TEST(OnnxFuzz, KeptCorpusRunsOrIsRefused) {
  const std::string path = std::string(RLX_TEST_DATA) + "/fuzz/onnx_run.zip";
  const ZipReader zip(MappedFile(path, FileMode::read).bytes(), path);
  ASSERT_GT(zip.count(), 50);
  Counts counts{};
  for (Index i = 0; i < zip.count(); ++i) {
    const ZipEntry e = zip.entry(i);
    run_model(text_of(zip.content(e, 0, [](auto) {})), counts, std::string(e.name));
  }
  EXPECT_GT(counts[static_cast<std::size_t>(Outcome::ran)], 10);
}

TEST(OnnxFuzz, MutatorKeepsModelsWellFormed) {
  const std::vector<std::string> models = models_of("operators.npz");
  ASSERT_GT(models.size(), 100U);
  int same = 0, read = 0, changed = 0;
  for (std::size_t i = 0; i < 600; ++i) {
    const std::string& m = models[i % models.size()];
    const auto tree = fuzz::parse(m, fuzz::Kind::model);
    ASSERT_TRUE(tree.has_value());
    const std::string plain = fuzz::written(*tree);  // lists of numbers are not packed
    const auto again = fuzz::parse(plain, fuzz::Kind::model);
    same += again && fuzz::written(*again) == plain;
    const std::string mutant = fuzz::OnnxMutator(i)(m);
    changed += mutant != plain;
    try {
      onnx::read_model(bytes_of(mutant), "mutant");
      ++read;
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): counted
    }
  }
  EXPECT_EQ(same, 600);
  EXPECT_GT(changed, 550);
  EXPECT_GT(read, 550) << "most mutants are models still";
}

void run_mutants(std::size_t first, std::size_t count) {
  const std::vector<std::string> models = models_of("operators.npz"), others = models_of("control.npz");
  Counts counts{};
  for (std::size_t seed = first; seed < first + count; ++seed) {
    fuzz::OnnxMutator mutate(seed);
    std::string m = models[seed % models.size()];
    if (seed % 4 == 0) m = mutate.cross(m, others[seed % others.size()]);
    for (std::size_t i = 0; i <= seed % 3; ++i) m = mutate(m);
    run_model(m, counts, "seed " + std::to_string(seed));
  }
  count_mutants(static_cast<std::int64_t>(count));
  EXPECT_GT(counts[static_cast<std::size_t>(Outcome::ran)] * 10, static_cast<int>(count)) << "some still run";
}

TEST(OnnxFuzz, MutantsRunOrAreRefused) { run_mutants(1, 150); }
TEST(BulkOnnxFuzz, MutantsRunOrAreRefused) { run_mutants(10000, 6000); }

}  // namespace
}  // namespace rlx::test
