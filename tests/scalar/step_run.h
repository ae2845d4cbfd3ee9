// Runs graphs node by node as steps of the scalar folder, over buffers with guard bytes, in random pieces too.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "device/makers.h"
#include "device/view.h"
#include "ops/constant/constant.h"
#include "ops/scalar/region.h"
#include "runtime/evaluate.h"

namespace rlx::test {

/// Memory of one buffer, with bytes around it that nothing may write.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : size_(bytes), all_(bytes + 2 * margin, filler) {}
  std::byte* data() { return all_.data() + margin; }
  std::span<std::byte> bytes() { return {data(), size_}; }
  bool whole() const {
    for (std::size_t i = 0; i < margin; ++i) {
      if (all_[i] != filler || all_[margin + size_ + i] != filler) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t margin = 64;
  static constexpr std::byte filler{0xA5};
  std::size_t size_;
  std::vector<std::byte> all_;
};

/// What a step maker is asked, with its own buffers: operands are 0, 1, …, results follow.
struct StepCase {
  const Node* node = nullptr;
  std::vector<Slot> in, out;
  std::optional<Step> step;
  std::string why;

  void make() { step = region::make_step({*node, in, out, &why}); }
};

inline StepCase step_case(const Graph& g, const Node& n, std::span<const Tensor* const> constants = {}) {
  StepCase c;
  c.node = &n;
  BufferId id = 0;
  for (const Operand o : n.operands) c.in.push_back({id++, g.type(o)});
  for (std::size_t i = 0; i < constants.size(); ++i) c.in[i].constant = constants[i];
  for (const TensorType& t : n.results) c.out.push_back({id++, t});
  c.make();
  return c;
}

inline void expect_same_bits(const Tensor& got, const Tensor& want, std::string_view what) {
  EXPECT_EQ(got.type().text(), want.type().text()) << what;
  if (identical(got, want)) return;
  for (Index i = 0; i < got.count(); ++i) {
    ASSERT_EQ(got.code(i), want.code(i)) << what << ", element " << i << " of " << got.type().text();
  }
}

/// Runs the step of a case whole, then in random pieces in random order; both must give the same bits and stay inside
/// the buffers. `memory` holds the bytes of each operand's buffer.
inline std::vector<Tensor> run_case(const StepCase& c, const std::vector<std::span<const std::byte>>& memory,
                                    const DimEnv& dims, unsigned seed = 1) {
  std::vector<std::vector<Tensor>> all;
  for (const bool pieces : {false, true}) {
    std::vector<Guarded> buffers;
    for (const auto& m : memory) {
      buffers.emplace_back(m.size());
      if (!m.empty()) std::memcpy(buffers.back().data(), m.data(), m.size());
    }
    for (const Slot& s : c.out) {
      buffers.emplace_back(static_cast<std::size_t>(s.type.plane_bytes(0).evaluate(dims)));
    }
    const BoundStep bound(*c.step, dims, [&](BufferId id) { return buffers[id].data(); });
    if (pieces) {
      std::mt19937 random(seed);
      std::vector<Range> ranges;
      for (Index i = 0; i < bound.items();) {
        const Index n = std::min<Index>(bound.items() - i, 1 + static_cast<Index>(random() % 3));
        ranges.push_back({i, i + n});
        i += n;
      }
      std::shuffle(ranges.begin(), ranges.end(), random);
      for (const Range r : ranges) bound.run(r);
    } else {
      bound.run_all();
    }
    std::vector<Tensor> results;
    for (std::size_t r = 0; r < c.out.size(); ++r) {
      Guarded& b = buffers[memory.size() + r];
      std::vector<Index> shape;
      for (const Dim& d : c.out[r].type.dims) shape.push_back(d.evaluate(dims));
      Tensor t(c.out[r].type.dtype, shape);
      if (!b.bytes().empty()) std::memcpy(t.mutable_bytes().data(), b.data(), b.bytes().size());
      results.push_back(std::move(t));
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) EXPECT_TRUE(buffers[i].whole()) << "buffer " << i;
    all.push_back(std::move(results));
  }
  for (std::size_t r = 0; r < all[0].size(); ++r) expect_same_bits(all[1][r], all[0][r], "in pieces");
  return all[0];
}

/// Every node as one step; constants are known to the makers. Throws Error where one declines.
inline std::vector<Tensor> run_steps(const Graph& g, std::span<const Tensor> inputs, const DimEnv& more = {}) {
  const DimEnv dims = bind_dims(g, inputs, more);
  std::vector<std::vector<Tensor>> values(g.nodes.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[g.inputs[i]] = {inputs[i]};
  for (Id i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (is_input(n)) continue;
    if (n.op == &constant_op) {
      values[i] = {n.attrs.as<ConstantAttrs>().data};
      continue;
    }
    std::vector<const Tensor*> constants;
    std::vector<std::span<const std::byte>> memory;
    for (const Operand o : n.operands) {
      const Tensor& t = values[o.node][o.result];
      constants.push_back(g.nodes[o.node].op == &constant_op ? &t : nullptr);
      memory.push_back(t.bytes());
    }
    const StepCase c = step_case(g, n, constants);
    require(c.step.has_value(), "{}: {}", describe(g, i), c.why);
    values[i] = run_case(c, memory, dims, i);
  }
  std::vector<Tensor> out;
  for (const Operand o : g.outputs) out.push_back(values[o.node][o.result]);
  return out;
}

}  // namespace rlx::test
