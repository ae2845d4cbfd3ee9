// Copies between slots in every layout and width against one loop over coordinates, whole and in random pieces.
#include "device/copy_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/walk.h"

namespace rlx {
namespace {

using Buffer = std::vector<std::byte>;

Buffer noise(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  Buffer b(bytes);
  for (std::byte& x : b) x = static_cast<std::byte>(random());
  return b;
}

// Runs items in pieces that a generator cuts and shuffles; seed 0: one call.
void run_in_pieces(const BoundStep& step, unsigned seed) {
  if (seed == 0) return step.run({0, step.items()});
  std::mt19937 random(seed);
  std::vector<Range> pieces;
  for (Index at = 0; at < step.items();) {
    const Index most = std::max<Index>(step.items() / 3, 1);
    const Index n = 1 + static_cast<Index>(random() % static_cast<unsigned long>(most));
    pieces.push_back({at, std::min(at + n, step.items())});
    at = pieces.back().end;
  }
  std::ranges::shuffle(pieces, random);
  for (const Range r : pieces) step.run(r);
}

unsigned long code_at(const Buffer& b, int width_bits, Index i) {
  if (width_bits < 8) return packed_at(b.data(), i, width_bits);
  unsigned long v = 0;
  std::memcpy(&v, b.data() + i * width_bits / 8, static_cast<std::size_t>(width_bits / 8));
  return v;
}
void set_code(Buffer& b, int width_bits, Index i, unsigned long v) {
  if (width_bits < 8) return set_packed(b.data(), i, static_cast<unsigned>(v), width_bits);
  std::memcpy(b.data() + i * width_bits / 8, &v, static_cast<std::size_t>(width_bits / 8));
}

std::vector<Dim> dims_of(const std::vector<Index>& v) { return {v.begin(), v.end()}; }

Index extent_of(const std::vector<Index>& shape, const std::vector<Index>& strides) {
  Index n = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) n += std::max<Index>(shape[i] - 1, 0) * strides[i];
  return n;
}

// `from` and `to` are strides; none: dense. Bytes that no element stands in stay.
void check_copy(DType type, const std::vector<Index>& shape, const std::vector<Index>& from,
                const std::vector<Index>& to) {
  SCOPED_TRACE(std::string(name(type)) + text(shape) + " from " + text(from) + " to " + text(to));
  const std::vector<Index> dense = row_major_strides(shape);
  const std::vector<Index>&f = from.empty() ? dense : from, &t = to.empty() ? dense : to;
  const int width = bits(type);
  const auto bytes = [&](const std::vector<Index>& s) {
    return static_cast<std::size_t>(storage_bytes(type, extent_of(shape, s))) + 64;
  };
  Buffer source = noise(bytes(f), 1);
  const Buffer before = noise(bytes(t), 2);
  const Index count = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
  // Of dense slots whose last byte is not full the rest of it is 0.
  const auto clear_rest = [&](Buffer& b) {
    for (Index i = count; width < 8 && i % packed_in_byte(width) != 0; ++i) set_packed(b.data(), i, 0, width);
  };
  if (from.empty()) clear_rest(source);
  Buffer want = before;
  walk<2>(shape, {f, t}, [&](const auto& at) { set_code(want, width, at[1], code_at(source, width, at[0])); });
  if (to.empty()) clear_rest(want);
  const Slot in{.buffer = 0, .type = {type, dims_of(shape)}, .strides = dims_of(from)};
  const Slot out{.buffer = 1, .type = {type, dims_of(shape)}, .strides = dims_of(to)};
  const Step step = copy_step(in, out);
  for (const unsigned seed : {0u, 1u, 2u}) {
    Buffer x = source, y = before;
    const BoundStep bound(step, {}, [&](BufferId id) { return id == 0 ? x.data() : y.data(); });
    run_in_pieces(bound, seed);
    EXPECT_TRUE(y == want) << "seed " << seed;
    EXPECT_TRUE(x == source);
  }
}

constexpr DType widths[] = {DType::u2, DType::u4, DType::i8, DType::f16, DType::f32, DType::c64};

TEST(CopyStep, PermutationsOfEveryWidth) {
  for (const DType type : widths) {
    for (const std::vector<Index>& shape :
         {std::vector<Index>{2, 3, 5, 7}, {17, 1, 35, 2}, {1, 33, 18, 4}, {2, 0, 3, 4}}) {
      std::vector<Index> order{0, 1, 2, 3};
      const std::vector<Index> strides = row_major_strides(shape);
      do {
        std::vector<Index> sizes, from;
        for (const Index i : order) {
          sizes.push_back(shape[static_cast<std::size_t>(i)]);
          from.push_back(strides[static_cast<std::size_t>(i)]);
        }
        check_copy(type, sizes, from, {});
        check_copy(type, sizes, {}, from);
      } while (std::ranges::next_permutation(order).found);
    }
  }
}

TEST(CopyStep, StridesWithGapsRepeatsAndBothSides) {
  for (const DType type : widths) {
    check_copy(type, {3, 4, 5}, {40, 10, 2}, {});
    check_copy(type, {3, 4, 5}, {0, 1, 0}, {});
    check_copy(type, {3, 4, 5}, {0, 0, 0}, {});
    check_copy(type, {40, 50}, {1, 64}, {64, 1});
    check_copy(type, {40, 50}, {64, 1}, {1, 64});
    check_copy(type, {3, 4, 5}, {}, {60, 15, 3});
    check_copy(type, {6, 20}, {20, 1}, {33, 1});
    check_copy(type, {7}, {3}, {2});
    check_copy(type, {1}, {5}, {});
    check_copy(type, {}, {}, {});
    check_copy(type, {3, 1, 2}, {}, {});
  }
}

TEST(CopyStep, SizesAreThoseOfTheBinding) {
  const Dim b = Dim::symbol("B", 0, 64), s = Dim::symbol("S", 0, 64);
  const TensorType type(DType::f32, {b, s});
  const Step step =
      copy_step({.buffer = 0, .type = type, .strides = {1, b}}, {.buffer = 1, .type = {DType::f32, {s * b}}});
  for (const auto& [rows, cols] : {std::pair<Index, Index>{3, 5}, {40, 33}, {0, 7}, {1, 1}}) {
    std::vector<float> x(static_cast<std::size_t>(rows * cols + 1)), y(x.size(), -1.0f);
    std::iota(x.begin(), x.end(), 0.0f);
    float* const buffers[] = {x.data(), y.data()};
    const BoundStep bound(step, {{"B", rows}, {"S", cols}},
                          [&](BufferId id) { return reinterpret_cast<std::byte*>(buffers[id]); });
    EXPECT_EQ(bound.items(), rows * cols);
    run_in_pieces(bound, 3);
    for (Index r = 0; r < rows; ++r) {
      for (Index c = 0; c < cols; ++c) {
        EXPECT_EQ(y[static_cast<std::size_t>(r * cols + c)], static_cast<float>(c * rows + r));
      }
    }
    EXPECT_EQ(y.back(), -1.0f);
  }
}

TEST(CopyStep, EncodedTensorsAreCopiedAPlaneAtATime) {
  static constexpr Plane planes[] = {{"blocks", 18}};
  static constexpr Encoding q4{"q4_0", 32, planes};
  const TensorType type(DType::f32, {3, 64}, q4, 1);
  const Step step = copy_step({.buffer = 0, .type = type}, {.buffer = 1, .type = type});
  const Buffer x = noise(108, 5);
  Buffer source = x, y = noise(120, 6);
  const Buffer before = y;
  const BoundStep bound(step, {}, [&](BufferId id) { return id == 0 ? source.data() : y.data(); });
  EXPECT_EQ(bound.items(), 108);
  run_in_pieces(bound, 4);
  EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin()));
  EXPECT_TRUE(std::equal(y.begin() + 108, y.end(), before.begin() + 108));
}

TEST(CopyStep, TooManyAxesAreAnError) {
  const std::vector<Dim> ones(17, Dim(1));
  EXPECT_THROW(
      copy_step({.buffer = 0, .type = {DType::f32, ones}, .strides = ones}, {.buffer = 1, .type = {DType::f32, ones}}),
      Error);
}

}  // namespace
}  // namespace rlx
