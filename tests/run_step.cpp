// Buffers with guards, layouts of operands, pieces of items.
#include "run_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "core/error.h"
#include "core/walk.h"
#include "ir/op_table.h"
#include "levels.h"
#include "ops/constant/constant.h"

namespace rlx::test {

namespace {

constexpr std::size_t guard = 128;

// Memory of noise, aligned, with noise before and behind it.
class Guarded {
 public:
  Guarded(std::size_t bytes, unsigned seed) : memory_(bytes + 2 * guard + 64), bytes_(bytes) {
    std::mt19937 random(seed);
    for (std::byte& b : memory_) b = static_cast<std::byte>(random());
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.data() + guard);
    start_ = memory_.data() + guard + (64 - at % 64) % 64;
    keep();
  }
  std::byte* data() { return start_; }
  std::size_t size() const { return bytes_; }
  // What must not change from here on.
  void keep() { before_ = memory_; }
  bool outside_unchanged() const {
    const auto begin = start_ - memory_.data();
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes_);
    return std::equal(memory_.begin(), memory_.begin() + begin, before_.begin()) &&
           std::equal(memory_.begin() + end, memory_.end(), before_.begin() + end);
  }
  bool unchanged() const { return memory_ == before_; }

 private:
  std::vector<std::byte> memory_, before_;
  std::size_t bytes_;
  std::byte* start_ = nullptr;
};

std::vector<Index> numbers(std::span<const Dim> dims, const DimEnv& env) {
  std::vector<Index> v;
  for (const Dim& d : dims) v.push_back(d.evaluate(env));
  return v;
}

Tensor empty_tensor(const TensorType& t, const DimEnv& env) {
  const std::vector<Index> shape = numbers(t.dims, env);
  if (!t.encoding) return {t.dtype, shape};
  TensorType type = t;
  type.dims.assign(shape.begin(), shape.end());
  std::vector<Bytes> planes;
  for (std::size_t p = 0; p < type.plane_count(); ++p)
    planes.push_back(Bytes::allocate(type.plane_bytes(p).constant()));
  return {type, std::move(planes)};
}

struct Operands {
  std::vector<Slot> slots;
  std::vector<std::unique_ptr<Guarded>> memory;  // by buffer id: operands, then results
};

// Reversed axes, two elements a place, and a gap behind every row.
std::vector<Index> loose_strides(const std::vector<Index>& shape) {
  std::vector<Index> s(shape.size());
  Index n = 2;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    s[i] = n;
    n = n * std::max<Index>(shape[i], 1) + 3;
  }
  return s;
}

void place(Operands& o, const Tensor& t, const TensorType& type, const Tensor* constant, bool strided) {
  Slot slot{.buffer = static_cast<BufferId>(o.memory.size()), .type = type, .constant = constant};
  const auto seed = static_cast<unsigned>(o.memory.size() + 1);
  const int width = bits(t.dtype());
  if (!strided || constant || t.rank() == 0 || t.type().encoding || width % 8 != 0) {
    auto m = std::make_unique<Guarded>(t.bytes().size(), seed);
    std::ranges::copy(t.bytes(), m->data());
    o.memory.push_back(std::move(m));
  } else {
    const std::vector<Index> strides = loose_strides(t.shape());
    Index elements = 1;
    for (std::size_t i = 0; i < strides.size(); ++i) elements += std::max<Index>(t.shape()[i] - 1, 0) * strides[i];
    auto m = std::make_unique<Guarded>(static_cast<std::size_t>(elements * width / 8), seed);
    const std::byte* from = t.bytes().data();
    walk<1>(t.shape(), {strides}, [&](const auto& at) {
      std::memcpy(m->data() + at[0] * width / 8, from, static_cast<std::size_t>(width / 8));
      from += width / 8;
    });
    o.memory.push_back(std::move(m));
    slot.strides.assign(strides.begin(), strides.end());
  }
  o.memory.back()->keep();
  o.slots.push_back(std::move(slot));
}

