// Planes of an encoded operand, and decoding of parts of it.
#include "ops/encode/encoded_source.h"

#include <array>
#include <cstring>

#include "core/error.h"

namespace rlx {

namespace {

constexpr Index alignment = 64;
constexpr std::size_t most_planes = 8;

std::vector<Index> plane_offsets(const TensorType& t, Index& bytes) {
  std::vector<Index> offsets;
  bytes = 0;
  for (std::size_t p = 0; p < t.plane_count(); ++p) {
    offsets.push_back(bytes);
    bytes += (t.plane_bytes(p).constant() + alignment - 1) / alignment * alignment;
  }
  return offsets;
}

Token<std::byte, Access::read> declare(StepBuilder& s, const Slot& slot, std::vector<Index>& offsets) {
  if (slot.type.plane_count() == 1) {
    offsets = {0};
    return s.read<std::byte>(slot);
  }
  Index bytes = 0;
  offsets = plane_offsets(slot.type, bytes);
  return s.packed<std::byte>(slot, {"planes", bytes, [offsets](const Tensor& from, std::span<std::byte> to) {
                                      for (std::size_t p = 0; p < offsets.size(); ++p) {
                                        const std::span<const std::byte> plane = from.bytes(p);
                                        if (!plane.empty())
                                          std::memcpy(&to[static_cast<std::size_t>(offsets[p])], plane.data(),
                                                      plane.size());
                                      }
                                    }});
}

}  // namespace

bool EncodedSource::takes(const Slot& slot) {
  const TensorType& t = slot.type;
  const bool last = t.encoding && t.block_axis == t.rank() - 1 && slot.dense();
  return last && t.plane_count() <= most_planes &&
         (t.plane_count() == 1 || (slot.constant && t.is_constant() && slot.offset == Dim(0)));
}

EncodedSource::EncodedSource(StepBuilder& s, const Slot& slot)
    : codec_(&codec_of(*slot.type.encoding)), data_(declare(s, slot, offsets_)) {}

void EncodedSource::decode(const Memory& m, Index columns, Index row, Index rows, Index column, Index count,
                           float* to) const {
  if (rows == 0 || count == 0) return;
  const std::span<const Plane> planes = codec_->encoding->planes;
  const Index blocks = columns / block(), first = column / block();
  const bool whole = count == columns;
  std::array<const std::byte*, most_planes> at{};
  for (Index r = 0; r < (whole ? 1 : rows); ++r) {
    for (std::size_t p = 0; p < planes.size(); ++p) {
      at[p] = m[data_].data() + offsets_[p];
      if (planes[p].per == Plane::Per::block) at[p] += ((row + r) * blocks + first) * planes[p].bytes;
      if (planes[p].per == Plane::Per::axis) at[p] += column * planes[p].bytes;
    }
    codec_->decode({std::span(at).first(planes.size()), whole ? rows : 1, count, column, columns}, to + r * count);
  }
}

}  // namespace rlx
