// Measures the CPU steps of attention, layer_norm and softmax on one thread, against what this core does at most: a
// loop of fma from registers, and a copy of as many bytes. Prints one line a measurement: NAME LEVEL SHAPE VALUE UNIT
// SHARE, SHARE being the part of the probe's figure; lines of attention begin NAME LEVEL SHAPE NANOSECONDS ns. SHAPE is
// BxHxSxD; `fused` after NAME: q, k, v are thirds of one buffer [B,S,3*H*D], as after one product for all three.
//
// rlx_bench_attention [LEVEL [NAME]]: only that level, only the measurements whose name begins with NAME.
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
    work();
    best = std::min(best, thread_seconds() - start);
  }
  return best;
}

double peak() {
  const double time = seconds([] { probe(level()); });
  return probe_flops(level()) / time;
}

// The step of the one node that `make` builds from inputs of these types, ready to run. `reads` says where the operands
// lie, dense in a buffer each unless given.
class OneStep {
 public:
  OneStep(const std::vector<TensorType>& in, const std::function<Value(const Values&)>& make,
          std::vector<Slot> reads = {}) {
    Builder b;
    Values values;
    for (const TensorType& t : in) values.push_back(b.input("a" + std::to_string(values.size()), t));
    const Graph g = b.finish({make(values)});
    const Node& node = g.nodes.back();
    const std::vector<Slot> writes{{static_cast<BufferId>(in.size()), node.results[0]}};
    const Index parts = reads.empty() ? 1 : static_cast<Index>(in.size());
    if (reads.empty()) {
      for (BufferId i = 0; i < in.size(); ++i) reads.push_back({i, in[i]});
    }
    static const MakerTable makers(cpu_maker_folders());
    std::string why;
    step_ = makers.make({node, reads, writes, &why});
    require(step_.has_value(), "no step: {}", why);
    std::vector<TensorType> types = in;
    types.push_back(node.results[0]);
    for (const TensorType& t : types) memory_.push_back(numbers(t, parts * t.count().constant()));
    bound_ = BoundStep(*step_, {}, [&](BufferId id) { return memory_[id].data()->bytes; });
  }
  void run() const { bound_->run({0, bound_->items()}); }

 private:
  // Lines of the cache, where arenas and weights begin too.
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  // Numbers of [-1, 1) as f32, or bf16 by cutting.
  static std::vector<Line> numbers(const TensorType& t, Index count) {
    const auto width = static_cast<std::size_t>(bits(t.dtype) / 8);
    std::vector<Line> lines(static_cast<std::size_t>(count) * width / sizeof(Line) + 1);
    std::byte* const bytes = lines.data()->bytes;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const float x = static_cast<float>((i * 7919) % 1000) / 500 - 1;
      std::memcpy(bytes + i * width, reinterpret_cast<const char*>(&x) + 4 - width, width);
    }
    return lines;
  }

  std::optional<Step> step_;
  std::vector<std::vector<Line>> memory_;
  std::optional<BoundStep> bound_;
};

TensorType f32(std::vector<Dim> dims) { return {DType::f32, std::move(dims)}; }

struct Attention {
  Index batch, heads, length, size;
  DType type = DType::f32;
  AttentionMask mask = AttentionMask::none;
  bool fused = false;
};

// Attention of parts of one buffer, as an encoder block reads them after its one product.
OneStep fused_step(const Attention& a) {
  const Index width = a.heads * a.size;
  const TensorType t{a.type, {a.batch, a.length, width}};
  std::vector<Slot> slots;
  for (Index i = 0; i < 3; ++i) {
    slots.push_back({.buffer = 0,
                     .type = t,
                     .offset = i * width * bits(a.type) / 8,
                     .strides = {a.length * 3 * width, 3 * width, 1}});
  }
  return {{t, t, t},
          [&](const Values& v) {
            return attention(v[0], v[1], v[2], {.layout = AttentionLayout::packed, .mask = a.mask, .heads = a.heads});
          },
          slots};
}

OneStep attention_step(const Attention& a) {
  if (a.fused) return fused_step(a);
  const TensorType t{a.type, {a.batch, a.heads, a.length, a.size}};
  return {{t, t, t}, [&](const Values& v) { return attention(v[0], v[1], v[2], {.mask = a.mask}); }};
}

void measure_attention(double peak, const Attention& a) {
  const OneStep step = attention_step(a);
  const double time = seconds([&] { step.run(); });
  const double pairs = a.mask == AttentionMask::causal ? static_cast<double>(a.length * (a.length + 1)) / 2
                                                       : static_cast<double>(a.length * a.length);
  const double rate = static_cast<double>(a.batch * a.heads * a.size * 4) * pairs / time;
  fmt::print("attention{}_{}{} {} {}x{}x{}x{} {:.0f} ns {:.2f} GFLOP/s {:.3f}\n",
             a.mask == AttentionMask::causal ? "_causal" : "", name(a.type), a.fused ? "_fused" : "",
             level_name(level()), a.batch, a.heads, a.length, a.size, time * 1e9, rate / 1e9, rate / peak);
  std::fflush(stdout);
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

void measure_all_attention(double peak) {
  const Attention shapes[] = {{1, 12, 16, 32, DType::f32, AttentionMask::none, true},
                              {1, 12, 128, 32, DType::f32, AttentionMask::none, true},
                              {8, 12, 128, 32, DType::f32, AttentionMask::none, true},
                              {1, 12, 128, 32},
                              {1, 12, 128, 64},
                              {1, 12, 512, 64},
                              {1, 32, 2048, 128}};
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
      for (Attention a : shapes) {
        // The largest once a level: it takes seconds.
        if (a.length > 1024 && (mask != AttentionMask::none || level() < Level::v3)) continue;
        a.type = type, a.mask = mask;
        measure_attention(peak, a);
      }
    }
  }
}

void measure_rows_of_all(const std::string& chosen) {
  for (const auto& [rows, cols] : {std::pair<Index, Index>{128, 384}, {1024, 384}, {128, 4096}}) {
    const TensorType t = f32({rows, cols}), row = f32({cols});
    const auto measure = [&](const char* name, Index operands, const std::function<OneStep()>& make) {
      if (std::string_view(name).starts_with(chosen)) measure_rows(name, rows, cols, operands, make());
    };
    measure("layer_norm", 1,
            [&] { return OneStep({t, row, row}, [](const Values& v) { return layer_norm(v[0], v[1], v[2]); }); });
    measure("rms_norm", 1, [&] { return OneStep({t, row}, [](const Values& v) { return rms_norm(v[0], v[1]); }); });
    measure("softmax", 1, [&] { return OneStep({t}, [](const Values& v) { return softmax(v[0]); }); });
    measure("softmax_axis_0", 1, [&] { return OneStep({t}, [](const Values& v) { return softmax(v[0], 0); }); });
  }
}

void measure_level(const std::string& chosen) {
  const double most = peak();
  fmt::print("peak {} - {:.2f} GFLOP/s 1.000\n", level_name(level()), most / 1e9);
  if (std::string_view("attention").starts_with(chosen)) measure_all_attention(most);
  measure_rows_of_all(chosen);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Level each : available_levels()) {
    if (argc > 1 && std::string_view(argv[1]) != level_name(each)) continue;
    force_level(each);
    measure_level(argc > 2 ? argv[2] : "");
  }
}
