// Encoded matrices for tests, and their products in f64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "codecs/codec.h"

namespace rlx::test {

/// Normal numbers.
inline Tensor numbers(std::vector<Index> shape, unsigned seed, double scale = 1) {
  Tensor t(DType::f32, std::move(shape));
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw(0, scale);
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (double& x : v) x = draw(random);
  store(t, v);
  return t;
}

/// Random blocks that decode to numbers of ordinary size.
inline Tensor random_blocks(const Codec& codec, Index n, Index k, unsigned seed) {
  const TensorType type(DType::f32, {n, k}, *codec.encoding, -1);
  const Bytes bytes = Bytes::allocate(type.plane_bytes(0).constant());
  const Index size = codec.encoding->planes[0].bytes, block = codec.encoding->block;
  auto* to = const_cast<std::byte*>(bytes.data.data());
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(block));
  for (Index i = 0; i < n * k / block; ++i, to += size) {
    bool tame = false;
    for (int tries = 0; !tame && tries < 100000; ++tries) {
      for (Index j = 0; j < size; ++j) to[j] = static_cast<std::byte>(random());
      const std::byte* const at[] = {to};
      codec.decode({at, 1, block}, values.data());
      float most = 0;
      tame = std::ranges::all_of(values, [&](float v) {
        most = std::max(most, std::fabs(v));
        return std::isfinite(v);
      });
      tame = tame && most < 64 && most > 0x1p-10F;
    }
    EXPECT_TRUE(tame) << "no ordinary block found";
  }
  return {type, {bytes}};
}

/// A matrix of a format: encoded numbers where it can be written, else random blocks.
inline std::optional<Tensor> matrix(const Codec& codec, Index n, Index k, unsigned seed) {
  if (codec.encode) return encode(numbers({n, k}, seed), codec);
  if (codec.encoding->planes.size() != 1 || codec.encoding->planes[0].per != Plane::Per::block) return std::nullopt;
  return random_blocks(codec, n, k, seed);
}

/// x[m,k] times the decoded w[n,k], transposed.
inline std::vector<double> product(const Tensor& x, const Tensor& w) {
  const std::vector<double> a = load<double>(x), b = load<double>(decode(w));
  const Index n = w.shape()[0], k = w.shape()[1], m = x.count() / std::max<Index>(k, 1);
  std::vector<double> c(static_cast<std::size_t>(m * n));
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double& sum = c[static_cast<std::size_t>(i * n + j)];
      for (Index q = 0; q < k; ++q)
        sum += a[static_cast<std::size_t>(i * k + q)] * b[static_cast<std::size_t>(j * k + q)];
    }
  }
  return c;
}

}  // namespace rlx::test
