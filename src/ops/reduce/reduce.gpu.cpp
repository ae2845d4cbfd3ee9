// reduce on GPUs: one group an element of the result, a fixed tree of partial results.
#include "ops/reduce/reduce.h"

#include "core/error.h"
#include "device/gpu_launch.h"
#include "device/view.h"

namespace rlx {

namespace {

// The neutral element, and two values joined.
struct Joining {
  std::string start, joined;  // of A and B
};

Joining joining(ReduceKind kind, DType type) {
  const std::string t(name(type));
  const bool real = is_float(type);
  const std::string u = bits(type) == 64 ? "u64" : "u32";
  const auto wrapped = [&](std::string_view sign) {
    return real ? fmt::format("A {} B", sign) : fmt::format("({})(({})A {} ({})B)", t, u, sign, u);
  };
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::mean:
      return {gpu_number(type, 0.0), wrapped("+")};
    case ReduceKind::prod:
      return {gpu_number(type, 1.0), wrapped("*")};
    case ReduceKind::max:
    case ReduceKind::min:
      break;
  }
  const bool max = kind == ReduceKind::max;
  if (real) {
    return {fmt::format("{}bits_f32(0x7f800000u)", max ? "-" : ""),
            fmt::format("{}_{}(A, B)", max ? "maximum" : "minimum", t)};
  }
  const auto extreme = static_cast<std::int64_t>(encode_integer(type, max ? -1e300 : 1e300));
  const std::int64_t start = extend_integer(type, static_cast<std::uint64_t>(extreme));
  return {gpu_number(type, start), max ? "A < B ? B : A" : "B < A ? B : A"};
}

std::string joined(const Joining& j, const std::string& a, const std::string& b) {
  std::string out;
  for (std::size_t i = 0; i < j.joined.size(); ++i) {
    const char c = j.joined[i];
    out += c == 'A' ? a : c == 'B' ? b : std::string(1, c);
  }
  return out;
}

// Axes of the operand in two lists, those that stay and those that go.
struct Axes {
  std::vector<Dim> kept, gone, x_kept, x_gone, y_kept;
};

Axes split(const StepArgs& n, const ReduceAttrs& a) {
  const TensorType& t = n.in[0].type;
  std::vector<bool> reduced(t.dims.size(), false);
  for (const Index axis : a.axes) reduced[static_cast<std::size_t>(t.axis(axis))] = true;
  const std::vector<Dim> x = strides_of(n.in[0]), y = strides_of(n.out[0]);
  Axes s;
  std::size_t out = 0;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    (reduced[i] ? s.gone : s.kept).push_back(t.dims[i]);
    (reduced[i] ? s.x_gone : s.x_kept).push_back(x[i]);
    if (!reduced[i]) s.y_kept.push_back(y[out]);
    if (!reduced[i] || a.keep) ++out;
  }
  return s;
}

std::optional<Launch> reduce_launch(const StepArgs& n, const DeviceProperties& device) {
  const TensorType& t = n.in[0].type;
  if (const std::string why = gpu_refuses(t.dtype, device); !why.empty()) {
    if (n.why) *n.why = why;
    return std::nullopt;
  }
  const auto& a = n.node.attrs.as<ReduceAttrs>();
  const Axes axes = split(n, a);
  const DType value = gpu_value(t.dtype);
  const std::string type(name(value));
  const Joining j = joining(a.kind, value);

  LaunchBuilder b(fmt::format("reduce_{}", enum_names(a.kind)[static_cast<std::size_t>(a.kind)]));
  b.read("x", n.in[0]);
  b.write("y", n.out[0]);
  b.size("count", product(axes.gone));
  const Index group_size = 64;
  b.shared("part", type, group_size);
  b.flops(t.count());

  std::string body = loop_text(b, "r", "group_x", axes.kept, {{"x_row", axes.x_kept}, {"y_at", axes.y_kept}});
  body += fmt::format("  {} total = {};\n  for (i64 k = local_x; k < count; k += size_x) {{\n", type, j.start);
  body += loop_text(b, "e", "k", axes.gone, {{"x_at", axes.x_gone}});
  body += fmt::format("  const {} next = {};\n", type, gpu_load(t.dtype, "x[x_row + x_at]"));
  body += fmt::format("  total = {};\n  }}\n", joined(j, "total", "next"));
  body += fmt::format(R"(  part[local_x] = total;
  sync();
  for (i32 n = size_x / 2; n > 0; n /= 2) {{
    if (local_x < n) part[local_x] = {};
    sync();
  }}
)",
                      joined(j, "part[local_x]", "part[local_x + n]"));
  const std::string result = a.kind == ReduceKind::mean ? fmt::format("part[0] / ({})count", type) : "part[0]";
  body += fmt::format("  if (local_x == 0) y[y_at] = {};\n", gpu_store(t.dtype, result));
  return b.launch(product(axes.kept), group_size, std::move(body));
}

}  // namespace

std::span<const GpuMakerRow> reduce_gpu() {
  static constexpr GpuMakerRow rows[] = {{&reduce_op, reduce_launch}};
  return rows;
}

}  // namespace rlx
