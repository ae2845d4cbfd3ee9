// Measures products as a compiled program runs them, with weights that are constants; see serve.h for what it reads.
// Usage: rlx_bench_product THREADS [LEVEL]
#include <map>
#include <random>

#include "backend/cpu/cpu_device.h"
#include "core/levels.h"
#include "ir/builder.h"
#include "ir/op_table.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "serve.h"

namespace {

using namespace rlx;

Tensor numbers(DType d, std::vector<Index> shape, unsigned seed) {
  Tensor t(d, std::move(shape));
  std::mt19937 random(seed);
  const bool whole = is_integer(d);
  std::uniform_real_distribution<double> pick(d == DType::u8 ? 0 : whole ? -127 : -1, whole ? 127 : 1);
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (double& x : v) x = pick(random);
  store(t, v);
  return t;
}

class Product {
 public:
  Product(const Session& session, const bench::Request& r) {
    const bool whole = r.type == "int8";
    require(whole || r.type == "f32" || r.type == "bf16", "unknown type {}, expected f32, bf16 or int8", r.type);
    const DType left = whole ? DType::u8 : r.type == "bf16" ? DType::bf16 : DType::f32;
    const DType right = whole ? DType::i8 : left;
    static const OpRegistry registry;
    const OpDef* op = whole ? registry.find("matmul_integer") : &matmul_op;
    require(op != nullptr, "there is no op for products of integers");
    const Tensor x = numbers(left, {r.m, r.k}, 1);
    for (int i = 0; i < r.rotate; ++i) {
      Builder b;
      const Value a = b.input("a", x.type()), w = constant(b, numbers(right, {r.k, r.n}, 2 + static_cast<unsigned>(i)));
      const Value operands[] = {a, w};
      programs_.push_back(session.compile(b.finish(b.emit(*op, op->default_attrs(), operands))));
    }
    x_ = x;
    y_ = Tensor(whole ? DType::i32 : left, {r.m, r.n});
  }
  void run() {
    for (const Executable& e : programs_) {
      const std::span<std::byte> to = y_.mutable_bytes();
      e.run({e.input("a").bind(x_)}, {e.output(0).bind({y_.dtype(), y_.shape(), to.data()})});
    }
  }

 private:
  std::vector<Executable> programs_;
  Tensor x_, y_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "usage: product THREADS [LEVEL]\n");
    return 2;
  }
  try {
    if (count > 2) force_level(parse_level(arguments[2]));
    const Session session = cpu_session({.threads = std::stoi(arguments[1])});
    std::map<std::string, std::shared_ptr<Product>> kept;
    return bench::serve([&](const bench::Request& r) {
      const std::string key = r.type + " " + std::to_string(r.m) + " " + std::to_string(r.k) + " " +
                              std::to_string(r.n) + " " + std::to_string(r.rotate);
      if (!kept.contains(key)) {
        kept.clear();
        kept.emplace(key, std::make_shared<Product>(session, r));
      }
      return [p = kept.at(key)] { p->run(); };
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "product: %s\n", e.what());
    return 1;
  }
}
