// Known traps of broadcasting in arithmetic, comparison and selection. The oracle finds operands by coordinates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "core/error.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/iota/iota.h"
#include "ops/scalar/scalar.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

using testing::ElementsAre;
using Shape = std::vector<Index>;
using Complex = std::complex<double>;

struct Pair {
  Shape a, b, full;
};
const Pair pairs[] = {{{3, 1}, {1, 2}, {3, 2}},
                      {{2, 1, 3}, {1, 4, 1}, {2, 4, 3}},
                      {{2, 4, 3}, {2, 1, 3}, {2, 4, 3}},
                      {{4, 8}, {4, 1}, {4, 8}},
                      {{4, 1}, {1, 8}, {4, 8}},
                      {{2, 1, 4}, {3, 1}, {2, 3, 4}},
                      {{5}, {3, 7, 1}, {3, 7, 5}},
                      {{3, 1, 5, 1}, {1, 7, 5, 5}, {3, 7, 5, 5}},
                      {{}, {2, 3}, {2, 3}},
                      {{7}, {1}, {7}}};

struct Kind {
  const char* name;
  Value (*build)(Value, Value);
  double (*want)(double, double);
  bool whole;  // also of integers
};
const Kind kinds[] = {
    {"add", add, [](double a, double b) { return a + b; }, true},
    {"sub", sub, [](double a, double b) { return a - b; }, true},
    {"mul", mul, [](double a, double b) { return a * b; }, true},
    {"div", div, [](double a, double b) { return a / b; }, false},
    {"maximum", maximum, [](double a, double b) { return a > b ? a : b; }, true},
    {"minimum", minimum, [](double a, double b) { return a < b ? a : b; }, true},
    {"pow", pow, [](double a, double b) { return std::pow(a, b); }, false},
    {"fmod", fmod, [](double a, double b) { return std::fmod(a, b); }, true},
    {"atan2", atan2, [](double a, double b) { return std::atan2(a, b); }, false},
};

std::vector<double> expected(const Pair& p, const Tensor& a, const Tensor& b, double (*f)(double, double)) {
  const std::vector<double> x = reals(a), y = reals(b);
  std::size_t n = 1;
  for (const Index e : p.full) n *= static_cast<std::size_t>(e);
  std::vector<double> want;
  for (std::size_t i = 0; i < n; ++i) want.push_back(f(x[source(p.a, p.full, i)], y[source(p.b, p.full, i)]));
  return want;
}

TEST(Pitfalls, P1_R14_BinaryOpsStretchBothOperands) {
  const auto plus = [](const Values& v) { return v[0] + v[1]; };
  for (const DType d : {DType::f32, DType::f64, DType::i64, DType::c64}) {
    const Tensor y = run({floats({3, 1}, {1, 2, 3}, d), floats({1, 2}, {10, 20}, d)}, plus);
    EXPECT_EQ(y.shape(), (Shape{3, 2}));
    EXPECT_THAT(load<Complex>(y), ElementsAre(11, 21, 12, 22, 13, 23));
  }
  for (const Kind& kind : kinds) {
    for (const Pair& p : pairs) {
      for (const DType d : {DType::f32, DType::f64, DType::i64, DType::i32}) {
        if (is_integer(d) && !kind.whole) continue;
        SCOPED_TRACE(std::string(kind.name) + " " + std::string(name(d)));
        const Tensor a = counted(p.a, 1, 1, d), b = counted(p.b, 2, is_integer(d) ? 1 : 1.0 / 64, d);
        const Tensor y = run({a, b}, [&](const Values& v) { return kind.build(v[0], v[1]); });
        EXPECT_EQ(y.shape(), p.full);
        const std::vector<double> want = expected(p, a, b, kind.want), got = reals(y);
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_NEAR(got[i], want[i], (d == DType::f32 ? 1e-7 : 4e-16) * std::fabs(want[i])) << i;
        }
      }
    }
  }
}