void run_pieces(const BoundStep& step, unsigned seed) {
  if (seed == 0) return step.run({0, step.items()});
  std::mt19937_64 random(seed);
  std::vector<Range> pieces;
  const auto most = static_cast<std::uint64_t>(std::max<Index>(step.items() / 3, 1));
  for (Index at = 0; at < step.items(); at = pieces.back().end) {
    pieces.push_back({at, std::min(at + 1 + static_cast<Index>(random() % most), step.items())});
  }
  std::ranges::shuffle(pieces, random);
  for (const Range r : pieces) step.run(r);
}

// Addresses of a step's uses, which BoundStep asks for in their order.
class Places {
 public:
  Places(const Step& step, Operands& o, const DimEnv& dims, bool in_place) : step_(step), o_(o) {
    for (std::size_t u = 0; u < step.uses.size(); ++u) {
      const Use& use = step.uses[u];
      if (use.buffer == own_scratch) {
        own_[u] = std::make_unique<Guarded>(static_cast<std::size_t>(use.bytes.evaluate(dims)), 77);
      } else if (use.packing) {
        const Slot& slot = *std::ranges::find(o.slots, use.buffer, &Slot::buffer);
        own_[u] = std::make_unique<Guarded>(static_cast<std::size_t>(use.packing->bytes), 78);
        use.packing->pack(*slot.constant, std::span(own_[u]->data(), own_[u]->size()));
        own_[u]->keep();
      }
    }
    if (!in_place) return;
    for (const InPlace& p : step.in_place) {
      const BufferId to = step.uses[p.write].buffer, from = step.uses[p.read].buffer;
      if (o.memory[to]->size() == o.memory[from]->size() && !moved_.contains(to)) moved_[to] = from;
    }
  }
  std::byte* next() {
    const std::size_t u = at_++;
    if (const auto it = own_.find(u); it != own_.end()) return it->second->data();
    return memory(step_.uses[u].buffer).data();
  }
  Guarded& memory(BufferId id) {
    const auto it = moved_.find(id);
    return *o_.memory[it == moved_.end() ? id : it->second];
  }
  bool overwritten(BufferId id) const {
    return std::ranges::any_of(moved_, [&](const auto& m) { return m.second == id; });
  }
  bool kept() const {
    return std::ranges::all_of(own_, [&](const auto& m) {
      return step_.uses[m.first].packing ? m.second->unchanged() : m.second->outside_unchanged();
    });
  }

 private:
  const Step& step_;
  Operands& o_;
  std::map<std::size_t, std::unique_ptr<Guarded>> own_;
  std::map<BufferId, BufferId> moved_;
  std::size_t at_ = 0;
};

std::string what(const OpDef& op, const AnyCase& c, std::size_t index, const std::map<DType, DType>& replace) {
  std::string s = std::string(op.name()) + " case " + std::to_string(index) + " {" + c.attrs.print() + "}";
  for (const CaseInput& in : c.common.inputs) s += " " + in.type.text();
  return s + (replace.empty() ? "" : " as " + std::string(name(replace.begin()->second)));
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), identical);
}

// One case at the level in use.
void check_case(const Bound& b, const Tolerance& tolerance, bool may_decline, CaseCount& count) {
  std::string why;
  const auto got = run_node(b, cpu_makers(), {}, &why);
  if (!got) {
    EXPECT_TRUE(may_decline) << "declined: " << why;
    ++count.declined;
    return;
  }
  ++count.ran;
  const std::vector<Tensor> want = evaluate(b.graph, b.inputs, {false, b.dims});
  for (std::size_t r = 0; r < want.size(); ++r) {
    const Difference d = compare((*got)[r], want[r], tolerance);
    EXPECT_TRUE(d.ok) << "result " << r << " " << d.where;
  }
  for (const unsigned seed : {1u, 2u}) {
    EXPECT_TRUE(same_bits(run_node(b, cpu_makers(), {.pieces = seed}).value(), *got)) << "in pieces, seed " << seed;
  }
  EXPECT_TRUE(same_bits(run_node(b, cpu_makers(), {.pieces = 3, .in_place = true}).value(), *got)) << "in place";
  if (const auto strided = run_node(b, cpu_makers(), {.pieces = 4, .strided = true})) {
    ++count.strided;
    EXPECT_TRUE(same_bits(*strided, *got)) << "strided operands";
  }
}

}  // namespace

