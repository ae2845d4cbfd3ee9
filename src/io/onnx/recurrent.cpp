// RNN, GRU and LSTM as scans: one product for the inputs of all time steps, a small one for the state of each.
#include <algorithm>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ir/control.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

/// An activation function with its parameters.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;

  Value operator()(Value x) const {
    const auto number = [&](double v) { return like(x, v); };
    if (name == "relu") return relu(x);
    if (name == "tanh") return tanh(x);
    if (name == "sigmoid") return sigmoid(x);
    if (name == "softsign") return x / (abs(x) + number(1));
    if (name == "softplus") return softplus(x);
    if (name == "affine") return x * number(alpha) + number(beta);
    if (name == "scaledtanh") return tanh(x * number(beta)) * number(alpha);
    if (name == "hardsigmoid") return minimum(maximum(x * number(alpha) + number(beta), number(0)), number(1));
    if (name == "leakyrelu") return select(less(x, number(0)), x * number(alpha), x);
    if (name == "thresholdedrelu") return select(less(x, number(alpha)), number(0), x);
    return select(less(x, number(0)), expm1(x) * number(alpha), x);  // elu
  }
};

struct ActivationKind {
  std::string_view name;
  bool alpha, beta;
  double standard_alpha, standard_beta;
};
constexpr ActivationKind kinds[] = {
    {"relu", false, false, 0, 0},     {"tanh", false, false, 0, 0},           {"sigmoid", false, false, 0, 0},
    {"softsign", false, false, 0, 0}, {"softplus", false, false, 0, 0},       {"affine", true, true, 1, 0},
    {"scaledtanh", true, true, 1, 1}, {"hardsigmoid", true, true, 0.2, 0.5},  {"leakyrelu", true, false, 0.01, 0},
    {"elu", true, false, 1, 0},       {"thresholdedrelu", true, false, 1, 0},
};

// The functions of all directions. Parameters are taken in order by those functions that have them.
std::vector<Activation> activations(NodeArgs& n, std::vector<std::string> standard, std::size_t directions) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < directions; ++d) names.insert(names.end(), standard.begin(), standard.end());
  if (const auto given = n.strings("activations")) {
    require(given->size() == names.size(), "activations has {} elements, expected {}", given->size(), names.size());
    names = *given;
  }
  const auto alphas = n.reals("activation_alpha").value_or(std::vector<float>());
  const auto betas = n.reals("activation_beta").value_or(std::vector<float>());
  std::vector<Activation> all;
  std::size_t alpha = 0, beta = 0;
  for (std::string& name : names) {
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const auto* kind = std::ranges::find(kinds, name, &ActivationKind::name);
    require(kind != std::end(kinds), "activation {} is unknown", in_quotes(name));
    Activation a{name, kind->standard_alpha, kind->standard_beta};
    if (kind->alpha && alpha < alphas.size()) a.alpha = static_cast<double>(alphas[alpha++]);
    if (kind->beta && beta < betas.size()) a.beta = static_cast<double>(betas[beta++]);
    all.push_back(std::move(a));
  }
  return all;
}

/// What the three operators share: operands, directions, layout, lengths.
class Recurrent {
 public:
  // `gates` blocks of rows in the weights; `states` values that go from step to step.
  Recurrent(NodeArgs& n, Index gates, std::size_t states) : n_(n), gates_(gates), states_(states), type_(n[0].dtype()) {
    const std::string direction = n.string("direction", "forward");
    require(direction == "forward" || direction == "reverse" || direction == "bidirectional",
            "direction is {}, expected forward, reverse or bidirectional", in_quotes(direction));
    directions_ = direction == "bidirectional" ? 2 : 1;
    reverse_ = direction == "reverse";
    batch_first_ = n.opset() >= 14 && n.integer("layout", 0) == 1;
    if (n.given("clip")) clip_ = n.real("clip", 0);
    x_ = widen(n[0]);
    require(x_.rank() == 3, "X is {}, expected rank 3", x_.type().text());
    if (batch_first_) x_ = transpose(x_, {1, 0, 2});
    const Dim& hidden = n[2].type().dim(-1);
    require(hidden.is_constant(), "R is {}, expected a known last size", n[2].type().text());
    hidden_ = hidden.constant();
    if (n.given("hidden_size")) {
      require(n.integer("hidden_size") == hidden_, "hidden_size is {}, R is {}", n.integer("hidden_size"),
              n[2].type().text());
    }
    weights_ = weight(1, {directions_, gates * hidden_, x_.dim(2)});
    recurrent_ = weight(2, {directions_, gates * hidden_, hidden_});
    if (n.has(3)) bias_ = weight(3, {directions_, 2 * gates * hidden_});
    if (n.has(4)) set_lengths(n[4]);
  }

