// The products of bench/product.cpp in oneDNN, with weights in the layout that it asks for; see serve.h for what it
// reads. Threads are those of OpenMP. bench/peers builds it.
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <unordered_map>

#include "../serve.h"

namespace {

using dnnl::memory;
using Type = memory::data_type;
using Tag = memory::format_tag;

void fill(const dnnl::engine& engine, dnnl::stream& stream, memory& to, unsigned seed, double low, double high) {
  const auto dims = to.get_desc().dims();
  const bool whole = low < -1 || high > 1;
  const memory::desc plain(dims, Type::f32, Tag::ab);
  memory from(plain, engine);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> pick(low, high);
  auto* values = static_cast<float*>(from.get_data_handle());
  for (long i = 0; i < dims[0] * dims[1]; ++i) {
    const double x = pick(random);
    values[i] = static_cast<float>(whole ? static_cast<double>(static_cast<long>(x)) : x);
  }
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

class Product {
 public:
  Product(const dnnl::engine& engine, const bench::Request& r) : stream_(engine) {
    const bool whole = r.type == "int8";
    if (!whole && r.type != "f32" && r.type != "bf16") throw std::runtime_error("unknown type " + r.type);
    const Type left = whole ? Type::u8 : r.type == "bf16" ? Type::bf16 : Type::f32;
    const Type right = whole ? Type::s8 : left, result = whole ? Type::s32 : left;
    const memory::desc a({r.m, r.k}, left, Tag::ab), b({r.k, r.n}, right, Tag::any), c({r.m, r.n}, result, Tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine);
    product_ = dnnl::matmul(description);
    memory x(description.src_desc(), engine), y(description.dst_desc(), engine);
    fill(engine, stream_, x, 1, whole ? 0 : -1, whole ? 127 : 1);
    for (int i = 0; i < r.rotate; ++i) {
      memory w(description.weights_desc(), engine);
      fill(engine, stream_, w, 2 + static_cast<unsigned>(i), whole ? -127 : -1, whole ? 127 : 1);
      arguments_.push_back({{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
    }
  }
  void run() {
    for (const auto& a : arguments_) product_.execute(stream_, a);
    stream_.wait();
  }

 private:
  dnnl::stream stream_;
  dnnl::matmul product_;
  std::vector<std::unordered_map<int, memory>> arguments_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "--version") {
    const dnnl_version_t* v = dnnl_version();
    std::printf("%d.%d.%d\n", v->major, v->minor, v->patch);
    return 0;
  }
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return bench::serve([&](const bench::Request& r) {
      const auto product = std::make_shared<Product>(engine, r);
      return [product] { product->run(); };
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "onednn: %s\n", e.what());
    return 1;
  }
}
