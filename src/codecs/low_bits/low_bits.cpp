// Codes of one bit, of two bits and of three values, with an f16 scale.
#include <bit>

#include "codecs/block_format.h"

namespace rlx {

namespace {

// A set bit is d, a clear one -d: d, bits.
struct Q10 {
  static constexpr std::string_view name = "q1_0";
  static constexpr Index elements = 128, bytes = 18;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    for (int part = 0; part < elements / 8; ++part) {
      const auto bits = std::bit_cast<std::array<std::uint8_t, 8>>(bits_to_bytes(block[2 + part]));
      for (std::size_t i = 0; i < 8; ++i) to[8 * part + static_cast<int>(i)] = bits[i] != 0 ? d : -d;
    }
  }
};

// Codes 0 to 3 are -1 to 2, four to a byte: d, codes.
struct Q20 {
  static constexpr std::string_view name = "q2_0";
  static constexpr Index elements = 64, bytes = 18;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    for (int i = 0; i < elements; ++i) {
      to[i] = static_cast<float>((block[2 + i / 4] >> 2 * (i % 4) & 3) - 1) * d;
    }
  }
};

// One digit of `count` bytes, of five base-3 digits each. A byte is the fraction of its digits, rounded up, in 256ths:
// the digit is the integer part of 3 times what the digits before it leave.
template <int count>
void decode_digits(BlockBytes bytes, unsigned power, float d, BlockFloats to) {
  for (int i = 0; i < count; ++i) {
    const unsigned left = bytes[i] * power & 255;
    to[i] = static_cast<float>(static_cast<int>(left * 3 >> 8) - 1) * d;
  }
}

// 48 bytes of five digits, 4 of four digits, d.
struct Tq10 {
  static constexpr std::string_view name = "tq1_0";
  static constexpr Index elements = 256, bytes = 54;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block + 52);
    unsigned power = 1;
    for (int digit = 0; digit < 5; ++digit, power *= 3) {
      decode_digits<32>(block, power, d, to + 32 * digit);
      decode_digits<16>(block + 32, power, d, to + 160 + 16 * digit);
      if (digit < 4) decode_digits<4>(block + 48, power, d, to + 240 + 4 * digit);
    }
  }
};

// Codes 0 to 3 are -1 to 2, in halves of 32 bytes of four codes: codes, d.
struct Tq20 {
  static constexpr std::string_view name = "tq2_0";
  static constexpr Index elements = 256, bytes = 66;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block + 64);
    for (int part = 0; part < 8; ++part) {
      const std::uint8_t* q = block + 32 * (part / 4);
      const int shift = part % 4 * 2;
      for (int i = 0; i < 32; ++i) to[32 * part + i] = static_cast<float>((q[i] >> shift & 3) - 1) * d;
    }
  }
};

constexpr std::string_view source = "GGUF file format, ggml";
constexpr std::array codecs{block_codec<Q10>(source), block_codec<Q20>(source), block_codec<Tq10>(source),
                            block_codec<Tq20>(source)};

}  // namespace

std::span<const Codec> low_bits_codecs() { return codecs; }

}  // namespace rlx
