// Known traps of element types: widths, saturation, rounding, packing. The oracle is a scalar model written here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/cumulative/cumulative.h"
#include "ops/scalar/scalar.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr Index most = std::numeric_limits<Index>::max(), least = std::numeric_limits<Index>::min();

Tensor converted(const Tensor& x, DType to) {
  return run({x}, [to](const Values& v) { return cast(v[0], to); });
}

// A number as the model carries it: integers never pass through a float.
struct Number {
  bool whole = false;
  Index i = 0;
  double f = 0;
};

// A float of `exponent` and `mantissa` bits, infinity as the power of two behind the largest number.
double half_value(unsigned code, int exponent, int mantissa) {
  const int bias = (1 << (exponent - 1)) - 1, m = static_cast<int>(code & ((1u << mantissa) - 1)),
            e = static_cast<int>(code >> mantissa);
  const double fraction = std::ldexp(m, -mantissa);
  return e == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, e - bias);
}

// The nearest code by looking at all of them, ties to even.
std::uint64_t half_code(double x, int exponent, int mantissa) {
  const unsigned top = ((1u << exponent) - 1) << mantissa;
  const std::uint64_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return top | 1;  // any NaN
  if (std::isinf(x)) return sign | top;
  unsigned best = 0;
  double error = inf;
  for (unsigned c = 0; c <= top; ++c) {
    const double e = std::fabs(half_value(c, exponent, mantissa) - std::fabs(x));
    if (e < error || (e == error && c % 2 == 0)) best = c, error = e;
  }
  return sign | best;
}

std::uint64_t wrapped(Index v, int width) {
  return static_cast<std::uint64_t>(v) & (width == 64 ? ~0ull : (1ull << width) - 1);
}

std::uint64_t saturated(double x, double lo, double hi, Index ilo, Index ihi, int width) {
  const double t = std::isnan(x) ? 0 : std::trunc(x);
  return wrapped(t <= lo ? ilo : t >= hi ? ihi : static_cast<Index>(t), width);
}

std::uint64_t model(Number x, DType to) {
  const double f = x.whole ? static_cast<double>(x.i) : x.f;
  switch (to) {
    case DType::f64:
      return std::bit_cast<std::uint64_t>(f);
    case DType::f32:
      return std::bit_cast<std::uint32_t>(x.whole ? static_cast<float>(x.i) : static_cast<float>(f));
    case DType::f16:
      return half_code(f, 5, 10);
    case DType::bf16:
      return half_code(f, 8, 7);
    case DType::boolean:
      return x.whole ? x.i != 0 : x.f != 0;
    case DType::i64:
      return x.whole ? wrapped(x.i, 64) : saturated(f, -0x1p63, 0x1p63, least, most, 64);
    case DType::i32:
      return x.whole ? wrapped(x.i, 32) : saturated(f, -0x1p31, 2147483647, -2147483648, 2147483647, 32);
    case DType::i16:
      return x.whole ? wrapped(x.i, 16) : saturated(f, -32768, 32767, -32768, 32767, 16);
    case DType::i8:
      return x.whole ? wrapped(x.i, 8) : saturated(f, -128, 127, -128, 127, 8);
    case DType::u32:
      return x.whole ? wrapped(x.i, 32) : saturated(f, 0, 4294967295, 0, 4294967295, 32);
    default:  // u8
      return x.whole ? wrapped(x.i, 8) : saturated(f, 0, 255, 0, 255, 8);
  }
}

Number read(DType from, std::uint64_t code) {
  switch (from) {
    case DType::f64:
      return {false, 0, std::bit_cast<double>(code)};
    case DType::f32:
      return {false, 0, std::bit_cast<float>(static_cast<std::uint32_t>(code))};
    case DType::f16:
    case DType::bf16: {
      const int e = from == DType::f16 ? 5 : 8, m = 15 - e;
      const unsigned magnitude = code & 0x7fff, top = ((1u << e) - 1) << m;
      const double v = magnitude > top ? nan : magnitude == top ? inf : half_value(magnitude, e, m);
      return {false, 0, (code & 0x8000) != 0 ? -v : v};
    }
    case DType::i64:
      return {true, static_cast<Index>(code), 0};
    case DType::i32:
      return {true, static_cast<std::int32_t>(code), 0};
    case DType::i16:
      return {true, static_cast<std::int16_t>(code), 0};
    case DType::i8:
      return {true, static_cast<std::int8_t>(code), 0};
    default:
      return {true, static_cast<Index>(code), 0};
  }
}

