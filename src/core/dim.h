// Symbolic sizes: integer expressions over named symbols with bounds, kept in one canonical form.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/index.h"

namespace rlx {

/// Smallest and largest value, both possible.
struct Bounds {
  Index lo = 0, hi = 0;
  bool operator==(const Bounds&) const = default;
};

/// Values of symbols, by name.
using DimEnv = std::map<std::string, Index, std::less<>>;
/// Bounds of symbols, by name.
using DimSymbols = std::map<std::string, Bounds, std::less<>>;

/// Upper bound of a symbol that was given none.
inline constexpr Index unbounded = Index{1} << 40;

/// A size: an integer constant, or a polynomial with integer coefficients over atoms, where an atom is a symbol or
/// floordiv, ceildiv, min, max of two sizes. Equal polynomials are equal objects with equal text. Arithmetic on
/// constants that overflows, division by 0, an expression of more than 64 terms or of degree over 16, and two symbols
/// of one name with different bounds throw Error.
class Dim {
 public:
  struct Poly;

  Dim(Index value = 0) : value_(value) {}
  /// A symbol; `name` is a C identifier, 0 <= lo <= hi. A symbol with lo == hi is the constant.
  static Dim symbol(std::string_view name, Index lo = 0, Index hi = unbounded);

  bool is_constant() const { return !poly_; }
  /// The number of a constant; throws InternalError otherwise.
  Index constant() const;

  /// Provable smallest and largest value (an interval; may be wider than what is reached).
  Bounds bounds() const;
  /// Value under `env`; throws Error for a symbol without value, a value outside the symbol's bounds, or an overflow.
  Index evaluate(const DimEnv& env) const;
  /// Adds every symbol to `out`; throws Error when one is there with other bounds.
  void collect_symbols(DimSymbols& out) const;
  /// Replaces symbols by sizes; symbols that `by` lacks stay. Throws Error for a size outside the symbol's bounds.
  Dim substitute(const std::map<std::string, Dim, std::less<>>& by) const;
  /// The name when this is exactly one symbol, else empty.
  std::string_view symbol_name() const;

  std::string text() const;
  std::size_t hash() const;
  friend bool operator==(const Dim& a, const Dim& b);

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Quotient rounded down; `b` must not be the constant 0. Exact divisions of polynomials by one term simplify.
  friend Dim floordiv(const Dim& a, const Dim& b);
  /// Quotient rounded up.
  friend Dim ceildiv(const Dim& a, const Dim& b);
  /// a - floordiv(a, b) * b: 0 when the division is provably exact.
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

 private:
  friend struct DimBuilder;
  Index value_;                       // the constant when poly_ is null
  std::shared_ptr<const Poly> poly_;  // otherwise
};

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floordiv(const Dim& a, const Dim& b);
Dim ceildiv(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);

/// Whether a == b for all, for no, or for some values of the symbols, as far as bounds show.
enum class Tri { no, yes, unknown };
Tri equal(const Dim& a, const Dim& b);

/// Reads the text form of a size. `symbols` gives the known symbols; throws Error naming what was found and
/// expected, `position` is then there. Reads from `text` at `position` and moves it behind the expression.
Dim parse_dim(std::string_view text, std::size_t& position, const std::map<std::string, Dim, std::less<>>& symbols);

}  // namespace rlx
