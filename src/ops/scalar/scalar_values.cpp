// Hand-computed values of the unary ops: from their definitions, to 7 digits.
#include <cmath>
#include <limits>

#include "ops/scalar/scalar_parts.h"

namespace rlx {

namespace {

struct Known {
  std::string_view name;
  std::vector<double> x, y;
};

const std::vector<Known>& table() {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<Known> known{
      {"neg", {1, -2, 0}, {-1, 2, -0.0}},
      {"abs", {-3, 0, 2.5, -inf}, {3, 0, 2.5, inf}},
      {"exp", {0, 1, -1, -inf, inf}, {1, 2.718281828, 0.3678794412, 0, inf}},
      {"expm1", {0, 1, 1e-10}, {0, 1.718281828, 1e-10}},
      {"log", {1, 2.718281828459045, 0, -1}, {0, 1, -inf, nan}},
      {"log1p", {0, 1, -1}, {0, 0.6931471806, -inf}},
      {"sqrt", {4, 2, 0, -1}, {2, 1.414213562, 0, nan}},
      {"sin", {0, 1, -2}, {0, 0.8414709848, -0.9092974268}},
      {"cos", {0, 1, -2}, {1, 0.5403023059, -0.4161468365}},
      {"tan", {0, 1}, {0, 1.557407725}},
      {"atan", {0, 1, inf}, {0, 0.7853981634, 1.570796327}},
      {"tanh", {0, 1, -100}, {0, 0.761594156, -1}},
      {"erf", {0, 1, -inf}, {0, 0.8427007929, -1}},
      {"erfc", {0, 1}, {1, 0.1572992071}},
      {"erfc", {5}, {1.537459794e-12}},
      {"round", {0.5, 1.5, 2.5, -0.5, -1.5}, {0, 2, 2, -0.0, -2}},
      {"floor", {1.5, -1.5, -0.0}, {1, -2, -0.0}},
      {"ceil", {1.5, -1.5}, {2, -1}},
      {"trunc", {1.9, -1.9}, {1, -1}},
      {"sign", {-3, 0, 7, nan}, {-1, 0, 1, nan}},
      {"relu", {-1, 0, 2, nan, -inf, inf}, {0, 0, 2, nan, 0, inf}},
      {"relu6", {-1, 0, 2, 6, 7, nan, -inf, inf}, {0, 0, 2, 6, 6, nan, 0, 6}},
      {"rsqrt", {4, 0, -1}, {0.5, inf, nan}},
      {"reciprocal", {4, -0.5, inf}, {0.25, -2, 0}},
      {"sigmoid", {0, 1, -inf, inf}, {0.5, 0.7310585786, 0, 1}},
      {"silu", {0, 1, -1, 100}, {0, 0.7310585786, -0.2689414214, 100}},
      {"silu", {-90}, {-7.374611361e-38}},
      {"gelu", {0, 1, -1, 2}, {0, 0.8413447461, -0.1586552539, 1.9544997}},
      {"gelu", {-6}, {-5.919526e-9}},
      {"gelu_tanh", {0, 1, 2}, {0, 0.8411919906, 1.9545977}},
      {"softplus", {0, 1, 100, -100}, {0.6931471806, 1.313261688, 100, 3.720075976e-44}},
      {"log_sigmoid", {0, 1, -100}, {-0.6931471806, -0.3132616875, -100}},
      {"elu", {1, 0, -1, -inf}, {1, 0, -0.6321205588, -1}},
      {"hard_sigmoid", {-4, -3, 0, 1.5, 4}, {0, 0, 0.5, 0.75, 1}},
      {"hard_swish", {-4, 0, 1, 4}, {-0.0, 0, 0.6666666667, 4}},
      {"mish", {0, 1}, {0, 0.8650983883}},
      {"softsign", {0, 1, -3}, {0, 0.5, -0.75}},
  };
  return known;
}

}  // namespace

std::vector<Case<NoAttrs>> known_unary_values(std::string_view name) {
  std::vector<Case<NoAttrs>> cases;
  for (const Known& k : table()) {
    if (k.name != name) continue;
    const auto n = static_cast<Index>(k.x.size());
    cases.push_back({{},
                     {.inputs = {CaseInput(DType::f32, {n}).filled(k.x)},
                      .expected = {k.y},
                      .tolerance = relative(4e-6, "erfc and exp amplify the rounding of their argument in the tail"),
                      .gradient = false}});
  }
  return cases;
}

}  // namespace rlx
