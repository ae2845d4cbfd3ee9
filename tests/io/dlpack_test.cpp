// DLPack: layout of the structs, ownership both ways, refusals.
#include "io/dlpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace rlx::test {
namespace {

using testing::ElementsAre;

// A tensor of another library: owns its shape, counts calls of its deleter.
struct Foreign {
  std::vector<float> data{0, 1, 2, 3, 4, 5};
  std::vector<std::int64_t> shape{2, 3}, strides{3, 1};
  int deleted = 0;
  // NOLINTBEGIN(bugprone-invalid-enum-default-initialization): the constructor sets the devices
  DLManagedTensor managed = {};
  DLManagedTensorVersioned versioned = {};
  // NOLINTEND(bugprone-invalid-enum-default-initialization)

  Foreign() {
    DLTensor& t = managed.dl_tensor;
    t = {data.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), strides.data(), 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    versioned.version = {1, 0};
    versioned.dl_tensor = t;
    versioned.manager_ctx = this;
    versioned.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
};

void expect_refused(Foreign& f, const std::string& words) {
  try {
    from_dlpack(&f.managed);
    ADD_FAILURE() << "accepted; expected: " << words;
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr(words));
  }
  EXPECT_THROW(view_dlpack(f.managed.dl_tensor), Error) << words;
  EXPECT_EQ(f.deleted, 0) << words;
}

TEST(Dlpack, StructsHaveTheLayoutOfTheInterface) {
  EXPECT_EQ(sizeof(DLDevice), 8u);
  EXPECT_EQ(sizeof(DLDataType), 4u);
  EXPECT_EQ(offsetof(DLTensor, device), 8u);
  EXPECT_EQ(offsetof(DLTensor, ndim), 16u);
  EXPECT_EQ(offsetof(DLTensor, dtype), 20u);
  EXPECT_EQ(offsetof(DLTensor, shape), 24u);
  EXPECT_EQ(offsetof(DLTensor, strides), 32u);
  EXPECT_EQ(offsetof(DLTensor, byte_offset), 40u);
  EXPECT_EQ(sizeof(DLTensor), 48u);
  EXPECT_EQ(offsetof(DLManagedTensor, manager_ctx), 48u);
  EXPECT_EQ(offsetof(DLManagedTensor, deleter), 56u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, manager_ctx), 8u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, flags), 24u);
  EXPECT_EQ(offsetof(DLManagedTensorVersioned, dl_tensor), 32u);
}

TEST(Dlpack, ForeignMemoryIsSharedAndReleasedOnce) {
  Foreign f;
  {
    const Tensor t = from_dlpack(&f.managed);
    const Tensor copy = t.reshaped({6});
    EXPECT_EQ(t.storage(), f.data.data());
    EXPECT_THAT(t.shape(), ElementsAre(2, 3));
    EXPECT_THAT(load<double>(copy), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_EQ(f.deleted, 0);
  }
  EXPECT_EQ(f.deleted, 1);
  {
    EXPECT_THAT(load<double>(from_dlpack(&f.versioned)), ElementsAre(0, 1, 2, 3, 4, 5));
  }
  EXPECT_EQ(f.deleted, 2);
}

TEST(Dlpack, WritingToATakenTensorLeavesTheForeignMemoryAlone) {
  Foreign f;
  Tensor t = from_dlpack(&f.managed);
  store(t, std::vector<double>{9, 9, 9, 9, 9, 9});
  EXPECT_EQ(f.data[0], 0);
  EXPECT_EQ(f.deleted, 1);  // the copy needs it no more
}

TEST(Dlpack, OffsetAndAbsentStridesAndDeleter) {
  Foreign f;
  f.shape = {2, 2};
  f.managed.dl_tensor.strides = nullptr;
  f.managed.dl_tensor.byte_offset = 8;
  f.managed.deleter = nullptr;
  EXPECT_THAT(load<double>(from_dlpack(&f.managed)), ElementsAre(2, 3, 4, 5));
}

TEST(Dlpack, StridesOfAxesOfOneAndOfEmptyTensorsDoNotMatter) {
  Foreign f;
  f.shape = {1, 6};
  f.strides = {-7, 1};
  EXPECT_THAT(from_dlpack(&f.managed).shape(), ElementsAre(1, 6));
  f.shape = {0, 6};
  f.strides = {5, 5};
  f.managed.dl_tensor.data = nullptr;
  EXPECT_EQ(from_dlpack(&f.managed).count(), 0);
  EXPECT_EQ(f.deleted, 2);
}

TEST(Dlpack, MisalignedElementsAreCopied) {
  Foreign f;
  f.shape = {5};
  f.strides = {1};
  f.managed.dl_tensor.ndim = 1;
  std::vector<std::byte> bytes(24);
  const std::vector<float> values{1, 2, 3, 4, 5};
  std::memcpy(bytes.data() + 1, values.data(), 20);
  f.managed.dl_tensor.data = bytes.data();
  f.managed.dl_tensor.byte_offset = 1;
  EXPECT_THROW(view_dlpack(f.managed.dl_tensor), Error);
  const Tensor t = from_dlpack(&f.managed);
  EXPECT_EQ(f.deleted, 1);
  EXPECT_THAT(load<double>(t), ElementsAre(1, 2, 3, 4, 5));
}

TEST(Dlpack, ViewNeedsNoCopyOfAnything) {
  Foreign f;
  const ConstView view = view_dlpack(f.managed.dl_tensor);
  EXPECT_EQ(view.data, f.data.data());
  EXPECT_EQ(view.shape.data(), f.shape.data());
  EXPECT_EQ(view.dtype, DType::f32);
}

TEST(Dlpack, WhatDoesNotFitIsRefusedAndStaysTheCallers) {
  const auto refused = [](auto change, const char* words) {
    Foreign f;
    change(f, f.managed.dl_tensor);
    expect_refused(f, words);
  };
  refused([](Foreign&, DLTensor& t) { t.device.device_type = kDLCUDA; }, "device of type 2");
  refused([](Foreign&, DLTensor& t) { t.dtype.lanes = 4; }, "4 lanes");
  refused([](Foreign&, DLTensor& t) { t.dtype = {kDLInt, 4, 1}; }, "code 0 and 4 bits");
  refused([](Foreign&, DLTensor& t) { t.dtype = {kDLFloat, 128, 1}; }, "code 2 and 128 bits");
  refused([](Foreign&, DLTensor& t) { t.dtype = {kDLOpaqueHandle, 64, 1}; }, "code 3");
  refused([](Foreign& f, DLTensor&) { f.strides = {1, 2}; }, "stride 2, expected 1");
  refused([](Foreign& f, DLTensor&) { f.strides = {4, 1}; }, "axis 0 of a DLPack tensor has stride 4, expected 3");
  refused([](Foreign& f, DLTensor&) { f.shape = {2, -3}; }, "axis 1 of a DLPack tensor has -3");
  refused([](Foreign& f, DLTensor&) { f.shape = {std::numeric_limits<std::int64_t>::max(), 3}; }, "DLPack tensor");
  refused([](Foreign&, DLTensor& t) { t.ndim = -1; }, "-1 axes");
  refused([](Foreign&, DLTensor& t) { t.ndim = 65; }, "65 axes");
  refused([](Foreign&, DLTensor& t) { t.shape = nullptr; }, "no shape");
  refused([](Foreign&, DLTensor& t) { t.data = nullptr; }, "no data");
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), Error);
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr)), Error);
}

