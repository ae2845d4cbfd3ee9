// Gradients of if and scan.
#include "autodiff/control.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "core/error.h"
#include "ir/control.h"
#include "ops/broadcast/broadcast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"

namespace rlx {

namespace {

// What `gradient` of a body takes and gives cotangents for.
bool flows(const TensorType& t) { return !t.encoding && (is_float(t.dtype) || is_complex(t.dtype)); }

Value zeros(Builder& b, const TensorType& t) { return broadcast(constant(b, t.dtype, 0), t.dims); }

Value cotangent_or_zeros(Builder& b, const std::optional<Value>& c, const TensorType& t) {
  return c ? *c : zeros(b, t);
}

void append(Values& to, std::span<const Value> more) { to.insert(to.end(), more.begin(), more.end()); }

Grads if_gradient(const Node& n, std::span<const Value> in, std::span<const std::optional<Value>> cotangents) {
  Builder& b = *in[0].builder;
  Values operands(in.begin() + 1, in.end());
  for (std::size_t i = 0; i < n.results.size(); ++i) {
    if (flows(n.results[i])) operands.push_back(cotangent_or_zeros(b, cotangents[i], n.results[i]));
  }
  const auto slope = [](const GraphPtr& body) { return std::make_shared<const Graph>(gradient(*body)); };
  Grads grads(in.size());
  if (std::ranges::none_of(in.subspan(1), [](const Value& v) { return flows(v.type()); })) return grads;
  const Values made = if_else(in[0], operands, slope(n.bodies[0]), slope(n.bodies[1]));
  std::size_t next = 0;
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (flows(in[i].type())) grads[i] = made[next++];
  }
  return grads;
}

class ScanGradient {
 public:
  ScanGradient(const Node& n, std::span<const Value> in, std::span<const std::optional<Value>> cotangents)
      : n_(n),
        a_(n.attrs.as<ScanAttrs>()),
        body_(*n.bodies[0]),
        in_(in),
        cotangents_(cotangents),
        b_(*in[0].builder),
        carried_(static_cast<std::size_t>(a_.carried)),
        scanned_(static_cast<std::size_t>(a_.scanned)) {}

  Grads run() {
    // Carried: cotangents of the carried values, sums of those of the captures. Scanned: carried values at the begin of
    // each trip, scanned operands, cotangents of stacked results. Captures: those of the scan.
    const Values trajectory = trajectories();
    Values operands;
    ScanAttrs back{.trips = a_.trips};
    for (std::size_t i = 0; i < carried_; ++i) {
      if (flows(n_.results[i])) operands.push_back(cotangent_or_zeros(b_, cotangents_[i], n_.results[i]));
    }
    for (std::size_t i = carried_ + scanned_; i < in_.size(); ++i) {
      if (flows(in_[i].type())) operands.push_back(zeros(b_, in_[i].type()));
    }
    back.carried = static_cast<Index>(operands.size());
    const auto scan_over = [&](Value v, bool from_end) {
      if (from_end) back.backward.push_back(back.scanned);
      ++back.scanned;
      operands.push_back(v);
    };
    for (const Value& v : trajectory) scan_over(v, true);
    for (std::size_t i = 0; i < scanned_; ++i) scan_over(in_[carried_ + i], !listed(a_.backward, i));
    for (std::size_t i = carried_; i < n_.results.size(); ++i) {
      if (!flows(n_.results[i])) continue;
      scan_over(cotangent_or_zeros(b_, cotangents_[i], n_.results[i]), !listed(a_.backward_results, i - carried_));
    }
    Index stacked = 0;
    for (std::size_t i = 0; i < scanned_; ++i) {
      if (!flows(in_[carried_ + i].type())) continue;
      if (!listed(a_.backward, i)) back.backward_results.push_back(stacked);
      ++stacked;
    }
    append(operands, in_.subspan(carried_ + scanned_));
    return sorted(scan(b_, back, operands, reverse_body(back, operands)));
  }

 private:
  static bool listed(const std::vector<Index>& list, std::size_t i) {
    return std::ranges::find(list, static_cast<Index>(i)) != list.end();
  }

  const TensorType& input_type(std::size_t i) const { return body_.nodes[body_.inputs[i]].results[0]; }

  // The carried values at the begin of each trip, stacked.
  Values trajectories() {
    Builder b;
    Values inputs;
    for (std::size_t i = 0; i < in_.size(); ++i) inputs.push_back(b.input(body_.input_names[i], input_type(i)));
    Values out = b.inline_graph(body_, inputs);
    out.resize(carried_);
    append(out, std::span(inputs).first(carried_));
    ScanAttrs forward = a_;
    forward.backward_results.clear();
    if (out.empty()) return {};
    const Values made = scan(b_, forward, in_, std::make_shared<const Graph>(b.finish(out)));
    return {made.begin() + a_.carried, made.end()};
  }

  GraphPtr reverse_body(const ScanAttrs& back, const Values& operands) {
    Builder b;
    Values inputs;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      TensorType t = operands[i].type();
      const bool slice =
          i >= static_cast<std::size_t>(back.carried) && i < static_cast<std::size_t>(back.carried + back.scanned);
      if (slice) t.dims.erase(t.dims.begin());
      inputs.push_back(b.input("a" + std::to_string(i), std::move(t)));
    }
    const std::size_t captures = in_.size() - carried_ - scanned_;
    const auto values = std::span(inputs).subspan(static_cast<std::size_t>(back.carried));
    // Inputs of the body's gradient: those of the body, then cotangents of carried and of stacked results.
    Values arguments(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(carried_ + scanned_));
    append(arguments, std::span(inputs).last(captures));
    std::size_t sums = 0;
    for (std::size_t i = 0; i < carried_; ++i) {
      if (flows(n_.results[i])) arguments.push_back(inputs[sums++]);
    }
    append(arguments, values.subspan(carried_ + scanned_, values.size() - carried_ - scanned_ - captures));
    const Values slopes = b.inline_graph(gradient(body_), arguments);
    Values out, slices;
    std::size_t next = 0;
    for (std::size_t i = 0; i < in_.size(); ++i) {
      if (!flows(input_type(i))) continue;
      const Value slope = slopes[next++];
      if (i < carried_) {
        out.push_back(slope);
      } else if (i < carried_ + scanned_) {
        slices.push_back(slope);
      } else {
        out.push_back(inputs[sums++] + slope);
      }
    }
    append(out, slices);
    return std::make_shared<const Graph>(b.finish(out));
  }

  // Results in the order of the operands: carried, captures, scanned become carried, scanned, captures.
  Grads sorted(const Values& made) const {
    Grads grads(in_.size());
    std::size_t next = 0;
    const auto take = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        if (flows(in_[i].type())) grads[i] = made[next++];
      }
    };
    take(0, carried_);
    take(carried_ + scanned_, in_.size());
    take(carried_, carried_ + scanned_);
    return grads;
  }

  const Node& n_;
  const ScanAttrs& a_;
  const Graph& body_;
  std::span<const Value> in_;
  std::span<const std::optional<Value>> cotangents_;
  Builder& b_;
  std::size_t carried_, scanned_;
};

}  // namespace

Grads control_gradient(const Node& n, std::span<const Value> in, std::span<const std::optional<Value>> cotangents) {
  ensure(n.op == &if_op() || n.op == &scan_op(), "only if and scan have gradients here");
  return n.op == &if_op() ? if_gradient(n, in, cotangents) : ScanGradient(n, in, cotangents).run();
}

}  // namespace rlx
