// The list of codecs, and whole tensors through them.
#include "codecs/codec.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "codecs/codec_table.h"
#include "core/error.h"

namespace rlx {

std::span<const Codec* const> all_codecs() {
  static const std::vector<const Codec*> codecs = [] {
    std::vector<const Codec*> all;
    for (const CodecFolder folder : codec_folders()) {
      for (const Codec& codec : folder()) all.push_back(&codec);
    }
    return all;
  }();
  return codecs;
}

const Codec& codec_of(const Encoding& encoding) {
  const auto all = all_codecs();
  const auto found = std::ranges::find(all, &encoding, &Codec::encoding);
  ensure(found != all.end(), "an encoding belongs to a codec");
  return **found;
}

const Codec* find_codec(std::string_view name) {
  for (const Codec* codec : all_codecs()) {
    if (codec->encoding->name == name) return codec;
  }
  return nullptr;
}

namespace {

// Rows and columns of a tensor whose blocks run along its last axis.
EncodedRows rows_of(const TensorType& type, const std::vector<Index>& shape, Index block) {
  require(!shape.empty(), "a tensor of rank 0 has no axis for blocks of {}", block);
  require(shape.back() % block == 0, "the last axis of {} is no multiple of the {} elements of a block", type.text(),
          block);
  EncodedRows r{.rows = 1, .columns = shape.back()};
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) r.rows *= shape[i];
  return r;
}

}  // namespace

Tensor decode(const Tensor& encoded) {
  const TensorType& type = encoded.type();
  require(type.encoding != nullptr, "a tensor {} is not encoded", type.text());
  require(type.dtype == DType::f32, "a tensor {} is not decoded, expected elements of f32", type.text());
  require(type.block_axis == type.rank() - 1, "the blocks of {} run along axis {}, expected the last", type.text(),
          type.block_axis);
  const Codec& codec = codec_of(*type.encoding);
  EncodedRows from = rows_of(type, encoded.shape(), type.encoding->block);
  Tensor dense(DType::f32, encoded.shape());
  if (dense.count() == 0) return dense;
  std::vector<const std::byte*> planes;
  for (std::size_t i = 0; i < type.plane_count(); ++i) planes.push_back(encoded.bytes(i).data());
  from.planes = planes;
  codec.decode(from, reinterpret_cast<float*>(dense.mutable_bytes().data()));
  return dense;
}

Tensor encode(const Tensor& dense, const Codec& codec, const Tensor* importance) {
  const TensorType& type = dense.type();
  require(codec.encode != nullptr, "the format {} is only read", codec.encoding->name);
  require(!type.encoding && type.dtype == DType::f32, "a tensor {} is not encoded, expected f32", type.text());
  const EncodedRows size = rows_of(type, dense.shape(), codec.encoding->block);
  if (importance) {
    require(importance->type() == TensorType(DType::f32, {size.columns}), "importance is {}, expected f32[{}]",
            importance->type().text(), size.columns);
  }
  const auto* const x = reinterpret_cast<const float*>(dense.bytes().data());
  for (Index i = 0; i < dense.count(); ++i) {
    require(std::isfinite(x[i]), "element {} of a tensor to encode is {}, expected a finite number", i, x[i]);
  }
  const TensorType result(DType::f32, type.dims, *codec.encoding, -1);
  std::vector<Bytes> planes;
  std::vector<std::byte*> addresses;
  for (std::size_t i = 0; i < result.plane_count(); ++i) {
    planes.push_back(Bytes::allocate(result.plane_bytes(i).constant()));
    // The allocation is ours alone, so that its constness is a formality.
    addresses.push_back(const_cast<std::byte*>(planes.back().data.data()));
  }
  if (dense.count() > 0) {
    const auto* const weights = importance ? reinterpret_cast<const float*>(importance->bytes().data()) : nullptr;
    codec.encode(x, size.rows, size.columns, weights, addresses);
  }
  return {result, std::move(planes)};
}

}  // namespace rlx