TEST(Pitfalls, P16_EveryPairOfTypesCasts) {
  const DType types[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i8,     DType::i16,
                         DType::i32, DType::i64, DType::u8,  DType::u32,  DType::boolean};
  const double values[][7] = {{-0.0, 1, -3, 2.5, 300.75, -70000.25, nan},
                              {5e9, inf, -inf, 1e-40, 3.3e38, 65519.99, 0.1},
                              {2049, 2051, 257, 32768, 128, -129, 1e-7}};
  for (const DType from : types) {
    for (const DType to : types) {
      for (const auto& row : values) {
        Tensor x(from, {7});
        for (Index i = 0; i < 7; ++i) x.set_code(i, model({false, 0, row[i]}, from));
        const Tensor y =
            from == to
                ? run({x}, [to](const Values& v) { return v[0].builder->emit_one(cast_op, CastAttrs{to}, {v[0]}); })
                : converted(x, to);
        ASSERT_EQ(y.dtype(), to);
        for (Index i = 0; i < 7; ++i) {
          const std::uint64_t want = from == to ? x.code(i) : model(read(from, x.code(i)), to);
          const bool both_nan = is_float(to) && std::isnan(read(to, want).f) && std::isnan(read(to, y.code(i)).f);
          EXPECT_TRUE(y.code(i) == want || both_nan)
              << name(from) << " " << row[i] << " to " << name(to) << ": " << y.code(i) << " for " << want;
        }
      }
    }
  }
}

TEST(Pitfalls, P10_WideningAndBackKeepsEveryBit) {
  const Tensor x = floats({7}, {1.5, -2.25, 1e38, 1e-40, -0.0, nan, inf});
  const Tensor y = run({x}, [](const Values& v) { return cast(cast(v[0], DType::f64), DType::f32); });
  EXPECT_TRUE(identical(x, y));
  const Tensor wide = converted(x, DType::f64);
  EXPECT_EQ(reals(wide)[2], static_cast<double>(1e38f));
  EXPECT_EQ(reals(wide)[3], static_cast<double>(1e-40f));
}

TEST(Pitfalls, P11_F64ToNarrowerTypes) {
  const std::vector<double> v{2.9, -2.9, 1e20, -1e20, nan, -0.0};
  for (const std::size_t n : {6u, 5u}) {  // five: an odd number of bytes
    const Tensor x =
        floats({static_cast<Index>(n)}, {v.begin(), v.begin() + static_cast<std::ptrdiff_t>(n)}, DType::f64);
    const auto first = [n](std::vector<Index> all) { return all.resize(n), all; };
    EXPECT_EQ(wholes(converted(x, DType::i64)), first({2, -2, most, least, 0, 0}));
    EXPECT_EQ(wholes(converted(x, DType::i32)), first({2, -2, 2147483647, -2147483648, 0, 0}));
    const Tensor flags = converted(x, DType::boolean);
    EXPECT_EQ(wholes(flags), first({1, 1, 1, 1, 1, 0}));
    EXPECT_EQ(flags.bytes().size(), n);
  }
}

