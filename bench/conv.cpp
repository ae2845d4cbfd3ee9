// Measures convolutions with bias and relu as a compiled program runs them, with weights that are constants; see
// serve_conv.h for what it reads. Usage: rlx_bench_conv THREADS [LEVEL]
#include "ops/conv/conv.h"

#include <memory>
#include <optional>
#include <random>

#include "backend/cpu/cpu_device.h"
#include "core/levels.h"
#include "ir/builder.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "serve_conv.h"

namespace {

using namespace rlx;

Tensor numbers(std::vector<Index> shape, unsigned seed) {
  Tensor t(DType::f32, std::move(shape));
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> pick(-1, 1);
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (double& x : v) x = pick(random);
  store(t, v);
  return t;
}

class Convolution {
 public:
  Convolution(const Session& session, const bench::ConvRequest& r)
      : x_(numbers({r.n, r.c, r.h, r.w}, 1)), y_(DType::f32, {r.n, r.co, r.out(r.h), r.out(r.w)}) {
    Builder b;
    const Value x = b.input("x", x_.type());
    const Value w = constant(b, numbers({r.co, r.c / r.groups, r.kernel, r.kernel}, 2));
    const Value bias = constant(b, numbers({r.co, 1, 1}, 3));
    const Value y = conv(x, w,
                         ConvOptions{.strides = {r.stride, r.stride},
                                     .before = {r.padding, r.padding},
                                     .after = {r.padding, r.padding},
                                     .groups = r.groups});
    program_.emplace(session.compile(b.finish({relu(y + bias)})));
  }
  void run() {
    const std::span<std::byte> to = y_.mutable_bytes();
    program_->run({program_->input("x").bind(x_)}, {program_->output(0).bind({y_.dtype(), y_.shape(), to.data()})});
  }

 private:
  Tensor x_, y_;
  std::optional<Executable> program_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "usage: conv THREADS [LEVEL]\n");
    return 2;
  }
  try {
    if (count > 2) force_level(parse_level(arguments[2]));
    const Session session = cpu_session({.threads = std::stoi(arguments[1])});
    return bench::serve_conv([&](const bench::ConvRequest& r) {
      const auto made = std::make_shared<Convolution>(session, r);
      return [made] { made->run(); };
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "conv: %s\n", e.what());
    return 1;
  }
}
