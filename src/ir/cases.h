// Test cases as data: one list an op, from which the conformance runner answers every question.
#pragma once

#include <string>
#include <vector>

#include "core/type.h"
#include "ir/attrs.h"

namespace rlx {

/// How close a result must be: bit-equal, within n units in the last place, or |a-b| <= r * max|b| over the tensor.
struct Tolerance {
  enum class Kind : std::uint8_t { exact, ulp, relative };
  Kind kind = Kind::relative;
  double bound = 1e-6;
  std::string_view why = "";
};
inline constexpr Tolerance exact{Tolerance::Kind::exact, 0, "moves or compares values only"};
constexpr Tolerance ulp(double n, std::string_view why = "") { return {Tolerance::Kind::ulp, n, why}; }
constexpr Tolerance relative(double r, std::string_view why = "") { return {Tolerance::Kind::relative, r, why}; }

/// One operand of a case: its type and what it is filled with.
struct CaseInput {
  TensorType type;
  double lo = -2, hi = 2;      // floats: uniform in [lo, hi); integers: in [lo, hi] with lo, hi rounded inward
  double away = 0;             // floats keep this distance from every integer (kinks)
  bool distinct = false;       // all elements differ clearly (ties of max, sort)
  std::vector<double> values;  // exactly these, when given (row-major)

  CaseInput(TensorType t) : type(std::move(t)) {}
  CaseInput(DType dtype, std::vector<Dim> dims) : type(dtype, std::move(dims)) {}
  CaseInput& range(double low, double high) { return lo = low, hi = high, *this; }
  CaseInput& kinks(double distance) { return away = distance, *this; }
  CaseInput& ties_free() { return distinct = true, *this; }
  CaseInput& filled(std::vector<double> v) { return values = std::move(v), *this; }
};

/// What a case holds beside the attributes.
struct CaseCommon {
  std::vector<CaseInput> inputs;
  /// Hand-computed results, one list a result, row-major; empty: none.
  std::vector<std::vector<double>> expected;
  Tolerance tolerance =
      relative(1e-6);  // definition against reference, in f32 and f64; halves are compared at their own unit
  Tolerance expected_tolerance = relative(1e-6);
  DimEnv dims;           // values of symbols; missing ones get the smallest allowed value of at least 2
  bool gradient = true;  // check by central differences in f64
  double gradient_bound = 1e-6;
  bool other_dtypes = true;  // repeat with every element type that inference accepts
};

template <class A>
struct Case {
  A attrs;
  CaseCommon common;
};

/// A use that must be refused; `message` is part of the Error's text.
template <class A>
struct Failure {
  A attrs;
  std::vector<TensorType> types;
  std::string message;
};

struct AnyCase {
  Attrs attrs;
  CaseCommon common;
};
struct AnyFailure {
  Attrs attrs;
  std::vector<TensorType> types;
  std::string message;
};

}  // namespace rlx
