// A small encoder in the sentence-transformers layout, made by the test, and its forward pass written as plain loops.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace rlx::test {

struct TinyModel {
  std::string folder;
  std::string type = "bert";  // or distilbert
  Index vocab = 11, hidden = 6, layers = 2, heads = 3, intermediate = 10, positions = 9;
  std::map<std::string, Tensor> weights;

  /// Makes the folder and all files; `prefix` goes before every weight name.
  TinyModel(std::string where, std::string family, const std::string& prefix = "");
  /// Writes one file of the folder.
  void write(const std::string& name, const std::string& text) const;
  /// Mean-pooled, normalised embedding of token ids, by loops in f64.
  std::vector<double> embed(const std::vector<Index>& ids) const;

 private:
  std::vector<double> w(const std::string& name) const;
  std::string prefix_;
};

}  // namespace rlx::test
