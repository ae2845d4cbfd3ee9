// Measures the CPU steps of attention, layer_norm and softmax on one thread, against what this core does at most: a
// loop of fma from registers, and a copy of as many bytes. Prints one line a measurement: NAME LEVEL SHAPE VALUE UNIT
// SHARE, SHARE being the part of the probe's figure.
#include "ops/attention/attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/levels.h"
#include "device/makers.h"
#include "ir/builder.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/softmax/softmax.h"
#include "probe.h"

namespace {

using namespace rlx;
using namespace rlx::bench;

// Processor time, the best of many runs: other programs take the core now and then.
double seconds(const std::function<void()>& work) {
  double best = 1e9;
  const double end = thread_seconds() + 0.3;
  while (thread_seconds() < end) {
    const double start = thread_seconds();
    for (int i = 0; i < 4; ++i) work();
    best = std::min(best, (thread_seconds() - start) / 4);
  }
  return best;
}

double peak() {
  const double time = seconds([] { probe(level()); });
  return probe_flops(level()) / time;
}

// The step of the one node that `make` builds from inputs of these types, ready to run.
class OneStep {
 public:
  OneStep(const std::vector<TensorType>& in, const std::function<Value(const Values&)>& make) {
    Builder b;
    Values values;
    for (const TensorType& t : in) values.push_back(b.input("a" + std::to_string(values.size()), t));
    const Graph g = b.finish({make(values)});
    const Node& node = g.nodes.back();
    std::vector<Slot> reads, writes{{static_cast<BufferId>(in.size()), node.results[0]}};
    for (BufferId i = 0; i < in.size(); ++i) reads.push_back({i, in[i]});
    static const MakerTable makers(cpu_maker_folders());
    std::string why;
    step_ = makers.make({node, reads, writes, &why});
    require(step_.has_value(), "no step: {}", why);
    std::vector<TensorType> types = in;
    types.push_back(node.results[0]);
    for (const TensorType& t : types) {
      memory_.emplace_back(static_cast<std::size_t>(t.count().constant()));
      for (std::size_t i = 0; i < memory_.back().size(); ++i) {
        memory_.back()[i] = static_cast<float>((i * 7919) % 1000) / 500 - 1;
      }
    }
    bound_ = BoundStep(*step_, {}, [&](BufferId id) { return reinterpret_cast<std::byte*>(memory_[id].data()); });
  }
  void run() const { bound_->run({0, bound_->items()}); }

 private:
  std::optional<Step> step_;
  std::vector<std::vector<float>> memory_;
  std::optional<BoundStep> bound_;
};

TensorType f32(std::vector<Dim> dims) { return {DType::f32, std::move(dims)}; }

void measure_attention(double peak, Index batch, Index heads, Index length, Index size, AttentionMask mask) {
  const TensorType t = f32({batch, heads, length, size});
  const OneStep step({t, t, t}, [&](const Values& v) { return attention(v[0], v[1], v[2], {.mask = mask}); });
  const double time = seconds([&] { step.run(); });
  const double pairs = mask == AttentionMask::causal ? static_cast<double>(length * (length + 1)) / 2
                                                     : static_cast<double>(length * length);
  const double rate = static_cast<double>(batch * heads * size * 4) * pairs / time;
  fmt::print("attention{} {} {}x{}x{}x{} {:.2f} GFLOP/s {:.3f}\n", mask == AttentionMask::causal ? "_causal" : "",
             level_name(level()), batch, heads, length, size, rate / 1e9, rate / peak);
}

void measure_rows(const char* name, Index rows, Index cols, Index operands, const OneStep& step) {
  const double bytes = static_cast<double>(rows * cols * 4);
  std::vector<float> from(static_cast<std::size_t>(rows * cols), 1.0f), to(from.size());
  const double copy = seconds([&] {
    std::memcpy(to.data(), from.data(), from.size() * 4);
    asm volatile("" ::: "memory");
  });
  const double rate = bytes * static_cast<double>(operands + 1) / seconds([&] { step.run(); });
  fmt::print("{} {} {}x{} {:.2f} GB/s {:.3f}\n", name, level_name(level()), rows, cols, rate / 1e9,
             rate / (2 * bytes / copy));
}

void measure_level() {
  const double most = peak();
  fmt::print("peak {} - {:.2f} GFLOP/s 1.000\n", level_name(level()), most / 1e9);
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
    measure_attention(most, 1, 12, 128, 32, mask);
    measure_attention(most, 8, 12, 128, 32, mask);
    measure_attention(most, 1, 12, 128, 64, mask);
    measure_attention(most, 1, 12, 512, 64, mask);
  }
  for (const auto& [rows, cols] : {std::pair<Index, Index>{128, 384}, {1024, 384}, {128, 4096}}) {
    const TensorType t = f32({rows, cols}), row = f32({cols});
    measure_rows("layer_norm", rows, cols, 1,
                 OneStep({t, row, row}, [](const Values& v) { return layer_norm(v[0], v[1], v[2]); }));
    measure_rows("rms_norm", rows, cols, 1, OneStep({t, row}, [](const Values& v) { return rms_norm(v[0], v[1]); }));
    measure_rows("softmax", rows, cols, 1, OneStep({t}, [](const Values& v) { return softmax(v[0]); }));
    measure_rows("softmax_axis_0", rows, cols, 1, OneStep({t}, [](const Values& v) { return softmax(v[0], 0); }));
  }
}

}  // namespace

int main() {
  for (const Level each : available_levels()) {
    force_level(each);
    measure_level();
  }
}
