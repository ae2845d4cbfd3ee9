// Ops, types and graphs that the tests of core and ir share: two results, every kind of attribute, no gradient, an
// encoding of 18-byte blocks.
#pragma once

#include <string>

#include "ir/builder.h"
#include "ir/op_table.h"
#include "ir/print.h"

namespace rlx::test {

/// 32 elements in 18 bytes: a 16-bit float scale, then 16 bytes of two 4-bit codes each (low halves first).
extern const Encoding q4_0;
/// 16 elements in 8 bytes, one byte for every index along the block axis, four bytes once: a plane of each kind.
extern const Encoding grouped;

enum class Shade : std::uint8_t { light, dark, none_at_all };
std::span<const std::string_view> enum_names(Shade);

/// One field of every kind.
struct KnobAttrs {
  bool flag = false;
  Index count = 7;
  double ratio = 0.5;
  std::string word = "plain";
  DType dtype = DType::f32;
  Dim size = 1;
  Shade shade = Shade::light;
  std::optional<double> limit;
  std::optional<Dim> extent;
  std::optional<std::string> note;
  std::vector<bool> flags;
  std::vector<Index> counts;
  std::vector<double> ratios;
  std::vector<std::string> words;
  std::vector<DType> dtypes;
  std::vector<Dim> sizes;
  std::vector<Shade> shades;
  Tensor data{DType::u8, {0}};
  static void fields(auto& a, auto&& f) {
    f("flag", a.flag);
    f("count", a.count);
    f("ratio", a.ratio);
    f("word", a.word);
    f("dtype", a.dtype);
    f("size", a.size);
    f("shade", a.shade);
    f("limit", a.limit);
    f("extent", a.extent);
    f("note", a.note);
    f("flags", a.flags);
    f("counts", a.counts);
    f("ratios", a.ratios);
    f("words", a.words);
    f("dtypes", a.dtypes);
    f("sizes", a.sizes);
    f("shades", a.shades);
    f("data", a.data);
  }
};

struct AxisAttrs {
  Index axis = -1;
  static void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

/// (x) -> x; carries attributes.
extern const Op<KnobAttrs> knobs_op;
/// (x) -> its two halves along `axis`; no definition and no gradient.
extern const Op<AxisAttrs> halves_op;
/// (a, b) -> a + b, a * b: two results with a definition and no gradient rule.
extern const Op<NoAttrs> sum_and_product_op;
/// (a, b) -> a + b, a * b: two results with a gradient rule.
extern const Op<NoAttrs> sum_and_product_vjp_op;
/// (w: f32:q4_0) -> f32.
extern const Op<NoAttrs> decode_op;

/// The ops of rlx and the ones above.
const OpRegistry& registry();
const Encodings& encodings();
ParseOptions parse_options(const NamedTensors* data = nullptr);

/// `q4_0` blocks that decode to (code - 8) * scale.
Tensor encode_q4_0(std::vector<Index> shape, double scale, unsigned seed);

/// Message of the Error that `f` throws; "" when it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

/// Message of the InternalError that `f` throws; "" when it throws none.
template <class F>
std::string internal_error_of(F f) {
  try {
    f();
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

/// print, parse, print: both texts must be equal; gives the parsed graph.
Graph round_trip(const Graph& g);

}  // namespace rlx::test
