// Groups of 2, 4 or 8 elements that are one of 256 entries of a codebook of the tensor.
#include "codecs/plane_format.h"

namespace rlx {

namespace {

template <Index width>
struct Codebook {
  static constexpr std::array<Plane, 2> layout{{{"indices", 1}, {"codebook", 256 * 4 * width, Plane::Per::tensor}}};
  static constexpr std::string_view name = width == 2 ? "codebook_e2" : width == 4 ? "codebook_e4" : "codebook_e8";
  static constexpr Encoding encoding{name, width, layout};

  static void decode(const EncodedRows& from, float* to) {
    const Index groups = from.rows * (from.columns / width);
    for (Index i = 0; i < groups; ++i, to += width) {
      std::memcpy(to, from.planes[1] + 4 * width * std::to_integer<Index>(from.planes[0][i]), 4 * width);
    }
  }
};

template <Index width>
constexpr Codec codec() {
  using Format = Codebook<width>;
  return {.encoding = &Format::encoding,
          .source = "codebook weights: an index of one byte for each group of elements, entries in f32",
          .decode = Format::decode};
}

constexpr std::array codecs{codec<2>(), codec<4>(), codec<8>()};

}  // namespace

std::span<const Codec> codebook_codecs() { return codecs; }

}  // namespace rlx
