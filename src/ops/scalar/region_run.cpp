// Running a region: addresses of a block's values, then one kernel after the other.
#include <algorithm>
#include <cstring>

#include "core/strided_copy.h"
#include "ops/scalar/blocks.h"
#include "ops/scalar/region.h"

namespace rlx::region {

namespace {

// The position of an element of the results, and where a source has the element for it. Not initialised: runs that
// walk nothing do not pay for it.
struct Walk {
  std::size_t axes;
  std::array<Index, most_axes> extents, strides, at;
  Index offset;

  void seek(Index element) {
    offset = 0;
    for (std::size_t a = axes; a-- > 0;) {
      at[a] = element % extents[a];
      element /= extents[a];
      offset += at[a] * strides[a];
    }
  }
  // To the first element of the next row.
  void next_row() {
    std::size_t a = axes - 1;
    offset -= at[a] * strides[a];
    at[a] = 0;
    while (a-- > 0) {
      offset += strides[a];
      if (++at[a] < extents[a]) return;
      offset -= at[a] * strides[a];
      at[a] = 0;
    }
  }
  // Calls f(offset, elements, stride, done) for every piece of a row among the next n elements.
  template <class F>
  void pieces(Index n, F f) {
    const std::size_t last = axes - 1;
    for (Index done = 0; done < n;) {
      const Index piece = std::min(n - done, extents[last] - at[last]);
      f(offset, piece, strides[last], done);
      done += piece;
      if (done < n) next_row();
    }
  }
};

template <class T>
void gather(Walk& w, const std::byte* base, std::byte* to, Index n) {
  const T* from = reinterpret_cast<const T*>(base);
  T* out = reinterpret_cast<T*>(to);
  w.pieces(n, [&](Index offset, Index piece, Index stride, Index done) {
    const T* x = from + offset;
    T* y = out + done;
    if (stride == 1) {
      for (Index i = 0; i < piece; ++i) y[i] = x[i];
    } else if (stride == 0) {
      const T v = *x;
      for (Index i = 0; i < piece; ++i) y[i] = v;
    } else {
      for (Index i = 0; i < piece; ++i) y[i] = x[i * stride];
    }
  });
}

std::byte extended(const std::byte* base, Index i, const Source& s) {
  const unsigned code = packed_at(base, i, s.bits), sign = s.has_sign ? 1u << (s.bits - 1) : 0u;
  return static_cast<std::byte>((code ^ sign) - sign);
}

void gather_source(const Source& s, Walk& w, const std::byte* base, std::byte* to, Index n) {
  if (s.kind == Source::Kind::counted) {
    auto* out = reinterpret_cast<std::int64_t*>(to);
    w.pieces(n, [&](Index offset, Index piece, Index stride, Index done) {
      for (Index i = 0; i < piece; ++i) out[done + i] = offset + i * stride;
    });
    return;
  }
  switch (s.bits) {
    case 2:
    case 4:
      w.pieces(n, [&](Index offset, Index piece, Index stride, Index done) {
        for (Index i = 0; i < piece; ++i) to[done + i] = extended(base, offset + i * stride, s);
      });
      return;
    case 8:
      return gather<std::uint8_t>(w, base, to, n);
    case 16:
      return gather<std::uint16_t>(w, base, to, n);
    case 32:
      return gather<std::uint32_t>(w, base, to, n);
    default:
      return gather<std::uint64_t>(w, base, to, n);
  }
}

template <int bits>
void pack(const std::byte* from, std::byte* to, Index n) {
  constexpr Index each = 8 / bits;
  for (Index i = 0; i < n; i += each) {
    unsigned byte = 0;
    for (Index k = 0; k < std::min(each, n - i); ++k)
      byte |= (std::to_integer<unsigned>(from[i + k]) & ((1u << bits) - 1)) << (k * bits);
    to[i / each] = static_cast<std::byte>(byte);
  }
}

// Between block buffers: those a multiple of 4 KiB apart would meet in the same lines of the cache.
constexpr std::size_t gap = 192;

// What one call of run() works with.
class Runner {
 public:
  Runner(const Program& p, const Memory& m, const DimValues& d) : p_(p) {
    std::size_t used = 0;
    for (const Buffer& b : p.buffers) {
      at_[b.place] = pool_ + used;
      used += static_cast<std::size_t>(b.bytes * p.block) + gap;
    }
    for (const auto& [place, bytes] : p.constants) at_[place] = const_cast<std::byte*>(bytes.data());
    for (std::size_t i = 0; i < p.sources.size(); ++i) {
      const Source& s = p.sources[i];
      own_[i] = at_[s.place];
      base_[i] = s.memory ? m[*s.memory].data() : s.constant ? s.constant->bytes().data() : nullptr;
    }
    for (std::size_t i = 0; i < p.targets.size(); ++i) out_[i] = m[p.targets[i].memory].data();
    if (p.walks) walk_set_up(d);
  }

