// Making regions: from a node or a body to instructions, sources, targets and blocks.
#include "ops/scalar/region.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>

#include "device/view.h"
#include "ir/outline.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/blocks.h"

namespace rlx::region {

namespace {

// Of every axis of a value the axis of the results that it lies along, or none where its size is 1.
using Axes = std::vector<int>;
constexpr int none = -1;

// What a region cannot do; make_step() turns it into a decline.
struct Declined {
  std::string why;
};
[[noreturn]] void decline(std::string why) { throw Declined{std::move(why)}; }

bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

// A source while strides are sizes.
struct Draft {
  std::size_t operand = 0;  // of the node; of constants and coordinates: none
  const Tensor* constant = nullptr;
  bool counted = false;
  DType dtype = DType::f32;
  std::vector<Dim> strides;  // one an axis of the results
  Place place = 0;
};
constexpr std::size_t no_operand = ~std::size_t{0};

class Compiler {
 public:
  /// With `given`, operand 0 is given, and only stage() is called.
  Compiler(const StepArgs& n, StepBuilder& builder, bool given) : n_(n), builder_(builder), given_(given) {
    dims_ = n.out[0].type.dims;
  }

  Step step() {
    compile();
    return finish();
  }

  std::shared_ptr<const Program> stage() {
    compile();
    return std::make_shared<const Program>(std::move(program_));
  }

 private:
  void compile() {
    check_types();
    Axes straight(dims_.size());
    for (std::size_t i = 0; i < straight.size(); ++i) straight[i] = static_cast<int>(i);
    const bool fused = n_.node.op == &fusion_op();
    for (std::size_t r = 0; r < n_.out.size(); ++r) {
      const Place p = fused ? body_value(*n_.node.bodies[0], n_.node.bodies[0]->outputs[r], straight)
                            : node_value(nullptr, n_.node, straight);
      results_.push_back(p);
    }
    join_axes();
    make_sources();
    make_targets();
    place_buffers();
  }

  void check_types() const {
    if (n_.in.size() > most_operands || n_.out.size() > most_operands) decline("more operands than a region takes");
    for (const Slot& s : n_.out) {
      if (s.type.encoding || !s.dense()) decline("results of a region are dense");
      if (s.type.dims != dims_) decline("results of a region have one shape");
    }
    for (const Slot& s : n_.in) {
      if (s.type.encoding) decline("an operand is encoded");
    }
    const bool large = n_.node.op == &fusion_op() && n_.node.bodies[0]->nodes.size() > 2 * most_places;
    if (large) decline("more nodes than a region takes");
  }

  Place new_place(DType d) { return new_place(block_bytes(d)); }
  Place new_place(int bytes) {
    if (bytes_.size() == most_places) decline("more values than a region takes");
    bytes_.push_back(bytes);
    return static_cast<Place>(bytes_.size() - 1);
  }

  Place emit(BlockKernel kernel, std::initializer_list<Place> in, int bytes) {
    Instruction k{.kernel = kernel, .operands = static_cast<int>(in.size())};
    std::ranges::copy(in, k.in.begin());
    for (std::size_t i = in.size(); i < k.in.size(); ++i) k.in[i] = k.in[0];
    k.out = new_place(bytes);
    program_.code.push_back(k);
    return k.out;
  }

  // A value of the body at these axes, made once.
  Place body_value(const Graph& body, Operand o, const Axes& axes) {
    const auto key = std::pair(o, axes);
    if (const auto it = made_.find(key); it != made_.end()) return it->second;
    const Node& node = body.nodes[o.node];
    Place p = 0;
    if (is_input(node)) {
      const auto at = std::ranges::find(body.inputs, o.node) - body.inputs.begin();
      p = operand(static_cast<std::size_t>(at), axes);
    } else {
      p = node_value(&body, node, axes);
    }
    return made_.emplace(key, p).first->second;
  }

  // Operand k of a node: a value of the body, or of the step.
  Place operand_of(const Graph* body, const Node& node, std::size_t k, const Axes& axes) {
    return body ? body_value(*body, node.operands[k], axes) : operand(k, axes);
  }
  const TensorType& operand_type(const Graph* body, const Node& node, std::size_t k) const {
    return body ? body->type(node.operands[k]) : n_.in[k].type;
  }

