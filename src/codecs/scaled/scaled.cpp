// Small floats whose scales lie in planes of their own: of blocks, or of the tensor.
#include <algorithm>
#include <cmath>

#include "codecs/plane_format.h"
#include "core/dtype.h"

namespace rlx {

namespace {

// The values of all codes.
template <DType type, std::size_t count>
std::array<float, count> values_of() {
  std::array<float, count> values;
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(decode_float(type, i));
  return values;
}
template <DType type>
const std::array<float, 256>& bytes_as() {
  static const std::array<float, 256> values = values_of<type, 256>();
  return values;
}
const std::array<float, 16>& nibbles_as_floats() {
  static const std::array<float, 16> values = values_of<DType::f4e2m1, 16>();
  return values;
}
float furthest_from_zero(const float* x, Index count) {
  float largest = 0;
  for (Index i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

// One byte an element, an f32 scale of each block, or with block 1 one of the tensor. The scale of a row is that of
// each of its blocks.
template <DType type, Index block>
struct Bytes8 {
  static constexpr std::array<Plane, 2> layout{
      {{"codes", block}, {"scales", 4, block == 1 ? Plane::Per::tensor : Plane::Per::block}}};
  static constexpr std::string_view name = type == DType::f8e4m3 ? (block == 1    ? "f8e4m3_tensor"
                                                                    : block == 32 ? "f8e4m3_g32"
                                                                                  : "f8e4m3_g128")
                                                                 : (block == 1    ? "f8e5m2_tensor"
                                                                    : block == 32 ? "f8e5m2_g32"
                                                                                  : "f8e5m2_g128");
  static constexpr Encoding encoding{name, block, layout};

  static void decode(const EncodedRows& from, float* to) {
    const std::array<float, 256>& values = bytes_as<type>();
    const auto* code = reinterpret_cast<const std::uint8_t*>(from.planes[0]);
    const Index count = from.rows * from.columns, run = block == 1 ? count : block;
    for (Index b = 0; b * run < count; ++b) {
      const float scale = f32_at(from.planes[1], b);
      for (Index i = 0; i < run; ++i) *to++ = scale * values[*code++];
    }
  }

  static void encode(const float* from, Index rows, Index columns, const float*, std::span<std::byte* const> planes) {
    const auto largest = static_cast<float>(largest_finite(type));
    for (Index b = 0; b < rows * (columns / block); ++b, from += block) {
      const float scale = furthest_from_zero(from, block) / largest;
      const double inverse = scale == 0 ? 0 : 1 / static_cast<double>(scale);
      put_f32(planes[1], b, scale);
      for (Index i = 0; i < block; ++i) {
        planes[0][b * block + i] = static_cast<std::byte>(encode_float(type, static_cast<double>(from[i]) * inverse));
      }
    }
  }

  static constexpr Codec codec(std::string_view source) {
    // The scale of a whole tensor is nothing that a part of its rows can tell.
    return {.encoding = &encoding, .source = source, .decode = decode, .encode = block == 1 ? nullptr : encode};
  }
};

// Codes in order, two to a byte or one, with scales of one byte; MLX writes blocks so.
template <DType code, DType scale, Index block, bool global>
struct Microscaled {
  static constexpr Index code_bytes = code == DType::f4e2m1 ? block / 2 : block;
  static constexpr Plane codes{"codes", code_bytes}, scales{"codes of scales", 1};
  static constexpr auto layout = [] {
    if constexpr (global) {
      return std::array{codes, scales, Plane{"scale", 4, Plane::Per::tensor}};
    } else {
      return std::array{codes, scales};
    }
  }();
  static constexpr std::string_view name = global                  ? "nvfp4_linear"
                                           : code == DType::f4e2m1 ? "mxfp4_linear"
                                                                   : "mxfp8_linear";
  static constexpr Encoding encoding{name, block, layout};

  static void decode(const EncodedRows& from, float* to) {
    const Index blocks = from.rows * (from.columns / block);
    const std::array<float, 256>& steps = bytes_as<scale>();
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(from.planes[0]);
    for (Index b = 0; b < blocks; ++b, bytes += code_bytes, to += block) {
      float step = steps[std::to_integer<std::size_t>(from.planes[1][b])];
      if (scale != DType::e8m0 && std::isnan(step)) step = 0;  // as ggml reads it
      if constexpr (code == DType::f4e2m1) {
        for (Index i = 0; i < block; ++i) {
          to[i] = nibbles_as_floats()[static_cast<std::size_t>(bytes[i / 2] >> 4 * (i % 2) & 15)] * step;
        }
      } else {
        for (Index i = 0; i < block; ++i) to[i] = bytes_as<code>()[bytes[i]] * step;
      }
      if constexpr (global) {
        const float factor = f32_at(from.planes[2], 0);
        for (Index i = 0; i < block; ++i) to[i] *= factor;
      }
    }
  }

  static void encode(const float* from, Index rows, Index columns, const float*, std::span<std::byte* const> planes) {
    for (Index b = 0; b < rows * (columns / block); ++b, from += block) {
      const double cover = static_cast<double>(furthest_from_zero(from, block)) / largest_finite(code);
      const std::uint64_t step = std::min<std::uint64_t>(encode_float(scale, cover), 254);
      planes[1][b] = static_cast<std::byte>(step);
      const double inverse = 1 / decode_float(scale, step);
      for (Index i = 0; i < block; ++i) {
        const auto c = static_cast<unsigned>(encode_float(code, static_cast<double>(from[i]) * inverse));
        if constexpr (code == DType::f4e2m1) {
          std::byte& at = planes[0][b * code_bytes + i / 2];
          at = i % 2 == 0 ? static_cast<std::byte>(c) : at | static_cast<std::byte>(c << 4);
        } else {
          planes[0][b * code_bytes + i] = static_cast<std::byte>(c);
        }
      }
    }
  }

  static constexpr Codec codec(std::string_view source) {
    return {.encoding = &encoding, .source = source, .decode = decode, .encode = global ? nullptr : encode};
  }
};

// Two f4e2m1 codes an element, each with an f32 scale of the block; the second holds what the first leaves.
template <Index block>
struct Residual {
  static constexpr Plane planes_[]{
      {"codes", block / 2}, {"codes of the rest", block / 2}, {"scales", 4}, {"scales of the rest", 4}};
  static constexpr std::string_view name = block == 16 ? "fp4x2_g16" : block == 32 ? "fp4x2_g32" : "fp4x2_g64";
  static constexpr Encoding encoding{name, block, planes_};

  static void decode(const EncodedRows& from, float* to) {
    const std::array<float, 16>& values = nibbles_as_floats();
    for (Index b = 0; b < from.rows * (from.columns / block); ++b, to += block) {
      const auto* first = reinterpret_cast<const std::uint8_t*>(from.planes[0]) + b * (block / 2);
      const auto* second = reinterpret_cast<const std::uint8_t*>(from.planes[1]) + b * (block / 2);
      const float a = f32_at(from.planes[2], b), c = f32_at(from.planes[3], b);
      for (Index i = 0; i < block; ++i) {
        const Index shift = 4 * (i % 2);
        to[i] = a * values[first[i / 2] >> shift & 15] + c * values[second[i / 2] >> shift & 15];
      }
    }
  }

  static void encode(const float* from, Index rows, Index columns, const float*, std::span<std::byte* const> planes) {
    const std::array<float, 16>& values = nibbles_as_floats();
    for (Index b = 0; b < rows * (columns / block); ++b, from += block) {
      std::array<float, block> rest;
      std::copy_n(from, block, rest.begin());
      for (std::size_t level = 0; level < 2; ++level) {
        const float scale = furthest_from_zero(rest.data(), block) / 6;
        const double inverse = scale == 0 ? 0 : 1 / static_cast<double>(scale);
        put_f32(planes[2 + level], b, scale);
        for (std::size_t i = 0; i < block; ++i) {
          const auto c = static_cast<unsigned>(encode_float(DType::f4e2m1, static_cast<double>(rest[i]) * inverse));
          rest[i] -= scale * values[c];
          std::byte& at = planes[level][b * (block / 2) + static_cast<Index>(i / 2)];
          at = i % 2 == 0 ? static_cast<std::byte>(c) : at | static_cast<std::byte>(c << 4);
        }
      }
    }
  }

  static constexpr Codec codec(std::string_view source) {
    return {.encoding = &encoding, .source = source, .decode = decode, .encode = encode};
  }
};

constexpr std::string_view bytes_source = "OCP OFP8 1.0 with an f32 scale of the block or the tensor";
constexpr std::string_view mx_source = "OCP MX 1.0 and NVFP4 with codes in order, as MLX stores them";
constexpr std::string_view residual_source = "two f4e2m1 codes an element, the second for what the first leaves";
constexpr std::array codecs{Bytes8<DType::f8e4m3, 1>::codec(bytes_source),
                            Bytes8<DType::f8e4m3, 32>::codec(bytes_source),
                            Bytes8<DType::f8e4m3, 128>::codec(bytes_source),
                            Bytes8<DType::f8e5m2, 1>::codec(bytes_source),
                            Bytes8<DType::f8e5m2, 32>::codec(bytes_source),
                            Bytes8<DType::f8e5m2, 128>::codec(bytes_source),
                            Microscaled<DType::f4e2m1, DType::e8m0, 32, false>::codec(mx_source),
                            Microscaled<DType::f8e4m3, DType::e8m0, 32, false>::codec(mx_source),
                            Microscaled<DType::f4e2m1, DType::f8e4m3, 16, true>::codec(mx_source),
                            Residual<16>::codec(residual_source),
                            Residual<32>::codec(residual_source),
                            Residual<64>::codec(residual_source)};

}  // namespace

std::span<const Codec> scaled_codecs() { return codecs; }

}  // namespace rlx
