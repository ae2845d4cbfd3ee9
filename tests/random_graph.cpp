// Random graphs: steps that each add a node or a few, on values that are there.
#include "random_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "conformance.h"
#include "core/error.h"
#include "ir/builder.h"
#include "ir/control.h"
#include "ir/measure.h"
#include "ir/op_table.h"
#include "ir/outline.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/nonzero/nonzero.h"
#include "ops/pad/pad.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "ops/slice/slice.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace rlx::test {

namespace {

struct OpCases {
  const OpDef* op = nullptr;
  std::vector<AnyCase> cases;
};

// Ops by kind, each with its cases.
struct Catalogue {
  std::vector<OpCases> all, unary, binary;
  Catalogue() {
    static const OpRegistry registry;
    for (const OpDef* op : registry.all()) {
      // What becomes a block of codes moves by a code where its operand moves by a bit.
      if (op->name() == "constant" || op->name() == "encode") continue;
      OpCases entry{op, op->cases()};
      // Cases with hostile contents (indices at the edge, 1e30) are made of values that are written out.
      std::erase_if(entry.cases, [](const AnyCase& c) {
        return std::ranges::any_of(c.common.inputs, [](const CaseInput& in) { return in.type.encoding != nullptr; });
      });
      // The bits of a float tell roundings, and NaN from NaN, that the graphs may differ in.
      if (op->name() == "bitcast")
        std::erase_if(entry.cases, [](const AnyCase& c) { return is_float(c.common.inputs[0].type.dtype); });
      if (entry.cases.empty()) continue;
      const std::size_t operands = entry.cases[0].common.inputs.size();
      const bool plain = (op->traits() & elementwise) != 0 && op->default_attrs().is<NoAttrs>();
      if (plain && operands == 1) unary.push_back(entry);
      if (plain && operands == 2) binary.push_back(entry);
      all.push_back(std::move(entry));
    }
  }
};

const Catalogue& catalogue() {
  static const Catalogue c;
  return c;
}

Index most(const Dim& d) {
  const Bounds b = d.bounds();
  return b.hi;
}

class Generator {
 public:
  Generator(unsigned seed, const RandomGraphOptions& options) : options_(options), random_(seed) {}