TEST(Pitfalls, P12_ConversionsOfIntegers) {
  const Index big = Index{1} << 40, above = (Index{1} << 32) + 5;
  const Tensor x = ints(DType::i64, {4}, {1, above, -1, big});
  EXPECT_THAT(wholes(converted(x, DType::i32)), ElementsAre(1, 5, -1, 0));
  EXPECT_THAT(reals(converted(x, DType::f64)), ElementsAre(1, 4294967301.0, -1, 1099511627776.0));
  const Tensor small = ints(DType::i32, {2}, {-3, 2147483647});
  EXPECT_THAT(reals(converted(small, DType::f64)), ElementsAre(-3, 2147483647.0));
  EXPECT_THAT(wholes(converted(small, DType::i64)), ElementsAre(-3, 2147483647));
  EXPECT_THAT(wholes(converted(ints(DType::i32, {3}, {1, 0, 2}), DType::boolean)), ElementsAre(1, 0, 1));
  const Tensor mask = ints(DType::i64, {3}, {1, 0, Index{1} << 33});
  EXPECT_THAT(wholes(converted(mask, DType::boolean)), ElementsAre(1, 0, 1));
  const std::vector<Tensor> out = run_all({mask}, [](const Values& v) {
    const Value ones = cast(cast(v[0], DType::boolean), DType::i64);
    return Values{ones, cumsum(ones, 0)};
  });
  EXPECT_THAT(wholes(out[0]), ElementsAre(1, 0, 1));
  EXPECT_THAT(wholes(out[1]), ElementsAre(1, 1, 2));
}

TEST(Pitfalls, P17_FloatsBeyondTheRangeOfAnInteger) {
  const Tensor x = floats({7}, {3e9, -3e9, nan, 2.9, -2.9, inf, -inf});
  EXPECT_THAT(wholes(converted(x, DType::i32)),
              ElementsAre(2147483647, -2147483648, 0, 2, -2, 2147483647, -2147483648));
  EXPECT_THAT(wholes(converted(floats({3}, {-1, 256, 3.7}), DType::u8)), ElementsAre(0, 255, 3));
  EXPECT_THAT(wholes(converted(ints(DType::i32, {1}, {300}), DType::i8)), ElementsAre(44));
}

TEST(Pitfalls, P18_ACastInsideAChain) {
  const auto chain = [](DType d) {
    return [d](const Values& v) {
      const Value t = cast(relu(v[0]), d);
      return cast(t + t, DType::f32);
    };
  };
  const Tensor x = floats({2, 3}, {-2.5, 3.7, 5.9, -0.1, 8.8, 0});
  EXPECT_THAT(reals(run({x}, chain(DType::i32))), ElementsAre(0, 6, 10, 0, 16, 0));
  EXPECT_THAT(reals(run({floats({1}, {5.9})}, chain(DType::f16))), ElementsAre(11.796875));
}

TEST(Pitfalls, P19_WhatIsTrue) {
  const Tensor x = floats({4}, {-0.0, nan, 1e-45, -1});
  for (const DType d : {DType::f32, DType::f64}) {
    EXPECT_THAT(wholes(converted(floats({4}, reals(x), d), DType::boolean)), ElementsAre(0, 1, 1, 1));
  }
  const Tensor chosen =
      run({x}, [](const Values& v) { return select(cast(v[0], DType::boolean), like(v[0], 7), like(v[0], 9)); });
  EXPECT_THAT(reals(chosen), ElementsAre(9, 7, 7, 7));
  Tensor byte(DType::boolean, {3});  // any byte but 0 is true
  byte.set_code(0, 2);
  byte.set_code(2, 255);
  const auto pick = [](const Values& v) { return select(v[0], v[1], v[2]); };
  EXPECT_THAT(reals(run({byte, floats({}, {7}), floats({}, {9})}, pick)), ElementsAre(7, 9, 7));
  EXPECT_THAT([&] { graph_of({x, x, x}, pick); }, ThrowsMessage<Error>(HasSubstr("the condition is f32[4]")));
}