TEST(Pitfalls, P1_ComplexOperandsStretchInWholeElements) {
  for (const Pair& p : pairs) {
    const auto numbers = [](const Shape& shape, double first) {
      Tensor t(DType::c64, shape);
      std::vector<Complex> z;
      for (Index i = 0; i < t.count(); ++i) z.emplace_back(first + static_cast<double>(i), 2 - static_cast<double>(i));
      store(t, z);
      return t;
    };
    const Tensor a = numbers(p.a, 1), b = numbers(p.b, 3);
    const std::vector<Complex> x = load<Complex>(a), y = load<Complex>(b);
    const std::vector<Tensor> out =
        run_all({a, b}, [](const Values& v) { return Values{v[0] + v[1], v[0] - v[1], v[0] * v[1], v[0] / v[1]}; });
    for (std::size_t k = 0; k < 4; ++k) {
      const std::vector<Complex> got = load<Complex>(out[k]);
      EXPECT_EQ(out[k].shape(), p.full);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Complex l = x[source(p.a, p.full, i)], r = y[source(p.b, p.full, i)];
        const Complex want = k == 0 ? l + r : k == 1 ? l - r : k == 2 ? l * r : l / r;
        EXPECT_LE(std::abs(got[i] - want), 2e-7 * std::abs(want)) << k << " " << i;
      }
    }
  }
}

struct Comparison {
  Value (*build)(Value, Value);
  double (*want)(double, double);
};
const Comparison comparisons[] = {{equal, [](double a, double b) { return double(a == b); }},
                                  {not_equal, [](double a, double b) { return double(a != b); }},
                                  {less, [](double a, double b) { return double(a < b); }},
                                  {less_equal, [](double a, double b) { return double(a <= b); }},
                                  {greater, [](double a, double b) { return double(a > b); }},
                                  {greater_equal, [](double a, double b) { return double(a >= b); }}};

TEST(Pitfalls, P2_ComparisonsStretchPartOfAnOperand) {
  const std::vector<double> rows{0, 1, 2, 0, 1, 2, 0, 1, 2}, column{0, 1, 2};
  for (const DType d : {DType::f32, DType::f64, DType::i64, DType::i32}) {
    const std::vector<Tensor> in{floats({1, 3, 3}, rows, d), floats({1, 3, 1}, column, d)};
    const std::vector<Tensor> out = run_all(in, [](const Values& v) {
      const Value lower = less_equal(v[0], v[1]), swapped = less_equal(v[1], v[0]);
      return Values{lower, cast(lower, DType::f32), swapped, cast(swapped, DType::f32)};
    });
    for (const std::size_t k : {0u, 1u}) EXPECT_THAT(reals(out[k]), ElementsAre(1, 0, 0, 1, 1, 0, 1, 1, 1));
    for (const std::size_t k : {2u, 3u}) EXPECT_THAT(reals(out[k]), ElementsAre(1, 1, 1, 0, 1, 1, 0, 0, 1));
    EXPECT_EQ(out[0].dtype(), DType::boolean);
    EXPECT_EQ(out[0].bytes().size(), 9u);
  }
  for (const Comparison& c : comparisons) {
    for (const Pair& p : pairs) {
      for (const DType d : {DType::f32, DType::f64, DType::i64, DType::boolean}) {
        const bool flags = d == DType::boolean;  // of which both values occur
        Tensor a = counted(p.a, 0, 1, d), b = counted(p.b, 3, -1, d);
        if (flags) {
          for (Index i = 0; i < a.count(); ++i) a.set_code(i, i % 3 == 0);
          for (Index i = 0; i < b.count(); ++i) b.set_code(i, i % 2 == 0);
        }
        const Tensor y = run({a, b}, [&](const Values& v) { return c.build(v[0], v[1]); });
        EXPECT_EQ(y.shape(), p.full);
        EXPECT_EQ(reals(y), expected(p, a, b, c.want));
      }
    }
  }
}

TEST(Pitfalls, P3_BiasWithASizeOneAxisInTheMiddle) {
  const auto plus = [](const Values& v) { return v[0] + v[1]; };
  const Tensor x = counted({2, 3, 4}, 0, 1), image = counted({2, 3, 4, 5}, 0, 1);
  for (const Shape& shape : {Shape{2, 1, 4}, Shape{4}, Shape{1, 1, 4}, Shape{2, 3, 1}, Shape{1}}) {
    const Tensor bias = counted(shape, 1000, 100), y = run({x, bias}, plus);
    const std::vector<double> got = reals(y), b = reals(bias);
    for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(got[i], static_cast<double>(i) + b[source(shape, {2, 3, 4}, i)]);
  }
  const std::vector<double> got = reals(run({image, floats({1, 3, 1, 1}, {1000, 2000, 3000})}, plus));
  for (std::size_t i = 0; i < 120; ++i) EXPECT_EQ(got[i], static_cast<double>(i + 1000 * (1 + i / 20 % 3)));
}