  Graph run() {
    const int inputs = 1 + below(3);
    for (int i = 0; i < inputs; ++i) add_input();
    for (int i = 0; i < options_.steps; ++i) {
      for (int attempt = 0; attempt < 8; ++attempt) {
        try {
          if (step()) break;
        } catch (const Error&) {  // NOLINT(bugprone-empty-catch): this op does not take these operands
        }
      }
    }
    return finish();
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& one_of(const std::vector<T>& v) {
    return v[static_cast<std::size_t>(below(static_cast<int>(v.size())))];
  }

  // Younger values more often.
  Value pick() {
    const auto n = static_cast<int>(pool_.size());
    const int i = chance(60) ? n - 1 - below(std::min(n, 4)) : below(n);
    return pool_[static_cast<std::size_t>(i)];
  }

  Dim size() {
    if (options_.symbols && chance(35)) {
      static const Dim symbols[] = {Dim::symbol("B", 1, 4), Dim::symbol("S", 1, 7), Dim::symbol("N", 0, 5)};
      return symbols[below(options_.empty ? 3 : 2)];
    }
    if (options_.empty && chance(2)) return 0;
    static const std::vector<Index> sizes{1, 1, 2, 2, 3, 4, 5, 7, 8, 11};
    return one_of(sizes);
  }

  DType dtype() {
    if (!options_.dtypes.empty()) return one_of(options_.dtypes);
    static const std::vector<DType> others{DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::boolean};
    return chance(65) ? DType::f32 : one_of(others);
  }

  bool small(const TensorType& t) const {
    Index count = 1;
    for (const Dim& d : t.dims) count *= std::min<Index>(most(d), options_.largest + 1);
    return count <= options_.largest && t.rank() <= 6;
  }

  // Keeps a value for later steps unless it may be large.
  bool keep(Value v) {
    if (!small(v.type())) return false;
    pool_.push_back(v);
    return true;
  }

  void add_input() {
    TensorType t(dtype(), {});
    for (int rank = below(5); rank > 0; --rank) t.dims.push_back(size());
    while (!small(t)) t.dims.pop_back();
    pool_.push_back(b_.input("x" + std::to_string(b_.graph().inputs.size()), std::move(t)));
  }

  bool step() {
    if (options_.found && chance(10)) return find();
    using Step = bool (Generator::*)();
    struct Weighted {
      int weight;
      Step step;
    };
    static constexpr Weighted steps[] = {
        {16, &Generator::unary},    {20, &Generator::binary},   {4, &Generator::choose},
        {6, &Generator::convert},   {8, &Generator::reshapes},  {8, &Generator::permute},
        {4, &Generator::stretch},   {4, &Generator::cut},       {3, &Generator::surround},
        {3, &Generator::join},      {5, &Generator::reduces},   {4, &Generator::row_op},
        {7, &Generator::multiply},  {4, &Generator::positions}, {4, &Generator::there_and_back},
        {14, &Generator::any_case}, {3, &Generator::fused},     {2, &Generator::branches},
        {2, &Generator::repeats},   {3, &Generator::scans},     {1, &Generator::calls},
    };
    int total = 0;
    for (const Weighted& w : steps) total += w.weight;
    int at = below(total);
    for (const Weighted& w : steps) {
      at -= w.weight;
      if (at < 0) return (this->*w.step)();
    }
    return false;
  }

  // What is not 0 of a value, or its coordinates.
  bool find() {
    const Value x = pick();
    if (!x.type().is_constant() || is_complex(x.dtype()) || measures(b_.graph()).size() >= 4) return false;
    if (chance(30)) return keep(nonzero_coordinates(x));
    const Value line = reshape(x, {x.type().count()});
    return keep(gather(line, nonzero(line), 0));
  }

  bool unary() { return emit_unary(*one_of(catalogue().unary).op); }
  bool emit_unary(const OpDef& op) {
    const Value x = pick();
    return keep(b_.emit(op, op.default_attrs(), std::span(&x, 1))[0]);
  }

  // A number that some identity is about.
  Value number(DType d) {
    static const std::vector<double> plain{0, 1, -1, 2, 0.5, 3, 4}, special{-0.0, INFINITY, -INFINITY, NAN, 1e-40};
    if (d == DType::boolean || is_integer(d)) return constant(b_, d, std::floor(std::fabs(one_of(plain))));
    return constant(b_, d, options_.special && chance(25) ? one_of(special) : one_of(plain));
  }

  // Another operand for an elementwise op with `x`.
  Value partner(Value x) {
    if (chance(15)) return x;
    if (chance(30)) {
      const Value n = number(x.dtype());
      return chance(30) ? broadcast(n, x.type().dims) : n;
    }
    for (int attempt = 0; attempt < 6; ++attempt) {
      const Value y = pick();
      if (y.dtype() == x.dtype() && fits_beside(x, y)) return y;
    }
    if (x.rank() > 0 && is_arithmetic_float(x.dtype())) return max(x, {static_cast<Index>(below(int(x.rank())))}, true);
    return number(x.dtype());
  }

  // No run-time check: axis by axis equal, or one of them 1.
  static bool fits_beside(Value x, Value y) {
    const auto &a = x.type().dims, &b = y.type().dims;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const Dim &p = a[a.size() - 1 - i], &q = b[b.size() - 1 - i];
      if (p != q && p != Dim(1) && q != Dim(1)) return false;
    }
    return true;
  }