  NodeArgs& args() { return n_; }
  Index hidden() const { return hidden_; }
  std::size_t directions() const { return static_cast<std::size_t>(directions_); }

  // Operand `i` in the type of the computation, of this shape.
  Value weight(std::size_t i, const std::vector<Dim>& dims) {
    const Value v = widen(n_[i]);
    const TensorType want(x_.dtype(), dims);
    bool fits = v.dtype() == want.dtype && v.rank() == want.rank();
    for (std::size_t k = 0; fits && k < dims.size(); ++k) {
      fits = rlx::equal(v.type().dims[k], dims[k]) != Tri::no;
      if (fits) v.builder->check(v.type().dims[k], dims[k], "sizes of a recurrent operator");
    }
    require(fits, "operand {} is {}, expected {}", i, v.type().text(), want.text());
    return reshape(v, dims);
  }

  // Row `d` of the first axis, without it.
  static Value direction(Value v, Index d) {
    std::vector<Dim> dims(v.type().dims.begin() + 1, v.type().dims.end());
    return reshape(slice(v, 0, d, d + 1), dims);
  }
  // Block `i` of `count` along the last axis.
  static Value block(Value v, Index i, Index size) { return slice(v, v.rank() - 1, i * size, (i + 1) * size); }

  Value clipped(Value v) const { return clip_ ? minimum(maximum(v, like(v, -*clip_)), like(v, *clip_)) : v; }

  Value recurrent(Index d) const { return direction(recurrent_, d); }
  // Blocks [first, end) of the bias of the input (part 0) or of the recurrence (part 1), if there is one.
  std::optional<Value> bias(Index d, Index part, Index first, Index end) const {
    if (!bias_) return std::nullopt;
    const Index begin = part * gates_;
    return slice(direction(*bias_, d), 0, (begin + first) * hidden_, (begin + end) * hidden_);
  }

  // x W^T + bias for all steps, [T, B, gates * hidden].
  Value inputs(Index d, std::optional<Value> bias) const {
    const std::vector<Dim>& t = x_.type().dims;
    Value all = matmul(reshape(x_, {t[0] * t[1], t[2]}), direction(weights_, d), {false, true});
    if (bias) all = all + *bias;
    return reshape(all, {t[0], t[1], gates_ * hidden_});
  }

  // The values before the first step, from operands 5 and on.
  Values initial(Index d) {
    Values all;
    for (std::size_t i = 0; i < states_; ++i) {
      const Dim& batch = x_.dim(1);
      if (!n_.has(5 + i)) {
        all.push_back(broadcast(like(x_, 0), {batch, hidden_}));
        continue;
      }
      const std::vector<Dim> dims =
          batch_first_ ? std::vector<Dim>{batch, directions_, hidden_} : std::vector<Dim>{directions_, batch, hidden_};
      const Value v = weight(5 + i, dims);
      all.push_back(direction(batch_first_ ? transpose(v, {1, 0, 2}) : v, d));
    }
    return all;
  }

