// Codecs: how the elements of block-quantised tensors are stored, one folder a format.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace rlx {

/// `rows` times `columns` elements in storage, row after row, one address a plane. `columns` is a multiple of the
/// block.
struct EncodedRows {
  std::span<const std::byte* const> planes;
  Index rows = 0, columns = 0;
  Index first = 0, whole = 0;  // of a part of one row: the columns before it, and those of the whole row
};

struct IntegerForm;

/// A storage format. `src/codecs/NAME/` defines one, or a family of them, and exports them as
/// `std::span<const Codec> NAME_codecs()`; nothing outside the folder and the tables of file formats knows its name.
struct Codec {
  const Encoding* encoding = nullptr;
  std::string_view source;  // the standard, paper or file format that defines it
  /// Decodes to f32, exactly as the format's own definition does.
  void (*decode)(const EncodedRows& from, float* to) = nullptr;
  /// Encodes f32. `importance`, when not null, holds a weight of the squared error for every column. Null: the format
  /// is only read.
  void (*encode)(const float* from, Index rows, Index columns, const float* importance,
                 std::span<std::byte* const> planes) = nullptr;
  /// How elements are small integers times scales, where they are; see integer_form.h.
  const IntegerForm* integers = nullptr;
};

/// All formats, in the order of their folders.
std::span<const Codec* const> all_codecs();
/// The codec of an encoding. Every encoding that a tensor can have belongs to one.
const Codec& codec_of(const Encoding& encoding);
/// The codec called `name`, or null.
const Codec* find_codec(std::string_view name);

/// The f32 tensor of an encoded one whose blocks run along its last axis.
Tensor decode(const Tensor& encoded);
/// An f32 tensor, encoded along its last axis. Throws Error when the format has no encoder, or the last axis is no
/// multiple of its block; `importance` is null or one number a column.
Tensor encode(const Tensor& dense, const Codec& codec, const Tensor* importance = nullptr);

}  // namespace rlx
