// The f32 products of bench/product.cpp in OpenBLAS, which keeps weights as they are; see serve.h for what it reads.
// bench/peers builds it.
#include <cblas.h>

#include <memory>
#include <random>
#include <stdexcept>

#include "../serve.h"

namespace {

std::vector<float> numbers(long count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> pick(-1, 1);
  std::vector<float> v(static_cast<std::size_t>(count));
  for (float& x : v) x = pick(random);
  return v;
}

struct Product {
  explicit Product(const bench::Request& r)
      : size(r), a(numbers(r.m * r.k, 1)), c(static_cast<std::size_t>(r.m * r.n)) {
    if (r.type != "f32") throw std::runtime_error("unknown type " + r.type);
    for (int i = 0; i < r.rotate; ++i) b.push_back(numbers(r.k * r.n, 2 + static_cast<unsigned>(i)));
  }
  void run() {
    const int m = static_cast<int>(size.m), k = static_cast<int>(size.k), n = static_cast<int>(size.n);
    for (const std::vector<float>& w : b) {
      if (m == 1) {
        cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, w.data(), n, a.data(), 1, 0, c.data(), 1);
      } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a.data(), k, w.data(), n, 0, c.data(), n);
      }
    }
  }
  bench::Request size;
  std::vector<float> a, c;
  std::vector<std::vector<float>> b;
};

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) openblas_set_num_threads(std::stoi(arguments[1]));
  return bench::serve([&](const bench::Request& r) {
    const auto product = std::make_shared<Product>(r);
    return [product] { product->run(); };
  });
}