  Place node_value(const Graph* body, const Node& node, const Axes& axes) {
    if (node.op == &constant_op) return constant(node.attrs.as<ConstantAttrs>().data, axes);
    if (node.op == &iota_op) return coordinates(node.attrs.as<IotaAttrs>(), axes);
    if (node.results.size() != 1 || node.operands.empty()) decline(unknown(node));
    const TensorType& first = operand_type(body, node, 0);
    if (node.op == &reshape_op) return operand_of(body, node, 0, reshaped_axes(first.dims, node.results[0].dims, axes));
    if (node.op == &broadcast_op) return operand_of(body, node, 0, operand_axes(first.dims, axes));
    if (node.op == &cast_op) return cast(operand_of(body, node, 0, axes), first.dtype, node.results[0].dtype);
    return scalar(body, node, axes);
  }

  static std::string unknown(const Node& node) { return fmt::format("{} is not elementwise", node.op->name()); }

  Place scalar(const Graph* body, const Node& node, const Axes& axes) {
    const std::size_t count = node.operands.size();
    const DType dtype = operand_type(body, node, count - 1).dtype;  // of select: of the values
    const BlockKernel direct = find_block(*node.op, dtype);
    const bool widened = !direct && is_half(dtype);
    const BlockKernel kernel = widened ? find_block(*node.op, DType::f32) : direct;
    if (!kernel || count > 3) decline(fmt::format("{} has no kernel for {}", node.op->name(), name(dtype)));
    Place in[3] = {};
    for (std::size_t k = 0; k < count; ++k) {
      const TensorType& t = operand_type(body, node, k);
      in[k] = operand_of(body, node, k, operand_axes(t.dims, axes));
      if (widened && is_half(t.dtype)) in[k] = cast(in[k], t.dtype, DType::f32);
    }
    const DType to = node.results[0].dtype;
    const int bytes = block_bytes(widened && is_half(to) ? DType::f32 : to);
    const Place p = count == 1   ? emit(kernel, {in[0]}, bytes)
                    : count == 2 ? emit(kernel, {in[0], in[1]}, bytes)
                                 : emit(kernel, {in[0], in[1], in[2]}, bytes);
    cost_ += block_cost(*node.op) * (dtype == DType::f64 || dtype == DType::c64 ? 8 : 1);
    return widened && is_half(to) ? cast(p, DType::f32, to) : p;
  }

  Place cast(Place p, DType from, DType to) {
    if (from == to) return p;
    const auto key = std::tuple(p, from, to);
    if (const auto it = casts_.find(key); it != casts_.end()) return it->second;
    Place q = p;
    for (const CastPart& part : find_cast(from, to)) {
      q = emit(part.kernel, {q}, part.bytes);
      ++cost_;
    }
    return casts_.emplace(key, q).first->second;
  }

