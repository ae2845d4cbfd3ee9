// Steps of softmax and log_softmax on the CPU.
#include "ops/softmax/softmax.h"

#include <algorithm>

#include "device/step.h"
#include "ops/softmax/softmax.kernel.h"

namespace rlx {

namespace {

constexpr Index block = 64;  // columns of one piece of work

Dim elements(const TensorType& t, std::size_t begin, std::size_t end) {
  return product(std::span(t.dims).subspan(begin, end - begin));
}

Step over_rows(StepBuilder s, const StepArgs& n, const SoftmaxOver& kernel) {
  const TensorType& t = n.in[0].type;
  const auto x = s.read<std::byte>(n.in[0]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.may_overwrite(y, x);
  const auto cols = s.dim(t.dim(-1)), all = s.dim(t.count());
  const Index bytes = bits(t.dtype) / 8;
  const auto stream = kernel.rows == softmax_kernels().softmax[static_cast<std::size_t>(DType::f32)].rows
                          ? softmax_kernels().rows_streamed
                          : nullptr;
  const Dim width = max(t.dim(-1), 1);
  return s.run(floordiv(t.count(), width), ceildiv(4096, width),
               [=, run = kernel.rows](const Memory& m, const DimValues& d, Range r) {
                 const Index c = d[cols], first = r.begin * c * bytes;
                 const std::byte* from = m[x].data() + first;
                 std::byte* to = m[y].data() + first;
                 const bool large = stream && d[all] * bytes >= streamed_bytes && from != to;
                 (large ? stream : run)(from, to, r.end - r.begin, c);
               });
}

Step over_columns(StepBuilder s, const StepArgs& n, std::size_t axis, const SoftmaxOver& kernel) {
  const TensorType& t = n.in[0].type;
  const auto x = s.read<std::byte>(n.in[0]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.may_overwrite(y, x);
  const Dim inner = elements(t, axis + 1, t.dims.size()), blocks = ceildiv(inner, block);
  const auto rows = s.dim(t.dims[axis]), cols = s.dim(inner), per_matrix = s.dim(blocks);
  const Index bytes = bits(t.dtype) / 8;
  return s.run(elements(t, 0, axis) * blocks * min(t.dims[axis], 1), ceildiv(4096, max(t.dims[axis], 1) * block),
               [=, run = kernel.columns](const Memory& m, const DimValues& d, Range r) {
                 for (Index i = r.begin; i < r.end; ++i) {
                   const Index matrix = i / d[per_matrix], begin = i % d[per_matrix] * block;
                   const Index first = matrix * d[rows] * d[cols] * bytes;
                   run(m[x].data() + first, m[y].data() + first, d[rows], d[cols], begin,
                       std::min(begin + block, d[cols]));
                 }
               });
}

std::optional<Step> softmax_step(const StepArgs& n) {
  const TensorType& t = n.in[0].type;
  if (!n.in[0].dense() || !n.out[0].dense()) return n.decline("softmax reads and writes dense tensors");
  const bool logarithm = n.node.op == &log_softmax_op;
  const SoftmaxOver* kernels = logarithm ? softmax_kernels().log_softmax : softmax_kernels().softmax;
  const SoftmaxOver& kernel = kernels[static_cast<std::size_t>(t.dtype)];
  const auto axis = static_cast<std::size_t>(t.axis(n.node.attrs.as<SoftmaxAttrs>().axis));
  const bool last = axis + 1 == t.dims.size();
  StepBuilder s((logarithm ? "log_softmax_" : "softmax_") + std::string(last ? "rows" : "columns"));
  s.flops(t.count() * 20);
  return last ? over_rows(std::move(s), n, kernel) : over_columns(std::move(s), n, axis, kernel);
}

static_assert(static_cast<int>(DType::f64) == 0 && static_cast<int>(DType::f32) == 1 &&
              static_cast<int>(DType::f16) == 2 && static_cast<int>(DType::bf16) == 3);

}  // namespace

std::span<const MakerRow> softmax_cpu() {
  static const MakerRow rows[] = {{&softmax_op, softmax_step}, {&log_softmax_op, softmax_step}};
  return rows;
}

}  // namespace rlx
