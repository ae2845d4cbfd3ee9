// The element types of tensors in GGUF files: ids, names, blocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace rlx {

/// `count` numbers of `width` bytes at `offset` of a block: what differs between the byte orders.
struct GgufField {
  std::uint16_t offset = 0, width = 0, count = 0;
};

/// A tensor type of the format's public list.
struct GgufTensorType {
  std::uint32_t id = 0;
  std::string_view name;       // `Q4_K`
  Index block = 1, bytes = 0;  // elements and bytes of a block
  std::optional<DType> dtype;  // of plain elements
  std::string_view codec;      // name of the codec of encoded ones
  bool swappable = true;       // false: the public code leaves the big-endian form undefined
  std::array<GgufField, 2> fields = {};

  /// Bytes of a tensor of `shape`, whose last extent is a multiple of the block. Throws Error on overflow.
  Index size(std::span<const Index> shape) const;
  /// Bits of storage an element takes.
  double bits() const { return 8.0 * static_cast<double>(bytes) / static_cast<double>(block); }
};

/// All types, by rising id.
std::span<const GgufTensorType> gguf_tensor_types();
/// The type with this id, or null.
const GgufTensorType* find_gguf_type(std::uint32_t id);
/// The type called `name`, in any case of letters, or null.
const GgufTensorType* find_gguf_type(std::string_view name);
/// The type that holds a tensor as it is; throws Error when the format has none.
const GgufTensorType& gguf_type_of(const TensorType& type);
/// The type of rlx of a tensor; throws Error when no codec decodes the blocks.
TensorType rlx_type_of(const GgufTensorType& type, std::span<const Index> shape);

/// Reverses the bytes of every number in whole blocks: the step between big- and little-endian. Throws Error when the
/// form of the other byte order is not defined.
void swap_blocks(const GgufTensorType& type, std::span<std::byte> blocks);

}  // namespace rlx
