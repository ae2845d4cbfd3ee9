// Packing of blocks: taken apart, and laid out for sixteen columns at a time (see coded_tile.h).
#include "ops/matmul/coded_form.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace rlx {

namespace {

constexpr Index quads_of_part = 8, line_of_group = 64, groups = coded_panel / coded_group;
constexpr Index line_bytes = groups * line_of_group;

bool is(const IntegerForm& f, int bits, Index group, int bias, bool grouped, bool minimum) {
  return f.bits == bits && f.group == group && f.bias == bias && f.grouped == grouped && f.has_minimum == minimum;
}

std::optional<CodedKind> kind_of(const IntegerForm& f) {
  if (f.block != (f.grouped ? 256 : 32)) return std::nullopt;
  if (f.values) {
    if (!is(f, 4, 32, 0, f.grouped, false)) return std::nullopt;
    if (f.grouped) return f.is_bfloat ? std::nullopt : std::optional(CodedKind::k_nibbles_table);
    return f.is_bfloat ? CodedKind::nibbles_table_b : CodedKind::nibbles_table;
  }
  if (f.is_bfloat) return std::nullopt;
  if (is(f, 4, 32, 8, false, false)) return CodedKind::nibbles;
  if (is(f, 4, 32, 0, false, true)) return CodedKind::nibbles_minimum;
  if (is(f, 5, 32, 16, false, false)) return CodedKind::fives;
  if (is(f, 5, 32, 0, false, true)) return CodedKind::fives_minimum;
  if (is(f, 8, 32, 128, false, false)) return CodedKind::bytes;
  if (is(f, 2, 16, 0, true, true)) return CodedKind::k_twos;
  if (is(f, 3, 16, 4, true, false)) return CodedKind::k_threes;
  if (is(f, 4, 32, 0, true, true)) return CodedKind::k_nibbles;
  if (is(f, 5, 32, 0, true, true)) return CodedKind::k_fives;
  if (is(f, 6, 16, 32, true, false)) return CodedKind::k_sixes;
  return std::nullopt;
}

// Four codes of each of sixteen columns: [column], first code in the lowest byte.
using Quad = std::array<std::uint32_t, coded_group>;

// Writes the codes of a part, which for every quad are those of sixteen columns, a line apart.
class CodeWriter {
 public:
  CodeWriter(int bits, std::byte* to) : bits_(bits), to_(to) {}
  void write(const std::array<Quad, quads_of_part>& q) {
    if (bits_ == 8) {
      for (const Quad& quad : q) put([&](std::size_t c) { return quad[c]; });
      return;
    }
    if (bits_ == 6) fours(q, 4);
    if (bits_ == 5) ones(q, 4);
    if (bits_ == 3) ones(q, 2);
    if (bits_ < 4) return fours(q, 0);
    for (std::size_t i = 0; i < 4; ++i)
      put([&](std::size_t c) { return (q[i][c] & 0x0F0F0F0F) | (q[i + 4][c] & 0x0F0F0F0F) << 4; });
  }

 private:
  // Two bits of each code, from bit `from` on, of four quads in a vector.
  void fours(const std::array<Quad, quads_of_part>& q, int from) {
    for (std::size_t h = 0; h < 2; ++h) {
      put([&](std::size_t c) {
        std::uint32_t all = 0;
        for (std::size_t i = 0; i < 4; ++i) all |= (q[4 * h + i][c] >> from & 0x03030303) << (2 * i);
        return all;
      });
    }
  }
  // One bit of each code, of all quads in a vector.
  void ones(const std::array<Quad, quads_of_part>& q, int from) {
    put([&](std::size_t c) {
      std::uint32_t all = 0;
      for (std::size_t i = 0; i < q.size(); ++i) all |= (q[i][c] >> from & 0x01010101) << i;
      return all;
    });
  }
  template <class F>
  void put(F word) {
    std::array<std::uint32_t, coded_group> line;
    for (std::size_t c = 0; c < line.size(); ++c) line[c] = word(c);
    std::memcpy(to_, line.data(), line_of_group);
    to_ += line_bytes;
  }
  int bits_;
  std::byte* to_;
};

// Bytes of a panel's parts; see coded_tile.h.
struct Sizes {
  Index codes, scale, beside, head, parts;
  explicit Sizes(const IntegerForm& f)
      : codes(line_bytes * f.bits),
        scale(f.grouped ? 16 : 32),
        beside(32 / f.group * scale * (f.has_minimum ? 2 : 1)),
        head(f.grouped ? coded_panel * 2 * (f.has_minimum ? 2 : 1) : 0),
        parts(f.block / 32) {}
  Index part() const { return codes + groups * beside; }
  Index unit() const { return head + parts * part(); }
};

// A panel while it is packed: where what belongs to a group of columns goes.
class PanelPacker {
 public:
  explicit PanelPacker(const IntegerForm& form) : f_(form), s_(form) {}

