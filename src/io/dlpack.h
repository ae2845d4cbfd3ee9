// Tensors of other libraries and for other libraries, by DLPack. Host memory only.
#pragma once

#include "core/tensor.h"
#include "io/dlpack_abi.h"
#include "runtime/ports.h"

namespace rlx {

/// Hands a tensor out; the receiver may write it and calls its `deleter`. Bytes that others share, or that belong to a
/// file, are copied first: `to_dlpack(std::move(t))` copies nothing where `t` is their only owner. Throws Error for
/// encoded tensors and for i4 and u4, whose packing DLPack leaves open.
DLManagedTensor* to_dlpack(Tensor tensor);
/// The same without a copy: the bytes stay shared, and the tensor is marked as one that must not be written.
DLManagedTensorVersioned* to_dlpack_shared(const Tensor& tensor);

/// Takes a tensor over without a copy (misaligned elements are copied); `deleter` is called when the last Tensor that
/// shares its bytes is gone, from that thread. The bytes are only read: writing to the result copies them first.
/// Throws Error for a null pointer, a device other than the CPU, several lanes, an element type that rlx lacks, strides
/// that are not row-major without gaps, sizes that are negative or overflow, null data, and a version other than 1.x.
/// After an Error the tensor is still the caller's.
Tensor from_dlpack(DLManagedTensor* managed);
Tensor from_dlpack(DLManagedTensorVersioned* managed);

/// The memory of a tensor as the input of one run; `tensor` must live as long. Throws Error as from_dlpack does, and
/// where the elements are misaligned.
ConstView view_dlpack(const DLTensor& tensor);

}  // namespace rlx
