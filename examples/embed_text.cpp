// Loads a sentence embedding model and compares two sentences: embed_text MODEL_FOLDER.
#include <cstdio>
#include <exception>

#include "rlx/models.h"

int main(int argc, char** argv) try {
  const rlx::SentenceModel model = rlx::SentenceModel::load(argc > 1 ? argv[1] : "all-MiniLM-L6-v2");
  const std::vector<double> a = model.embed("A cat sits on the mat."), b = model.embed("A kitten rests on a rug.");
  double similarity = 0;
  for (std::size_t i = 0; i < a.size(); ++i) similarity += a[i] * b[i];  // this model's vectors have length 1
  std::printf("%zu numbers, similarity %.3f\n", a.size(), similarity);
} catch (const std::exception& e) {
  std::fprintf(stderr, "embed_text: %s\n", e.what());
  return 1;
}
