// A range of a box is cut into whole boxes; each is copied by runs, by transposed tiles, or element by element.
#include "core/strided_copy.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace rlx {

Index CopyBox::count() const {
  Index n = 1;
  for (std::size_t i = 0; i < rank; ++i) n *= size[i];
  return n;
}

namespace {

struct Wide {
  std::uint64_t half[2];
};

template <class T>
T get(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void put(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

constexpr Index tile = 16;

// block[a][b] = the element at a of row b, for a full tile of rows that are contiguous along a.
template <class T>
void turn(const std::byte* from, Index row, T (&block)[tile][tile]) {
  if constexpr (sizeof(T) == 4) {
    for (Index b = 0; b < tile; b += 4) {
      for (Index a = 0; a < tile; a += 4) {
        const auto* p = reinterpret_cast<const float*>(from + b * row) + a;
        const auto at = [&](Index i) { return _mm_loadu_ps(p + i * row / 4); };
        __m128 r0 = at(0), r1 = at(1), r2 = at(2), r3 = at(3);
        _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
        const __m128 columns[] = {r0, r1, r2, r3};
        for (Index i = 0; i < 4; ++i) _mm_storeu_ps(reinterpret_cast<float*>(&block[a + i][b]), columns[i]);
      }
    }
  } else {
    for (Index b = 0; b < tile; ++b) {
      for (Index a = 0; a < tile; ++a) block[a][b] = get<T>(from + b * row + a * Index{sizeof(T)});
    }
  }
}

// to[a * to_row + b] = from[b * from_row + a]; rows are contiguous on both sides, strides in bytes.
template <class T>
void transpose_plane(const std::byte* from, Index from_row, std::byte* to, Index to_row, Index as, Index bs) {
  constexpr Index w = sizeof(T);
  T block[tile][tile];
  for (Index b = 0; b < bs; b += tile) {
    for (Index a = 0; a < as; a += tile) {
      const Index na = std::min(tile, as - a), nb = std::min(tile, bs - b);
      const std::byte* source = from + b * from_row + a * w;
      std::byte* target = to + a * to_row + b * w;
      if (na == tile && nb == tile) {
        turn<T>(source, from_row, block);
        for (Index i = 0; i < tile; ++i) std::memcpy(target + i * to_row, block[i], sizeof block[i]);
      } else {
        for (Index i = 0; i < na; ++i) {
          for (Index k = 0; k < nb; ++k) put(target + i * to_row + k * w, get<T>(source + k * from_row + i * w));
        }
      }
    }
  }
}

// At least 16 bytes; the last 16 may overlap those before. A call of memcpy costs more than such a run.
void copy_short(const std::byte* from, std::byte* to, Index bytes) {
  const auto move = [&](Index at) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  };
  for (Index i = 0; i + 16 <= bytes; i += 16) move(i);
  if (bytes % 16 != 0) move(bytes - 16);
}

template <class T>
void copy_runs(const std::byte* from, Index from_row, std::byte* to, Index to_row, Index rows, Index run) {
  constexpr Index w = sizeof(T);
  const Index bytes = run * w;
  for (Index r = 0; r < rows; ++r) {
    const std::byte* source = from + r * from_row;
    std::byte* target = to + r * to_row;
    if (bytes > 512) {
      std::memcpy(target, source, static_cast<std::size_t>(bytes));
    } else if (bytes >= 16) {
      copy_short(source, target, bytes);
    } else {
      for (Index i = 0; i < run; ++i) put(target + i * w, get<T>(source + i * w));
    }
  }
}

template <class T>
void copy_plane(const std::byte* from, Index from_outer, Index from_inner, std::byte* to, Index to_outer,
                Index to_inner, Index outer, Index inner) {
  for (Index o = 0; o < outer; ++o) {
    const std::byte* source = from + o * from_outer;
    std::byte* target = to + o * to_outer;
    for (Index i = 0; i < inner; ++i, source += from_inner, target += to_inner) put(target, get<T>(source));
  }
}

// Joins axes that are one on both sides, and drops those of size 1. The row-major order of the elements stays.
CopyBox joined(const CopyBox& box) {
  CopyBox c;
  for (std::size_t i = 0; i < box.rank; ++i) {
    if (box.size[i] == 1) continue;
    if (c.rank > 0 && c.from[c.rank - 1] == box.from[i] * box.size[i] && c.to[c.rank - 1] == box.to[i] * box.size[i]) {
      c.size[c.rank - 1] *= box.size[i];
      c.from[c.rank - 1] = box.from[i];
      c.to[c.rank - 1] = box.to[i];
    } else {
      c.add(box.size[i], box.from[i], box.to[i]);
    }
  }
  return c;
}

void remove(CopyBox& box, std::size_t axis) {
  for (std::size_t i = axis; i + 1 < box.rank; ++i) {
    box.size[i] = box.size[i + 1];
    box.from[i] = box.from[i + 1];
    box.to[i] = box.to[i + 1];
  }
  --box.rank;
}

// Calls f(from, to) for every coordinate of a box; strides in bytes.
template <class F>
void every(const CopyBox& box, const std::byte* from, std::byte* to, F f) {
  std::array<Index, most_axes> at{};
  for (;;) {
    f(from, to);
    std::size_t d = box.rank;
    for (;;) {
      if (d == 0) return;
      --d;
      from += box.from[d];
      to += box.to[d];
      if (++at[d] < box.size[d]) break;
      from -= box.from[d] * box.size[d];
      to -= box.to[d] * box.size[d];
      at[d] = 0;
    }
  }
}

struct Axis {
  Index size = 1, from = 0, to = 0;
};

Axis take(CopyBox& box, std::size_t axis) {
  const Axis a{box.size[axis], box.from[axis], box.to[axis]};
  remove(box, axis);
  return a;
}

// The axis that is contiguous on one side and the one that is on the other; false when there are none.
template <Index w>
bool find_plane(const CopyBox& box, std::size_t& a, std::size_t& b) {
  a = b = box.rank;
  for (std::size_t i = 0; i < box.rank; ++i) {
    if (box.from[i] == w) a = i;
    if (box.to[i] == w) b = i;
  }
  return a < box.rank && b < box.rank && a != b;
}

// A whole box, joined, without an axis of size 0; strides in bytes.
template <class T>
void copy_box(CopyBox box, const std::byte* from, std::byte* to) {
  constexpr Index w = sizeof(T);
  std::size_t a = 0, b = 0;
  const std::size_t last = box.rank - 1;
  if (box.rank == 0) {
    put(to, get<T>(from));
  } else if (box.from[last] == w && box.to[last] == w) {
    const Axis run = take(box, last);
    const Axis rows = box.rank > 0 ? take(box, box.rank - 1) : Axis{};
    every(box, from, to,
          [&](const std::byte* x, std::byte* y) { copy_runs<T>(x, rows.from, y, rows.to, rows.size, run.size); });
  } else if (find_plane<w>(box, a, b)) {
    const Axis second = take(box, std::max(a, b)), first = take(box, std::min(a, b));
    const Axis &along = a < b ? first : second, &across = a < b ? second : first;
    every(box, from, to, [&](const std::byte* x, std::byte* y) {
      transpose_plane<T>(x, across.from, y, along.to, along.size, across.size);
    });
  } else {
    const Axis inner = take(box, last);
    const Axis outer = box.rank > 0 ? take(box, box.rank - 1) : Axis{};
    every(box, from, to, [&](const std::byte* x, std::byte* y) {
      copy_plane<T>(x, outer.from, inner.from, y, outer.to, inner.to, outer.size, inner.size);
    });
  }
}

// Copies elements [begin, end): part of the first slice of the outer axis, the whole slices, part of the last.
template <class T>
void copy_range(const CopyBox& box, const std::byte* from, std::byte* to, Index begin, Index end) {
  if (begin >= end) return;
  if (box.rank == 0) return copy_box<T>(box, from, to);
  CopyBox slice = box;
  remove(slice, 0);
  const Index inner = slice.count();
  const auto part = [&](Index i, Index first, Index behind) {
    copy_range<T>(slice, from + i * box.from[0], to + i * box.to[0], first, behind);
  };
  Index first = begin / inner;
  const Index last = end / inner, head = begin % inner, tail = end % inner;
  if (first == last) return part(first, head, tail);
  if (head > 0) part(first++, head, inner);
  if (first < last) {
    CopyBox whole = box;
    whole.size[0] = last - first;
    copy_box<T>(joined(whole), from + first * box.from[0], to + first * box.to[0]);
  }
  if (tail > 0) part(last, 0, tail);
}

template <class T>
void copy_elements_of(CopyBox box, const std::byte* from, std::byte* to, Index begin, Index end) {
  for (std::size_t i = 0; i < box.rank; ++i) {
    box.from[i] *= Index{sizeof(T)};
    box.to[i] *= Index{sizeof(T)};
  }
  copy_range<T>(box, from, to, begin, end);
}

}  // namespace

void strided_copy(const CopyBox& box, Index width, const std::byte* from, std::byte* to, Index begin, Index end) {
  if (begin >= end) return;
  const CopyBox c = joined(box);
  switch (width) {
    case 1:
      return copy_elements_of<std::uint8_t>(c, from, to, begin, end);
    case 2:
      return copy_elements_of<std::uint16_t>(c, from, to, begin, end);
    case 4:
      return copy_elements_of<std::uint32_t>(c, from, to, begin, end);
    case 8:
      return copy_elements_of<std::uint64_t>(c, from, to, begin, end);
    case 16:
      return copy_elements_of<Wide>(c, from, to, begin, end);
    default:
      ensure(false, "elements have 1, 2, 4, 8 or 16 bytes");
  }
}

void strided_copy_packed(const CopyBox& box, int bits, const std::byte* from, Index from_first, std::byte* to,
                         Index to_first, Index begin, Index end) {
  for (Index i = begin; i < end; ++i) {
    Index rest = i, source = from_first, target = to_first;
    for (std::size_t d = box.rank; d-- > 0;) {
      const Index at = rest % box.size[d];
      rest /= box.size[d];
      source += at * box.from[d];
      target += at * box.to[d];
    }
    set_packed(to, target, packed_at(from, source, bits), bits);
  }
}

}  // namespace rlx