std::optional<std::vector<Tensor>> run_node(const Graph& g, Id id, std::span<const Tensor> operands, const DimEnv& dims,
                                            const MakerTable& makers, const StepRun& how, std::string* why) {
  const Node& node = g.nodes[id];
  Operands o;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Node& source = g.nodes[node.operands[i].node];
    place(o, operands[i], g.type(node.operands[i]), source.op == &constant_op ? &operands[i] : nullptr, how.strided);
  }
  std::vector<Slot> out;
  std::vector<Tensor> results;
  for (const TensorType& t : node.results) {
    out.push_back({.buffer = static_cast<BufferId>(o.memory.size()), .type = t});
    results.push_back(empty_tensor(t, dims));
    o.memory.push_back(std::make_unique<Guarded>(results.back().bytes().size(), 99));
  }
  const std::optional<Step> step = makers.make({node, o.slots, out, why});
  if (!step) return std::nullopt;
  Places places(*step, o, dims, how.in_place);
  const BoundStep bound(*step, dims, [&](BufferId) { return places.next(); });
  try {
    run_pieces(bound, how.pieces);
  } catch (const Error&) {
    for (const auto& m : o.memory) EXPECT_TRUE(m->unchanged()) << step->name << " writes before it fails";
    throw;
  }
  for (std::size_t i = 0; i < o.memory.size(); ++i) {
    const bool operand = i < operands.size() && !places.overwritten(static_cast<BufferId>(i));
    const bool kept = operand ? o.memory[i]->unchanged() : o.memory[i]->outside_unchanged();
    EXPECT_TRUE(kept) << step->name << (operand ? " changed operand " : " wrote outside buffer ") << i;
  }
  EXPECT_TRUE(places.kept()) << step->name << " wrote outside its scratch memory or into a packed constant";
  for (std::size_t r = 0; r < results.size(); ++r) {
    const std::span<std::byte> to = results[r].mutable_bytes();
    ensure(results[r].type().plane_count() == 1, "results have one plane");
    if (!to.empty()) std::memcpy(to.data(), places.memory(out[r].buffer).data(), to.size());
  }
  return results;
}

std::optional<std::vector<Tensor>> run_node(const Bound& b, const MakerTable& makers, const StepRun& how,
                                            std::string* why) {
  const auto id = static_cast<Id>(b.graph.outputs.at(0).node);
  return run_node(b.graph, id, b.inputs, b.dims, makers, how, why);
}

const MakerTable& cpu_makers() {
  static const MakerTable table(cpu_maker_folders());
  return table;
}

std::vector<std::map<DType, DType>> type_variants(const AnyCase& c) {
  std::vector<std::map<DType, DType>> all{{}};
  const auto first = std::ranges::find_if(
      c.common.inputs, [](const CaseInput& in) { return in.type.dtype == DType::f32 || in.type.dtype == DType::i32; });
  if (!c.common.other_dtypes || first == c.common.inputs.end()) return all;
  // Values that were given by hand, and ranges, need not fit narrow integers, unsigned ones and small floats.
  const bool given = std::ranges::any_of(c.common.inputs, [](const CaseInput& in) { return !in.values.empty(); });
  for (const DType d : all_dtypes()) {
    const bool arithmetic =
        is_arithmetic_float(d) || is_complex(d) || (is_float(d) && bits(d) == 8 && d != DType::e8m0);
    const bool fits = first->type.dtype == DType::f32 ? arithmetic || !given : is_integer(d) && bits(d) >= 8;
    if (d != first->type.dtype && fits) all.push_back({{first->type.dtype, d}});
  }
  return all;
}

CaseCount check_steps(const OpDef& op, const std::optional<Tolerance>& tolerance, bool may_decline) {
  CaseCount count;
  const std::vector<AnyCase> cases = op.cases();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    bool first = true;
    for (const auto& replace : type_variants(cases[i])) {
      SCOPED_TRACE(what(op, cases[i], i, replace));
      std::optional<Bound> b;
      try {
        b = bind_case(op, cases[i], replace, static_cast<unsigned>(17 * i + 1));
      } catch (const Error& e) {
        EXPECT_FALSE(first) << e.what();  // another element type may be refused
        continue;
      }
      first = false;
      at_every_level([&] { check_case(*b, tolerance.value_or(cases[i].common.tolerance), may_decline, count); });
    }
  }
  return count;
}

}  // namespace rlx::test
