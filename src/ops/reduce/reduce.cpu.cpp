// Steps of reduce on the CPU: axes that lie together become one, results are the work.
#include "ops/reduce/reduce.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "device/copy_step.h"
#include "ops/reduce/reduce.kernel.h"

namespace rlx {

namespace {

struct Group {
  Index size = 1, stride = 0;
};

// The operand as groups of axes: kept ones, of which the last is apart, and reduced ones. The innermost group is
// contiguous; `run` is its size when it is reduced, and 0 when it is kept.
struct Shape {
  std::array<Group, most_axes> kept;
  std::size_t kept_rank = 0;
  Group inner;
  std::array<Index, most_axes> walk_size, walk_stride;
  std::size_t walk_rank = 0;
  Index run = 0, reduced = 1;
  ReduceWalk walk() const { return {static_cast<int>(walk_rank), walk_size.data(), walk_stride.data()}; }
};

struct ReduceLayout {
  Layout in;
  std::vector<bool> reduced;
  bool complex;

  Shape operator()(const DimValues& d) const {
    const Layout::Numbers x = in(d);
    std::array<Group, most_axes + 1> groups;
    std::array<bool, most_axes + 1> gone;
    std::size_t n = 0;
    Shape s;
    const Index parts = complex ? 2 : 1;  // a real and an imaginary part are two columns
    for (std::size_t i = 0; i <= x.rank; ++i) {
      const Group g = i < x.rank ? Group{x.size[i], x.stride[i] * parts} : Group{parts, 1};
      const bool r = i < x.rank && reduced[i];
      if (r) s.reduced *= g.size;
      if (g.size == 1) continue;
      if (n > 0 && gone[n - 1] == r) {
        groups[n - 1] = {groups[n - 1].size * g.size, g.stride};
      } else {
        groups[n] = g;
        gone[n++] = r;
      }
    }
    const bool rows = n > 0 && gone[n - 1];
    if (rows) s.run = groups[--n].size;
    for (std::size_t i = 0; i < n; ++i) {
      if (gone[i]) {
        s.walk_size[s.walk_rank] = groups[i].size;
        s.walk_stride[s.walk_rank++] = groups[i].stride;
      } else {
        s.kept[s.kept_rank++] = groups[i];
      }
    }
    if (s.kept_rank > 0) s.inner = s.kept[--s.kept_rank];
    if (rows && s.run == 0) s.walk_rank = 0;
    return s;
  }
};

// How accumulators become elements.
struct Finish {
  DType type;
  bool wide = false;  // accumulators are f64, else as f32 or the integers themselves
  bool mean = false;

  void operator()(std::byte* accumulators, std::byte* out, Index at, Index n, Index reduced) const {
    const auto all = static_cast<std::size_t>(n);
    const Index bytes = bits(type) / 8;
    if (!wide && !(type == DType::f16 || type == DType::bf16)) {
      std::memcpy(out + at * bytes, accumulators, all * static_cast<std::size_t>(bytes));
      return;
    }
    double values[block];
    if (wide) {
      std::memcpy(values, accumulators, all * sizeof(double));
    } else {
      float narrow[block];
      std::memcpy(narrow, accumulators, all * sizeof(float));
      std::copy(narrow, narrow + all, values);
    }
    if (mean) {
      for (std::size_t i = 0; i < all; ++i) values[i] /= static_cast<double>(reduced);
    }
    store(values, out + at * bytes, all);
  }
  static constexpr Index block = 2048;