  // Axes of an operand that is right-aligned with a value at `axes`.
  static Axes operand_axes(std::span<const Dim> dims, const Axes& axes) {
    Axes own(dims.size(), none);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] != Dim(1)) own[i] = axes[i + axes.size() - dims.size()];
    }
    return own;
  }
  // Axes before a reshape that adds and drops sizes 1 only.
  static Axes reshaped_axes(std::span<const Dim> from, std::span<const Dim> to, const Axes& axes) {
    Axes own(from.size(), none);
    std::size_t k = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] == Dim(1)) continue;
      while (k < to.size() && to[k] == Dim(1)) ++k;
      if (k == to.size() || to[k] != from[i]) decline("a reshape in a region adds and drops sizes 1 only");
      own[i] = axes[k++];
    }
    while (k < to.size() && to[k] == Dim(1)) ++k;
    if (k != to.size()) decline("a reshape in a region adds and drops sizes 1 only");
    return own;
  }

  Place source(Draft d, std::span<const Dim> strides, const Axes& axes, int bytes) {
    d.strides.assign(dims_.size(), 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != none) d.strides[static_cast<std::size_t>(axes[i])] = strides[i];
    }
    for (const Draft& known : drafts_) {
      if (known.operand == d.operand && known.constant == d.constant && known.counted == d.counted &&
          known.strides == d.strides)
        return known.place;
    }
    if (drafts_.size() == most_operands) decline("more operands than a region takes");
    d.place = new_place(bytes);
    drafts_.push_back(std::move(d));
    return drafts_.back().place;
  }

  Place operand(std::size_t k, const Axes& axes) {
    const Slot& s = n_.in[k];
    if (s.constant && s.constant->count() == 1) return filled(*s.constant);
    return source({.operand = k, .dtype = s.type.dtype}, strides_of(s), axes, block_bytes(s.type.dtype));
  }

  Place constant(const Tensor& t, const Axes& axes) {
    if (t.type().encoding) decline("a constant is encoded");
    if (t.count() == 1) return filled(t);
    return source({.operand = no_operand, .constant = &t, .dtype = t.dtype()}, dense_strides(t.type().dims), axes,
                  block_bytes(t.dtype()));
  }

  Place coordinates(const IotaAttrs& a, const Axes& axes) {
    std::vector<Dim> strides(a.dims.size(), 0);
    strides[static_cast<std::size_t>(TensorType{a.dtype, a.dims}.axis(a.axis))] = 1;
    const Place p = source({.operand = no_operand, .counted = true, .dtype = DType::i64}, strides, axes, 8);
    return cast(p, DType::i64, a.dtype);
  }

  // A block full of one element.
  Place filled(const Tensor& t) {
    const int bytes = block_bytes(t.dtype());
    std::uint64_t code = t.code(0);
    if (is_signed_integer(t.dtype())) code = static_cast<std::uint64_t>(extend_integer(t.dtype(), code));
    std::vector<std::byte> block(static_cast<std::size_t>(bytes * most_elements));
    for (Index i = 0; i < most_elements; ++i) {
      std::memcpy(block.data() + i * bytes, &code, static_cast<std::size_t>(bytes));  // little end first
    }
    for (const auto& [place, known] : program_.constants) {
      if (known == block) return place;
    }
    const Place p = new_place(bytes);
    program_.constants.emplace_back(p, std::move(block));
    return p;
  }

  // Drops axes of size 1, and joins neighbours along which every source walks on evenly.
  void join_axes() {
    std::vector<std::size_t> kept;
    for (std::size_t a = 0; a < dims_.size(); ++a) {
      if (dims_[a] != Dim(1)) kept.push_back(a);
    }
    std::vector<Dim> extents;
    std::vector<std::vector<Dim>> strides(drafts_.size());
    for (const std::size_t a : kept) {
      bool even = !extents.empty();
      for (std::size_t i = 0; even && i < drafts_.size(); ++i) {
        even = strides[i].back() == drafts_[i].strides[a] * dims_[a];
      }
      if (even) {
        extents.back() = extents.back() * dims_[a];
      } else {
        extents.push_back(dims_[a]);
      }
      for (std::size_t i = 0; i < drafts_.size(); ++i) {
        if (even) strides[i].pop_back();
        strides[i].push_back(drafts_[i].strides[a]);
      }
    }
    if (extents.size() > most_axes) decline("more axes than a region takes");
    for (std::size_t i = 0; i < drafts_.size(); ++i) drafts_[i].strides = std::move(strides[i]);
    extents_ = std::move(extents);
  }

  Source::Kind kind(const Draft& d) const {
    if (d.counted) return extents_.empty() ? Source::Kind::one : Source::Kind::counted;
    const bool single = std::ranges::all_of(d.strides, [](const Dim& s) { return s == Dim(0); });
    if (bits(d.dtype) < 8) return extents_.empty() || single ? Source::Kind::one : Source::Kind::walked;
    if (d.strides == dense_strides(extents_)) return Source::Kind::dense;
    return single ? Source::Kind::one : Source::Kind::walked;
  }

  void make_sources() {
    for (const Draft& d : drafts_) {
      Source s{.kind = kind(d), .bits = bits(d.dtype), .has_sign = is_signed_integer(d.dtype), .place = d.place};
      if (d.counted && s.kind == Source::Kind::one) {  // the only coordinate is 0
        s.constant = Tensor(DType::i64, {});
      } else if (given_ && d.operand == 0) {
        if (s.kind != Source::Kind::dense) decline("the given operand is stretched");
        s.given = true;
      } else if (d.constant) {
        s.constant = *d.constant;
      } else if (!d.counted) {
        s.memory = builder_.read<std::byte>(n_.in[d.operand]);
      }
      if (s.kind == Source::Kind::walked || s.kind == Source::Kind::counted) {
        program_.walks = true;
        for (const Dim& stride : d.strides) s.strides.push_back(builder_.dim(stride));
      }
      program_.sources.push_back(std::move(s));
    }
    if (program_.walks) {
      for (const Dim& e : extents_) program_.extents.push_back(builder_.dim(e));
    }
    program_.count = builder_.dim(product(dims_));
  }

  // An instruction writes its result to memory when that has the form of a block; the same value again is copied.
  void make_targets() {
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const Slot& s = n_.out[r];
      const int width = bits(s.type.dtype);
      Target t{.bits = width, .place = results_[r], .memory = builder_.write<std::byte>(s)};
      const bool made = std::ranges::any_of(program_.code, [&](const Instruction& k) { return k.out == t.place; });
      const bool again = std::ranges::find(results_.begin(), results_.begin() + static_cast<Index>(r), results_[r]) !=
                         results_.begin() + static_cast<Index>(r);
      if (width < 8) program_.packed = true;
      if (!made || again || width < 8) {
        t.from = t.place;
      } else {
        written_.push_back(t.place);
        if (!given_) reuse_memory(t, s);  // the step around a stage may read its operands at any time
      }
      program_.targets.push_back(t);
    }
  }

  // A result may take the memory of a dense operand that no later instruction reads.
  void reuse_memory(const Target& t, const Slot& out) {
    std::size_t made = 0;
    while (program_.code[made].out != t.place) ++made;
    for (std::size_t i = 0; i < program_.sources.size(); ++i) {
      const Source& s = program_.sources[i];
      if (s.kind != Source::Kind::dense || !s.memory || s.bits != t.bits) continue;
      const std::size_t k = drafts_[i].operand;
      if (!n_.in[k].dense() || n_.in[k].type.count() != out.type.count()) continue;
      const auto same_buffer = [&](const Draft& d) {
        return d.operand != no_operand && n_.in[d.operand].buffer == n_.in[k].buffer;
      };
      if (std::ranges::count_if(drafts_, same_buffer) != 1) continue;
      bool late = std::ranges::find(results_, s.place) != results_.end();
      for (std::size_t j = made + 1; j < program_.code.size(); ++j) {
        const auto& in = program_.code[j].in;
        late |= std::find(in.begin(), in.end(), s.place) != in.end();
      }
      if (late || taken_.contains(i)) continue;
      builder_.may_overwrite(t.memory, *s.memory);
      taken_.insert(i);
      return;
    }
  }

  // Places that need a block of their own; blocks are used again after the last reader.
  void place_buffers() {
    std::vector<bool> fixed(bytes_.size(), false);
    for (const auto& constant : program_.constants) fixed[constant.first] = true;
    for (const Place p : written_) fixed[p] = true;
    std::vector<std::size_t> last(bytes_.size(), 0);
    const std::size_t end = program_.code.size();
    for (std::size_t i = 0; i < end; ++i) {
      for (const Place p : program_.code[i].in) last[p] = i;
    }
    for (const Target& t : program_.targets) {
      if (t.from) last[*t.from] = end;
    }
    int used = 0;
    const auto own = [&](Place p) {
      used += bytes_[p];
      program_.buffers.push_back({p, bytes_[p]});
    };
    for (const Source& s : program_.sources) {
      if (s.kind == Source::Kind::dense) continue;
      own(s.place);
      fixed[s.place] = true;
    }
    for (const Source& s : program_.sources) fixed[s.place] = true;
    std::vector<Place> renamed(bytes_.size());
    for (std::size_t p = 0; p < renamed.size(); ++p) renamed[p] = static_cast<Place>(p);
    std::map<int, std::vector<Place>> free;
    for (std::size_t i = 0; i < end; ++i) {
      Instruction& k = program_.code[i];
      const std::array<Place, 3> before = k.in;
      for (Place& p : k.in) p = renamed[p];
      for (std::size_t j = 0; j < before.size(); ++j) {
        const Place p = before[j];
        const bool first = std::find(before.begin(), before.begin() + static_cast<Index>(j), p) ==
                           before.begin() + static_cast<Index>(j);
        if (first && !fixed[p] && last[p] == i) free[bytes_[p]].push_back(renamed[p]);
      }
      if (fixed[k.out]) continue;
      std::vector<Place>& list = free[bytes_[k.out]];
      if (list.empty()) {
        own(k.out);
      } else {
        renamed[k.out] = list.back();
        list.pop_back();
      }
      k.out = renamed[k.out];
    }
    for (Target& t : program_.targets) {
      if (t.from) t.from = renamed[*t.from];
    }
    if (used > 0) {
      const Index fit = pool_bytes / used / least_elements * least_elements;
      if (fit < least_elements) decline("more values at a time than fit the cache");
      program_.block = std::min(most_elements, fit);
    }
    program_.places = bytes_.size();
  }

  Step finish() {
    const Dim count = product(dims_);
    builder_.flops(count * cost_);
    // A call should take about 10 us: an element takes about cost / 8 ns in packs.
    const Index grain = std::clamp<Index>(80000 / (cost_ + 4) / item_elements, 1, 64);
    const Dim items = ceildiv(count, item_elements);
    if (const std::optional<Step::Run> direct = single_call()) return builder_.run(items, grain, *direct);
    return builder_.run(items, grain,
                        [p = std::move(program_)](const Memory& m, const DimValues& d, Range r) { p.run(m, d, r); });
  }

  // One instruction over dense operands needs no blocks.
  std::optional<Step::Run> single_call() const {
    const Program& p = program_;
    if (p.code.size() != 1 || !p.buffers.empty() || !p.constants.empty() || p.packed) return {};
    if (p.targets.size() != 1 || p.sources.empty() || p.sources.size() > 3) return {};
    struct Operand {
      Token<std::byte, Access::read> memory;
      Index bytes;
    };
    std::vector<Operand> in;
    for (const Source& s : p.sources) {
      if (!s.memory) return {};
      in.push_back({*s.memory, s.bits / 8});
    }
    const Instruction& k = p.code[0];
    std::array<std::size_t, 3> pick{};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < p.sources.size(); ++j) {
        if (p.sources[j].place == k.in[i]) pick[i] = j;
      }
    }
    const Operand a = in[pick[0]], b = in[pick[1]], c = in[pick[2]];
    return [kernel = k.kernel, a, b, c, count = *p.count, out = p.targets[0].memory,
            out_bytes = Index{p.targets[0].bits / 8}](const Memory& m, const DimValues& d, Range r) {
      const Index first = r.begin * item_elements, last = std::min(d[count], r.end * item_elements);
      if (first >= last) return;
      const void* const operands[] = {m[a.memory].data() + first * a.bytes, m[b.memory].data() + first * b.bytes,
                                      m[c.memory].data() + first * c.bytes};
      kernel(operands, m[out].data() + first * out_bytes, last - first);
    };
  }

  const StepArgs& n_;
  StepBuilder& builder_;
  bool given_;
  std::vector<Dim> dims_;     // of the results
  std::vector<Dim> extents_;  // joined
  Program program_;
  std::vector<int> bytes_;  // of an element, by place
  std::vector<Draft> drafts_;
  std::vector<Place> results_, written_;
  std::set<std::size_t> taken_;  // sources whose memory a result may take
  std::map<std::pair<Operand, Axes>, Place> made_;
  std::map<std::tuple<Place, DType, DType>, Place> casts_;
  Index cost_ = 0;
};

}  // namespace

std::optional<Step> make_step(const StepArgs& n) {
  if (n.out.empty()) return n.decline("a region has results");
  try {
    StepBuilder builder(std::string(n.node.op == &fusion_op() ? "region" : n.node.op->name()));
    return Compiler(n, builder, false).step();
  } catch (const Declined& d) {
    return n.decline(d.why);
  }
}

std::shared_ptr<const Program> make_stage(StepBuilder& s, const StepArgs& n) {
  try {
    return Compiler(n, s, true).stage();
  } catch (const Declined& d) {
    n.decline(d.why);
    return nullptr;
  }
}

}  // namespace rlx::region
