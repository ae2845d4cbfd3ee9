// Symbolic sizes: canonical text, simplification, bounds, parsing; properties over random expressions.
#include "core/dim.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "core/error.h"
#include "probe_ops.h"

namespace rlx::test {
namespace {

constexpr Index largest = std::numeric_limits<Index>::max(), least = std::numeric_limits<Index>::min();

using Symbols = std::map<std::string, Dim, std::less<>>;
const Dim a = Dim::symbol("A", 1, 9), b = Dim::symbol("B", 0, 5), s = Dim::symbol("S", 2, 512);
const Symbols abs_symbols{{"A", a}, {"B", b}, {"S", s}};

Dim read(std::string_view text, const Symbols& symbols = abs_symbols) {
  std::size_t at = 0;
  Dim d = parse_dim(text, at, symbols);
  if (at != text.size()) fail("text goes on at column {}", at);
  return d;
}

TEST(Dim, CanonicalText) {
  EXPECT_EQ((s + 1).text(), "S+1");
  EXPECT_EQ((1 + s).text(), "S+1");
  EXPECT_EQ((s - 1).text(), "S-1");
  EXPECT_EQ((1 - s).text(), "-S+1");
  EXPECT_EQ((s * a * 2 + a * a - b * 3).text(), "A*A+2*A*S-3*B");
  EXPECT_EQ((a * s - s * a).text(), "0");
  EXPECT_EQ(((a + b) * (a - b)).text(), "A*A-B*B");
  EXPECT_EQ(floordiv(s + 1, 2).text(), "floordiv(S+1,2)");
  EXPECT_EQ(floordiv(s, a).text(), "floordiv(S,A)");
  EXPECT_EQ((ceildiv(s, 3) * -2).text(), "-2*ceildiv(S,3)");
  EXPECT_EQ((min(s, a + 4)).text(), "min(A+4,S)");
  EXPECT_EQ((s * Dim(least)).text(), "-9223372036854775808*S");
  EXPECT_EQ(Dim::symbol("N", 64, 64), Dim(64));
}

TEST(Dim, ExactDivisionSimplifies) {
  EXPECT_EQ(floordiv(s * 6, 3), s * 2);
  EXPECT_EQ(ceildiv(s * 6 + 9, 3), s * 2 + 3);
  EXPECT_EQ(floordiv(s * a, a), s) << "A is at least 1";
  EXPECT_NE(floordiv(s * b, b), s) << "B may be 0";
  EXPECT_EQ(floordiv(s * s * a, s), s * a);
  EXPECT_EQ(floordiv(s + a, s + a), Dim(1));
  EXPECT_EQ(floordiv(s * 4, -2), s * -2);
  EXPECT_EQ(mod(s * 8, 4), Dim(0));
  EXPECT_EQ(mod(s, 4).text(), "S-4*floordiv(S,4)");
  EXPECT_EQ(floordiv(s, 1), s);
  EXPECT_EQ(floordiv(0, s), Dim(0));
  EXPECT_EQ(floordiv(-7, 2), Dim(-4));
  EXPECT_EQ(ceildiv(-7, 2), Dim(-3));
  EXPECT_EQ(floordiv(7, -2), Dim(-4));
  EXPECT_EQ(ceildiv(7, -2), Dim(-3));
}

TEST(Dim, MinAndMaxUseBounds) {
  EXPECT_EQ(min(s, 1), Dim(1));
  EXPECT_EQ(max(s, 1), s);
  EXPECT_EQ(max(s, 0), s);
  EXPECT_EQ(min(s, s + 1), s);
  EXPECT_EQ(max(s, s + a), s + a);
  EXPECT_EQ(min(s, s), s);
  EXPECT_EQ(min(a, s), min(s, a));
  EXPECT_EQ(max(a, s), max(s, a));
  EXPECT_EQ(min(b, 5), b);
  EXPECT_EQ(min(b, 4).text(), "min(4,B)");
}

TEST(Dim, Bounds) {
  const auto is = [](const Dim& d, Index lo, Index hi) { return d.bounds() == Bounds{lo, hi}; };
  EXPECT_TRUE(is(s * 2 + 1, 5, 1025));
  EXPECT_TRUE(is(a - s, 1 - 512, 9 - 2));
  EXPECT_TRUE(is(floordiv(s, 2), 1, 256));
  EXPECT_TRUE(is(ceildiv(s + 1, 2), 2, 257));
  EXPECT_TRUE(is(floordiv(s, b), 0, 512)) << "a divisor of 0 gives no value";
  EXPECT_TRUE(is(min(a, b), 0, 5));
  EXPECT_TRUE(is(max(a, b), 1, 9));
  EXPECT_TRUE(is(floordiv(s, -1 * a), least, largest));
  const Dim huge = Dim::symbol("H", 0, largest);
  EXPECT_EQ((huge * huge).bounds(), (Bounds{0, largest}));
  EXPECT_EQ((huge * -1).bounds().lo, -largest);
  // The largest magnitude is that of the least number: the bound of the product of the atoms saturates first.
  const Dim x = Dim::symbol("X", 0, Index{1} << 32), y = Dim::symbol("Y", 0, Index{1} << 31);
  const Dim product = x * y * -1;
  const Index value = product.evaluate({{"X", Index{1} << 32}, {"Y", Index{1} << 31}});
  EXPECT_EQ(value, least);
  EXPECT_LE(product.bounds().lo, value);
}

TEST(Dim, EqualityByBounds) {
  EXPECT_EQ(equal(s, s), Tri::yes);
  EXPECT_EQ(equal(s, s + 1), Tri::no);
  EXPECT_EQ(equal(s, 1), Tri::no);
  EXPECT_EQ(equal(s, 2), Tri::unknown);
  EXPECT_EQ(equal(s, a), Tri::unknown);
  EXPECT_EQ(equal(2, 3), Tri::no);
}

TEST(Dim, EvaluatesWithinBoundsOnly) {
  const Dim d = floordiv(s * a, b) - 3;
  EXPECT_EQ(d.evaluate({{"A", 3}, {"B", 2}, {"S", 7}}), 7);
  EXPECT_EQ(error_of([&] { d.evaluate({{"A", 3}, {"B", 2}}); }), "size symbol S has no value");
  EXPECT_EQ(error_of([&] { d.evaluate({{"A", 10}, {"B", 2}, {"S", 7}}); }),
            "size symbol A is 10, outside its bounds 1..9");
  EXPECT_EQ(error_of([&] { d.evaluate({{"A", 3}, {"B", 0}, {"S", 7}}); }), "division of size 21 by 0");
  const Dim h = Dim::symbol("H", 0, largest);
  EXPECT_EQ(error_of([&] { (h * 2).evaluate({{"H", largest}}); }), "size of 2*H overflows 63 bits");
  EXPECT_EQ(error_of([&] { floordiv(h * -1 - 1, a - 10).evaluate({{"H", largest}, {"A", 9}}); }),
            "size of quotient overflows 63 bits");
}

TEST(Dim, Substitution) {
  const Dim d = floordiv(s + 1, 2) + min(a, s) * b;
  EXPECT_EQ(d.substitute({{"S", Dim(7)}}), Dim(4) + min(a, 7) * b);
  EXPECT_EQ(d.substitute({{"S", a * 2 + 1}, {"B", Dim(0)}}), a + 1);
  EXPECT_EQ(d.substitute({}), d);
  EXPECT_EQ((s * 2).substitute({{"S", s + 1}}), s * 2 + 2) << "the new symbol is not replaced again";
  EXPECT_EQ(error_of([&] { d.substitute({{"S", Dim(1)}}); }), "size symbol S of bounds 2..512 is replaced by 1");
}

TEST(Dim, SymbolsAndTheirErrors) {
  DimSymbols found;
  (floordiv(s, a) * b + 1).collect_symbols(found);
  EXPECT_EQ(found, (DimSymbols{{"A", {1, 9}}, {"B", {0, 5}}, {"S", {2, 512}}}));
  EXPECT_EQ(s.symbol_name(), "S");
  EXPECT_EQ((s * 2).symbol_name(), "");
  EXPECT_EQ(floordiv(s, 2).symbol_name(), "");
  const Dim other = Dim::symbol("S", 2, 8);
  const std::string clash = "size symbol S has bounds 2..512 and 2..8";
  EXPECT_EQ(error_of([&] { s + other; }), clash);
  EXPECT_EQ(error_of([&] { s* other; }), clash);
  EXPECT_EQ(error_of([&] { min(s, other); }), clash);
  EXPECT_EQ(error_of([&] { floordiv(s, other); }), clash);
  EXPECT_EQ(error_of([&] { floordiv(s * a, other); }), clash);
  EXPECT_EQ(error_of([&] { other.collect_symbols(found); }), clash);
  EXPECT_EQ(error_of([] { Dim::symbol("2x"); }), "size symbol \"2x\" is not an identifier of at most 64 characters");
  EXPECT_EQ(error_of([] { Dim::symbol("min"); }), "size symbol min has the name of an operation");
  EXPECT_EQ(error_of([] { Dim::symbol("S", -1, 4); }), "size symbol S has bounds -1..4, expected 0 <= low <= high");
  EXPECT_EQ(error_of([] { Dim::symbol("S", 4, 3); }), "size symbol S has bounds 4..3, expected 0 <= low <= high");
  EXPECT_NE(error_of([] { Dim::symbol(std::string(65, 'x')); }), "");
  EXPECT_NE(internal_error_of([] { (void)s.constant(); }), "");
}

TEST(Dim, ArithmeticErrors) {
  EXPECT_EQ(error_of([] { Dim(largest) + 1; }), "size of a sum of sizes overflows 63 bits");
  EXPECT_EQ(error_of([] { Dim(largest) * 2; }), "size of a product of sizes overflows 63 bits");
  EXPECT_EQ(error_of([] { s* largest + s; }), "size of a size expression overflows 63 bits");
  EXPECT_EQ(error_of([] { floordiv(s, 0); }), "division of size S by 0");
  EXPECT_EQ(error_of([] { ceildiv(3, 0); }), "division of size 3 by 0");
  EXPECT_EQ(error_of([] { floordiv(Dim(least), -1); }), "size of quotient overflows 63 bits");
  EXPECT_EQ(error_of([] {
              Dim d = 1;
              for (int i = 0; i < 17; ++i) d = d * s;
            }),
            "size expression has degree 17, at most 16 is kept");
  EXPECT_EQ(error_of([] {
              Dim d = 0;
              for (int i = 0; i < 65; ++i) d = d + Dim::symbol("x" + std::to_string(i));
            }),
            "size expression has 65 terms, at most 64 are kept");
  EXPECT_EQ(error_of([] {
              Dim d = Dim::symbol(std::string(60, 'x'));
              for (int i = 0; i < 100; ++i) d = floordiv(d * s + 1, 2) + d;
            }),
            "size expression is 5025 characters long, at most 4096 are kept");
}

TEST(Dim, TextOfSizesIsRead) {
  EXPECT_EQ(read("2*S+1"), s * 2 + 1);
  EXPECT_EQ(read(" S\t-\n3 * A\r"), s - a * 3);
  EXPECT_EQ(read("-S"), s * -1);
  EXPECT_EQ(read("-3*S*-2"), s * 6);
  EXPECT_EQ(read("floordiv(S+1, max(A,3))"), floordiv(s + 1, max(a, 3)));
  EXPECT_EQ(read("min(ceildiv(S,2),A)"), min(ceildiv(s, 2), a));
  EXPECT_EQ(read("9223372036854775807"), Dim(largest));
  EXPECT_EQ(read("-9223372036854775808"), Dim(least));
  EXPECT_EQ(read("-9223372036854775808*S"), s * Dim(least));
}

TEST(Dim, TextErrors) {
  const auto error = [](std::string_view text) { return error_of([&] { read(text); }); };
  EXPECT_EQ(error(""), "expected a size before \"\"");
  EXPECT_EQ(error("S+"), "expected a size before \"\"");
  EXPECT_EQ(error("S*/2"), "expected a size before \"/2\"");
  EXPECT_EQ(error("Q+1"), "unknown size symbol \"Q\"");
  EXPECT_EQ(error("1+Q"), "unknown size symbol \"Q\"");
  EXPECT_EQ(error("12ab"), "\"12ab\" is not a number");
  EXPECT_EQ(error("min(S"), "expected \",\" before \"\"");
  EXPECT_EQ(error("min(S,A"), "expected \")\" before \"\"");
  EXPECT_EQ(error("min S"), "expected \"(\" before \"S\"");
  EXPECT_EQ(error("floordiv(S,0)"), "division of size S by 0");
  EXPECT_EQ(error("9223372036854775808"), "size of a number in a size expression overflows 63 bits");
  EXPECT_EQ(error("-9223372036854775809"), "size of a number in a size expression overflows 63 bits");
  EXPECT_EQ(error("99999999999999999999999"), "size of a number in a size expression overflows 63 bits");
  EXPECT_EQ(error("--1"), "expected a size before \"-1\"");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "min(";
  EXPECT_EQ(error(deep), "size expression is nested deeper than 600");
}

// What arithmetic makes, parsing must take.
TEST(Dim, DeepCanonicalTextReadsBack) {
  Dim d = s;
  for (int i = 0; i < 200; ++i) d = floordiv(d + 1, 2);
  EXPECT_EQ(read(d.text()), d);
}

TEST(Dim, LongTextIsReadInLinearTime) {
  std::string sum = "A", product = "A", mixed = "A";
  for (int i = 0; i < 250000; ++i) {
    sum += "+1";
    product += "*1";
    mixed += i % 2 ? "-S" : "+S";
  }
  EXPECT_EQ(read(sum), a + 250000);
  EXPECT_EQ(read(product), a);
  EXPECT_EQ(read(mixed), a);
}

// Random expressions as trees that are evaluated without Dim.
struct Tree {
  int kind = 0;  // 0 constant, 1 symbol, 2 +, 3 -, 4 *, 5 floordiv, 6 ceildiv, 7 min, 8 max
  Index number = 0;
  std::vector<Tree> in;
};

const char* const symbol_names[] = {"A", "B", "S"};

Tree random_tree(int depth) {
  Tree t;
  t.kind = depth == 0 ? *rc::gen::inRange(0, 2) : *rc::gen::inRange(0, 9);
  if (t.kind == 0) t.number = *rc::gen::inRange<Index>(-6, 7);
  if (t.kind == 1) t.number = *rc::gen::inRange<Index>(0, 3);
  if (t.kind >= 2) {
    t.in.push_back(random_tree(depth - 1));
    t.in.push_back(random_tree(depth - 1));
  }
  return t;
}

Dim build(const Tree& t) {
  if (t.kind == 0) return t.number;
  if (t.kind == 1) return abs_symbols.at(symbol_names[t.number]);
  const Dim x = build(t.in[0]), y = build(t.in[1]);
  switch (t.kind) {
    case 2:
      return x + y;
    case 3:
      return x - y;
    case 4:
      return x * y;
    case 5:
      return floordiv(x, y);
    case 6:
      return ceildiv(x, y);
    case 7:
      return min(x, y);
    default:
      return max(x, y);
  }
}

// Absent: division by 0.
std::optional<Index> value(const Tree& t, const DimEnv& env) {
  if (t.kind == 0) return t.number;
  if (t.kind == 1) return env.at(symbol_names[t.number]);
  const auto x = value(t.in[0], env), y = value(t.in[1], env);
  if (!x || !y) return {};
  const auto down = [](Index p, Index q) {  // the largest n with n * q <= p (q > 0), by correction of C's quotient
    Index n = p / q;
    while ((q > 0 && n * q > p) || (q < 0 && n * q < p)) --n;
    return n;
  };
  switch (t.kind) {
    case 2:
      return *x + *y;
    case 3:
      return *x - *y;
    case 4:
      return *x * *y;
    case 5:
      return *y == 0 ? std::nullopt : std::optional(down(*x, *y));
    case 6:
      return *y == 0 ? std::nullopt : std::optional(-down(-*x, *y));
    case 7:
      return std::min(*x, *y);
    default:
      return std::max(*x, *y);
  }
}

DimEnv random_env() {
  return {{"A", *rc::gen::inRange<Index>(1, 10)},
          {"B", *rc::gen::inRange<Index>(0, 6)},
          {"S", *rc::gen::inRange<Index>(2, 513)}};
}

// Expressions that arithmetic refuses (division by the constant 0, too many terms) are another test's.
std::optional<Dim> built(const Tree& t) {
  try {
    return build(t);
  } catch (const Error&) {
    return {};
  }
}

RC_GTEST_PROP(DimProperty, EvaluationCommutesWithArithmetic, ()) {
  const Tree t = random_tree(*rc::gen::inRange(1, 5));
  const std::optional<Dim> d = built(t);
  RC_PRE(d.has_value());
  const DimEnv env = random_env();
  const std::optional<Index> want = value(t, env);
  RC_PRE(want.has_value());
  RC_ASSERT(d->evaluate(env) == *want);
  RC_ASSERT(d->bounds().lo <= *want);
  RC_ASSERT(*want <= d->bounds().hi);
}

TEST(Dim, QuotientsAtTheLeastInteger) {
  EXPECT_EQ(ceildiv(Dim(least), Dim(5)), Dim(-1844674407370955161));
  EXPECT_EQ(floordiv(Dim(least), Dim(5)), Dim(-1844674407370955162));
  EXPECT_EQ(ceildiv(Dim(least), Dim(1)), Dim(least));
}

RC_GTEST_PROP(DimProperty, CanonicalTextReadsBackEqual, ()) {
  const std::optional<Dim> d = built(random_tree(*rc::gen::inRange(1, 5)));
  RC_PRE(d.has_value());
  const Dim back = read(d->text());
  RC_ASSERT(back == *d);
  RC_ASSERT(back.text() == d->text());
  RC_ASSERT(back.hash() == d->hash());
  RC_ASSERT(back.bounds() == d->bounds());
}

RC_GTEST_PROP(DimProperty, SubstitutionCommutesWithEvaluation, ()) {
  const std::optional<Dim> d = built(random_tree(*rc::gen::inRange(1, 4)));
  RC_PRE(d.has_value());
  const DimEnv env = random_env();
  const Dim shift = *rc::gen::inRange<Index>(0, 3);  // S becomes T + shift
  const Dim t = Dim::symbol("T", 0, 600);
  DimEnv after = env;
  after["T"] = env.at("S") - shift.constant();
  RC_PRE(error_of([&] { d->evaluate(env); }).empty());
  const Index want = d->evaluate(env);
  RC_ASSERT(d->substitute({{"S", t + shift}}).evaluate(after) == want);
  RC_ASSERT(d->substitute({{"A", env.at("A")}, {"B", env.at("B")}, {"S", env.at("S")}}) == Dim(want));
}

RC_GTEST_PROP(DimProperty, EqualPolynomialsAreEqualObjects, ()) {
  const std::optional<Dim> x = built(random_tree(2)), y = built(random_tree(2)), z = built(random_tree(2));
  RC_PRE(x && y && z);
  RC_ASSERT(*x + *y == *y + *x);
  RC_ASSERT(*x * *y == *y * *x);
  RC_ASSERT((*x + *y) * *z == *x * *z + *y * *z);
  RC_ASSERT(*x - *x == Dim(0));
  RC_ASSERT(min(*x, *y) == min(*y, *x));
  RC_ASSERT(max(*x, *y) == max(*y, *x));
}

}  // namespace
}  // namespace rlx::test
