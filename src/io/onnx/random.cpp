// Random numbers: a stream for every node, the same in every run.
#include <algorithm>
#include <bit>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/philox/philox.h"
#include "ops/reshape/reshape.h"
#include "ops/sample/sample.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

Value random_key(NodeArgs& n) {
  if (n.given("seed")) return philox_key(n.builder(), std::bit_cast<std::uint64_t>(n.real("seed", 0)), 0);
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char c : n.node().outputs.empty() ? std::string_view() : std::string_view(n.node().outputs[0])) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  return philox_key(n.builder(), hash, 1);
}

namespace {

DType dtype_attribute(NodeArgs& n, DType standard) {
  if (!n.given("dtype")) return standard;
  const Index type = n.integer("dtype");
  const auto dtype = dtype_of(static_cast<std::int32_t>(std::clamp<Index>(type, 0, 999)));
  require(dtype.has_value(), "element type {} is not supported", type);
  return *dtype;
}

struct Wanted {
  std::vector<Dim> dims;
  DType dtype;
};

Wanted wanted_shape(NodeArgs& n, bool like_operand) {
  if (like_operand) {
    n.expect(1, 1);
    return {n[0].type().dims, dtype_attribute(n, n[0].dtype())};
  }
  n.expect(0, 0);
  const auto shape = n.integers("shape");
  require(shape.has_value(), "attribute 'shape' is missing");
  return {{shape->begin(), shape->end()}, dtype_attribute(n, DType::f32)};
}

template <bool like_operand>
Values random_uniform_operator(NodeArgs& n) {
  const Wanted w = wanted_shape(n, like_operand);
  require(is_arithmetic_float(w.dtype), "element type {} is not supported", name(w.dtype));
  const double low = n.real("low", 0), high = n.real("high", 1);
  return {random_uniform(random_key(n), philox_start(n.builder()), w.dims, w.dtype, low, high)};
}

template <bool like_operand>
Values random_normal_operator(NodeArgs& n) {
  const Wanted w = wanted_shape(n, like_operand);
  require(is_arithmetic_float(w.dtype), "element type {} is not supported", name(w.dtype));
  const double mean = n.real("mean", 0), scale = n.real("scale", 1);
  return {random_normal(random_key(n), philox_start(n.builder()), w.dims, w.dtype, mean, scale)};
}

Values bernoulli(NodeArgs& n) {
  n.expect(1, 1);
  const Value p = n[0];
  require(is_arithmetic_float(p.dtype()), "probabilities are {}, expected floats", p.type().text());
  const DType wide = p.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Value u = random_uniform(random_key(n), philox_start(n.builder()), p.type().dims, wide);
  return {cast(less(u, cast(p, wide)), dtype_attribute(n, p.dtype()))};
}

Values multinomial(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  require(x.rank() == 2, "operand is {}, expected rank 2", x.type().text());
  const Index size = n.integer("sample_size", 1);
  require(size >= 0, "sample_size is {}", size);
  const DType dtype = dtype_attribute(n, DType::i32);
  require(dtype == DType::i32 || dtype == DType::i64, "dtype is {}, expected i32 or i64", name(dtype));
  const std::vector<Dim> dims{x.dim(0), size};
  const Value numbers = random_uniform(random_key(n), philox_start(n.builder()), dims, DType::f32);
  const Value logits = broadcast(unsqueeze(x, {1}), {x.dim(0), size, x.dim(1)});
  return {cast(sample(logits, numbers), dtype)};
}

}  // namespace

OperatorRows random_rows() {
  static constexpr OperatorRow rows[] = {
      {"RandomUniform", 1, random_uniform_operator<false>},
      {"RandomUniformLike", 1, random_uniform_operator<true>},
      {"RandomNormal", 1, random_normal_operator<false>},
      {"RandomNormalLike", 1, random_normal_operator<true>},
      {"Bernoulli", 15, bernoulli},
      {"Multinomial", 7, multinomial},
  };
  return rows;
}

}  // namespace rlx::onnx
