// Checked sizes, tensor types, host tensors, row-major walks.
#include "core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/checked.h"
#include "core/error.h"
#include "core/walk.h"
#include "probe_ops.h"

namespace rlx::test {
namespace {

constexpr Index largest = std::numeric_limits<Index>::max(), least = std::numeric_limits<Index>::min();

TEST(Checked, RemembersAnOverflow) {
  EXPECT_EQ((Checked(3) * Checked(4) - Checked(20)).value("x"), -8);
  EXPECT_EQ(error_of([] { (Checked(largest) + Checked(1)).value("a thing"); }), "size of a thing overflows 63 bits");
  const Checked back = Checked(largest) + Checked(1) - Checked(1);
  EXPECT_TRUE(back.overflowed());
  EXPECT_TRUE((Checked(0) * back).overflowed());
  EXPECT_TRUE((Checked(least) - Checked(1)).overflowed());
  EXPECT_TRUE((Checked(least) * Checked(-1)).overflowed());
  EXPECT_FALSE((Checked(least) + Checked(0)).overflowed());
}

TEST(Checked, ProductsOfExtents) {
  const auto of = [](const std::vector<Index>& v) { return checked_product(v, "t"); };
  EXPECT_EQ(of({}), 1);
  EXPECT_EQ(of({2, 3, 4}), 24);
  EXPECT_EQ(of({Index{1} << 40, 0, Index{1} << 40}), 0) << "a zero wins over an overflow";
  EXPECT_EQ(error_of([&] { of({Index{1} << 32, Index{1} << 31}); }), "size of t overflows 63 bits");
  EXPECT_EQ(error_of([&] { of({0, -1}); }), "extent -1 of t is negative");
}

TEST(TensorType, AxesAndText) {
  const Dim s = Dim::symbol("S", 1, 8);
  const TensorType t{DType::f32, {s * 2, Dim(3)}};
  EXPECT_EQ(t.text(), "f32[2*S,3]");
  EXPECT_EQ(t.axis(-1), 1);
  EXPECT_EQ(t.dim(-2), s * 2);
  EXPECT_EQ(t.with(-1, s).text(), "f32[2*S,S]");
  EXPECT_EQ(t.with(DType::i4).text(), "i4[2*S,3]");
  EXPECT_EQ(t.count(), s * 6);
  EXPECT_FALSE(t.is_constant());
  EXPECT_EQ(TensorType(DType::boolean, {}).text(), "bool[]");
  for (const Index a : {Index{-3}, Index{2}, largest, least}) {
    EXPECT_EQ(error_of([&] { t.axis(a); }), "axis " + std::to_string(a) + " is out of range for rank 2");
  }
}

TEST(TensorType, BlockEncodings) {
  const Dim n = Dim::symbol("N", 0, 100);
  const TensorType t(DType::f32, {n, Dim(64)}, q4_0, -1);
  EXPECT_EQ(t.text(), "f32:q4_0@1[N,64]");
  EXPECT_EQ(t.block_axis, 1);
  EXPECT_EQ(t.plane_count(), 1u);
  EXPECT_EQ(t.plane_bytes(0), n * 36);
  EXPECT_EQ(t.with(1, Dim(33)).plane_bytes(0), n * 36) << "the last block is filled up";
  EXPECT_EQ(t.with(1, Dim(0)).plane_bytes(0), Dim(0));
  EXPECT_EQ(TensorType(DType::f32, {n, Dim(64)}, q4_0, 0).plane_bytes(0), ceildiv(n, 32) * 64 * 18);
  const TensorType three(DType::bf16, {Dim(5), Dim(40)}, grouped, 1);
  EXPECT_EQ(three.plane_count(), 3u);
  EXPECT_EQ(three.plane_bytes(0), Dim(5 * 3 * 8));
  EXPECT_EQ(three.plane_bytes(1), Dim(40));
  EXPECT_EQ(three.plane_bytes(2), Dim(4));
  EXPECT_EQ(error_of([&] { TensorType(DType::f32, {n}, q4_0, 1); }), "axis 1 is out of range for rank 1");
  EXPECT_NE(t, TensorType(DType::f32, {n, Dim(64)}));
  EXPECT_NE(t, TensorType(DType::f32, {n, Dim(64)}, q4_0, 0));
}

TEST(TensorType, DensePlaneBytes) {
  const Dim n = Dim::symbol("N", 0, 100);
  EXPECT_EQ(TensorType(DType::i4, {n, Dim(3)}).plane_bytes(0), ceildiv(n * 12, 8));
  EXPECT_EQ(TensorType(DType::i4, {Dim(3)}).plane_bytes(0), Dim(2));
  EXPECT_EQ(TensorType(DType::c64, {n}).plane_bytes(0), n * 8);
  EXPECT_EQ(TensorType(DType::f64, {Dim(Index{1} << 40), Dim(Index{1} << 40), Dim(0)}).plane_bytes(0), Dim(0))
      << "a zero wins over an overflow";
  EXPECT_EQ(error_of([] { TensorType(DType::f64, {Dim(Index{1} << 61)}).plane_bytes(0); }),
            "size of a product of sizes overflows 63 bits");
}

TEST(TensorType, BroadcastOfDims) {
  const Dim s = Dim::symbol("S", 0, 8), t = Dim::symbol("T", 1, 8), big = Dim::symbol("U", 9, 20);
  std::vector<std::pair<Dim, Dim>> unproved;
  const auto of = [&](std::vector<Dim> a, std::vector<Dim> b) {
    unproved.clear();
    return broadcast_dims(a, b, unproved);
  };
  using Dims = std::vector<Dim>;
  EXPECT_EQ(of({s, 1, 3}, {t, 1}), (Dims{s, t, 3}));
  EXPECT_TRUE(unproved.empty());
  EXPECT_EQ(of({}, {s}), (Dims{s}));
  EXPECT_EQ(of({s}, {t}), (Dims{t}));
  EXPECT_EQ(unproved.size(), 1u);
  EXPECT_EQ(of({s}, {4}), (Dims{4})) << "a known size is the better answer";
  EXPECT_EQ(of({4}, {s}), (Dims{4}));
  EXPECT_EQ(of({0}, {1}), (Dims{0}));
  EXPECT_EQ(error_of([&] { of({2, s}, {big}); }), "shapes [2,S] and [U] do not broadcast: S is not U");
  EXPECT_EQ(error_of([&] { of({2}, {3}); }), "shapes [2] and [3] do not broadcast: 2 is not 3");
}

TEST(Tensor, StartsAtZeroAndCopiesOnWrite) {
  Tensor a(DType::f32, {2, 2});
  Tensor b = a;
  EXPECT_EQ(a.storage(), b.storage());
  store(b, std::vector<double>{1, 2, 3, 4});
  EXPECT_NE(a.storage(), b.storage());
  EXPECT_EQ(load<double>(a), (std::vector<double>{0, 0, 0, 0}));
  const void* before = b.storage();
  b.set_code(0, 0);
  EXPECT_EQ(b.storage(), before) << "alone: no copy";
  const Tensor view = b.reshaped({4});
  EXPECT_EQ(view.storage(), b.storage());
  b.set_code(1, 0);
  EXPECT_EQ(load<double>(view), (std::vector<double>{0, 2, 3, 4}));
}

TEST(Tensor, NeverWritesIntoBytesItDidNotAllocate) {
  static const std::byte file[8] = {std::byte{1}, std::byte{2}};
  const TensorType type(DType::u8, {8});
  Tensor t(type, {Bytes{std::make_shared<int>(0), file}});  // the only owner: a mapped file looks like this
  EXPECT_EQ(t.storage(), file);
  t.set_code(0, 9);
  EXPECT_NE(t.storage(), file);
  EXPECT_EQ(t.code(0), 9u);
  EXPECT_EQ(t.code(1), 2u);
  EXPECT_EQ(file[0], std::byte{1});
}

TEST(Tensor, SubByteElementsArePackedLowHalfFirst) {
  Tensor t = Tensor::of<std::int64_t>(DType::i4, {5}, {-8, 7, 1, -1, 3});
  EXPECT_EQ(t.bytes().size(), 3u);
  EXPECT_EQ(std::to_integer<int>(t.bytes()[0]), 0x78);
  EXPECT_EQ(std::to_integer<int>(t.bytes()[1]), 0xF1);
  EXPECT_EQ(std::to_integer<int>(t.bytes()[2]), 0x03);
  EXPECT_EQ(load<std::int64_t>(t), (std::vector<std::int64_t>{-8, 7, 1, -1, 3}));
  t.set_code(3, 0xF5);
  EXPECT_EQ(load<std::int64_t>(t), (std::vector<std::int64_t>{-8, 7, 1, 5, 3})) << "neighbours stay";
  const Tensor pairs = Tensor::of<std::int64_t>(DType::i2, {5}, {-2, 1, 0, -1, 1});
  EXPECT_EQ(pairs.bytes().size(), 2u);
  EXPECT_EQ(std::to_integer<int>(pairs.bytes()[0]), 0xC6);
  EXPECT_EQ(std::to_integer<int>(pairs.bytes()[1]), 0x01);
  EXPECT_EQ(load<std::int64_t>(pairs), (std::vector<std::int64_t>{-2, 1, 0, -1, 1}));
  EXPECT_EQ(load<double>(Tensor::of<double>(DType::u4, {2}, {15.5, -3})), (std::vector<double>{15, 0}));
}

TEST(Tensor, NumbersOfEveryType) {
  for (const DType d : all_dtypes()) {
    if (d == DType::e8m0) continue;  // has no 0
    const Tensor t = Tensor::of<double>(d, {3}, {0, 1, 1});
    EXPECT_EQ(load<std::complex<double>>(t), (std::vector<std::complex<double>>{0, 1, 1})) << name(d);
    if (is_complex(d)) {
      EXPECT_EQ(error_of([&] { load<double>(t); }), "a complex tensor is not read as real numbers");
    } else {
      EXPECT_EQ(load<double>(t), (std::vector<double>{0, 1, 1})) << name(d);
    }
    if (is_float(d)) {
      EXPECT_EQ(error_of([&] { load<std::int64_t>(t); }),
                "a tensor of " + std::string(name(d)) + " is not read as integers");
    }
  }
  const std::uint64_t top = std::uint64_t{1} << 63;
  const Tensor u = Tensor::of<std::uint64_t>(DType::u64, {2}, {top, 3});
  EXPECT_EQ(load<std::uint64_t>(u)[0], top);
  EXPECT_EQ(load<std::int64_t>(u)[0], least);
  EXPECT_EQ(load<double>(u)[0], 9223372036854775808.0);
  EXPECT_EQ(load<std::int64_t>(Tensor::of<std::int64_t>(DType::i8, {1}, {300}))[0], 44) << "integers wrap";
  EXPECT_EQ(load<double>(Tensor::of<std::complex<double>>(DType::f32, {1}, {{2, 5}}))[0], 2);
  Tensor flag(DType::boolean, {1});
  flag.set_code(0, 7);
  EXPECT_EQ(load<std::int64_t>(flag)[0], 1) << "any byte but 0 is true";
}

// Above 2^53 a detour through f64 would round twice.
TEST(Tensor, LargeIntegersRoundOnceToFloats) {
  const std::int64_t above_tie = (Index{1} << 60) + (Index{1} << 36) + 1;
  const double up = static_cast<double>((Index{1} << 60) + (Index{1} << 37));
  EXPECT_EQ(load<double>(Tensor::of<std::int64_t>(DType::f32, {2}, {above_tie, -above_tie})),
            (std::vector<double>{up, -up}));
  const std::int64_t tie16 = (Index{1} << 60) + (Index{1} << 52) + 1;
  EXPECT_EQ(load<double>(Tensor::of<std::int64_t>(DType::bf16, {1}, {tie16}))[0],
            static_cast<double>((Index{1} << 60) + (Index{1} << 53)));
  const std::uint64_t u = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 39) + 1;
  EXPECT_EQ(load<double>(Tensor::of<std::uint64_t>(DType::f32, {1}, {u}))[0],
            static_cast<double>((std::uint64_t{1} << 63) + (std::uint64_t{1} << 40)));
  EXPECT_EQ(load<double>(Tensor::of<std::uint64_t>(DType::f64, {1}, {~std::uint64_t{0}}))[0], 18446744073709551616.0)
      << "unsigned, not -1";
}

TEST(Tensor, RefusesWrongCountsAndSizes) {
  EXPECT_EQ(error_of([] { Tensor(DType::f32, {2, -1}); }), "extent -1 of a tensor is negative");
  EXPECT_EQ(error_of([] { Tensor(DType::f32, {Index{1} << 40, Index{1} << 40}); }),
            "size of a tensor overflows 63 bits");
  EXPECT_EQ(error_of([] { Tensor(DType::f64, {Index{1} << 60}); }), "size of bytes of a tensor overflows 63 bits");
  EXPECT_EQ(error_of([] { Tensor(DType::u8, {Index{1} << 59}); }),
            "a tensor of 576460752303423488 bytes does not fit into memory");
  EXPECT_EQ(error_of([] { Tensor::of<double>(DType::f32, {2}, {1}); }), "f32[2] has 2 elements, 1 values were given");
  EXPECT_EQ(error_of([] { Tensor(DType::f32, {6}).reshaped({4}); }), "shape [4] has not the 6 elements of f32[6]");
  const Dim n = Dim::symbol("N", 0, 9);
  EXPECT_EQ(error_of([&] { Tensor(TensorType(DType::f32, {n}), {Bytes::allocate(4)}); }),
            "a host tensor needs constant sizes, type is f32[N]");
  EXPECT_EQ(error_of([&] { Tensor(TensorType(DType::f32, {2}), {Bytes::allocate(4)}); }),
            "f32[2] needs 8 bytes, 4 were given");
  EXPECT_EQ(error_of([&] { Tensor(TensorType(DType::f32, {2}), {}); }), "f32[2] has 1 planes, 0 were given");
  EXPECT_EQ(error_of([&] { Tensor(TensorType(DType::f32, {64}, q4_0, 0), {Bytes::allocate(35)}); }),
            "f32:q4_0@0[64] needs 36 bytes, 35 were given");
}

TEST(Tensor, EncodedTensorsHavePlanesAndNoNumbers) {
  const Tensor t = encode_q4_0({2, 64}, 0.5, 1);
  EXPECT_EQ(t.type().text(), "f32:q4_0@1[2,64]");
  EXPECT_EQ(t.count(), 128);
  EXPECT_EQ(t.bytes().size(), 72u);
  EXPECT_EQ(error_of([&] { load<double>(t); }), "an encoded tensor f32:q4_0@1[2,64] is not read as numbers");
  Tensor copy = t;
  EXPECT_EQ(error_of([&] { store(copy, std::vector<double>(128)); }),
            "numbers are not written into an encoded tensor f32:q4_0@1[2,64]");
  EXPECT_NE(internal_error_of([&] { (void)t.code(0); }), "");
  EXPECT_NE(internal_error_of([&] { (void)t.reshaped({128}); }), "");
  EXPECT_TRUE(identical(t, copy));
  EXPECT_FALSE(identical(t, encode_q4_0({2, 64}, 0.25, 1)));
}

TEST(Tensor, IdenticalComparesBits) {
  const auto f = [](double v) { return Tensor::scalar(DType::f32, v); };
  EXPECT_TRUE(identical(f(std::nan("")), f(std::nan(""))));
  EXPECT_FALSE(identical(f(0.0), f(-0.0)));
  EXPECT_FALSE(identical(f(1), Tensor::scalar(DType::f64, 1)));
  EXPECT_FALSE(identical(f(1), f(1).reshaped({1})));
  EXPECT_TRUE(identical(Tensor(DType::f32, {0, 2}), Tensor(DType::f32, {0, 2})));
}

TEST(Walk, VisitsCoordinatesInRowMajorOrder) {
  const std::vector<Index> shape{2, 3};
  std::vector<std::pair<Index, Index>> seen;
  walk<2>(shape, {row_major_strides(shape), std::vector<Index>{1, 2}},
          [&](const std::array<Index, 2>& o) { seen.emplace_back(o[0], o[1]); });
  EXPECT_EQ(seen, (std::vector<std::pair<Index, Index>>{{0, 0}, {1, 2}, {2, 4}, {3, 1}, {4, 3}, {5, 5}}));
  int calls = 0;
  walk<1>({}, {std::vector<Index>{}}, [&](const std::array<Index, 1>&) { ++calls; });
  EXPECT_EQ(calls, 1) << "rank 0 has one element";
  const std::vector<Index> none{2, 0, 5};
  walk<1>(none, {row_major_strides(none)}, [&](const std::array<Index, 1>&) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(Walk, Strides) {
  using V = std::vector<Index>;
  EXPECT_EQ(row_major_strides(V{2, 3, 4}), (V{12, 4, 1}));
  EXPECT_EQ(broadcast_strides(V{3, 1}, V{2, 3, 4}), (V{0, 1, 0}));
  EXPECT_EQ(broadcast_strides(V{}, V{2}), (V{0}));
  EXPECT_NE(internal_error_of([] { broadcast_strides(V{2}, V{3}); }), "");
  EXPECT_NE(internal_error_of([] { broadcast_strides(V{2, 2}, V{2}); }), "");
  const AxisSplit s = split_at(V{2, 3, 4, 5}, 1);
  EXPECT_EQ(s.outer, 2);
  EXPECT_EQ(s.extent, 3);
  EXPECT_EQ(s.inner, 20);
  // No undefined overflow where the tensor has no elements.
  const Index huge = Index{1} << 62;
  EXPECT_EQ(row_major_strides(V{0, huge, huge}).size(), 3u);
  EXPECT_EQ(split_at(V{huge, huge, 0}, 2).extent, 0);
}

}  // namespace
}  // namespace rlx::test
