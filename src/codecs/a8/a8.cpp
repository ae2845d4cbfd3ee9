// a8: activations in blocks of 32 codes of 8 bits, beside the products of integers that they are made for.
#include "codecs/a8/a8.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace rlx {

namespace {

constexpr Plane planes[] = {{"blocks", a8_block_bytes}};
constexpr Encoding a8_encoding{"a8", a8_block, planes};

void encode_block(const float* x, std::byte* to) {
  std::uint32_t most = 0;
  for (Index i = 0; i < a8_block; ++i) most = std::max(most, std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFU);
  const float top = std::bit_cast<float>(most);
  std::int8_t codes[a8_block] = {};
  float scale = top / 127.0F;
  std::int32_t sum = 0, first = 0;
  if (!std::isfinite(top)) {
    scale = std::nanf("");
  } else if (top < a8_least) {
    scale = 0;
  } else {
    const float inverse = 127.0F / top;
    for (Index i = 0; i < a8_block; ++i) {
      codes[i] = static_cast<std::int8_t>(std::nearbyintf(x[i] * inverse));
      sum += codes[i];
      if (i < a8_block / 2) first += codes[i];
    }
  }
  const float scaled_sum = scale * static_cast<float>(sum);
  const std::int32_t sums[] = {-sum, -first};
  std::memcpy(to, codes, sizeof codes);
  std::memcpy(to + a8_block, &scale, sizeof scale);
  std::memcpy(to + a8_block + 4, &scaled_sum, sizeof scaled_sum);
  std::memcpy(to + a8_block + 8, sums, sizeof sums);
}

void encode_rows(const float* from, Index rows, Index columns, const float*, std::span<std::byte* const> to) {
  for (Index i = 0; i < rows * columns / a8_block; ++i) encode_block(from + i * a8_block, to[0] + i * a8_block_bytes);
}

void decode_rows(const EncodedRows& from, float* to) {
  for (Index i = 0; i < from.rows * from.columns / a8_block; ++i) {
    const std::byte* const block = from.planes[0] + i * a8_block_bytes;
    std::int8_t codes[a8_block];
    float scale = 0;
    std::memcpy(codes, block, sizeof codes);
    std::memcpy(&scale, block + a8_block, sizeof scale);
    for (Index j = 0; j < a8_block; ++j) to[i * a8_block + j] = scale * static_cast<float>(codes[j]);
  }
}

constexpr Codec codecs[] = {{.encoding = &a8_encoding,
                             .source =
                                 "rlx: blocks of 32 codes of i8 at scale max/127, then f32 scale, f32 scale times "
                                 "the sum of codes, i32 minus the sum of codes, i32 minus that of the first 16; a "
                                 "block with an element that is "
                                 "not finite decodes to NaN, one below 2^-100 to 0",
                             .decode = decode_rows,
                             .encode = encode_rows}};

}  // namespace

std::span<const Codec> a8_codecs() { return codecs; }

}  // namespace rlx
