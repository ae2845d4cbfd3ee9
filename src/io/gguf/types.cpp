// The list of tensor types in GGUF files.
#include "io/gguf/types.h"

#include <algorithm>

#include "codecs/codec.h"
#include "core/checked.h"
#include "core/error.h"

namespace rlx {

namespace {

constexpr GgufTensorType plain(std::uint32_t id, std::string_view name, DType dtype, std::uint16_t bytes) {
  return {.id = id,
          .name = name,
          .block = 1,
          .bytes = bytes,
          .dtype = dtype,
          .codec = {},
          .swappable = true,
          .fields = {{{0, bytes, 1}, {}}}};
}

constexpr GgufTensorType blocks(std::uint32_t id, std::string_view name, std::string_view codec, Index block,
                                Index bytes, GgufField first, GgufField second = {}) {
  return {.id = id,
          .name = name,
          .block = block,
          .bytes = bytes,
          .dtype = {},
          .codec = codec,
          .swappable = true,
          .fields = {{first, second}}};
}

constexpr GgufTensorType little_only(GgufTensorType type) {
  type.swappable = false;
  return type;
}

constexpr GgufField none = {};
constexpr GgufField scale = {0, 2, 1};   // an f16 at the start
constexpr GgufField scales = {0, 2, 2};  // two of them

constexpr std::array types{
    plain(0, "F32", DType::f32, 4),
    plain(1, "F16", DType::f16, 2),
    blocks(2, "Q4_0", "q4_0", 32, 18, scale),
    blocks(3, "Q4_1", "q4_1", 32, 20, scales),
    blocks(6, "Q5_0", "q5_0", 32, 22, scale, {2, 4, 1}),
    blocks(7, "Q5_1", "q5_1", 32, 24, scales, {4, 4, 1}),
    blocks(8, "Q8_0", "q8_0", 32, 34, scale),
    blocks(9, "Q8_1", "q8_1", 32, 36, scales),
    blocks(10, "Q2_K", "q2_k", 256, 84, {80, 2, 2}),
    blocks(11, "Q3_K", "q3_k", 256, 110, {108, 2, 1}),
    blocks(12, "Q4_K", "q4_k", 256, 144, scales),
    blocks(13, "Q5_K", "q5_k", 256, 176, scales),
    blocks(14, "Q6_K", "q6_k", 256, 210, {208, 2, 1}),
    blocks(15, "Q8_K", "q8_k", 256, 292, {0, 4, 1}, {260, 2, 16}),
    // The public code writes the indices of IQ2_XXS as 32-bit words and reads them as bytes.
    little_only(blocks(16, "IQ2_XXS", "iq2_xxs", 256, 66, scale)),
    blocks(17, "IQ2_XS", "iq2_xs", 256, 74, {0, 2, 33}),
    blocks(18, "IQ3_XXS", "iq3_xxs", 256, 98, scale, {66, 4, 8}),
    blocks(19, "IQ1_S", "iq1_s", 256, 50, scale, {34, 2, 8}),
    blocks(20, "IQ4_NL", "iq4_nl", 32, 18, scale),
    blocks(21, "IQ3_S", "iq3_s", 256, 110, scale),
    blocks(22, "IQ2_S", "iq2_s", 256, 82, scale),
    blocks(23, "IQ4_XS", "iq4_xs", 256, 136, scales),
    plain(24, "I8", DType::i8, 1),
    plain(25, "I16", DType::i16, 2),
    plain(26, "I32", DType::i32, 4),
    plain(27, "I64", DType::i64, 8),
    plain(28, "F64", DType::f64, 8),
    blocks(29, "IQ1_M", "iq1_m", 256, 56, {48, 2, 4}),
    plain(30, "BF16", DType::bf16, 2),
    blocks(34, "TQ1_0", "tq1_0", 256, 54, {52, 2, 1}),
    blocks(35, "TQ2_0", "tq2_0", 256, 66, {64, 2, 1}),
    blocks(39, "MXFP4", "mxfp4", 32, 17, none),
    blocks(40, "NVFP4", "nvfp4", 64, 36, none),
    blocks(41, "Q1_0", "q1_0", 128, 18, scale),
    blocks(42, "Q2_0", "q2_0", 64, 18, scale),
};

}  // namespace

Index GgufTensorType::size(std::span<const Index> shape) const {
  ensure(!shape.empty() && shape.back() % block == 0, "rows are whole blocks");
  // Whole blocks first: the number of elements of a tensor may overflow where its bytes do not.
  Checked n(shape.back() / block);
  for (const Index e : shape.first(shape.size() - 1)) n = n * Checked(e);
  return (n * Checked(bytes)).value("a tensor");
}

std::span<const GgufTensorType> gguf_tensor_types() { return types; }

const GgufTensorType* find_gguf_type(std::uint32_t id) {
  const auto it = std::ranges::lower_bound(types, id, {}, &GgufTensorType::id);
  return it != types.end() && it->id == id ? &*it : nullptr;
}

const GgufTensorType* find_gguf_type(std::string_view name) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  const auto it = std::ranges::find_if(
      types, [&](const GgufTensorType& t) { return std::ranges::equal(t.name, name, {}, {}, upper); });
  return it != types.end() ? &*it : nullptr;
}

const GgufTensorType& gguf_type_of(const TensorType& type) {
  for (const GgufTensorType& t : types) {
    if (type.encoding ? t.codec == type.encoding->name : t.dtype == type.dtype) {
      require(!type.encoding || type.block_axis == type.rank() - 1,
              "{} has blocks along axis {}, GGUF files hold blocks along the last axis", type.text(), type.block_axis);
      return t;
    }
  }
  fail("GGUF files have no type for {}", type.text());
}

TensorType rlx_type_of(const GgufTensorType& type, std::span<const Index> shape) {
  const std::vector<Dim> dims(shape.begin(), shape.end());
  if (type.dtype) return {*type.dtype, dims};
  const Codec* codec = find_codec(type.codec);
  require(codec != nullptr, "tensors of type {} are not supported: rlx has no codec for them", type.name);
  const Encoding& e = *codec->encoding;
  ensure(e.block == type.block && e.planes.size() == 1 && e.planes[0].bytes == type.bytes,
         "a codec has the blocks of its file format");
  return {DType::f32, dims, e, -1};
}

void swap_blocks(const GgufTensorType& type, std::span<std::byte> data) {
  require(type.swappable, "tensors of type {} in the other byte order are not supported: their form is not defined",
          type.name);
  const auto step = static_cast<std::size_t>(type.bytes);
  ensure(data.size() % step == 0, "whole blocks are swapped");
  for (const GgufField& f : type.fields) {
    if (f.width < 2) continue;
    for (std::size_t at = f.offset; at < data.size(); at += step) {
      for (std::size_t i = 0; i < f.count; ++i) std::ranges::reverse(data.subspan(at + i * f.width, f.width));
    }
  }
}

}  // namespace rlx