  bool binary() {
    const OpDef& op = *one_of(catalogue().binary).op;
    Value x = pick();
    Value y = partner(x);
    const bool whole = is_integer(x.dtype());
    if (whole && (op.name() == "div" || op.name() == "fmod")) y = bitwise_or(y, like(y, 1));  // never 0
    if (whole && op.name() == "pow") y = constant(b_, y.dtype(), below(4));
    if (op.name() != "div" && op.name() != "fmod" && op.name() != "pow" && chance(30)) std::swap(x, y);
    const Value in[] = {x, y};
    return keep(b_.emit(op, op.default_attrs(), in)[0]);
  }

  bool choose() {
    const Value x = pick();
    const Value y = partner(x);
    Value p = chance(20) ? constant(b_, DType::boolean, below(2)) : less(x, partner(x));
    if (chance(20)) p = bitwise_not(p);
    if (!fits_beside(p, x) || !fits_beside(p, y)) return false;
    return keep(select(p, x, y));
  }

  bool convert() {
    static const std::vector<DType> to{DType::f32, DType::f32, DType::f64, DType::f16,    DType::bf16,
                                       DType::i32, DType::i64, DType::u8,  DType::boolean};
    return keep(cast(pick(), one_of(to)));
  }

  bool reshapes() {
    const Value x = pick();
    std::vector<Dim> dims = x.type().dims;
    const auto rank = static_cast<int>(dims.size());
    const int kind = below(4);
    if (kind == 0) return keep(reshape(x, {x.type().count()}));
    if (kind == 1 || rank == 0) {
      dims.insert(dims.begin() + below(rank + 1), Dim(1));
      return keep(reshape(x, dims));
    }
    const auto at = static_cast<std::size_t>(below(rank));
    if (kind == 2 && at + 1 < dims.size()) {
      dims[at] = dims[at] * dims[at + 1];
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      return keep(reshape(x, dims));
    }
    for (const Index factor : {2, 3, 5}) {
      if (!dims[at].is_constant() || dims[at].constant() % factor != 0 || dims[at].constant() == 0) continue;
      dims[at] = dims[at].constant() / factor;
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at) + below(2), Dim(factor));
      return keep(reshape(x, dims));
    }
    return false;
  }

  std::vector<Index> order(Index rank) {
    std::vector<Index> all(static_cast<std::size_t>(rank));
    std::iota(all.begin(), all.end(), Index{0});
    if (rank == 4 && chance(40)) return {0, 2, 1, 3};
    if (rank >= 2 && chance(40)) {
      std::swap(all[all.size() - 1], all[all.size() - 2]);
    } else {
      std::ranges::shuffle(all, random_);
    }
    return all;
  }

  bool permute() {
    const Value x = pick();
    return x.rank() >= 2 && keep(transpose(x, order(x.rank())));
  }

  bool stretch() {
    const Value x = pick();
    std::vector<Dim> dims = x.type().dims;
    for (Dim& d : dims) {
      if (d == Dim(1)) d = size();
    }
    if (chance(30)) dims.insert(dims.begin(), size());
    return keep(broadcast(x, dims));
  }

  // Part of one axis, forwards or backwards.
  bool cut() {
    const Value x = pick();
    if (x.rank() == 0) return false;
    const auto axis = static_cast<Index>(below(static_cast<int>(x.rank())));
    const Dim& n = x.dim(axis);
    if (n.bounds().lo < 0) return false;  // S*S-S, which bounds do not show to be 0 or more
    if (chance(20)) return keep(reversed(x, axis));
    if (n.bounds().lo < 1) return false;
    if (!n.is_constant()) return keep(chance(50) ? slice(x, axis, 0, n - 1) : slice(x, axis, n - 1, n));
    const Index start = below(static_cast<int>(n.constant())),
                end = start + below(static_cast<int>(n.constant() - start + 1));
    return keep(slice(x, axis, start, end, 1 + below(3)));
  }

  bool surround() {
    const Value x = pick();
    if (x.rank() == 0) return false;
    return keep(pad(x, static_cast<Index>(below(static_cast<int>(x.rank()))), below(2), below(3), below(2)));
  }

  bool join() {
    const Value x = pick();
    if (x.rank() == 0) return false;
    const auto axis = static_cast<Index>(below(static_cast<int>(x.rank())));
    Values parts{x};
    for (int i = below(3); i > 0; --i) {
      const Value y = pick();
      const bool fits =
          y.dtype() == x.dtype() && y.rank() == x.rank() && y.type().with(axis, 1) == x.type().with(axis, 1);
      parts.push_back(fits ? y : x);
    }
    return keep(concat(parts, axis));
  }

  bool reduces() {
    const Value x = pick();
    std::vector<Index> axes;
    for (Index i = 0; i < x.rank(); ++i) {
      if (chance(40)) axes.push_back(i);
    }
    return keep(reduce(x, {static_cast<ReduceKind>(below(5)), axes, chance(50)}));
  }

  bool row_op() {
    const Value x = pick();
    if (x.rank() == 0) return false;
    const auto axis = static_cast<Index>(below(static_cast<int>(x.rank())));
    return keep(chance(70) ? softmax(x, axis) : log_softmax(x, axis));
  }

  bool multiply() {
    const Value x = pick();
    if (x.rank() < 2 || !is_arithmetic_float(x.dtype())) return false;
    const Dim& k = x.dim(-1);
    if (chance(40)) {  // with a value that is there
      const Value y = pick();
      if (y.dtype() != x.dtype() || y.rank() < 2) return false;
      MatmulAttrs a{chance(30), chance(30)};
      if (x.dim(a.transpose_a ? -2 : -1) != y.dim(a.transpose_b ? -1 : -2)) a.transpose_b = !a.transpose_b;
      if (x.dim(a.transpose_a ? -2 : -1) != y.dim(a.transpose_b ? -1 : -2)) return false;
      for (Index i = 3; i <= std::min(x.rank(), y.rank()); ++i) {
        if (x.dim(-i) != y.dim(-i) && x.dim(-i) != Dim(1) && y.dim(-i) != Dim(1)) return false;
      }
      return keep(matmul(x, y, a));
    }
    if (chance(40)) return keep(chance(50) ? matmul(x, transpose_last(x)) : matmul(x, x, {false, true}));
    if (!k.is_constant()) return keep(matmul(x, x, {true, false}));
    const bool transposed = chance(50);
    const Index n = 1 + below(6), rows = transposed ? n : k.constant(), columns = transposed ? k.constant() : n;
    CaseInput weight(x.dtype(), {rows, columns});
    const Value w = constant(b_, fill(weight.range(-1, 1), {}, static_cast<unsigned>(random_())));
    if (transposed && chance(50)) return keep(matmul(x, transpose_last(w)));
    return keep(matmul(x, w, {false, transposed}));
  }

  // Coordinates and sizes as numbers.
  bool positions() {
    const Value x = pick();
    if (x.rank() > 0 && chance(60)) {
      const Value at = iota(b_, DType::i64, x.type().dims, static_cast<Index>(below(static_cast<int>(x.rank()))));
      return keep(x.dtype() == DType::boolean ? at : add(x, cast(at, x.dtype())));
    }
    const Value shape = shape_of(x);
    return keep(x.rank() > 0 ? prod(shape, {0}) : shape);
  }

  // A step and the one that undoes it.
  bool there_and_back() {
    const Value x = pick();
    const int kind = below(5);
    if (kind == 0) return keep(neg(neg(x)));
    if (kind == 1) return keep(cast(cast(x, chance(50) ? DType::f64 : DType::f32), x.dtype()));
    if (kind == 2) return keep(reshape(relu(reshape(x, {x.type().count()})), x.type().dims));
    if (x.rank() < 2) return false;
    const std::vector<Index> to = order(x.rank());
    std::vector<Index> back(to.size());
    for (std::size_t i = 0; i < to.size(); ++i) back[static_cast<std::size_t>(to[i])] = static_cast<Index>(i);
    const Value moved = transpose(x, to);
    return keep(transpose(kind == 3 ? relu(moved) : add(moved, partner(moved)), back));
  }

  // A region: one or two results of two operands.
  bool fused() {
    const Value x = pick(), y = partner(x);
    if (!is_arithmetic_float(x.dtype())) return false;
    Builder b;
    const Value p = b.input("p", x.type()), q = b.input("q", y.type());
    const Value sum = tanh(add(p, q));
    Values results{mul(sum, q)};
    if (chance(30)) results.push_back(sum);
    const GraphPtr body = std::make_shared<Graph>(b.finish(results));
    const Value in[] = {x, y};
    bool kept = false;
    for (const Value& v : b_.emit(fusion_op(), Attrs(), in, {body})) kept = keep(v) || kept;
    return kept;
  }

  bool keep_any(const Values& made) {
    bool kept = false;
    for (const Value& v : made) kept = keep(v) || kept;
    return kept;
  }

  // A value of the same type.
  Value changed(Value x, int kind) {
    if (x.dtype() == DType::boolean) return bitwise_not(x);
    if (kind == 0) return add(x, x);
    if (kind == 1) return mul(x, like(x, 3));
    return is_arithmetic_float(x.dtype()) ? tanh(x) : sub(x, like(x, 1));
  }

  // A body with inputs of the types of `in`.
  template <class Make>
  GraphPtr body(const std::vector<TensorType>& types, Make make) {
    Builder b;
    Values inputs;
    for (const TensorType& t : types) inputs.push_back(b.input("p" + std::to_string(inputs.size()), t));
    return std::make_shared<Graph>(b.finish(make(inputs)));
  }

  // Whether some element is above 0, or a number that is known.
  Value condition(Value x) {
    if (!is_arithmetic_float(x.dtype()) || chance(20)) return constant(b_, DType::boolean, below(2));
    std::vector<Index> axes(static_cast<std::size_t>(x.rank()));
    std::iota(axes.begin(), axes.end(), Index{0});
    return greater(sum(x, axes), like(x, 0));
  }

  bool branches() {
    const Value x = pick(), c = condition(pick()), y = constant(b_, DType::f32, below(9));
    const Value in[] = {x, y};
    const std::vector<TensorType> types{x.type(), y.type()};
    const int first = below(3), second = below(3);
    return keep_any(if_else(
        c, in, body(types, [&](const Values& v) { return Values{changed(v[0], first), v[1]}; }),
        body(types, [&](const Values& v) { return Values{changed(changed(v[0], second), first), tanh(v[1])}; })));
  }

  bool repeats() {
    const Value x = pick(), count = constant(b_, DType::i64, 0), most = constant(b_, DType::i64, below(4));
    const Value carried[] = {count, x};
    const int kind = below(3);
    const bool read = chance(50);
    const GraphPtr trip = body({count.type(), x.type(), most.type()}, [&](const Values& v) {
      const Value next = add(v[0], like(v[0], 1));
      return Values{less(next, v[2]), next, changed(v[1], kind)};
    });
    const Values made = while_loop(less(count, most), carried, std::span(&most, 1), trip);
    return keep(read ? made[1] : made[0]);
  }

  bool scans() {
    const Value x = pick();
    if (x.rank() == 0 || bits(x.dtype()) % 8 != 0) return false;
    TensorType slice = x.type();
    slice.dims.erase(slice.dims.begin());
    const Value other = pick(), y = number(x.dtype());
    const Value begin = other.type() == slice ? other : broadcast(number(x.dtype()), slice.dims);
    const int kind = below(3);
    ScanAttrs a{.trips = x.dim(0), .carried = 1, .scanned = 1};
    if (chance(30)) a.backward = {0};
    if (chance(30)) a.backward_results = {1};
    const Value in[] = {begin, x, y};
    return keep_any(scan(b_, a, in, body({slice, slice, y.type()}, [&](const Values& v) {
                           const Value next = x.dtype() == DType::boolean ? bitwise_xor(v[0], v[1]) : add(v[0], v[1]);
                           return Values{next, changed(v[0], kind),
                                         select(equal(v[1], v[1]), next, broadcast(v[2], slice.dims))};
                         })));
  }

  bool calls() {
    const Value x = pick();
    return keep_any(call(b_, "twice", std::span(&x, 1),
                         body({x.type()}, [&](const Values& v) { return Values{changed(changed(v[0], 0), 2)}; })));
  }

  // A case of any op; its operands are made from values that are there where their contents do not matter.
  bool any_case() {
    const OpCases& entry = one_of(catalogue().all);
    const AnyCase& c = one_of(entry.cases);
    DimSymbols symbols;
    c.attrs.collect_symbols(symbols);
    for (const CaseInput& in : c.common.inputs) {
      for (const Dim& d : in.type.dims) d.collect_symbols(symbols);
    }
    DimEnv dims = c.common.dims;
    for (const auto& [name, bounds] : symbols) dims.emplace(name, std::min(std::max<Index>(bounds.lo, 2), bounds.hi));
    NamedDims numbers;
    for (const auto& [name, value] : dims) numbers.emplace(name, Dim(value));
    Values operands;
    // An op that reads probabilities looks at its operands: it has those of the case.
    const bool own = std::ranges::any_of(c.common.inputs, [](const CaseInput& in) { return in.lo >= 0 && in.hi <= 1; });
    for (const CaseInput& in : c.common.inputs) operands.push_back(case_operand(in, dims, own));
    const Values made = b_.emit(*entry.op, c.attrs.substitute(numbers), operands);
    bool kept = false;
    for (const Value& v : made) kept = keep(v) || kept;
    return kept;
  }

  Value case_operand(const CaseInput& in, const DimEnv& dims, bool own) {
    CaseInput bound = in;
    Index count = 1;
    for (Dim& d : bound.type.dims) count *= (d = d.evaluate(dims)).constant();
    require(count <= options_.largest, "a case of {} elements is too large", count);
    if (is_float(in.type.dtype) && in.values.empty() && !own && count > 0) {
      for (int attempt = 0; attempt < 4; ++attempt) {
        const Value v = pick();
        if (!is_arithmetic_float(v.dtype()) || !v.type().is_constant() || v.type().count().constant() < count) continue;
        const Value line = reshape(v, {v.type().count()});
        return reshape(cast(slice(line, 0, 0, count), in.type.dtype), bound.type.dims);
      }
    }
    return constant(b_, fill(bound, dims, static_cast<unsigned>(random_())));
  }

  Graph finish() {
    const std::size_t n = b_.graph().nodes.size();
    std::vector<bool> read(n, false);
    for (const Node& node : b_.graph().nodes) {
      for (const Operand o : node.operands) read[o.node] = true;
    }
    if (options_.states && chance(25)) add_state();
    Values outputs;
    for (const Value& v : pool_) {
      if (!read[v.at.node] || chance(8)) outputs.push_back(v);
    }
    for (const Check& c : b_.graph().checks)
      fail("a random graph has a run-time check: {} {} {}", c.left.text(), c.right.text(), c.why);
    return b_.finish(outputs);
  }

  // The next value of an input is one of its type.
  void add_state() {
    for (const Id input : b_.graph().inputs) {
      for (const Value& v : pool_) {
        if (v.at.node == input || v.type() != b_.graph().nodes[input].results[0]) continue;
        return b_.state("state", {&b_, {input, 0}}, v);
      }
    }
  }

  const RandomGraphOptions& options_;
  std::mt19937_64 random_;
  Builder b_;
  std::vector<Value> pool_;
};

}  // namespace

Graph random_graph(unsigned seed, const RandomGraphOptions& options) { return Generator(seed, options).run(); }

}  // namespace rlx::test