TEST(Pitfalls, P81_EightBitFloatsHaveNoInfinity) {
  Tensor codes(DType::f8e4m3, {6});
  const std::uint64_t bits[] = {0x78, 0x7e, 0x7f, 0xff, 0x08, 0x01};
  for (Index i = 0; i < 6; ++i) codes.set_code(i, bits[i]);
  const std::vector<double> got = reals(converted(codes, DType::f32));
  EXPECT_EQ(got[0], 256);
  EXPECT_EQ(got[1], 448);
  EXPECT_TRUE(std::isnan(got[2]) && std::isnan(got[3]));
  EXPECT_EQ(got[4], 0x1p-6);
  EXPECT_EQ(got[5], 0x1p-9);
  Tensor all(DType::f8e4m3, {256});
  for (Index i = 0; i < 256; ++i) all.set_code(i, static_cast<std::uint64_t>(i));
  const std::vector<double> values = reals(converted(all, DType::f64));
  for (unsigned c = 0; c < 256; ++c) {
    const double want = half_value(c & 127, 4, 3) * (c > 127 ? -1 : 1);
    EXPECT_TRUE((c & 127) == 127 ? std::isnan(values[c]) : values[c] == want) << c;
  }
}

TEST(Pitfalls, P82_FourBitNumbersFillBytesFromTheLowEnd) {
  const auto at_zero = [](double zero) {
    return [zero](const Values& v) { return cast(v[0], DType::f32) - constant(*v[0].builder, DType::f32, zero); };
  };
  Tensor w(DType::u4, {1, 2});
  w.mutable_bytes()[0] = std::byte{0x3a};
  EXPECT_THAT(reals(run({w}, at_zero(0))), ElementsAre(10, 3));
  EXPECT_THAT(reals(run({w}, at_zero(8))), ElementsAre(2, -5));
  Tensor odd(DType::u4, {2, 3});  // the second row begins in the high half of a byte
  ASSERT_EQ(odd.bytes().size(), 3u);
  odd.mutable_bytes()[0] = std::byte{0x21};
  odd.mutable_bytes()[1] = std::byte{0x43};
  odd.mutable_bytes()[2] = std::byte{0x65};
  EXPECT_THAT(reals(run({odd}, at_zero(0))), ElementsAre(1, 2, 3, 4, 5, 6));
  const Tensor back = run({floats({2, 3}, {1, 2, 3, 4, 5, 6})}, [](const Values& v) { return cast(v[0], DType::u4); });
  EXPECT_TRUE(identical(back, odd));
  Tensor with_sign(DType::i4, {2});
  with_sign.mutable_bytes()[0] = std::byte{0x7f};
  EXPECT_THAT(reals(converted(with_sign, DType::f32)), ElementsAre(-1, 7));
}

TEST(Pitfalls, P88_ScalesRoundUpToAPowerOfTwo) {
  const Tensor x = floats({8}, {0.3, 0.5, 0.51, 1, 1.0000001, 0, -3, inf}), y = converted(x, DType::e8m0);
  const std::uint64_t want[] = {126, 126, 127, 127, 128, 0, 0, 254};
  for (Index i = 0; i < 8; ++i) EXPECT_EQ(y.code(i), want[i]) << i;
  EXPECT_EQ(converted(floats({1}, {nan}), DType::e8m0).code(0), 255u);
}

TEST(Pitfalls, R5_CastsConvertAndWriteTheirOwnWidth) {
  const Tensor one = converted(floats({1}, {1}), DType::i32);
  EXPECT_EQ(one.code(0), 1u);
  const Tensor half = converted(counted({4097}, 0, 0.5), DType::f16);
  EXPECT_EQ(half.bytes().size(), 8194u);
  EXPECT_EQ(reals(half)[4096], 2048);
  EXPECT_EQ(reals(half)[4095], 2048);  // 2047.5 lies in the middle
  EXPECT_EQ(reals(half)[4093], 2046);  // and 2046.5 too
}

TEST(Pitfalls, R6_AComparisonWritesOneByteAnElement) {
  const Tensor x = counted({4096}, 0, 1), limit = floats({}, {4095});
  const Tensor y = run({x, limit}, [](const Values& v) { return less(v[0], v[1]); });
  ASSERT_EQ(y.bytes().size(), 4096u);
  for (std::size_t i = 0; i < 4096; ++i) ASSERT_EQ(static_cast<int>(y.bytes()[i]), i < 4095) << i;
}

}  // namespace
}  // namespace rlx::test
