// Steps that copy slots; work is counted in elements of the result, in bytes where elements are packed.
#include "device/copy_step.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace rlx {

Index Layout::Numbers::count() const {
  Index n = 1;
  for (std::size_t i = 0; i < rank; ++i) n *= size[i];
  return n;
}

Layout::Layout(StepBuilder& s, const Slot& slot) {
  require(slot.type.dims.size() <= most_axes, "{} has more than {} axes", slot.type.text(), most_axes);
  for (const Dim& d : slot.type.dims) sizes_.push_back(s.dim(d));
  for (const Dim& d : slot.strides) strides_.push_back(s.dim(d));
}

Layout::Numbers Layout::operator()(const DimValues& d) const {
  Numbers n;
  n.rank = sizes_.size();
  Index stride = 1;
  for (std::size_t i = n.rank; i-- > 0;) {
    n.size[i] = d[sizes_[i]];
    n.stride[i] = strides_.empty() ? stride : d[strides_[i]];
    stride *= n.size[i];
  }
  return n;
}

Dim copy_grain(DType type, const Dim& row) {
  const Index width = std::max<Index>(element_bytes(type), 1);
  return max(row * 16, std::max<Index>(65536 / width, 1));
}

namespace {

Step copy_bytes(const Slot& from, const Slot& to) {
  StepBuilder s("copy");
  const auto x = s.read<std::byte>(from);
  const auto y = s.write<std::byte>(to);
  return s.run(to.type.plane_bytes(to.plane), 65536, [=](const Memory& m, const DimValues&, Range r) {
    if (r.begin < r.end) {
      std::memcpy(m[y].data() + r.begin, m[x].data() + r.begin, static_cast<std::size_t>(r.end - r.begin));
    }
  });
}

// The coordinates of the strided side; the other may have other sizes when it is dense.
CopyBox box_of(const Layout::Numbers& from, bool from_dense, const Layout::Numbers& to, bool to_dense) {
  const Layout::Numbers& sizes = from_dense ? to : from;
  std::array<Index, most_axes> dense{};
  Index stride = 1;
  for (std::size_t i = sizes.rank; i-- > 0;) {
    dense[i] = stride;
    stride *= sizes.size[i];
  }
  CopyBox box;
  for (std::size_t i = 0; i < sizes.rank; ++i) {
    box.add(sizes.size[i], from_dense ? dense[i] : from.stride[i], to_dense ? dense[i] : to.stride[i]);
  }
  return box;
}

// Packed elements into a dense result: threads own whole bytes.
Step copy_packed(const Slot& from, const Slot& to) {
  StepBuilder s("copy_packed");
  const auto x = s.read<std::byte>(from);
  const auto y = s.write<std::byte>(to);
  const Layout in(s, from), out(s, to);
  const int width = bits(to.type.dtype);
  const Index each = packed_in_byte(width);
  return s.run(to.type.plane_bytes(0), 8192, [=](const Memory& m, const DimValues& d, Range r) {
    if (r.begin >= r.end) return;
    const CopyBox box = box_of(in(d), false, out(d), true);
    m[y][static_cast<std::size_t>(r.end - 1)] = std::byte{0};  // its upper part may hold no element
    strided_copy_packed(box, width, m[x].data(), 0, m[y].data(), 0, each * r.begin,
                        std::min(each * r.end, box.count()));
  });
}

// Packed elements into a strided result: bytes hold elements of others too, so one thread writes all.
Step copy_into_packed(const Slot& from, const Slot& to) {
  StepBuilder s("copy_into_packed");
  const auto x = s.read<std::byte>(from);
  const auto y = s.update<std::byte>(to);
  const Layout in(s, from), out(s, to);
  const bool from_dense = from.dense();
  const int width = bits(to.type.dtype);
  return s.run(1, 1, [=](const Memory& m, const DimValues& d, Range r) {
    if (r.begin >= r.end) return;
    const CopyBox box = box_of(in(d), from_dense, out(d), false);
    strided_copy_packed(box, width, m[x].data(), 0, m[y].data(), 0, 0, box.count());
  });
}

}  // namespace

Step copy_step(const Slot& from, const Slot& to) {
  ensure(from.type.dtype == to.type.dtype && from.type.encoding == to.type.encoding, "a copy converts nothing");
  if (from.dense() && to.dense()) return copy_bytes(from, to);
  ensure(!from.type.encoding, "encoded tensors are dense");
  ensure(from.dense() || to.dense() || from.type.dims == to.type.dims, "strided slots of a copy have the same sizes");
  const Index width = element_bytes(from.type.dtype);
  if (width == 0) return to.dense() ? copy_packed(from, to) : copy_into_packed(from, to);
  StepBuilder s("copy_strided");
  const auto x = s.read<std::byte>(from);
  const auto y = s.write<std::byte>(to);
  const Layout in(s, from), out(s, to);
  const bool from_dense = from.dense(), to_dense = to.dense();
  const Dim row = to.type.rank() > 0 ? to.type.dim(-1) : Dim(1);
  return s.run(to.type.count(), copy_grain(to.type.dtype, row), [=](const Memory& m, const DimValues& d, Range r) {
    strided_copy(box_of(in(d), from_dense, out(d), to_dense), width, m[x].data(), m[y].data(), r.begin, r.end);
  });
}

}  // namespace rlx