  void run(Index first, Index last) {
    ones(std::min(p_.block, last - first));
    blocks(first, last);
  }

  // Before the first call of give().
  void begin() { ones(p_.block); }

  void give(Index first, Index count, const std::byte* values) {
    given_ = values;
    given_first_ = first;
    blocks(first, first + count);
  }

 private:
  void blocks(Index first, Index last) {
    for (Index at = first; at < last;) {
      const Index n = std::min(last - at, block_at(at));
      addresses(at, n);
      for (const Instruction& k : p_.code) {
        const void* const in[] = {at_[k.in[0]], at_[k.in[1]], at_[k.in[2]]};
        k.kernel(in, at_[k.out], n);
      }
      deliver(at, n);
      at += n;
    }
  }

  void walk_set_up(const DimValues& d) {
    for (std::size_t i = 0; i < p_.sources.size(); ++i) {
      const Source& s = p_.sources[i];
      walks_[i].axes = s.strides.size();
      for (std::size_t a = 0; a < s.strides.size(); ++a) {
        walks_[i].extents[a] = d[p_.extents[a]];
        walks_[i].strides[a] = d[s.strides[a]];
      }
    }
    row_ = d[p_.extents.back()];
  }

  // Elements of the block that begins at an element: long rows are not mixed in a block, so that their operands are
  // read where they are.
  Index block_at(Index element) const {
    if (row_ < item_elements || p_.packed) return p_.block;
    return std::min(p_.block, row_ - element % row_);
  }

  // Operands of a single element fill a block once.
  void ones(Index n) {
    for (std::size_t i = 0; i < p_.sources.size(); ++i) {
      const Source& s = p_.sources[i];
      if (s.kind != Source::Kind::one) continue;
      Walk w{.axes = 1, .extents = {n}, .strides = {0}, .at = {0}, .offset = 0};
      gather_source(s, w, base_[i], at_[s.place], n);
    }
  }

  void addresses(Index at, Index n) {
    for (std::size_t i = 0; i < p_.targets.size(); ++i) {
      const Target& t = p_.targets[i];
      if (!t.from) at_[t.place] = out_[i] + at * t.bits / 8;
    }
    for (std::size_t i = 0; i < p_.sources.size(); ++i) {
      const Source& s = p_.sources[i];
      if (s.given) {
        at_[s.place] = const_cast<std::byte*>(given_) + (at - given_first_) * s.bits / 8;
      } else if (s.kind == Source::Kind::dense) {
        at_[s.place] = const_cast<std::byte*>(base_[i]) + at * s.bits / 8;
      } else if (s.kind != Source::Kind::one) {
        walked(i, at, n);
      }
    }
  }

  void walked(std::size_t i, Index at, Index n) {
    const Source& s = p_.sources[i];
    Walk& w = walks_[i];
    w.seek(at);
    const std::size_t last = w.axes - 1;
    const bool row = n <= w.extents[last] - w.at[last];
    if (row && w.strides[last] == 1 && s.kind == Source::Kind::walked && s.bits >= 8) {
      at_[s.place] = const_cast<std::byte*>(base_[i]) + w.offset * s.bits / 8;
      return;
    }
    at_[s.place] = own_[i];
    gather_source(s, w, base_[i], at_[s.place], n);
  }

  void deliver(Index at, Index n) {
    for (std::size_t i = 0; i < p_.targets.size(); ++i) {
      const Target& t = p_.targets[i];
      if (!t.from) continue;
      std::byte* to = out_[i] + at * t.bits / 8;
      if (t.bits < 8) {
        t.bits == 4 ? pack<4>(at_[*t.from], to, n) : pack<2>(at_[*t.from], to, n);
      } else {
        std::memcpy(to, at_[*t.from], static_cast<std::size_t>(n * t.bits / 8));
      }
    }
  }

  const Program& p_;
  std::byte* at_[most_places];
  const std::byte* base_[most_operands];  // of sources: where their memory begins
  std::byte* own_[most_operands];         // their blocks, where they have one
  std::byte* out_[most_operands];
  Walk walks_[most_operands];
  Index row_ = 0;
  const std::byte* given_ = nullptr;
  Index given_first_ = 0;
  alignas(64) std::byte pool_[pool_bytes + most_places * gap];
};

}  // namespace

void Program::run(const Memory& m, const DimValues& d, Range r) const {
  const Index total = count ? d[*count] : 1;
  const Index first = r.begin * item_elements, last = std::min(total, r.end * item_elements);
  if (first >= last) return;
  Runner runner(*this, m, d);
  runner.run(first, last);
}

void Program::run(const Memory& m, const DimValues& d, FunctionRef<void(Give)> work) const {
  Runner runner(*this, m, d);
  runner.begin();
  work([&](Index first, Index n, const std::byte* values) { runner.give(first, n, values); });
}

}  // namespace rlx::region
