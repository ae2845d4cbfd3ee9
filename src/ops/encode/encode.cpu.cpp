// Steps of encode and decode on the CPU.
#include "ops/encode/encode.h"

#include <array>

#include "codecs/a8/a8.h"
#include "ops/encode/encode.kernel.h"
#include "ops/encode/encoded_source.h"

namespace rlx {

namespace {

// Elements of a call: about 10 µs.
constexpr Index call_elements = 16384;

std::optional<Step> encode_step(const StepArgs& n) {
  const TensorType& t = n.out[0].type;
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("encode reads and writes densely");
  if (t.plane_count() != 1) return n.decline("encode writes formats of one plane");
  const Codec& codec = codec_of(*t.encoding);
  StepBuilder s("encode");
  const auto x = s.read<float>(n.in[0]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.flops(t.count() * 3);
  const Index block = t.encoding->block;
  if (codec.encoding == a8_codecs()[0].encoding) {
    const auto kernel = encode_kernels().a8;
    return s.run(floordiv(t.count(), block), call_elements / block, [=](const Memory& m, const DimValues&, Range r) {
      kernel(m[x].data() + r.begin * a8_block, m[y].data() + r.begin * a8_block_bytes, r.end - r.begin);
    });
  }
  const auto columns = s.dim(t.dim(-1));
  const Index bytes = t.encoding->planes[0].bytes;
  Dim rows = 1;
  for (std::size_t i = 0; i + 1 < t.dims.size(); ++i) rows = rows * t.dims[i];
  return s.run(rows, ceildiv(call_elements, max(t.dim(-1), 1)),
               [=, &codec](const Memory& m, const DimValues& d, Range r) {
                 const Index count = d[columns];
                 const std::array to{m[y].data() + r.begin * (count / block) * bytes};
                 codec.encode(m[x].data() + r.begin * count, r.end - r.begin, count, nullptr, to);
               });
}

std::optional<Step> decode_step(const StepArgs& n) {
  if (!EncodedSource::takes(n.in[0])) return n.decline("decode reads a constant, or one plane");
  if (!n.out[0].dense()) return n.decline("decode writes densely");
  const TensorType& t = n.out[0].type;
  StepBuilder s("decode");
  const EncodedSource x(s, n.in[0]);
  const auto y = s.write<float>(n.out[0]);
  const auto columns = s.dim(t.dim(-1));
  s.flops(t.count());
  Dim rows = 1;
  for (std::size_t i = 0; i + 1 < t.dims.size(); ++i) rows = rows * t.dims[i];
  return s.run(rows, ceildiv(call_elements, max(t.dim(-1), 1)), [=](const Memory& m, const DimValues& d, Range r) {
    const Index count = d[columns];
    x.decode(m, count, r.begin, r.end - r.begin, 0, count, m[y].data() + r.begin * count);
  });
}

}  // namespace

std::span<const MakerRow> encode_cpu() {
  static const MakerRow rows[] = {{&encode_op, encode_step}, {&decode_op, decode_step}};
  return rows;
}

}  // namespace rlx
