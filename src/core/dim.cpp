// Canonical size expressions: sorted sums of products of atoms.
#include "core/dim.h"

#include <algorithm>
#include <limits>

#include "core/checked.h"
#include "core/error.h"

namespace rlx {

namespace {

enum class Kind : std::uint8_t { symbol, floordiv, ceildiv, min, max };
constexpr std::string_view kind_names[] = {"", "floordiv", "ceildiv", "min", "max"};
constexpr std::size_t most_terms = 64, largest_degree = 16, longest_text = 4096;

struct Atom {
  Kind kind;
  Bounds bounds;
  std::string key;        // the symbol's name, or the text of the call; unique
  std::vector<Dim> args;  // two, unless a symbol
};
using AtomPtr = std::shared_ptr<const Atom>;

struct Term {
  std::vector<AtomPtr> atoms;  // sorted by key, repeated for powers; empty for the constant
  Index factor = 0;
};

std::strong_ordering compare_atoms(const std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  return std::lexicographical_compare_three_way(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const AtomPtr& x, const AtomPtr& y) { return x == y ? std::strong_ordering::equal : x->key <=> y->key; });
}

// Terms are ordered with the constant last, so that `S+1` reads as people write it.
bool term_before(const Term& a, const Term& b) {
  if (a.atoms.empty() != b.atoms.empty()) return b.atoms.empty();
  return compare_atoms(a.atoms, b.atoms) < 0;
}

Index saturating_add(Index a, Index b) {
  Index r = 0;
  if (!__builtin_add_overflow(a, b, &r)) return r;
  return a > 0 ? std::numeric_limits<Index>::max() : std::numeric_limits<Index>::min();
}

Index saturating_multiply(Index a, Index b) {
  Index r = 0;
  if (!__builtin_mul_overflow(a, b, &r)) return r;
  return (a > 0) == (b > 0) ? std::numeric_limits<Index>::max() : std::numeric_limits<Index>::min();
}

Index floor_quotient(Index a, Index b) {
  require(b != 0, "division of size {} by 0", a);
  require(!(a == std::numeric_limits<Index>::min() && b == -1), "size of quotient overflows 63 bits");
  const Index q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

Index ceil_quotient(Index a, Index b) {
  const Index q = floor_quotient(a, b);
  return a % b == 0 ? q : q + 1;  // no product: q * b may not fit
}

Index apply(Kind kind, Index a, Index b) {
  switch (kind) {
    case Kind::floordiv:
      return floor_quotient(a, b);
    case Kind::ceildiv:
      return ceil_quotient(a, b);
    case Kind::min:
      return std::min(a, b);
    case Kind::max:
      return std::max(a, b);
    case Kind::symbol:
      break;
  }
  ensure(false, "a symbol is not applied");
  return 0;
}

Bounds multiply_bounds(Bounds a, Bounds b) {
  const Index p[] = {saturating_multiply(a.lo, b.lo), saturating_multiply(a.lo, b.hi), saturating_multiply(a.hi, b.lo),
                     saturating_multiply(a.hi, b.hi)};
  return {*std::ranges::min_element(p), *std::ranges::max_element(p)};
}

Bounds atom_bounds(Kind kind, Bounds a, Bounds b) {
  constexpr Bounds anything{std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max()};
  if (kind == Kind::min) return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
  if (kind == Kind::max) return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  if (b.hi <= 0) return anything;
  // A divisor of 0 is an error when evaluated, so that 1 is the least divisor that gives a value.
  const Index divisors[] = {std::max<Index>(b.lo, 1), b.hi};
  Bounds r{std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min()};
  for (const Index x : {a.lo, a.hi}) {
    for (const Index y : divisors) {
      const Index q = apply(kind, x, y);
      r = {std::min(r.lo, q), std::max(r.hi, q)};
    }
  }
  return b.lo < 0 ? anything : r;
}

bool is_identifier(std::string_view s) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !s.empty() && s.size() <= 64 && letter(s[0]) &&
         std::ranges::all_of(s, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

struct Dim::Poly {
  std::vector<Term> terms;  // sorted, no zero factors
  Bounds bounds;
  std::size_t hash = 0;
  std::string text;
};

struct DimBuilder {
  static std::vector<Term> terms(const Dim& d) {
    if (d.poly_) return d.poly_->terms;
    if (d.value_ == 0) return {};
    return {Term{{}, d.value_}};
  }

  static std::string text(const std::vector<Term>& terms) {
    std::string s;
    for (const Term& t : terms) {
      std::string product;
      for (const AtomPtr& a : t.atoms) product += (product.empty() ? "" : "*") + a->key;
      const bool negative = t.factor < 0;
      std::string digits = std::to_string(t.factor);
      if (negative) digits.erase(0, 1);
      if (negative) s += '-';
      if (!negative && !s.empty()) s += '+';
      if (product.empty()) {
        s += digits;
      } else {
        s += digits == "1" ? product : digits + "*" + product;
      }
    }
    return s;
  }

  static Bounds bounds(const std::vector<Term>& terms) {
    Bounds sum{0, 0};
    for (const Term& t : terms) {
      // In the order of evaluate(): whatever saturates here is an Error there.
      Bounds product{t.factor, t.factor};
      for (const AtomPtr& a : t.atoms) product = multiply_bounds(product, a->bounds);
      sum = {saturating_add(sum.lo, product.lo), saturating_add(sum.hi, product.hi)};
    }
    return sum;
  }

  static Dim make(std::vector<Term> terms) {
    std::ranges::sort(terms, term_before);
    std::vector<Term> joined;
    for (Term& t : terms) {
      if (!joined.empty() && compare_atoms(joined.back().atoms, t.atoms) == 0) {
        check_same(joined.back(), t);
        joined.back().factor = (Checked(joined.back().factor) + Checked(t.factor)).value("a size expression");
      } else {
        joined.push_back(std::move(t));
      }
    }
    std::erase_if(joined, [](const Term& t) { return t.factor == 0; });
    if (joined.empty()) return Dim(0);
    if (joined.size() == 1 && joined[0].atoms.empty()) return Dim(joined[0].factor);
    require(joined.size() <= most_terms, "size expression has {} terms, at most {} are kept", joined.size(),
            most_terms);
    auto poly = std::make_shared<Dim::Poly>();
    poly->text = text(joined);
    require(poly->text.size() <= longest_text, "size expression is {} characters long, at most {} are kept",
            poly->text.size(), longest_text);
    poly->bounds = bounds(joined);
    poly->hash = std::hash<std::string>{}(poly->text);
    poly->terms = std::move(joined);
    Dim d;
    d.poly_ = std::move(poly);
    return d;
  }

  static void check_same(const Term& a, const Term& b) {
    for (std::size_t i = 0; i < a.atoms.size(); ++i) {
      if (a.atoms[i] != b.atoms[i]) check_same(*a.atoms[i], *b.atoms[i]);
    }
  }
  static void check_same(const Atom& a, const Atom& b) {
    require(a.bounds == b.bounds, "size symbol {} has bounds {}..{} and {}..{}", a.key, a.bounds.lo, a.bounds.hi,
            b.bounds.lo, b.bounds.hi);
  }

  static Dim from_atom(AtomPtr atom) { return make({Term{{std::move(atom)}, 1}}); }

  static Dim call(Kind kind, const Dim& a, const Dim& b) {
    std::string key = std::string(kind_names[static_cast<int>(kind)]) + "(" + a.text() + "," + b.text() + ")";
    return from_atom(
        std::make_shared<Atom>(Atom{kind, atom_bounds(kind, a.bounds(), b.bounds()), std::move(key), {a, b}}));
  }

  static void check_symbols(const Dim& a, const Dim& b) {
    if (a.is_constant() || b.is_constant()) return;
    DimSymbols both;
    a.collect_symbols(both);
    b.collect_symbols(both);
  }

  // The quotient when every term of `a` is divisible by the single term of `b`.
  static bool divide(const Dim& a, const Dim& b, Dim& quotient) {
    const std::vector<Term> divisor = terms(b);
    if (divisor.size() != 1) return false;
    const auto& [atoms, factor] = divisor[0];
    const auto by_key = [](const AtomPtr& x, const AtomPtr& y) { return x->key < y->key; };
    std::vector<Term> result;
    for (const Term& t : terms(a)) {
      if (t.factor % factor != 0 || !std::ranges::includes(t.atoms, atoms, by_key)) return false;
      if (factor == -1 && t.factor == std::numeric_limits<Index>::min()) return false;
      Term q{{}, t.factor / factor};
      std::ranges::set_difference(t.atoms, atoms, std::back_inserter(q.atoms), by_key);
      result.push_back(std::move(q));
    }
    quotient = make(std::move(result));
    return true;
  }
};

Dim Dim::symbol(std::string_view name, Index lo, Index hi) {
  require(is_identifier(name), "size symbol \"{}\" is not an identifier of at most 64 characters", name.substr(0, 80));
  for (const std::string_view k : kind_names) require(name != k, "size symbol {} has the name of an operation", name);
  require(0 <= lo && lo <= hi, "size symbol {} has bounds {}..{}, expected 0 <= low <= high", name, lo, hi);
  if (lo == hi) return Dim(lo);
  return DimBuilder::from_atom(std::make_shared<Atom>(Atom{Kind::symbol, {lo, hi}, std::string(name), {}}));
}

Index Dim::constant() const {
  ensure(is_constant(), "the size is not a constant");
  return value_;
}

Bounds Dim::bounds() const { return poly_ ? poly_->bounds : Bounds{value_, value_}; }

Index Dim::evaluate(const DimEnv& env) const {
  if (!poly_) return value_;
  Checked sum(0);
  for (const Term& t : poly_->terms) {
    Checked product(t.factor);
    bool zero = false;  // makes the term 0 even when the other factors overflow together
    for (const AtomPtr& a : t.atoms) {
      if (a->kind != Kind::symbol) {
        const Index value = apply(a->kind, a->args[0].evaluate(env), a->args[1].evaluate(env));
        zero |= value == 0;
        product = product * Checked(value);
        continue;
      }
      const auto it = env.find(a->key);
      require(it != env.end(), "size symbol {} has no value", a->key);
      require(a->bounds.lo <= it->second && it->second <= a->bounds.hi,
              "size symbol {} is {}, outside its bounds {}..{}", a->key, it->second, a->bounds.lo, a->bounds.hi);
      zero |= it->second == 0;
      product = product * Checked(it->second);
    }
    if (!zero) sum = sum + product;
  }
  return sum.value(poly_->text);
}

void Dim::collect_symbols(DimSymbols& out) const {
  if (!poly_) return;
  for (const Term& t : poly_->terms) {
    for (const AtomPtr& a : t.atoms) {
      for (const Dim& d : a->args) d.collect_symbols(out);
      if (a->kind != Kind::symbol) continue;
      const auto [it, added] = out.emplace(a->key, a->bounds);
      require(added || it->second == a->bounds, "size symbol {} has bounds {}..{} and {}..{}", a->key, it->second.lo,
              it->second.hi, a->bounds.lo, a->bounds.hi);
    }
  }
}

Dim Dim::substitute(const std::map<std::string, Dim, std::less<>>& by) const {
  if (!poly_) return *this;
  Dim sum;
  for (const Term& t : poly_->terms) {
    Dim product(t.factor);
    for (const AtomPtr& a : t.atoms) {
      Dim factor;
      if (a->kind == Kind::symbol) {
        const auto it = by.find(a->key);
        factor = it == by.end() ? DimBuilder::from_atom(a) : it->second;
        const Bounds b = factor.bounds();
        require(b.lo <= a->bounds.hi && a->bounds.lo <= b.hi, "size symbol {} of bounds {}..{} is replaced by {}",
                a->key, a->bounds.lo, a->bounds.hi, factor.text());
      } else {
        const Dim x = a->args[0].substitute(by), y = a->args[1].substitute(by);
        factor = a->kind == Kind::floordiv  ? floordiv(x, y)
                 : a->kind == Kind::ceildiv ? ceildiv(x, y)
                 : a->kind == Kind::min     ? min(x, y)
                                            : max(x, y);
      }
      product = product * factor;
    }
    sum = sum + product;
  }
  return sum;
}

std::string_view Dim::symbol_name() const {
  if (!poly_ || poly_->terms.size() != 1 || poly_->terms[0].factor != 1 || poly_->terms[0].atoms.size() != 1) return {};
  const Atom& a = *poly_->terms[0].atoms[0];
  return a.kind == Kind::symbol ? std::string_view(a.key) : std::string_view();
}

std::string Dim::text() const { return poly_ ? poly_->text : std::to_string(value_); }
std::size_t Dim::hash() const { return poly_ ? poly_->hash : std::hash<Index>{}(value_); }

bool operator==(const Dim& a, const Dim& b) {
  if (!a.poly_ || !b.poly_) return !a.poly_ && !b.poly_ && a.value_ == b.value_;
  return a.poly_ == b.poly_ ||
         (a.poly_->hash == b.poly_->hash && a.poly_->text == b.poly_->text && a.poly_->bounds == b.poly_->bounds);
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return (Checked(a.value_) + Checked(b.value_)).value("a sum of sizes");
  std::vector<Term> t = DimBuilder::terms(a);
  for (Term& x : DimBuilder::terms(b)) t.push_back(std::move(x));
  return DimBuilder::make(std::move(t));
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return (Checked(a.value_) * Checked(b.value_)).value("a product of sizes");
  std::vector<Term> product;
  for (const Term& x : DimBuilder::terms(a)) {
    for (const Term& y : DimBuilder::terms(b)) {
      Term t{x.atoms, (Checked(x.factor) * Checked(y.factor)).value("a product of sizes")};
      t.atoms.insert(t.atoms.end(), y.atoms.begin(), y.atoms.end());
      require(t.atoms.size() <= largest_degree, "size expression has degree {}, at most {} is kept", t.atoms.size(),
              largest_degree);
      std::ranges::sort(t.atoms, {}, [](const AtomPtr& p) -> const std::string& { return p->key; });
      for (std::size_t i = 1; i < t.atoms.size(); ++i) {
        if (t.atoms[i]->key == t.atoms[i - 1]->key) DimBuilder::check_same(*t.atoms[i - 1], *t.atoms[i]);
      }
      product.push_back(std::move(t));
    }
  }
  return DimBuilder::make(std::move(product));
}

Dim floordiv(const Dim& a, const Dim& b) {
  require(b != Dim(0), "division of size {} by 0", a.text());
  if (a.is_constant() && b.is_constant()) return floor_quotient(a.value_, b.value_);
  DimBuilder::check_symbols(a, b);
  if (a == b && b.bounds().lo > 0) return 1;
  Dim quotient;
  if ((b.is_constant() || b.bounds().lo > 0) && DimBuilder::divide(a, b, quotient)) return quotient;
  return DimBuilder::call(Kind::floordiv, a, b);
}

Dim ceildiv(const Dim& a, const Dim& b) {
  require(b != Dim(0), "division of size {} by 0", a.text());
  if (a.is_constant() && b.is_constant()) return ceil_quotient(a.value_, b.value_);
  DimBuilder::check_symbols(a, b);
  if (a == b && b.bounds().lo > 0) return 1;
  Dim quotient;
  if ((b.is_constant() || b.bounds().lo > 0) && DimBuilder::divide(a, b, quotient)) return quotient;
  return DimBuilder::call(Kind::ceildiv, a, b);
}

Dim mod(const Dim& a, const Dim& b) { return a - floordiv(a, b) * b; }

// Of two sizes that are provably equal, the one that either order of the operands gives.
static Dim representative(const Dim& a, const Dim& b) {
  if (a.is_constant() != b.is_constant()) return a.is_constant() ? a : b;
  return a.text() <= b.text() ? a : b;
}

Dim min(const Dim& a, const Dim& b) {
  const Bounds difference = (a - b).bounds();
  if (difference == Bounds{0, 0}) return representative(a, b);
  if (difference.hi <= 0) return a;
  if (difference.lo >= 0) return b;
  return a.text() < b.text() ? DimBuilder::call(Kind::min, a, b) : DimBuilder::call(Kind::min, b, a);
}

Dim max(const Dim& a, const Dim& b) {
  const Bounds difference = (a - b).bounds();
  if (difference == Bounds{0, 0}) return representative(a, b);
  if (difference.hi <= 0) return b;
  if (difference.lo >= 0) return a;
  return a.text() < b.text() ? DimBuilder::call(Kind::max, a, b) : DimBuilder::call(Kind::max, b, a);
}

Tri equal(const Dim& a, const Dim& b) {
  if (a == b) return Tri::yes;
  if (a.is_constant() && b.is_constant()) return Tri::no;
  const Bounds difference = (a - b).bounds();
  if (difference.lo > 0 || difference.hi < 0) return Tri::no;
  return difference.lo == 0 && difference.hi == 0 ? Tri::yes : Tri::unknown;
}

namespace {

// Deeper than any canonical text: a level takes at least 7 of its characters. Hostile text cannot exhaust the stack.
constexpr int deepest = 600;

// Recursive descent.
class DimParser {
 public:
  DimParser(std::string_view text, std::size_t& position, const std::map<std::string, Dim, std::less<>>& symbols)
      : text_(text), position_(position), symbols_(symbols) {}

  Dim sum() {
    require(++depth_ <= deepest, "size expression is nested deeper than {}", deepest);
    Dim d = product();
    const bool more = peek() == '+' || peek() == '-';
    if (more) d = rest_of_sum(d);
    --depth_;
    return d;
  }

 private:
  // All terms are joined at once: text of n terms takes n log n steps.
  Dim rest_of_sum(const Dim& first) {
    Checked constant(0);
    std::vector<Term> terms;
    const auto add = [&](const Dim& d) {
      if (d.is_constant()) {
        constant = constant + Checked(d.constant());
      } else {
        for (Term& t : DimBuilder::terms(d)) terms.push_back(std::move(t));
      }
    };
    add(first);
    for (;;) {
      if (take('+')) {
        add(product());
      } else if (take('-')) {
        add(Dim(-1) * product());
      } else {
        break;
      }
    }
    terms.push_back({{}, constant.value("a sum of sizes")});
    return DimBuilder::make(std::move(terms));
  }

  Dim product() {
    Dim d = factor();
    if (peek() != '*') return d;
    Checked constant(1);
    bool zero = false;
    const auto multiply = [&](const Dim& by) {
      if (by.is_constant()) {
        constant = constant * Checked(by.constant());
        zero = zero || by.constant() == 0;
        return;
      }
      if (!zero) d = d * by;
    };
    const Dim first = std::exchange(d, Dim(1));
    multiply(first);
    while (take('*')) multiply(factor());
    return zero ? Dim(0) : Dim(constant.value("a product of sizes")) * d;
  }

  Dim factor() { return take('-') ? unsigned_factor(true) : unsigned_factor(false); }

  Dim unsigned_factor(bool negative) {
    skip();
    const std::size_t begin = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_')) {
      ++position_;
    }
    const std::string_view word = text_.substr(begin, position_ - begin);
    require(!word.empty(), "expected a size before \"{}\"", rest());
    if (word[0] >= '0' && word[0] <= '9') return number(word, negative);
    const Dim d = named(word);
    return negative ? Dim(-1) * d : d;
  }

  Dim named(std::string_view word) {
    for (const Kind k : {Kind::floordiv, Kind::ceildiv, Kind::min, Kind::max}) {
      if (word == kind_names[static_cast<int>(k)]) return call(k);
    }
    const auto it = symbols_.find(word);
    require(it != symbols_.end(), "unknown size symbol \"{}\"", word.substr(0, 64));
    return it->second;
  }

  // Digits are subtracted from a negative number, so that the least one is in range.
  static Dim number(std::string_view word, bool negative) {
    Checked n(0);
    for (const char c : word) {
      require(c >= '0' && c <= '9', "\"{}\" is not a number", word.substr(0, 64));
      const Checked digit(c - '0');
      n = negative ? n * Checked(10) - digit : n * Checked(10) + digit;
    }
    return n.value("a number in a size expression");
  }

  Dim call(Kind kind) {
    need('(');
    const Dim a = sum();
    need(',');
    const Dim b = sum();
    need(')');
    switch (kind) {
      case Kind::floordiv:
        return floordiv(a, b);
      case Kind::ceildiv:
        return ceildiv(a, b);
      case Kind::min:
        return min(a, b);
      default:
        return max(a, b);
    }
  }

  void skip() {
    while (position_ < text_.size() && std::string_view(" \n\t\r").find(text_[position_]) != std::string_view::npos)
      ++position_;
  }
  char peek() {
    skip();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  std::string_view rest() const { return text_.substr(position_, 12); }
  bool take(char c) {
    skip();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void need(char c) {
    if (!take(c)) fail("expected \"{}\" before \"{}\"", c, rest());
  }

  std::string_view text_;
  std::size_t& position_;
  const std::map<std::string, Dim, std::less<>>& symbols_;
  int depth_ = 0;
};

}  // namespace

Dim parse_dim(std::string_view text, std::size_t& position, const std::map<std::string, Dim, std::less<>>& symbols) {
  return DimParser(text, position, symbols).sum();
}

}  // namespace rlx