  // One unit of one group; columns without a matrix are zeros.
  void write(const std::array<IntegerBlock, coded_group>& blocks, std::byte* unit, Index group) const {
    if (f_.grouped) {
      halves_to(unit + group * 32, blocks, &IntegerBlock::scale);
      if (f_.has_minimum) halves_to(unit + coded_panel * 2 + group * 32, blocks, &IntegerBlock::minimum);
    }
    for (Index p = 0; p < s_.parts; ++p) {
      std::byte* const part = unit + s_.head + p * s_.part();
      codes(blocks, p, part + group * line_of_group);
      beside(blocks, p, part + s_.codes + group * s_.beside);
    }
  }

 private:
  static void halves_to(std::byte* to, const std::array<IntegerBlock, coded_group>& blocks,
                        std::uint16_t IntegerBlock::* which) {
    for (const IntegerBlock& b : blocks) {
      std::memcpy(to, &(b.*which), sizeof(std::uint16_t));
      to += sizeof(std::uint16_t);
    }
  }

  void codes(const std::array<IntegerBlock, coded_group>& blocks, Index p, std::byte* to) const {
    std::array<Quad, quads_of_part> quads;
    for (std::size_t c = 0; c < blocks.size(); ++c) {
      for (std::size_t q = 0; q < quads.size(); ++q)
        std::memcpy(&quads[q][c], blocks[c].codes + p * 32 + static_cast<Index>(q) * 4, 4);
    }
    CodeWriter(f_.bits, to).write(quads);
  }

  void beside(const std::array<IntegerBlock, coded_group>& blocks, Index p, std::byte* to) const {
    if (!f_.grouped) {
      halves_to(to, blocks, &IntegerBlock::scale);
      if (f_.has_minimum) halves_to(to + s_.scale, blocks, &IntegerBlock::minimum);
      return;
    }
    const Index count = 32 / f_.group;
    for (Index h = 0; h < count; ++h) {
      for (std::size_t c = 0; c < blocks.size(); ++c) {
        const auto at = static_cast<std::size_t>(h * s_.scale) + c;
        to[at] = static_cast<std::byte>(blocks[c].scales[p * count + h]);
        if (f_.has_minimum)
          to[at + static_cast<std::size_t>(count * s_.scale)] = static_cast<std::byte>(blocks[c].minima[p * count + h]);
      }
    }
  }

  const IntegerForm& f_;
  Sizes s_;
};

void pack_matrix(const CodedMatrix& m, const std::byte* from, Index block_bytes, Index columns, Index inner,
                 std::byte* to) {
  const IntegerForm& form = *m.form;
  const Index units = m.units(inner), row_bytes = units * block_bytes;
  const auto blocks = std::make_unique<std::array<IntegerBlock, coded_group>>();
  const auto* const blocks_at = reinterpret_cast<const std::uint8_t*>(from);
  const PanelPacker packer(form);
  const Index unit_bytes = Sizes(form).unit();
  for (Index column = 0; column < columns; column += coded_panel, to += units * unit_bytes) {
    for (Index g = 0; g < groups; ++g) {
      const Index first = column + g * coded_group, count = std::clamp(columns - first, Index{0}, coded_group);
      if (count < coded_group) *blocks = {};
      for (Index u = 0; u < units; ++u) {
        for (Index c = 0; c < count; ++c)
          form.take(blocks_at + (first + c) * row_bytes + u * block_bytes, (*blocks)[static_cast<std::size_t>(c)]);
        packer.write(*blocks, to + u * unit_bytes, g);
      }
    }
  }
}

}  // namespace

Index CodedMatrix::panel_bytes(Index inner) const { return units(inner) * Sizes(*form).unit(); }

std::optional<CodedMatrix> coded_matrix(const Encoding& encoding) {
  const IntegerForm* const form = codec_of(encoding).integers;
  if (!form || encoding.planes.size() != 1) return std::nullopt;
  const std::optional<CodedKind> kind = kind_of(*form);
  return kind ? std::optional(CodedMatrix{form, *kind}) : std::nullopt;
}

Packing coded_packing(const CodedMatrix& m, const TensorType& type) {
  const Index columns = type.dim(-2).constant(), inner = type.dim(-1).constant();
  const Index matrices = type.rank() == 3 ? type.dims[0].constant() : 1;
  const Index bytes = (columns + coded_panel - 1) / coded_panel * m.panel_bytes(inner);
  const Index block_bytes = type.encoding->planes[0].bytes;
  return {fmt::format("coded panels {}x{}x{}", matrices, columns, inner), matrices * bytes,
          [=](const Tensor& from, std::span<std::byte> to) {
            if (to.empty()) return;
            for (Index i = 0; i < matrices; ++i)
              pack_matrix(m, from.bytes().data() + i * columns * m.units(inner) * block_bytes, block_bytes, columns,
                          inner, to.data() + i * bytes);
          }};
}

}  // namespace rlx
