// Steps of pad on the CPU: each row of the result is filled, then the operand's row is written into it.
#include "ops/pad/pad.h"

#include <algorithm>
#include <cstring>

#include "device/copy_step.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

// One axis of the result: operand element i < size stands at start + i * step, step > 0.
struct PadAxis {
  Index extent = 1, size = 1, start = 0, step = 1, from = 0;
};

struct PadBox {
  std::size_t rank = 0;
  std::array<PadAxis, most_axes> axes;
  Index first = 0;  // the operand's element that the smallest coordinates name
};

struct PadLayout {
  Layout in, out;
  std::vector<DimToken> starts;
  std::vector<Index> steps;

  // Backward axes become forward ones, and axes that nothing is added to are joined to the one before.
  PadBox operator()(const DimValues& d) const {
    const Layout::Numbers x = in(d), y = out(d);
    PadBox box;
    for (std::size_t i = 0; i < y.rank; ++i) {
      PadAxis a{y.size[i], x.size[i], d[starts[i]], step_along(steps, i), x.stride[i]};
      if (a.step < 0 && a.size > 0) {
        a.start += (a.size - 1) * a.step;
        box.first += (a.size - 1) * a.from;
        a.from = -a.from;
      }
      a.step = std::abs(a.step);
      PadAxis* before = box.rank > 0 ? &box.axes[box.rank - 1] : nullptr;
      const bool whole = a.size == a.extent && a.start == 0 && a.step == 1;
      if (before && whole && before->step == 1 && before->from == a.from * a.size) {
        *before = {before->extent * a.extent, before->size * a.size, before->start * a.extent, 1, a.from};
      } else {
        box.axes[box.rank++] = a;
      }
    }
    if (box.rank == 0) box.axes[box.rank++] = {};
    return box;
  }
};

template <class T>
struct Plain {
  using Value = T;
  static void fill(std::byte* to, Index begin, Index end, T value) {
    constexpr Index w = sizeof(T);
    const auto low = static_cast<std::uint8_t>(value);
    if (value == static_cast<T>(low * (static_cast<T>(~T(0)) / 255u))) {  // all bytes are equal
      std::memset(to + begin * w, low, static_cast<std::size_t>((end - begin) * w));
      return;
    }
    for (Index i = begin; i < end; ++i) std::memcpy(to + i * w, &value, sizeof(T));
  }
  static void copy(const std::byte* from, Index at, Index stride, std::byte* to, Index first, Index step, Index count) {
    constexpr Index w = sizeof(T);
    if (stride == 1 && step == 1) {
      std::memcpy(to + first * w, from + at * w, static_cast<std::size_t>(count * w));
      return;
    }
    for (Index i = 0; i < count; ++i) {
      std::memcpy(to + (first + i * step) * w, from + (at + i * stride) * w, sizeof(T));
    }
  }
};

template <int bits>
struct Packed {
  using Value = std::uint8_t;
  static void fill(std::byte* to, Index begin, Index end, std::uint8_t value) {
    for (Index i = begin; i < end; ++i) set_packed(to, i, value, bits);
  }
  static void copy(const std::byte* from, Index at, Index stride, std::byte* to, Index first, Index step, Index count) {
    for (Index i = 0; i < count; ++i) set_packed(to, first + i * step, packed_at(from, at + i * stride, bits), bits);
  }
};

// Elements [begin, end) of the result, which is dense, row by row.
template <class E>
void pad_range(const PadBox& box, const std::byte* from, std::byte* to, typename E::Value value, Index begin,
               Index end) {
  const PadAxis& last = box.axes[box.rank - 1];
  while (begin < end) {
    Index row = begin / last.extent, at = box.first;
    const Index origin = row * last.extent, behind = std::min(end, origin + last.extent);
    bool inside = last.size > 0;
    for (std::size_t k = box.rank - 1; k-- > 0 && inside;) {
      const PadAxis& a = box.axes[k];
      const Index offset = row % a.extent - a.start;
      row /= a.extent;
      inside = offset >= 0 && offset % a.step == 0 && offset / a.step < a.size;
      at += offset / a.step * a.from;
    }
    E::fill(to, begin, behind, value);
    // The operand's elements i with begin <= origin + start + i * step < behind.
    const auto index = [&](Index place) { return (place - origin - last.start + last.step - 1) / last.step; };
    const Index low = origin + last.start;
    const Index i = begin > low ? index(begin) : 0, n = behind > low ? std::min(index(behind), last.size) : 0;
    if (inside && i < n) E::copy(from, at + i * last.from, last.from, to, low + i * last.step, last.step, n - i);
    begin = behind;
  }
}

PadLayout pad_layout(StepBuilder& s, const StepArgs& n) {
  const auto& a = n.node.attrs.as<PadAttrs>();
  PadLayout layout{Layout(s, n.in[0]), Layout(s, n.out[0]), {}, a.steps};
  for (const Dim& start : a.starts) layout.starts.push_back(s.dim(start));
  return layout;
}

template <class T>
Step pad_elements(const StepArgs& n, std::uint64_t code) {
  const TensorType& t = n.out[0].type;
  StepBuilder s("pad");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto y = s.write<std::byte>(n.out[0]);
  const PadLayout layout = pad_layout(s, n);
  return s.run(t.count(), copy_grain(t.dtype, 1), [=](const Memory& m, const DimValues& d, Range r) {
    if (r.begin >= r.end) return;
    pad_range<Plain<T>>(layout(d), m[x].data(), m[y].data(), static_cast<T>(code), r.begin, r.end);
  });
}

template <int width>
Step pad_packed(const StepArgs& n, std::uint64_t code) {
  StepBuilder s("pad_packed");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto y = s.write<std::byte>(n.out[0]);
  const PadLayout layout = pad_layout(s, n);
  const auto count = s.dim(n.out[0].type.count());
  constexpr Index each = 8 / width;
  return s.run(n.out[0].type.plane_bytes(0), 8192, [=](const Memory& m, const DimValues& d, Range r) {
    if (r.begin >= r.end) return;
    m[y][static_cast<std::size_t>(r.end - 1)] = std::byte{0};  // its upper part may hold no element
    pad_range<Packed<width>>(layout(d), m[x].data(), m[y].data(), static_cast<std::uint8_t>(code), each * r.begin,
                             std::min(each * r.end, d[count]));
  });
}

std::optional<Step> pad_step(const StepArgs& n) {
  const TensorType& t = n.out[0].type;
  if (t.dims.size() > most_axes) return n.decline("pad has a kernel for up to 16 axes");
  if (!n.out[0].dense()) return n.decline("pad writes a dense result");
  const std::uint64_t code = Tensor::scalar(t.dtype, n.node.attrs.as<PadAttrs>().value).code(0);
  switch (element_bytes(t.dtype)) {
    case 0:
      return bits(t.dtype) == 4 ? pad_packed<4>(n, code) : pad_packed<2>(n, code);
    case 1:
      return pad_elements<std::uint8_t>(n, code);
    case 2:
      return pad_elements<std::uint16_t>(n, code);
    case 4:
      return pad_elements<std::uint32_t>(n, code);
    case 8:
      return pad_elements<std::uint64_t>(n, code);
    default:
      return n.decline("pad has kernels for elements of up to 8 bytes");
  }
}

}  // namespace

std::span<const MakerRow> pad_cpu() {
  static const MakerRow rows[] = {{&pad_op, pad_step}};
  return rows;
}

}  // namespace rlx