  // Runs `step` (input of the step, states, captures -> states, the first of which is the output) over time.
  void run(Index d, Value inputs, const Values& captures,
           const std::function<Values(Value, std::span<const Value>, std::span<const Value>)>& step) {
    Importer& importer = n_.importer();
    Values operands = initial(d);
    const Dim trips = x_.dim(0);
    ScanAttrs a{.trips = trips, .carried = static_cast<Index>(states_), .scanned = lengths_ ? 2 : 1};
    if (reverse_ || d == 1) {
      a.backward = lengths_ ? std::vector<Index>{0, 1} : std::vector<Index>{0};
      a.backward_results = {0};
    }
    operands.push_back(inputs);
    if (lengths_) operands.push_back(iota(importer.builder(), DType::i64, {trips}));
    const std::size_t first = operands.size();
    operands.insert(operands.end(), captures.begin(), captures.end());
    if (lengths_) operands.push_back(*lengths_);
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      types.push_back(operands[i].type());
      if (states_ <= i && i < first) types.back().dims.erase(types.back().dims.begin());
    }
    const Importer::Body body = importer.body(types, [&](std::span<const Value> in) {
      Values out = step(in[states_], in.first(states_), in.subspan(first, captures.size()));
      Value y = out[0];
      if (lengths_) {
        const Value runs = less(in[states_ + 1], in.back());
        y = select(runs, y, like(y, 0));
        for (std::size_t i = 0; i < states_; ++i) out[i] = select(runs, out[i], in[i]);
      }
      out.push_back(y);
      return out;
    });
    operands.insert(operands.end(), body.captures.begin(), body.captures.end());
    made_.push_back(scan(importer.builder(), std::move(a), operands, std::make_shared<const Graph>(body.graph)));
  }

  // Y, Y_h and, for two states, Y_c.
  Values results() const {
    const Dim &trips = x_.dim(0), &batch = x_.dim(1);
    Values y;
    for (const Values& m : made_) y.push_back(reshape(m[states_], {trips, 1, batch, hidden_}));
    Values out{cast(concat(y, 1), type_)};
    if (batch_first_) out[0] = transpose(out[0], {2, 0, 1, 3});
    for (std::size_t i = 0; i < states_; ++i) {
      Values last;
      for (const Values& m : made_) last.push_back(reshape(m[i], {1, batch, hidden_}));
      const Value all = cast(concat(last, 0), type_);
      out.push_back(batch_first_ ? transpose(all, {1, 0, 2}) : all);
    }
    return out;
  }

 private:
  // Steps behind the length of a sequence change nothing and give 0; lengths that are all T are none.
  void set_lengths(Value v) {
    require(v.dtype() == DType::i32 && v.rank() == 1, "sequence_lens is {}, expected i32 of rank 1", v.type().text());
    const auto elements = n_.importer().known(v);
    const auto is_all = [&](const Dim& d) { return d == x_.dim(0); };
    if (elements && std::ranges::all_of(*elements, is_all)) return;
    v.builder->check(v.dim(0), x_.dim(1), "one length for each sequence");
    lengths_ = reshape(cast(v, DType::i64), {x_.dim(1), 1});
  }

  NodeArgs& n_;
  Index gates_, hidden_ = 0, directions_ = 1;
  std::size_t states_;
  DType type_;
  bool reverse_ = false, batch_first_ = false;
  std::optional<double> clip_;
  Value x_, weights_, recurrent_;
  std::optional<Value> bias_, lengths_;
  std::vector<Values> made_;  // by direction
};

std::optional<Value> sum_of(const std::optional<Value>& a, const std::optional<Value>& b) {
  return a && b ? std::optional(*a + *b) : a;
}

Value product(Value state, Value weights) { return matmul(state, weights, {false, true}); }

Values rnn(NodeArgs& n) {
  n.expect(3, 6);
  Recurrent r(n, 1, 1);
  const std::vector<Activation> f = activations(n, {"tanh"}, r.directions());
  for (std::size_t k = 0; k < r.directions(); ++k) {
    const auto d = static_cast<Index>(k);
    r.run(d, r.inputs(d, sum_of(r.bias(d, 0, 0, 1), r.bias(d, 1, 0, 1))), {r.recurrent(d)},
          [&](Value x, std::span<const Value> state, std::span<const Value> w) {
            return Values{f[k](r.clipped(product(state[0], w[0]) + x))};
          });
  }
  return r.results();
}

