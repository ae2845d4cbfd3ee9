// The accuracy report of rlx check: outputs in f32 beside those in a shorter type.
#include "cli/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/cli.h"
#include "cli/model.h"
#include "core/error.h"

namespace rlx::cli {

namespace {

struct Errors {
  double most = 0, mean = 0, size = 0, cosine = 1;  // size: largest wanted magnitude
  double relative() const { return size > 0 ? most / size : most; }
};

Errors errors_of(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = load<double>(got), b = load<double>(want);
  Errors e;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const double d = a[i] == b[i] ? 0 : std::fabs(a[i] - b[i]);
    e.most = d > e.most || std::isnan(d) ? d : e.most;
    e.mean += d / static_cast<double>(a.size());
    e.size = std::max(e.size, std::fabs(b[i]));
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  e.cosine = aa == 0 && bb == 0 ? 1 : ab / std::sqrt(aa * bb);
  return e;
}

bool has_numbers(const Tensor& t) { return is_float(t.dtype()); }

// The largest relative error of an output.
double worst_of(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (has_numbers(want[i])) worst = std::max(worst, errors_of(got[i], want[i]).relative());
  }
  return worst;
}

// Of every product that becomes i8: the error when no other does.
std::string layer_table(const Session& session, const Graph& g, const NamedTensors& in, const DimEnv& dims,
                        const std::vector<std::string>& names, const std::vector<Tensor>& want) {
  constexpr std::size_t shown = 8;
  std::vector<std::pair<double, std::string>> losses;
  ProgressBar bar;
  for (std::size_t i = 0; i < names.size(); ++i) {
    bar.show(names[i], static_cast<double>(i) / static_cast<double>(names.size()));
    const auto only = [&](std::string_view name) { return name == names[i]; };
    const Executable exe = session.compile(g, {.matmul_dtype = DType::i8, .quantise = only});
    losses.emplace_back(worst_of(exe.run(in, {.dims = &dims}), want), names[i]);
  }
  bar.clear();
  std::ranges::sort(losses, std::greater<>());
  std::string out = fmt::format("\n{:<56} {:>10}\n", "product alone in i8", "largest");
  for (std::size_t i = 0; i < losses.size() && i < shown; ++i)
    out += fmt::format("{:<56} {:>10.2e}\n", losses[i].second, losses[i].first);
  if (losses.size() > shown) out += fmt::format("… and {} that change less\n", losses.size() - shown);
  return out;
}

}  // namespace

std::string accuracy_table(const Session& session, const Graph& g, DType type, const NamedTensors& in,
                           const DimEnv& dims, double& worst) {
  std::vector<std::string> names;
  CompileOptions options{.matmul_dtype = type};
  options.quantise = [&](std::string_view name) {
    names.emplace_back(name);
    return true;
  };
  const std::vector<Tensor> want = session.compile(g).run(in, {.dims = &dims});
  const Executable exe = session.compile(g, options);
  const std::vector<Tensor> got = exe.run(in, {.dims = &dims});
  std::string out = fmt::format("{:<28} {:>12} {:>12} {:>12} {:>12}\n", "products in " + std::string(name(type)),
                                "largest", "relative", "mean", "cosine");
  worst = 1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!has_numbers(want[i])) continue;
    const Errors e = errors_of(got[i], want[i]);
    worst = e.cosine < worst || std::isnan(e.cosine) ? e.cosine : worst;
    out += fmt::format("{:<28} {:>12.3e} {:>12.2e} {:>12.2e} {:>12.7f}\n", output_name(exe.interface(), i), e.most,
                       e.relative(), e.mean, e.cosine);
  }
  if (type == DType::i8) out += layer_table(session, g, in, dims, names, want);
  return out;
}

}  // namespace rlx::cli
