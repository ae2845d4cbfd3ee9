// One step of an optimiser: Adagrad, Adam, Momentum of the domain ai.onnx.preview.training.
#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

// Operands: rate, number of the step, then `lists` lists of as many tensors: parameters, gradients, state. The results
// are the new parameters and states, list by list.
struct Step {
  Value rate, number;
  std::size_t count = 0;
};

Step step_of(NodeArgs& n, std::size_t lists) {
  const Values all = n.all();
  require(all.size() > 2 && (all.size() - 2) % lists == 0, "{} operands are given, expected 2 and {} for every tensor",
          all.size(), lists);
  require(all[0].rank() == 0 && all[1].rank() == 0 && is_integer(all[1].dtype()),
          "rate and number of the step are {} and {}, expected a float and an integer of rank 0", all[0].type().text(),
          all[1].type().text());
  return {all[0], all[1], (all.size() - 2) / lists};
}

Value scaled(Value x, double by) { return like(x, by) * x; }
Value later(const Step& s) { return less(like(s.number, 0), s.number); }

Values adagrad(NodeArgs& n) {
  const Step s = step_of(n, 3);
  const double norm = n.real("norm_coefficient", 0), epsilon = n.real("epsilon", 1e-6F),
               decay = n.real("decay_factor", 0);
  Values parameters, squares;
  for (std::size_t i = 2; i < 2 + s.count; ++i) {
    const Value x = n[i], g = scaled(x, norm) + n[i + s.count], h = n[i + 2 * s.count] + g * g;
    const Value number = cast(s.number, x.dtype());
    const Value rate = cast(s.rate, x.dtype()) / (like(x, 1) + scaled(number, decay));
    parameters.push_back(x - rate * g / (sqrt(h) + like(h, epsilon)));
    squares.push_back(h);
  }
  parameters.insert(parameters.end(), squares.begin(), squares.end());
  return parameters;
}

// The rate, made larger where the averages have not yet forgotten that they began at 0.
Value adam_rate(const Step& s, double alpha, double beta) {
  const Value rate = cast(s.rate, DType::f64), number = cast(s.number, DType::f64), one = like(rate, 1);
  const Value first = one - pow(like(rate, alpha), number), second = one - pow(like(rate, beta), number);
  return select(later(s), rate * sqrt(second) / first, rate);
}

Values adam(NodeArgs& n) {
  const Step s = step_of(n, 4);
  const double alpha = n.real("alpha", 0.9F), beta = n.real("beta", 0.999F), epsilon = n.real("epsilon", 1e-6F);
  const double norm = n.real("norm_coefficient", 0), post = n.real("norm_coefficient_post", 0);
  const Value rate = adam_rate(s, alpha, beta);
  Values parameters, averages, squares;
  for (std::size_t i = 2; i < 2 + s.count; ++i) {
    const Value x = n[i], g = scaled(x, norm) + n[i + s.count];
    const Value v = scaled(n[i + 2 * s.count], alpha) + scaled(g, 1 - alpha);
    const Value h = scaled(n[i + 3 * s.count], beta) + scaled(g * g, 1 - beta);
    const Value moved = x - cast(rate, x.dtype()) * (v / (sqrt(h) + like(h, epsilon)));
    parameters.push_back(post == 0 ? moved : scaled(moved, 1 - post));
    averages.push_back(v);
    squares.push_back(h);
  }
  parameters.insert(parameters.end(), averages.begin(), averages.end());
  parameters.insert(parameters.end(), squares.begin(), squares.end());
  return parameters;
}

Values momentum(NodeArgs& n) {
  const Step s = step_of(n, 3);
  const double alpha = n.real("alpha", 0), beta = n.real("beta", 0), norm = n.real("norm_coefficient", 0);
  for (const char* const needed : {"alpha", "beta", "norm_coefficient", "mode"})
    require(n.given(needed), "attribute '{}' is missing", needed);
  const std::string mode = n.string("mode", "");
  require(mode == "standard" || mode == "nesterov", "mode is {}, expected standard or nesterov", in_quotes(mode));
  Values parameters, averages;
  for (std::size_t i = 2; i < 2 + s.count; ++i) {
    const Value x = n[i], g = scaled(x, norm) + n[i + s.count];
    const Value share = select(later(s), like(x, beta), like(x, 1));
    const Value v = scaled(n[i + 2 * s.count], alpha) + share * g;
    const Value way = mode == "standard" ? v : g + scaled(v, alpha);
    parameters.push_back(x - cast(s.rate, x.dtype()) * way);
    averages.push_back(v);
  }
  parameters.insert(parameters.end(), averages.begin(), averages.end());
  return parameters;
}

}  // namespace

OperatorRows training_rows() {
  static constexpr OperatorRow rows[] = {
      {"Adagrad", 1, adagrad},
      {"Adam", 1, adam},
      {"Momentum", 1, momentum},
  };
  return rows;
}

}  // namespace rlx::onnx
