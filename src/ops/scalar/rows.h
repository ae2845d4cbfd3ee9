// The unary scalar functions, each written once over a generic number T: a Num is the reference, a graph Value the
// definition and the gradient, a SIMD pack the kernel. Includes nothing, so that level objects may use it.
//
// A row states `value(x)` and its derivative `slope(x, y)`, y being value(x). A `primitive` row is its own meaning; the
// others are definitions. `flat` rows have derivative 0. `wide` rows amplify the rounding of what they compute on the
// way: packs of f32 compute them in f64. Forms are chosen so that no finite input overflows on the way.
#pragma once

#ifndef RLX_LEVEL
#define RLX_LEVEL base
#endif

namespace rlx::RLX_LEVEL {

enum Domain : unsigned { reals = 1, integers = 2, complexes = 4 };

inline constexpr double sqrt_half = 0.70710678118654752440, inv_sqrt_tau = 0.39894228040143267794;
inline constexpr double two_over_sqrt_pi = 1.12837916709551257390, sqrt_two_over_pi = 0.79788456080286535588;

#define RLX_ROW_HEAD(Type, text, domain)        \
  static constexpr const char* name = text;     \
  static constexpr unsigned domains = (domain); \
  static constexpr bool primitive = false, flat = false
#define RLX_NARROW static constexpr bool wide = false
#define RLX_WIDE static constexpr bool wide = true

// A primitive function F with derivative expression S of x and y.
#define RLX_PRIMITIVE(Type, text, domain, F, S)                         \
  struct Type {                                                         \
    static constexpr const char* name = text;                           \
    static constexpr unsigned domains = (domain);                       \
    static constexpr bool primitive = true, flat = false, wide = false; \
    template <class T>                                                  \
    static T value(T x) {                                               \
      return F(x);                                                      \
    }                                                                   \
    template <class T>                                                  \
    static T slope([[maybe_unused]] T x, [[maybe_unused]] T y) {        \
      return S;                                                         \
    }                                                                   \
  };

// A primitive function F whose derivative is 0.
#define RLX_FLAT(Type, text, domain, F)                                \
  struct Type {                                                        \
    static constexpr const char* name = text;                          \
    static constexpr unsigned domains = (domain);                      \
    static constexpr bool primitive = true, flat = true, wide = false; \
    template <class T>                                                 \
    static T value(T x) {                                              \
      return F(x);                                                     \
    }                                                                  \
    template <class T>                                                 \
    static T slope(T x, T) {                                           \
      return like(x, 0);                                               \
    }                                                                  \
  };

RLX_PRIMITIVE(Neg, "neg", reals | integers | complexes, -, like(x, -1))
RLX_PRIMITIVE(Abs, "abs", reals | integers, abs, sign(x))
RLX_PRIMITIVE(Exp, "exp", reals | complexes, exp, y)
RLX_PRIMITIVE(Expm1, "expm1", reals, expm1, y + like(x, 1))
RLX_PRIMITIVE(Log, "log", reals | complexes, log, like(x, 1) / x)
RLX_PRIMITIVE(Log1p, "log1p", reals, log1p, like(x, 1) / (like(x, 1) + x))
RLX_PRIMITIVE(Sqrt, "sqrt", reals | complexes, sqrt, like(x, 0.5) / y)
RLX_PRIMITIVE(Sin, "sin", reals, sin, cos(x))
RLX_PRIMITIVE(Cos, "cos", reals, cos, -sin(x))
RLX_PRIMITIVE(Tan, "tan", reals, tan, like(x, 1) + y * y)
RLX_PRIMITIVE(Atan, "atan", reals, atan, like(x, 1) / (like(x, 1) + x * x))
RLX_PRIMITIVE(Tanh, "tanh", reals, tanh, like(x, 1) - y * y)
// These two are primitive, since their stable forms have a kink inside at 0, where derivatives of those forms are
// wrong.
RLX_PRIMITIVE(Sigmoid, "sigmoid", reals, sigmoid, y* sigmoid(-x))
RLX_PRIMITIVE(Softplus, "softplus", reals, softplus, sigmoid(x))
RLX_PRIMITIVE(Erf, "erf", reals, erf, like(x, two_over_sqrt_pi) * exp(-(x * x)))
RLX_PRIMITIVE(Erfc, "erfc", reals, erfc, like(x, -two_over_sqrt_pi) * exp(-(x * x)))
RLX_FLAT(Round, "round", reals, round)
RLX_FLAT(Floor, "floor", reals, floor)
RLX_FLAT(Ceil, "ceil", reals, ceil)
RLX_FLAT(Trunc, "trunc", reals, trunc)
RLX_FLAT(Sign, "sign", reals | integers, sign)

struct Relu {
  RLX_ROW_HEAD(Relu, "relu", reals | integers);
  RLX_NARROW;
  template <class T>
  static T value(T x) {  // a NaN is not equal to itself, and stays
    return select(less(like(x, 0), x), x, select(equal(x, x), like(x, 0), x));
  }
  template <class T>
  static T slope(T x, T) {
    return select(less(like(x, 0), x), like(x, 1), like(x, 0));
  }
};

struct Relu6 {
  RLX_ROW_HEAD(Relu6, "relu6", reals);
  RLX_NARROW;
  template <class T>
  static T value(T x) {
    return minimum(maximum(x, like(x, 0)), like(x, 6));
  }
  template <class T>
  static T slope(T x, T) {
    const T below = select(less(x, like(x, 6)), like(x, 1), like(x, 0));
    return select(less(like(x, 0), x), below, like(x, 0));
  }
};

struct Rsqrt {
  RLX_ROW_HEAD(Rsqrt, "rsqrt", reals);
  RLX_NARROW;
  template <class T>
  static T value(T x) {
    return like(x, 1) / sqrt(x);
  }
  template <class T>
  static T slope(T x, T y) {
    return like(x, -0.5) * y / x;
  }
};

struct Reciprocal {
  RLX_ROW_HEAD(Reciprocal, "reciprocal", reals);
  RLX_NARROW;
  template <class T>
  static T value(T x) {
    return like(x, 1) / x;
  }
  template <class T>
  static T slope(T, T y) {
    return -(y * y);
  }
};

struct Silu {
  RLX_ROW_HEAD(Silu, "silu", reals);
  RLX_NARROW;
  template <class T>
  static T value(T x) {
    return x * sigmoid(x);
  }
  template <class T>
  static T slope(T x, T) {
    const T s = sigmoid(x);
    return s + x * (s * sigmoid(-x));
  }
};

struct Gelu {
  RLX_ROW_HEAD(Gelu, "gelu", reals);
  RLX_WIDE;
  template <class T>
  static T value(T x) {
    return like(x, 0.5) * x * erfc(like(x, -sqrt_half) * x);
  }
  template <class T>
  static T slope(T x, T) {
    return like(x, 0.5) * erfc(like(x, -sqrt_half) * x) + x * (like(x, inv_sqrt_tau) * exp(like(x, -0.5) * (x * x)));
  }
};

struct GeluTanh {
  RLX_ROW_HEAD(GeluTanh, "gelu_tanh", reals);
  RLX_WIDE;
  template <class T>
  static T twice_inner(T x) {
    return like(x, 2 * sqrt_two_over_pi) * (x + like(x, 0.044715) * (x * x * x));
  }
  template <class T>
  static T value(T x) {  // 0.5 (1 + tanh u) is the logistic of 2u
    return x * sigmoid(twice_inner(x));
  }
  template <class T>
  static T slope(T x, T) {
    const T u = twice_inner(x), s = sigmoid(u);
    const T c = maximum(minimum(x, like(x, 32)), like(x, -32));  // beyond, s (1 - s) is 0 and x^2 may overflow
    const T du = like(x, 2 * sqrt_two_over_pi) * (like(x, 1) + like(x, 3 * 0.044715) * (c * c));
    return s + c * (s * sigmoid(-u) * du);
  }
};

struct LogSigmoid {
  RLX_ROW_HEAD(LogSigmoid, "log_sigmoid", reals);
  RLX_NARROW;
  template <class T>
  static T value(T x) {
    return -softplus(-x);
  }
  template <class T>
  static T slope(T x, T) {
    return sigmoid(-x);
  }
};

struct Elu {
  RLX_ROW_HEAD(Elu, "elu", reals);
  RLX_NARROW;
  template <class T>
  static T value(T x) {
    return select(less(like(x, 0), x), x, expm1(select(less(like(x, 0), x), like(x, 0), x)));
  }
  template <class T>
  static T slope(T x, T) {
    return select(less(like(x, 0), x), like(x, 1), exp(select(less(like(x, 0), x), like(x, 0), x)));
  }
};

struct HardSigmoid {
  RLX_ROW_HEAD(HardSigmoid, "hard_sigmoid", reals);
  RLX_WIDE;
  template <class T>
  static T value(T x) {
    return minimum(maximum(x / like(x, 6) + like(x, 0.5), like(x, 0)), like(x, 1));
  }
  template <class T>
  static T slope(T x, T) {
    return select(less(abs(x), like(x, 3)), like(x, 1.0 / 6), like(x, 0));
  }
};

struct HardSwish {
  RLX_ROW_HEAD(HardSwish, "hard_swish", reals);
  RLX_NARROW;
  template <class T>
  static T value(T x) {
    return x * (minimum(maximum(x + like(x, 3), like(x, 0)), like(x, 6)) / like(x, 6));
  }
  template <class T>
  static T slope(T x, T) {
    const T ramp = (x + x + like(x, 3)) / like(x, 6);
    return select(less(like(x, -3), x), select(less(x, like(x, 3)), ramp, like(x, 1)), like(x, 0));
  }
};

struct Mish {
  RLX_ROW_HEAD(Mish, "mish", reals);
  RLX_WIDE;
  template <class T>
  static T value(T x) {
    return x * tanh(softplus(x));
  }
  template <class T>
  static T slope(T x, T) {
    const T t = tanh(softplus(x));
    return t + x * ((like(x, 1) - t * t) * sigmoid(x));
  }
};

struct Softsign {
  RLX_ROW_HEAD(Softsign, "softsign", reals);
  RLX_NARROW;
  template <class T>
  static T value(T x) {
    return x / (like(x, 1) + abs(x));
  }
  template <class T>
  static T slope(T x, T) {
    const T d = like(x, 1) + abs(x);
    return like(x, 1) / (d * d);
  }
};

#undef RLX_ROW_HEAD
#undef RLX_NARROW
#undef RLX_WIDE
#undef RLX_PRIMITIVE
#undef RLX_FLAT

// All rows: X(Type, builder function).
// clang-format off
#define RLX_UNARY_ROWS(X)                                                                                   \
  X(Neg, neg) X(Abs, abs) X(Exp, exp) X(Expm1, expm1) X(Log, log) X(Log1p, log1p) X(Sqrt, sqrt)             \
  X(Sin, sin) X(Cos, cos) X(Tan, tan) X(Atan, atan) X(Tanh, tanh) X(Erf, erf) X(Erfc, erfc)                 \
  X(Round, round) X(Floor, floor) X(Ceil, ceil) X(Trunc, trunc) X(Sign, sign)                               \
  X(Relu, relu) X(Relu6, relu6) X(Rsqrt, rsqrt) X(Reciprocal, reciprocal) X(Sigmoid, sigmoid) X(Silu, silu) \
  X(Gelu, gelu) X(GeluTanh, gelu_tanh) X(Softplus, softplus) X(LogSigmoid, log_sigmoid) X(Elu, elu)         \
  X(HardSigmoid, hard_sigmoid) X(HardSwish, hard_swish) X(Mish, mish) X(Softsign, softsign)
// clang-format on

}  // namespace rlx::RLX_LEVEL
