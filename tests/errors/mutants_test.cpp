// Hostile text: mutants of real texts, nesting bombs, huge expressions and lines. Each is a graph whose text is stable,
// or an Error; in bounded time and memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <ctime>
#include <random>

#include "core/error.h"
#include "ir/verify.h"
#include "memory.h"
#include "mutate.h"
#include "probe_ops.h"

namespace rlx::test {
namespace {

const char* const seeds[] = {
    R"(rlx 1
graph(%x: f32[B,2*S], %kv: f32[B,S], %w: f32:q4_0@1[64,256], %"b c": f32[T])
  dims(B: 1..8, S: 2..512, T: 2..600) {
  %0 = halves %x {axis=1} : f32[B,S], f32[B,S]
  %1 = add %kv, %0#0 : f32[B,S]
  %2 = fusion %1, %kv : f32[B,S] = graph(%a: f32[B,S], %b: f32[B,S]) {
    %0 = mul %a, %b : f32[B,S]
    %1 = exp %0 : f32[B,S]
    return %1
  } names(%0: "product")
  %3 = constant {data=@k0} : f32[20]
  %5 = exp %1 !1 : f32[B,S]
  %6 = add %"b c", %kv : f32[B,S]
  check T = S "broadcast"
  check S = floordiv(T,2) "concat"
  state kv: %kv -> %1
  return %0#1, %2 "last", %3, %5, %6
} names(%1: "layer.0/add", %0#1: "right half")
)",
    R"(rlx 1
graph(%x: f64[S,ceildiv(S+1,3)], %i: i64[4])
  dims(S: 2..512) {
  %0 = reshape %x {dims=[S*ceildiv(S+1,3)]} : f64[S*ceildiv(S+1,3)]
  %1 = transpose %x {order=[1,0]} : f64[ceildiv(S+1,3),S]
  %2 = reduce %x {axes=[0,-1], keep=true} : f64[1,1]
  %3 = constant {data=i8[3](-1,2,127)} : i8[3]
  %4 = constant {data=f32[100](0.5)} : f32[100]
  %5 = iota {dtype=i64, dims=[min(S,7),2]} : i64[min(7,S),2]
  %6 = sizes {dims=[2*S,max(S-3,0)]} : i64[2]
  %7 = cast %i {to=u8} : u8[4]
  %8 = broadcast %2 {dims=[S,5]} : f64[S,5]
  return %0, %1, %3, %4, %5, %6, %7, %8
}
)",
    R"(rlx 1
graph(%x: f32[S]) dims(S: 2..512) {
  %0 = knobs %x {flag=true, count=-3, ratio=-0.5, word="a\x41\n", dtype=i4, size=2*S-1, shade=dark, limit=inf,
    extent=S, note="none", flags=[true,false], counts=[1,-2], ratios=[nan,1e30], words=["",",]"], dtypes=[i4,bool],
    sizes=[S,3], shades=[dark,light], data=u64[2](18446744073709551615,0)} : f32[S]
  return %0 "out" # a comment
}
)"};

using Random = std::mt19937;
std::size_t below(Random& r, std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(r); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Begin and end of the tokens: words, numbers, single characters.
std::vector<std::pair<std::size_t, std::size_t>> tokens(const std::string& s) {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  const auto word = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  for (std::size_t i = 0; i < s.size();) {
    std::size_t end = i + 1;
    if (word(s[i])) {
      while (end < s.size() && word(s[end])) ++end;
    }
    if (s[i] != ' ' && s[i] != '\n') all.emplace_back(i, end);
    i = end;
  }
  return all;
}

void flip_byte(std::string& s, Random& r) { s[below(r, s.size())] ^= static_cast<char>(1 << below(r, 8)); }
void put_byte(std::string& s, Random& r) {
  static constexpr std::string_view likely = "{}[]()%#\"\\,:=!@-+*. \n\t\r\0\x7f\xff/0123459aSe";
  s[below(r, s.size())] = likely[below(r, likely.size())];
}
void remove_range(std::string& s, Random& r) {
  const std::size_t at = below(r, s.size());
  s.erase(at, 1 + below(r, below(r, 4) == 0 ? s.size() : 12));
}
void repeat_range(std::string& s, Random& r) {
  const std::size_t at = below(r, s.size());
  const std::string part = s.substr(at, 1 + below(r, 80));
  s.insert(below(r, s.size()), part);
}
void swap_tokens(std::string& s, Random& r) {
  const auto t = tokens(s);
  auto a = t[below(r, t.size())], b = t[below(r, t.size())];
  if (a.first > b.first) std::swap(a, b);
  if (a.second > b.first) return;
  const std::string x = s.substr(a.first, a.second - a.first), y = s.substr(b.first, b.second - b.first);
  s.replace(b.first, y.size(), x);
  s.replace(a.first, x.size(), y);
}
void copy_token(std::string& s, Random& r) {
  const auto t = tokens(s);
  const auto a = t[below(r, t.size())], b = t[below(r, t.size())];
  s.replace(b.first, b.second - b.first, s.substr(a.first, a.second - a.first));
}
void replace_integer(std::string& s, Random& r) {
  static const std::string numbers[] = {"0",
                                        "-1",
                                        "1",
                                        "2",
                                        "64",
                                        "2147483648",
                                        "4294967296",
                                        "-9223372036854775808",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "18446744073709551615",
                                        "99999999999999999999999999",
                                        "1e308",
                                        "0.5",
                                        "nan",
                                        "1048576",
                                        "3000000000"};
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i < s.size();) {
    std::size_t end = i;
    while (end < s.size() && is_digit(s[end])) ++end;
    if (end > i) found.emplace_back(i, end);
    i = end + 1;
  }
  if (found.empty()) return;
  const auto [begin, end] = found[below(r, found.size())];
  s.replace(begin, end - begin, numbers[below(r, std::size(numbers))]);
}
void replace_size(std::string& s, Random& r) {
  static const std::string sizes[] = {"S*S",
                                      "-S",
                                      "S-S",
                                      "floordiv(S,0)",
                                      "floordiv(S,S-2)",
                                      "min(S,S*S)",
                                      "ceildiv(1,S)",
                                      "max(-S,-1)",
                                      "S*4611686018427387904",
                                      "floordiv(-1,S)",
                                      "2*S",
                                      "B",
                                      "S+9223372036854775807"};
  std::vector<std::size_t> found;
  for (std::size_t i = s.find('S'); i != std::string::npos; i = s.find('S', i + 1)) found.push_back(i);
  if (!found.empty()) s.replace(found[below(r, found.size())], 1, sizes[below(r, std::size(sizes))]);
}
void truncate(std::string& s, Random& r) { s.resize(below(r, s.size())); }

constexpr void (*mutations[])(std::string&, Random&) = {
    flip_byte, put_byte, remove_range, repeat_range, swap_tokens, copy_token, replace_integer, replace_size, truncate};

const NamedTensors& side_data() {
  static const NamedTensors data = [] {
    std::vector<double> v(20);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
    return NamedTensors{{"k0", Tensor::of<double>(DType::f32, {20}, v)}};
  }();
  return data;
}

// True: a graph, valid and of stable text. False: an Error. Anything else fails or escapes.
bool is_read(const std::string& text) {
  try {
    const Graph g = parse(text, parse_options(&side_data()));
    verify(g);
    ConstantSink sink;
    const std::string once = print(g, &sink);
    const NamedTensors data = sink.take();
    ConstantSink again;
    EXPECT_EQ(once, print(parse(once, parse_options(&data)), &again)) << "from:\n" << text;
    return true;
  } catch (const Error& e) {
    EXPECT_LT(std::string_view(e.what()).size(), 200000u);
    return false;
  }
}

double seconds_of(const std::string& text, bool* read = nullptr) {
  const std::clock_t start = std::clock();  // of the processor: other programs do not count
  const bool r = is_read(text);
  if (read) *read = r;
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Index peak_bytes() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return Index{u.ru_maxrss} * 1024;
}

TEST(BulkText, SeedsAreRead) {
  for (const char* s : seeds) {
    EXPECT_EQ(error_of([&] { verify(parse(s, parse_options(&side_data()))); }), "");
    EXPECT_TRUE(is_read(s));
  }
}

TEST(BulkText, EveryPrefixOfASeed) {
  for (const char* s : seeds) {
    const std::string text = s;
    for (std::size_t n = 0; n < text.size(); ++n) is_read(text.substr(0, n));
  }
}

TEST(BulkText, EveryByteOfASeedReplaced) {
  for (const char* s : seeds) {
    for (std::size_t i = 0; i < std::string_view(s).size(); ++i) {
      for (const char c : {'\0', '"', '#', '(', ')', '9', '-', ' ', '\xff'}) {
        std::string text = s;
        text[i] = c;
        is_read(text);
      }
    }
  }
}

TEST(BulkText, Mutants) {
  Random random(20240611);
  int read = 0, refused = 0;
  double slowest = 0;
  const Index before = peak_bytes();
  for (int i = 0; i < 24000; ++i) {
    std::string text = seeds[below(random, std::size(seeds))];
    const std::size_t steps = below(random, 2) ? 1 : 1 + below(random, 4);
    for (std::size_t k = 0; k < steps && !text.empty(); ++k)
      mutations[below(random, std::size(mutations))](text, random);
    bool ok = false;
    const double t = seconds_of(text, &ok);
    slowest = std::max(slowest, t);
    ASSERT_LE(t, 2.0) << text;
    ++(ok ? read : refused);
    if (HasFailure()) FAIL() << "mutant " << i;
  }
  EXPECT_GT(read, 500) << "the mutants are not all broken in the first line";
  EXPECT_GT(refused, 10000);
  if (!sanitized()) {
    EXPECT_LE(peak_bytes() - before, Index{64} << 20);
  }
  RecordProperty("read", read);
  RecordProperty("refused", refused);
  RecordProperty("slowest_ms", static_cast<int>(slowest * 1000));
  count_mutants(read + refused);
}

std::string repeated(std::string_view part, std::size_t n) {
  std::string s;
  for (std::size_t i = 0; i < n; ++i) s += part;
  return s;
}

// Texts of about a megabyte, each aimed at one loop, table or recursion: name and text.
using Bombs = std::vector<std::pair<const char*, std::string>>;

const std::string head = "rlx 1\ngraph(%x: f32[S]) dims(S: 2..512) {\n";

Bombs word_bombs() {
  constexpr std::size_t many = 1000000;
  const auto knobs = [](const std::string& attrs) {
    return head + "%0 = knobs %x {" + attrs + "} : f32[S] return %0 }";
  };
  return {
      {"a line of blanks", head + std::string(many, ' ') + "return %x }"},
      {"a line of digits", head + "%0 = exp %x !" + std::string(many, '9')},
      {"a long name", "rlx 1\ngraph(%" + std::string(many, 'a') + ": f32[]) { return }"},
      {"a long quoted name", "rlx 1\ngraph(%\"" + std::string(many, '\\') + "\": f32[]) { return }"},
      {"a long string", head + "return %x } names(%x: \"" + std::string(many, 'a') + "\")"},
      {"an open string", head + "return %x \"" + std::string(many, 'a')},
      {"a long comment", head + "#" + std::string(many, '"') + "\nreturn %x }"},
      {"open parentheses", "rlx 1\ngraph" + std::string(many, '(')},
      {"open brackets", head + "%0 = exp %x : f32" + std::string(many, '[')},
      {"nested bodies", "rlx 1\ngraph() {" + repeated("%0 = fusion : f32[] = graph() {", 30000)},
      {"a list of integers", knobs("counts=[" + repeated("1,", many / 2) + "1]")},
      {"a list of strings", knobs("words=[" + repeated("\"\",", many / 3) + "\"\"]")},
      {"a huge constant", "rlx 1\ngraph() { %0 = constant {data=f64[67108864](0)} : f64[67108864] return %0 }"},
      {"a huge iota",
       "rlx 1\ngraph() { %0 = iota {dtype=i64, dims=[9223372036854775807]} : i64[9223372036854775807] return %0 }"},
      {"null bytes", std::string(many, '\0')},
      {"bytes of 255", "rlx 1\n" + std::string(many, '\xff')},
  };
}

Bombs size_bombs() {
  std::string sum = "v0", dims = "dims(v0: 0..9";
  for (int i = 1; i < 64; ++i) {
    sum += "+v" + std::to_string(i);
    dims += ", v" + std::to_string(i) + ": 0..9";
  }
  const auto of_size = [&](const std::string& size) {
    return "rlx 1\ngraph(%x: f32[" + size + "]) " + dims + ") { return %x }";
  };
  const auto check = [](const std::string& size) { return head + "check S = " + size + " \"x\" return %x }"; };
  const std::string quotient = "floordiv(" + sum + ",1)*";
  return {
      {"nested calls", check(repeated("min(", 250000))},
      {"minus signs", check(std::string(1000000, '-'))},
      {"a sum of ones", check("S" + repeated("+1", 500000))},
      {"a product of ones", check("S" + repeated("*1", 500000))},
      {"a product of symbols", check("S" + repeated("*S", 500000))},
      {"a long sum times ones", of_size(repeated(quotient + "1-", 2500) + "1")},
      {"products of long sums", of_size(repeated(quotient, 16) + "1")},
      {"nested divisions", of_size(repeated("floordiv(", 500) + sum + repeated(",1)", 500))},
      {"many sizes", head + "%0 = exp %x : f32[" + repeated("1,", 500000)},
      {"many long sizes", of_size(repeated(sum + ",", 63) + sum)},
  };
}

Bombs table_bombs() {
  std::string states, inputs, checks, names, operands, chain, symbols = "d: 1..9", bodies;
  for (int i = 0; i < 20000; ++i) {
    const std::string n = std::to_string(i);
    inputs += (i ? ", %i" : "%i") + n + ": f32[]";
    states += "state s" + n + ": %i" + n + " -> %i" + n + "\n";
    checks += "check S = floordiv(T," + std::to_string(i + 2) + ") \"c" + n + "\"\n";
    names += (i ? ", %x: \"n" : "%x: \"n") + n + "\"";
    operands += i ? ", %x" : "%x";
    chain += "%" + n + " = exp %" + (i ? std::to_string(i - 1) : "x") + " : f32[S]\n";
    bodies += "%b" + n + " = fusion %x !" + n + " : f32[4] = graph(%a: f32[4]) { return %a }\n";
    symbols += ", d" + n + ": 1..9";
  }
  const std::string fixed = "rlx 1\ngraph(%x: f32[4]) dims(" + symbols + ") {\n";
  return {
      {"many states", "rlx 1\ngraph(" + inputs + ") {\n" + states + "return }"},
      {"many checks", "rlx 1\ngraph(%x: f32[S], %y: f32[T]) dims(S: 2..512, T: 2..99999) {\n" + checks + "return }"},
      {"many labels", head + "return %x } names(" + names + ")"},
      {"many operands", head + "%0 = exp " + operands + " : f32[S]"},
      {"many outputs", head + "return " + operands + " }"},
      {"a long chain", head + chain + "return %19999 }"},
      {"many symbols", fixed + "return %x }"},
      {"many symbols and bodies", fixed + bodies + "return %x }"},
  };
}

TEST(BulkText, BombsEndInTime) {
  const Index before = peak_bytes();
  for (const Bombs& bombs : {word_bombs(), size_bombs(), table_bombs()}) {
    for (const auto& [what, text] : bombs) {
      bool read = false;
      const double t = seconds_of(text, &read);
      EXPECT_LE(t, 2.0) << what;
      if (t > 0.3) std::printf("[          ] %s: %.2f s, %s\n", what, t, read ? "read" : "refused");
    }
  }
  if (!sanitized()) {
    EXPECT_LE(peak_bytes() - before, Index{512} << 20);
  }
}

}  // namespace
}  // namespace rlx::test
