// softmax and log_softmax on GPUs: one group a row, fixed trees for maximum and sum.
#include "ops/softmax/softmax.h"

#include "device/gpu_launch.h"
#include "device/view.h"

namespace rlx {

// The total of `part` over the items of the group, in every item: a tree that depends on nothing but the group's size.
static std::string tree(const std::string& result, const std::string& start, const std::string& joined) {
  return fmt::format(R"(  part[local_x] = {1};
  sync();
  for (i32 n = size_x / 2; n > 0; n /= 2) {{
    if (local_x < n) part[local_x] = {2};
    sync();
  }}
  const REAL {0} = part[0];
  sync();
)",
                     result, start, joined);
}

static std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

static std::optional<Launch> softmax_launch(const StepArgs& n, const DeviceProperties& device) {
  const TensorType& t = n.in[0].type;
  if (const std::string why = gpu_refuses(t.dtype, device); !why.empty()) {
    if (n.why) *n.why = why;
    return std::nullopt;
  }
  const auto axis = static_cast<std::size_t>(t.axis(n.node.attrs.as<SoftmaxAttrs>().axis));
  const bool logarithm = n.node.op == &log_softmax_op;
  std::vector<Dim> rows = t.dims, x = strides_of(n.in[0]), y = strides_of(n.out[0]);
  const Dim cols = rows[axis], x_step = x[axis], y_step = y[axis];
  for (auto* list : {&rows, &x, &y}) list->erase(list->begin() + static_cast<Index>(axis));

  LaunchBuilder b(logarithm ? "log_softmax_rows" : "softmax_rows");
  const GpuRead read = b.read("x", n.in[0]);
  const GpuWrite write = b.write("y", n.out[0]);
  if (n.in[0].dense() && n.out[0].dense()) b.may_overwrite(write, read);
  b.size("cols", cols);
  b.size("x_step", x_step);
  b.size("y_step", y_step);
  const Index group_size = 64;
  b.shared("part", name(gpu_value(t.dtype)), group_size);
  b.flops(t.count() * 20);

  std::string body = loop_text(b, "r", "group_x", rows, {{"x_row", x}, {"y_row", y}});
  const std::string each = "  for (i64 c = local_x; c < cols; c += size_x) ";
  body += "  REAL most = -bits_f32(0x7f800000u);\n";
  body += each + "most = maximum_REAL(most, LOAD);\n";
  body += tree("top", "most", "maximum_REAL(part[local_x], part[local_x + n])");
  body += "  REAL sum = 0;\n" + each + "sum += exp(LOAD - top);\n";
  body += tree("total", "sum", "part[local_x] + part[local_x + n]");
  if (logarithm) body += "  const REAL shift = log(total);\n";
  const std::string value = logarithm ? "LOAD - top - shift" : "exp(LOAD - top) / total";
  body += each + "y[y_row + c * y_step] = " + gpu_store(t.dtype, value) + ";\n";
  body = replaced(std::move(body), "LOAD", gpu_load(t.dtype, "x[x_row + c * x_step]"));
  return b.launch(product(rows), group_size, replaced(std::move(body), "REAL", name(gpu_value(t.dtype))));
}

std::span<const GpuMakerRow> softmax_gpu() {
  static constexpr GpuMakerRow rows[] = {{&softmax_op, softmax_launch}, {&log_softmax_op, softmax_launch}};
  return rows;
}

}  // namespace rlx