Values gru(NodeArgs& n) {
  n.expect(3, 6);
  Recurrent r(n, 3, 1);
  const bool linear_first = n.integer("linear_before_reset", 0) != 0;
  const std::vector<Activation> f = activations(n, {"sigmoid", "tanh"}, r.directions());
  const Index h = r.hidden();
  for (std::size_t k = 0; k < r.directions(); ++k) {
    const auto d = static_cast<Index>(k);
    // The bias of the hidden gate's recurrence is scaled by the reset gate when that comes later.
    std::optional<Value> bias = r.bias(d, 0, 0, 3);
    Values captures{r.recurrent(d)};
    if (bias && !linear_first) bias = *bias + *r.bias(d, 1, 0, 3);
    if (bias && linear_first) {
      const Value gates[] = {*r.bias(d, 1, 0, 2), broadcast(like(*bias, 0), {h})};
      bias = *bias + concat(gates, 0);
      captures.push_back(*r.bias(d, 1, 2, 3));
    }
    r.run(d, r.inputs(d, bias), captures, [&](Value x, std::span<const Value> state, std::span<const Value> w) {
      const Value before = state[0];
      const Value both = linear_first ? product(before, w[0]) : product(before, slice(w[0], 0, 0, 2 * h));
      const auto gate = [&](Index i) { return f[2 * k](r.clipped(r.block(both, i, h) + r.block(x, i, h))); };
      const Value update = gate(0), reset = gate(1);
      Value hidden = linear_first ? r.block(both, 2, h) : product(reset * before, slice(w[0], 0, 2 * h, 3 * h));
      if (linear_first && w.size() > 1) hidden = hidden + w[1];
      if (linear_first) hidden = reset * hidden;
      const Value next = f[2 * k + 1](r.clipped(hidden + r.block(x, 2, h)));
      return Values{(like(update, 1) - update) * next + update * before};
    });
  }
  return r.results();
}

Values lstm(NodeArgs& n) {
  n.expect(3, 8);
  Recurrent r(n, 4, 2);
  const bool coupled = n.integer("input_forget", 0) != 0;
  const std::vector<Activation> f = activations(n, {"sigmoid", "tanh", "tanh"}, r.directions());
  const Index h = r.hidden();
  std::optional<Value> peepholes;
  if (n.has(7)) peepholes = r.weight(7, {static_cast<Index>(r.directions()), 3 * h});
  for (std::size_t k = 0; k < r.directions(); ++k) {
    const auto d = static_cast<Index>(k);
    Values captures{r.recurrent(d)};
    if (peepholes) captures.push_back(r.direction(*peepholes, d));
    r.run(d, r.inputs(d, sum_of(r.bias(d, 0, 0, 4), r.bias(d, 1, 0, 4))), captures,
          [&](Value x, std::span<const Value> state, std::span<const Value> w) {
            const Value all = product(state[0], w[0]) + x, before = state[1];
            // Gates in the order input, output, forget, cell; peepholes in the order input, output, forget.
            const auto gate = [&](Index i, Value cell) {
              Value v = r.block(all, i, h);
              if (w.size() > 1) v = v + r.block(w[1], i, h) * cell;
              return f[3 * k](r.clipped(v));
            };
            const Value input = gate(0, before);
            const Value forget = coupled ? like(input, 1) - input : gate(2, before);
            const Value fresh = f[3 * k + 1](r.clipped(r.block(all, 3, h)));
            const Value cell = forget * before + input * fresh;
            // As others read the text, the clip concerns what is summed for a gate, not the cell.
            return Values{gate(1, cell) * f[3 * k + 2](cell), cell};
          });
  }
  return r.results();
}

}  // namespace

OperatorRows recurrent_rows() {
  static constexpr OperatorRow rows[] = {
      {"RNN", 7, rnn},
      {"GRU", 7, gru},
      {"LSTM", 7, lstm},
  };
  return rows;
}

}  // namespace rlx::onnx
