// Casts as steps: every pair of element types over the values where rules differ, against the reference, bit for bit.
#include "ops/cast/cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "graph_steps.h"
#include "levels.h"
#include "ops/scalar/scalar.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

// All codes of types of at most 16 bits; edges and drawn codes of the others.
Tensor interesting(DType d) {  // NOLINT(readability-function-size): a table of values
  const int width = bits(d);
  if (width <= 16 && d != DType::boolean) {
    Tensor t(d, {Index{1} << width});
    for (Index i = 0; i < t.count(); ++i) t.set_code(i, static_cast<std::uint64_t>(i));
    return t;
  }
  if (d == DType::boolean) {
    Tensor t(d, {5});
    t.set_code(1, 1);
    t.set_code(4, 1);
    return t;
  }
  std::vector<std::uint64_t> codes;
  if (is_float(d)) {
    const double edges[] = {0,
                            0.5,
                            1,
                            1.5,
                            2.5,
                            127,
                            128,
                            255,
                            256,
                            32767.5,
                            65504,
                            65520,
                            65535,
                            65536,
                            448,
                            464,
                            57344,
                            61440,
                            2147483647,
                            2147483648.0,
                            4294967295.0,
                            4294967296.0,
                            9223372036854775807.0,
                            18446744073709551615.0,
                            1e30,
                            1e300,
                            1e-7,
                            6e-8,
                            2.98e-8,
                            1e-40,
                            1e-46,
                            3.4e38,
                            3.39e38,
                            std::numeric_limits<double>::infinity(),
                            std::nan("")};
    for (const double e : edges) {
      for (const double v : {e, std::nextafter(e, 0.0), std::nextafter(e, 1e308)}) {
        codes.push_back(encode_float(d, v));
        codes.push_back(encode_float(d, -v));
      }
    }
  } else {
    for (int b = 0; b < width; ++b) {
      for (const std::uint64_t more : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1}}) {
        codes.push_back((std::uint64_t{1} << b) + more);
        codes.push_back(0 - (std::uint64_t{1} << b) + more);
      }
    }
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 3000; ++i) codes.push_back(random() >> (i % 3 == 0 ? random() % 64 : 0));
  Tensor t(d, {static_cast<Index>(codes.size())});
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  for (Index i = 0; i < t.count(); ++i) t.set_code(i, codes[static_cast<std::size_t>(i)] & mask);
  return t;
}

bool is_nan(DType d, std::uint64_t code) { return is_float(d) && std::isnan(decode_float(d, code)); }

void check_pair(DType from, DType to) {
  const Tensor x = interesting(from);
  const Graph g = graph_of({x}, [&](const Values& v) { return cast(v[0], to); });
  const Tensor want = evaluate(g, {&x, 1})[0], got = run_steps(g, {&x, 1})[0];
  ASSERT_EQ(got.count(), want.count());
  for (Index i = 0; i < got.count(); ++i) {
    if (is_nan(to, want.code(i)) && is_nan(to, got.code(i))) continue;  // the bits of a NaN are free
    ASSERT_EQ(got.code(i), want.code(i)) << name(from) << " " << std::hex << x.code(i) << " to " << name(to);
  }
}

TEST(ScalarSteps, P11_P12_CastsOfEveryPairAreTheReferenceBitForBit) {
  at_every_level([] {
    for (const DType from : all_dtypes()) {
      for (const DType to : all_dtypes()) {
        if (from != to && !(is_complex(from) && is_complex(to))) check_pair(from, to);
      }
    }
  });
}

TEST(ScalarSteps, CastsRoundOnce) {
  // Through f32 this would be a tie and round down.
  const Tensor x = Tensor::of<std::int64_t>(DType::i64, {2}, {2049 + (Index{1} << 40), 0x1000001});
  const Tensor y = run_steps(graph_of({x}, [](const Values& v) { return cast(v[0], DType::f32); }), {&x, 1})[0];
  EXPECT_EQ(reals(y)[1], 16777216);
  const Tensor z = Tensor::of<double>(DType::f64, {1}, {1 + 0x1p-11 + 0x1p-40});  // above a tie of f16
  EXPECT_EQ(reals(run_steps(graph_of({z}, [](const Values& v) { return cast(v[0], DType::f16); }), {&z, 1})[0])[0],
            1 + 0x1p-10);
}

TEST(ScalarSteps, P5_BoolReadsAnyByteAsTrueAndWritesOneByte) {
  Tensor x(DType::boolean, {6});
  for (Index i = 0; i < 6; ++i) x.set_code(i, static_cast<std::uint64_t>(i % 2 == 0 ? 0 : i * 50));
  at_every_level([&] {
    for (const DType to : {DType::f32, DType::i64, DType::f16, DType::u8, DType::f64}) {
      const Tensor y = run_steps(graph_of({x}, [&](const Values& v) { return cast(v[0], to); }), {&x, 1})[0];
      EXPECT_EQ(reals(y), (std::vector<double>{0, 1, 0, 1, 0, 1})) << name(to);
    }
    const Tensor y = run_steps(graph_of({x}, [](const Values& v) { return bitwise_xor(v[0], v[0]); }), {&x, 1})[0];
    EXPECT_EQ(reals(y), std::vector<double>(6, 0.0));
    const Tensor n = run_steps(graph_of({x}, [](const Values& v) { return bitwise_not(v[0]); }), {&x, 1})[0];
    for (Index i = 0; i < 6; ++i) EXPECT_EQ(n.code(i), i % 2 == 0 ? 1u : 0u);
  });
}

}  // namespace
}  // namespace rlx::test