TEST(Pitfalls, P4_OneElementOperandsOfComparisonAndSelection) {
  const Tensor x = counted({7}, -3, 1), two = floats({}, {2}), one = floats({1}, {-1});
  for (const Tensor& s : {two, one}) {
    const double at = reals(s)[0];
    const std::vector<Tensor> out =
        run_all({x, s}, [](const Values& v) { return Values{less(v[0], v[1]), less(v[1], v[0])}; });
    const std::vector<double> below = reals(out[0]), above = reals(out[1]);
    ASSERT_EQ(below.size(), 7u);
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(below[i], static_cast<double>(i) - 3 < at);
      EXPECT_EQ(above[i], at < static_cast<double>(i) - 3);
    }
  }
  const Tensor mask = ints(DType::boolean, {5}, {1, 0, 1, 1, 0}), a = counted({5}, 1, 1), b = counted({5}, 10, 10);
  for (const DType d : {DType::f32, DType::f64, DType::i64, DType::f16, DType::i8}) {
    const auto as = [d](const Tensor& t) { return floats(t.shape(), reals(t), d); };
    const auto choose = [](const Values& v) { return select(v[0], v[1], v[2]); };
    for (const Index on : {0, 1}) {
      const Tensor flag = ints(DType::boolean, {}, {on});
      EXPECT_EQ(reals(run({flag, as(a), as(b)}, choose)), reals(on ? a : b));
      const Tensor y = run({flag, as(floats({}, {7})), as(floats({}, {9}))},
                           [](const Values& v) { return broadcast(select(v[0], v[1], v[2]), {5}); });
      EXPECT_EQ(reals(y), std::vector<double>(5, on ? 7 : 9));
    }
    EXPECT_THAT(reals(run({mask, as(floats({}, {7})), as(b)}, choose)), ElementsAre(7, 20, 7, 7, 50));
    EXPECT_THAT(reals(run({mask, as(a), as(floats({1}, {9}))}, choose)), ElementsAre(1, 9, 3, 4, 9));
  }
}

TEST(Pitfalls, P5_ABoolIsOneByte) {
  const Tensor three = ints(DType::i64, {}, {3});
  const Tensor mask =
      run({three}, [](const Values& v) { return cast(less(iota(*v[0].builder, DType::i64, {6}), v[0]), DType::f32); });
  EXPECT_THAT(reals(mask), ElementsAre(1, 1, 1, 0, 0, 0));
  const std::vector<Tensor> in{floats({6}, {1, 1, 0, 0, 1, 0}), floats({6}, {1, 0, 1, 0, 1, 0})};
  const std::vector<Tensor> out = run_all(in, [](const Values& v) {
    const Value both = v[0] * v[1], sum = v[0] + v[1];
    return Values{cast(both, DType::boolean), cast(sum - both, DType::boolean), cast(sum, DType::boolean)};
  });
  const int want[][6] = {{1, 0, 0, 0, 1, 0}, {1, 1, 1, 0, 1, 0}, {1, 1, 1, 0, 1, 0}};
  for (std::size_t k = 0; k < 3; ++k) {
    ASSERT_EQ(out[k].bytes().size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(static_cast<int>(out[k].bytes()[i]), want[k][i]) << k << " " << i;
  }
}

TEST(Pitfalls, P20_AChainWithAnOperandThatIsNoSuffix) {
  for (const DType d : {DType::f32, DType::f64, DType::f16}) {
    const Tensor x = counted({2, 4, 3}, 0, 1, d), row = counted({2, 1, 3}, 1, 1, d);
    const std::vector<Tensor> out = run_all({x, row}, [](const Values& v) {
      const Value wide = cast(v[0], DType::f64), stretched = cast(v[1], DType::f64);
      return Values{relu((v[0] + v[1]) * v[1] - v[0]), (wide + stretched) * stretched};
    });
    const std::vector<double> got = reals(out[0]), mixed = reals(out[1]);
    for (std::size_t i = 0; i < 24; ++i) {
      const std::size_t batch = i / 12, column = i % 3;
      const double a = static_cast<double>(i), r = static_cast<double>(1 + batch * 3 + column);
      EXPECT_EQ(got[i], (a + r) * r - a) << i;
      EXPECT_EQ(mixed[i], (a + r) * r) << i;
    }
  }
}

}  // namespace
}  // namespace rlx::test