 private:
  void store(const double* values, std::byte* to, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) {
      if (type == DType::f64) {
        std::memcpy(to + i * 8, &values[i], 8);
      } else if (type == DType::f32) {
        const auto v = static_cast<float>(values[i]);
        std::memcpy(to + i * 4, &v, 4);
      } else {
        const auto v = static_cast<std::uint16_t>(encode_float(type, values[i]));
        std::memcpy(to + i * 2, &v, 2);
      }
    }
  }
};

// Results [begin, end), row by row of the innermost kept group.
void reduce_range(const Shape& s, const ReduceKernel& kernel, const Finish& finish, Index width, const std::byte* x,
                  std::byte* y, Index begin, Index end) {
  alignas(64) std::byte accumulators[Finish::block * 8];
  const ReduceWalk walk = s.walk();
  while (begin < end) {
    Index rest = begin / s.inner.size;
    const Index i = begin % s.inner.size, n = std::min({s.inner.size - i, end - begin, Finish::block});
    Index from = i * s.inner.stride;
    for (std::size_t k = s.kept_rank; k-- > 0;) {
      from += rest % s.kept[k].size * s.kept[k].stride;
      rest /= s.kept[k].size;
    }
    if (s.run > 0 || s.reduced == 0) {
      kernel.rows(x + from * width, walk, s.run, accumulators, n, s.inner.stride);
    } else {
      kernel.columns(x + from * width, walk, accumulators, n);
    }
    finish(accumulators, y, begin, n, s.reduced);
    begin += n;
  }
}

std::optional<ReduceType> kernel_type(DType type) {
  switch (type) {
    case DType::f64:
      return ReduceType::f64;
    case DType::f32:
    case DType::c64:
      return ReduceType::f32;
    case DType::f16:
      return ReduceType::f16;
    case DType::bf16:
      return ReduceType::bf16;
    case DType::i64:
      return ReduceType::i64;
    case DType::i32:
      return ReduceType::i32;
    case DType::i16:
      return ReduceType::i16;
    case DType::i8:
      return ReduceType::i8;
    case DType::u64:
      return ReduceType::u64;
    case DType::u32:
      return ReduceType::u32;
    case DType::u16:
      return ReduceType::u16;
    case DType::u8:
      return ReduceType::u8;
    default:
      return std::nullopt;
  }
}

ReduceOp kernel_op(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::max:
      return ReduceOp::max;
    case ReduceKind::min:
      return ReduceOp::min;
    case ReduceKind::prod:
      return ReduceOp::prod;
    default:
      return ReduceOp::sum;
  }
}

std::optional<Step> reduce_step(const StepArgs& n) {
  const auto& a = n.node.attrs.as<ReduceAttrs>();
  const TensorType& t = n.in[0].type;
  const std::optional<ReduceType> type = kernel_type(t.dtype);
  if (!type) return n.decline("reduce has no kernel for this element type");
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("reduce reads and writes densely");
  if (t.dims.size() > most_axes) return n.decline("reduce has a kernel for up to 16 axes");
  std::vector<bool> reduced(t.dims.size(), false);
  Dim each = 1;
  for (const Index axis : a.axes) {
    reduced[static_cast<std::size_t>(t.axis(axis))] = true;
    each = each * t.dim(axis);
  }
  const ReduceOp op = kernel_op(a.kind);
  const bool sums = op == ReduceOp::sum || op == ReduceOp::prod, complex = is_complex(t.dtype);
  const DType element = complex ? DType::f32 : t.dtype;
  const Finish finish{element, is_float(element) && (sums || element == DType::f64), a.kind == ReduceKind::mean};
  const Index width = element_bytes(element);
  StepBuilder s("reduce");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto y = s.write<std::byte>(n.out[0]);
  const ReduceLayout layout{Layout(s, n.in[0]), reduced, complex};
  s.flops(t.count());
  const bool rows = reduced.empty() || reduced.back();
  const ReduceKernel kernel = reduce_kernels().of[static_cast<int>(*type)][static_cast<int>(op)];
  const Dim results = n.out[0].type.count() * Index{complex ? 2 : 1};
  // Columns are read a piece of a row at a time: long pieces come from memory faster, but each thread needs one.
  const Dim least = rows ? Dim(1) : min(Finish::block, max(512, floordiv(results, 2)));
  return s.run(results, max(ceildiv(32768, max(each, 1)), least), [=](const Memory& m, const DimValues& d, Range r) {
    reduce_range(layout(d), kernel, finish, width, m[x].data(), m[y].data(), r.begin, r.end);
  });
}

}  // namespace

std::span<const MakerRow> reduce_cpu() {
  static const MakerRow rows[] = {{&reduce_op, reduce_step}};
  return rows;
}

}  // namespace rlx
