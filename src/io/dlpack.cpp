// DLPack: element types both ways, checks of what comes in, ownership of what goes out.
#include "io/dlpack.h"

#include <cstring>
#include <memory>
#include <optional>

#include "core/checked.h"
#include "core/error.h"

namespace rlx {

namespace {

constexpr std::int32_t max_rank = 64;

std::optional<DLDataTypeCode> code_of(DType type) {
  if (bits(type) < 8) return std::nullopt;
  switch (type) {
    case DType::bf16:
      return kDLBfloat;
    case DType::f8e4m3:
      return kDLFloat8_e4m3fn;
    case DType::f8e5m2:
      return kDLFloat8_e5m2;
    case DType::f8e4m3fnuz:
      return kDLFloat8_e4m3fnuz;
    case DType::f8e5m2fnuz:
      return kDLFloat8_e5m2fnuz;
    case DType::e8m0:
      return kDLFloat8_e8m0fnu;
    case DType::boolean:
      return kDLBool;
    case DType::c64:
      return kDLComplex;
    default:
      break;
  }
  if (is_float(type)) return kDLFloat;
  return is_signed_integer(type) ? kDLInt : kDLUInt;
}

DType type_of(DLDataType type) {
  require(type.lanes == 1, "a DLPack element type has {} lanes, expected 1", type.lanes);
  for (const DType candidate : all_dtypes()) {
    const std::optional<DLDataTypeCode> code = code_of(candidate);
    if (code && *code == type.code && bits(candidate) == type.bits) return candidate;
  }
  fail("a DLPack tensor has elements of code {} and {} bits, for which there is no type", type.code, type.bits);
}

// Row-major without gaps, where it matters: axes of one element may have any stride, and so may all of an empty tensor.
void check_strides(const DLTensor& t, std::span<const Index> shape, Index count) {
  if (t.strides == nullptr || count == 0) return;
  Index dense = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    require(shape[axis] == 1 || t.strides[axis] == dense,
            "axis {} of a DLPack tensor has stride {}, expected {}: row-major without gaps", axis, t.strides[axis],
            dense);
    dense *= shape[axis];
  }
}

struct Incoming {
  DType dtype = DType::f32;
  std::span<const Index> shape;
  std::span<const std::byte> data;
  bool aligned = true;
};

// Address of an element must be a multiple of its size; of a complex number, of its parts.
bool is_aligned(const void* p, DType type) {
  const int width = type == DType::c64 ? 4 : bits(type) / 8;
  return reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(width) == 0;
}

Incoming check(const DLTensor& t) {
  require(t.device.device_type == kDLCPU, "a DLPack tensor is on a device of type {}, expected {} (the CPU)",
          static_cast<std::int32_t>(t.device.device_type), static_cast<std::int32_t>(kDLCPU));
  require(0 <= t.ndim && t.ndim <= max_rank, "a DLPack tensor has {} axes, expected 0 to {}", t.ndim, max_rank);
  require(t.ndim == 0 || t.shape != nullptr, "a DLPack tensor of {} axes has no shape", t.ndim);
  Incoming in;
  in.dtype = type_of(t.dtype);
  in.shape = {t.shape, static_cast<std::size_t>(t.ndim)};
  for (std::size_t axis = 0; axis < in.shape.size(); ++axis)
    require(in.shape[axis] >= 0, "axis {} of a DLPack tensor has {} elements", axis, in.shape[axis]);
  const Index count = checked_product(in.shape, "a DLPack tensor");
  const Index bytes = storage_bytes(in.dtype, count);
  check_strides(t, in.shape, count);
  require(bytes == 0 || t.data != nullptr, "a DLPack tensor of {} elements has no data", count);
  if (bytes == 0) return in;
  in.data = {static_cast<const std::byte*>(t.data) + t.byte_offset, static_cast<std::size_t>(bytes)};
  in.aligned = is_aligned(in.data.data(), in.dtype);
  return in;
}

// What an outgoing struct owns: the tensor and its shape in the form of the struct.
template <class Managed>
struct Holder {
  Tensor tensor;
  std::vector<std::int64_t> shape, strides;
  Managed managed = {};  // NOLINT(bugprone-invalid-enum-default-initialization): hand_out sets the device
};

template <class Managed>
Managed* hand_out(Tensor tensor, const void* data) {
  const DType type = tensor.dtype();
  auto holder = std::make_unique<Holder<Managed>>(Holder<Managed>{std::move(tensor), {}, {}});
  holder->shape = holder->tensor.shape();
  holder->strides.assign(holder->shape.size(), 1);  // those of an empty tensor say nothing
  if (holder->tensor.count() > 0)
    for (std::size_t axis = holder->shape.size(); axis-- > 1;)
      holder->strides[axis - 1] = holder->strides[axis] * holder->shape[axis];
  DLTensor& t = holder->managed.dl_tensor;
  t.data = holder->tensor.count() == 0 ? nullptr : const_cast<void*>(data);
  t.device = {kDLCPU, 0};
  t.ndim = static_cast<std::int32_t>(holder->shape.size());
  t.dtype = {static_cast<std::uint8_t>(*code_of(type)), static_cast<std::uint8_t>(bits(type)), 1};
  t.shape = holder->shape.data();
  t.strides = holder->strides.data();
  holder->managed.manager_ctx = holder.get();
  holder->managed.deleter = [](Managed* self) { delete static_cast<Holder<Managed>*>(self->manager_ctx); };
  return &holder.release()->managed;
}

void check_outgoing(const Tensor& tensor) {
  require(!tensor.type().encoding && code_of(tensor.dtype()), "DLPack has no form for a tensor of type {}",
          tensor.type().text());
}

template <class Managed>
Tensor take(Managed* managed) {
  const Incoming in = check(managed->dl_tensor);
  const std::vector<Index> shape(in.shape.begin(), in.shape.end());
  if (in.data.empty() || !in.aligned) {
    Tensor copy(in.dtype, shape);
    if (!in.data.empty()) std::memcpy(copy.mutable_bytes().data(), in.data.data(), in.data.size());
    if (managed->deleter) managed->deleter(managed);
    return copy;
  }
  const auto owner = std::make_shared<Managed*>(nullptr);
  Tensor tensor({in.dtype, std::vector<Dim>(shape.begin(), shape.end())},
                {Bytes{std::shared_ptr<const void>(owner.get(),
                                                   [owner](const void*) {
                                                     if (*owner && (*owner)->deleter) (*owner)->deleter(*owner);
                                                   }),
                       in.data}});
  *owner = managed;  // from here on nothing throws
  return tensor;
}

}  // namespace

DLManagedTensor* to_dlpack(Tensor tensor) {
  check_outgoing(tensor);
  const void* data = tensor.mutable_bytes().data();
  return hand_out<DLManagedTensor>(std::move(tensor), data);
}

DLManagedTensorVersioned* to_dlpack_shared(const Tensor& tensor) {
  check_outgoing(tensor);
  auto* managed = hand_out<DLManagedTensorVersioned>(tensor, tensor.storage());
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  return managed;
}

Tensor from_dlpack(DLManagedTensor* managed) {
  require(managed != nullptr, "a DLPack tensor is a null pointer");
  return take(managed);
}

Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  require(managed != nullptr, "a DLPack tensor is a null pointer");
  // Another major version may have another layout: nothing else of the struct is read.
  require(managed->version.major == DLPACK_MAJOR_VERSION, "a DLPack tensor has version {}.{}, expected 1.x",
          managed->version.major, managed->version.minor);
  return take(managed);
}

ConstView view_dlpack(const DLTensor& tensor) {
  const Incoming in = check(tensor);
  require(in.aligned, "the elements of a DLPack tensor are misaligned for {}", name(in.dtype));
  return {in.dtype, in.shape, in.data.data()};
}

}  // namespace rlx
