// encode and decode: primitives whose meaning is that of the format.
#include "ops/encode/encode.h"

#include "codecs/codec.h"
#include "core/error.h"

namespace rlx {

namespace {

TensorType encode_infer(const EncodeAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  require(x.dtype == DType::f32 && !x.encoding && x.rank() >= 1, "x is {}, expected f32 of rank 1 or more", x.text());
  const Codec* const codec = find_codec(a.to);
  require(codec != nullptr, "there is no format \"{}\"", a.to);
  require(codec->encode != nullptr, "format {} is only read", a.to);
  const Dim& last = x.dim(-1);
  c.equal(last, floordiv(last, codec->encoding->block) * codec->encoding->block,
          fmt::format("last size of a tensor in blocks of {}", codec->encoding->block));
  return {DType::f32, x.dims, *codec->encoding, -1};
}

TensorType decode_infer(const NoAttrs&, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  require(x.encoding && x.block_axis == x.rank() - 1,
          "x is {}, expected an encoded tensor with blocks along its last "
          "axis",
          x.text());
  return {DType::f32, x.dims};
}

void encode_reference(const EncodeAttrs& a, const RefArgs& r) {
  const Codec& codec = *find_codec(a.to);
  const Tensor& x = r.in[0];
  std::vector<Bytes> planes;
  std::vector<std::byte*> addresses;
  const TensorType type(DType::f32, x.type().dims, *codec.encoding, -1);
  for (std::size_t p = 0; p < type.plane_count(); ++p) {
    planes.push_back(Bytes::allocate(type.plane_bytes(p).constant()));
    addresses.push_back(const_cast<std::byte*>(planes.back().data.data()));  // nobody shares it yet
  }
  const auto* const from = reinterpret_cast<const float*>(x.bytes().data());
  const Index columns = x.shape().back();
  if (x.count() > 0) codec.encode(from, x.count() / columns, columns, nullptr, addresses);
  r.out[0] = Tensor(type, std::move(planes));
}

std::vector<Case<EncodeAttrs>> encode_cases() {
  const Dim s = Dim::symbol("S", 1, 16);
  std::vector<Case<EncodeAttrs>> cases;
  for (const std::vector<Dim>& dims : {std::vector<Dim>{32}, {3, 64}, {2, s, 96}, {s, 0}, {0, 32}}) {
    cases.push_back(
        {{"a8"},
         {.inputs = {CaseInput(DType::f32, dims)}, .tolerance = exact, .gradient = false, .other_dtypes = false}});
  }
  return cases;
}

std::vector<Case<NoAttrs>> decode_cases() {
  const Dim s = Dim::symbol("S", 1, 16);
  std::vector<Case<NoAttrs>> cases;
  for (const std::vector<Dim>& dims : {std::vector<Dim>{32}, {3, 64}, {2, s, 96}, {0, 32}}) {
    const TensorType type(DType::f32, dims, *find_codec("a8")->encoding, -1);
    cases.push_back({{}, {.inputs = {CaseInput(type)}, .tolerance = exact, .gradient = false, .other_dtypes = false}});
  }
  // Powers of two times 127 are exact.
  std::vector<double> values(32, 0.0);
  values[0] = 127;
  values[1] = -127;
  values[31] = 3;
  cases.push_back({{},
                   {.inputs = {CaseInput(TensorType(DType::f32, {32}, *find_codec("a8")->encoding, -1)).filled(values)},
                    .expected = {values},
                    .expected_tolerance = exact,
                    .gradient = false,
                    .other_dtypes = false}});
  return cases;
}

}  // namespace

constinit const Op<EncodeAttrs> encode_op{{
    .name = "encode",
    .doc = "An f32 tensor in the block format `to`, with blocks along its last axis, which is a multiple of the block. "
           "The format says what a block holds; `rlx codecs` lists them. No gradient.",
    .infer = encode_infer,
    .vjp = [](const EncodeAttrs&, const VjpArgs& v) -> Grads { return Grads(v.in.size()); },
    .reference = encode_reference,
    .cases = encode_cases,
    .failures =
        [] {
          return std::vector<Failure<EncodeAttrs>>{
              {{"a8"}, {{DType::f32, {2, 33}}}, "last size of a tensor in blocks of 32: 33 is not 32"},
              {{"a8"}, {{DType::f16, {2, 32}}}, "x is f16[2,32], expected f32 of rank 1 or more"},
              {{"a8"}, {{DType::f32, {}}}, "x is f32[], expected f32 of rank 1 or more"},
              {{"b9"}, {{DType::f32, {2, 32}}}, "there is no format \"b9\""},
          };
        },
}};

constinit const Op<NoAttrs> decode_op{{
    .name = "decode",
    .doc = "The f32 tensor that an encoded one stands for, as its format defines it. Blocks run along the last axis. "
           "No gradient: encoded tensors are not learned.",
    .infer = decode_infer,
    .vjp = [](const NoAttrs&, const VjpArgs& v) -> Grads { return Grads(v.in.size()); },
    .reference = [](const NoAttrs&, const RefArgs& r) { r.out[0] = decode(r.in[0]); },
    .cases = decode_cases,
    .failures =
        [] {
          return std::vector<Failure<NoAttrs>>{
              {{}, {{DType::f32, {2, 32}}}, "x is f32[2,32], expected an encoded tensor with blocks along its last"},
          };
        },
}};

Value encode(Value x, std::string_view to) { return x.builder->emit_one(encode_op, EncodeAttrs{std::string(to)}, {x}); }
Value decode(Value x) { return x.builder->emit_one(decode_op, NoAttrs{}, {x}); }

std::span<const OpDef* const> encode_ops() {
  static constexpr const OpDef* ops[] = {&encode_op, &decode_op};
  return ops;
}

}  // namespace rlx