TEST(Dlpack, OtherMajorVersionsAreRefused) {
  Foreign f;
  f.versioned.version = {2, 0};
  EXPECT_THROW(from_dlpack(&f.versioned), Error);
  EXPECT_EQ(f.deleted, 0);
}

TEST(Dlpack, HandedOutTensorIsWritableAndItsOwn) {
  Tensor mine = Tensor::of<double>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  DLManagedTensor* shared = to_dlpack(mine);
  const DLTensor& t = shared->dl_tensor;
  EXPECT_EQ(t.device.device_type, kDLCPU);
  EXPECT_THAT(std::span(t.shape, 2), ElementsAre(2, 3));
  EXPECT_THAT(std::span(t.strides, 2), ElementsAre(3, 1));
  static_cast<float*>(t.data)[0] = 50;
  EXPECT_EQ(load<double>(mine)[0], 1);
  shared->deleter(shared);

  const void* storage = mine.storage();
  DLManagedTensor* moved = to_dlpack(std::move(mine));
  EXPECT_EQ(moved->dl_tensor.data, storage);
  moved->deleter(moved);
}

TEST(Dlpack, SharedTensorIsMarkedReadOnlyAndOutlivesItsSource) {
  auto mine = std::make_unique<Tensor>(Tensor::of<double>(DType::i64, {3}, {1, 2, 3}));
  DLManagedTensorVersioned* out = to_dlpack_shared(*mine);
  EXPECT_EQ(out->dl_tensor.data, mine->storage());
  EXPECT_EQ(out->version.major, 1u);
  EXPECT_EQ(out->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  mine.reset();
  EXPECT_THAT(load<double>(from_dlpack(out)), ElementsAre(1, 2, 3));
}

TEST(Dlpack, EveryTypeGoesOutAndComesBack) {
  int carried = 0;
  for (const DType type : all_dtypes()) {
    SCOPED_TRACE(name(type));
    for (const std::vector<Index>& shape : {std::vector<Index>{}, {0, 3}, {2, 3}, {7}}) {
      Tensor t(type, shape);
      if (bits(type) < 8) {
        EXPECT_THROW(to_dlpack(t), Error);
        continue;
      }
      for (Index i = 0; i < t.count(); ++i)
        t.set_code(i, static_cast<std::uint64_t>(type == DType::boolean ? i % 2 : i + 1));
      EXPECT_TRUE(identical(from_dlpack(to_dlpack(t)), t));
      EXPECT_TRUE(identical(from_dlpack(to_dlpack_shared(t)), t));
      ++carried;
    }
  }
  EXPECT_EQ(carried, (dtype_count - 5) * 4);
}

}  // namespace
}  // namespace rlx::test
