// Rules of the probe ops.
#include "probe_ops.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "core/walk.h"
#include "ops/scalar/scalar.h"

namespace rlx::test {

namespace {

constexpr Plane q4_0_planes[] = {{"blocks", 18, Plane::Per::block}};
constexpr Plane grouped_planes[] = {
    {"codes", 8, Plane::Per::block}, {"groups", 1, Plane::Per::axis}, {"scale", 4, Plane::Per::tensor}};

std::vector<TensorType> two_of(Types in) {
  require(in.size() == 2, "{} operands are given, expected 2", in.size());
  require(in[0] == in[1], "operands are {} and {}, expected equal types", in[0].text(), in[1].text());
  return {in[0], in[0]};
}

void sum_and_product(const RefArgs& r) {
  const std::vector<double> a = load<double>(r.in[0]), b = load<double>(r.in[1]);
  std::vector<double> s(a.size()), p(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    s[i] = a[i] + b[i];
    p[i] = a[i] * b[i];
  }
  store(r.out[0], s);
  store(r.out[1], p);
}

Grads sum_and_product_vjp(const NoAttrs&, const VjpArgs& v) {
  std::optional<Value> a, b;
  if (v.cotangents[0]) a = b = *v.cotangents[0];
  if (v.cotangents[1]) {
    const Value da = *v.cotangents[1] * v.in[1], db = *v.cotangents[1] * v.in[0];
    a = a ? *a + da : da;
    b = b ? *b + db : db;
  }
  return {a, b};
}

void halves_reference(const AxisAttrs& attrs, const RefArgs& r) {
  const Tensor& x = r.in[0];
  const AxisSplit s = split_at(x.shape(), x.type().axis(attrs.axis));
  const Index half = s.extent / 2;
  for (Index i = 0; i < x.count(); ++i) {
    const Index inner = i % s.inner, at = i / s.inner % s.extent, outer = i / s.inner / s.extent;
    r.out[static_cast<std::size_t>(at / half)].set_code((outer * half + at % half) * s.inner + inner, x.code(i));
  }
}

}  // namespace

const Encoding q4_0{"q4_0", 32, q4_0_planes};
const Encoding grouped{"grouped", 16, grouped_planes};

std::span<const std::string_view> enum_names(Shade) {
  static constexpr std::string_view names[] = {"light", "dark", "none_at_all"};
  return names;
}

constinit const Op<KnobAttrs> knobs_op{{
    .name = "knobs",
    .doc = "The operand.",
    .infer =
        [](const KnobAttrs&, Types in) {
          require(in.size() == 1, "{} operands are given, expected 1", in.size());
          return in[0];
        },
    .definition = [](const KnobAttrs&, const DefineArgs& d) { return d[0]; },
}};

constinit const Op<AxisAttrs> halves_op{{
    .name = "halves",
    .doc = "Both halves along an axis.",
    .infer = [](const AxisAttrs& a, InferContext& c) -> std::vector<TensorType> {
      require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
      const Dim half = floordiv(c.in[0].dim(a.axis), 2);
      c.equal(half * 2, c.in[0].dim(a.axis), "an even size to halve");
      const TensorType t = c.in[0].with(a.axis, half);
      return {t, t};
    },
    .reference = halves_reference,
}};

constinit const Op<NoAttrs> sum_and_product_op{{
    .name = "sum_and_product",
    .doc = "a + b and a * b.",
    .infer = [](const NoAttrs&, InferContext& c) -> std::vector<TensorType> { return two_of(c.in); },
    .definition = [](const NoAttrs&, const DefineArgs& d) -> Values { return {d[0] + d[1], d[0] * d[1]}; },
    .reference = [](const NoAttrs&, const RefArgs& r) { sum_and_product(r); },
}};

constinit const Op<NoAttrs> sum_and_product_vjp_op{{
    .name = "sum_and_product_vjp",
    .doc = "a + b and a * b.",
    .infer = [](const NoAttrs&, InferContext& c) -> std::vector<TensorType> { return two_of(c.in); },
    .vjp = sum_and_product_vjp,
    .reference = [](const NoAttrs&, const RefArgs& r) { sum_and_product(r); },
}};

constinit const Op<NoAttrs> decode_op{{
    .name = "decode_q4_0",
    .doc = "The elements of a q4_0 tensor.",
    .infer =
        [](const NoAttrs&, Types in) {
          require(in.size() == 1 && in[0].encoding == &q4_0, "expected one operand of encoding q4_0");
          return in[0].with(in[0].dtype);
        },
    .reference =
        [](const NoAttrs&, const RefArgs& r) {
          const auto bytes = r.in[0].bytes();
          std::vector<double> v;
          for (std::size_t at = 0; at < bytes.size(); at += 18) {
            const auto low = std::to_integer<unsigned>(bytes[at]), high = std::to_integer<unsigned>(bytes[at + 1]);
            const double scale = decode_float(DType::f16, low | high << 8);
            for (std::size_t i = 0; i < 32; ++i) {
              const unsigned code = std::to_integer<unsigned>(bytes[at + 2 + i % 16]) >> (i / 16 * 4) & 15;
              v.push_back((static_cast<double>(code) - 8) * scale);
            }
          }
          store(r.out[0], v);
        },
}};

const OpRegistry& registry() {
  static const OpRegistry all = [] {
    OpRegistry r;
    r.add(knobs_op);
    r.add(halves_op);
    r.add(sum_and_product_op);
    r.add(sum_and_product_vjp_op);
    r.add(decode_op);
    return r;
  }();
  return all;
}

const Encodings& encodings() {
  static const Encodings all{{"q4_0", &q4_0}, {"grouped", &grouped}};
  return all;
}

ParseOptions parse_options(const NamedTensors* data) { return {&registry(), &encodings(), data}; }

Tensor encode_q4_0(std::vector<Index> shape, double scale, unsigned seed) {
  const TensorType type(DType::f32, std::vector<Dim>(shape.begin(), shape.end()), q4_0, -1);
  const Index size = type.plane_bytes(0).constant();
  Tensor bytes(DType::u8, {size});
  const std::uint64_t code = encode_float(DType::f16, scale);
  std::mt19937 random(seed);
  for (Index i = 0; i < size; ++i) {
    bytes.set_code(i, i % 18 == 0 ? code & 255 : i % 18 == 1 ? code >> 8 : random() & 255);
  }
  const auto owner = std::make_shared<Tensor>(std::move(bytes));
  return {type, {Bytes{owner, owner->bytes()}}};
}

Graph round_trip(const Graph& g) {
  ConstantSink sink;
  const std::string text = print(g, &sink);
  const NamedTensors data = sink.take();
  Graph parsed = parse(text, parse_options(&data));
  ConstantSink again;
  EXPECT_EQ(text, print(parsed, &again));
  return parsed;
}

}  // namespace rlx::test
