// nms: greedy, from the best score down.
#include "ops/nms/nms.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.h"
#include "ir/measure.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

std::vector<TensorType> nms_infer(const NmsAttrs&, InferContext& c) {
  require(c.in.size() == 5, "{} operands are given, expected 5", c.in.size());
  const TensorType &boxes = c.in[0], &scores = c.in[1];
  require(boxes.dtype == DType::f32 && boxes.rank() == 3 && !boxes.encoding, "boxes are {}, expected f32 of rank 3",
          boxes.text());
  require(scores.dtype == DType::f32 && scores.rank() == 3 && !scores.encoding, "scores are {}, expected f32 of rank 3",
          scores.text());
  require(c.in[2] == TensorType(DType::i64, {}), "the number of boxes is {}, expected i64[]", c.in[2].text());
  for (std::size_t i = 3; i < 5; ++i) {
    require(c.in[i] == TensorType(DType::f32, {}), "a threshold is {}, expected f32[]", c.in[i].text());
  }
  c.equal(boxes.dim(0), scores.dim(0), "number of batch items");
  c.equal(boxes.dim(1), scores.dim(2), "number of boxes");
  c.equal(boxes.dim(2), 4, "coordinates of a box");
  return {{DType::i64, {scores.count(), 3}}, {DType::i64, {}}};
}

// Lower and upper ends along two axes.
struct Box {
  std::array<double, 2> lo, hi;
  double area() const { return (hi[0] - lo[0]) * (hi[1] - lo[1]); }
};

Box box_of(const double* b, bool centered) {
  if (centered) return {{b[0] - b[2] / 2, b[1] - b[3] / 2}, {b[0] + b[2] / 2, b[1] + b[3] / 2}};
  return {{std::min(b[0], b[2]), std::min(b[1], b[3])}, {std::max(b[0], b[2]), std::max(b[1], b[3])}};
}

double overlap(const Box& a, const Box& b) {
  double both = 1;
  for (std::size_t i = 0; i < 2; ++i) both *= std::max(0.0, std::min(a.hi[i], b.hi[i]) - std::max(a.lo[i], b.lo[i]));
  const double all = a.area() + b.area() - both;
  return both > 0 && a.area() > 0 && b.area() > 0 && all > 0 ? both / all : 0;
}

void nms_reference(const NmsAttrs& a, const RefArgs& r) {
  const auto& shape = r.in[1].shape();
  const std::vector<double> boxes = load<double>(r.in[0]), scores = load<double>(r.in[1]);
  const std::int64_t most = load<std::int64_t>(r.in[2])[0];
  const double limit = load<double>(r.in[3])[0], least = load<double>(r.in[4])[0];
  std::vector<Index> rows;
  for (Index item = 0; item < shape[0]; ++item) {
    for (Index kind = 0; kind < shape[1]; ++kind) {
      const double* s = scores.data() + (item * shape[1] + kind) * shape[2];
      std::vector<Index> kept;
      std::vector<bool> done(static_cast<std::size_t>(shape[2]), false);
      for (;;) {
        Index best = -1;
        for (Index i = 0; i < shape[2]; ++i) {
          if (!done[static_cast<std::size_t>(i)] && s[i] > least && (best < 0 || s[i] > s[best])) best = i;
        }
        if (best < 0 || static_cast<Index>(kept.size()) >= most) break;
        done[static_cast<std::size_t>(best)] = true;
        const auto at = [&](Index i) { return box_of(boxes.data() + (item * shape[2] + i) * 4, a.centered); };
        if (std::ranges::any_of(kept, [&](Index k) { return overlap(at(k), at(best)) > limit; })) continue;
        kept.push_back(best);
        rows.insert(rows.end(), {item, kind, best});
      }
    }
  }
  const auto found = static_cast<Index>(rows.size() / 3);
  rows.resize(static_cast<std::size_t>(r.out[0].count()), 0);
  store(r.out[0], rows);
  store(r.out[1], std::vector<Index>{found});
}

std::vector<Case<NmsAttrs>> nms_cases() {
  const Dim b = Dim::symbol("B", 1, 4), n = Dim::symbol("N", 0, 16);
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<Case<NmsAttrs>> cases;
  const auto scalar = [](DType d, double v) { return CaseInput(d, {}).filled({v}); };
  const auto add = [&](bool centered, CaseInput boxes, CaseInput scores, double most, double limit, double least,
                       std::vector<double> rows, double found) {
    cases.push_back({{centered},
                     {.inputs = {std::move(boxes), std::move(scores), scalar(DType::i64, most),
                                 scalar(DType::f32, limit), scalar(DType::f32, least)},
                      .expected = {std::move(rows), {found}},
                      .tolerance = exact,
                      .expected_tolerance = exact,
                      .gradient = false,
                      .other_dtypes = false}});
  };
  // Three squares of side 1: the second covers half of the first, the third stands apart.
  const CaseInput squares = CaseInput(DType::f32, {1, 3, 4}).filled({0, 0, 1, 1, 1, 1.5, 0, 0.5, 5, 5, 6, 6});
  const CaseInput centres = CaseInput(DType::f32, {1, 3, 4}).filled({0.5, 0.5, 1, 1, 1, 0.5, 1, 1, 5.5, 5.5, 1, 1});
  const CaseInput scores = CaseInput(DType::f32, {1, 1, 3}).filled({0.9, 0.95, 0.5});
  for (const bool centered : {false, true}) {
    const CaseInput& boxes = centered ? centres : squares;
    add(centered, boxes, scores, 3, 0.25, 0, {0, 0, 1, 0, 0, 2, 0, 0, 0}, 2);
    add(centered, boxes, scores, 3, 0.5, 0, {0, 0, 1, 0, 0, 0, 0, 0, 2}, 3);
    add(centered, boxes, scores, 3, 0.25, 0.6, {0, 0, 1, 0, 0, 0, 0, 0, 0}, 1);
    add(centered, boxes, scores, 1, 0.5, -inf, {0, 0, 1, 0, 0, 0, 0, 0, 0}, 1);
    add(centered, boxes, scores, 0, 0.5, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0}, 0);
  }
  add(false, squares, CaseInput(DType::f32, {1, 1, 3}).filled({0.5, 0.5, 0.5}), 3, 0.25, 0, {0, 0, 0, 0, 0, 2, 0, 0, 0},
      2);
  cases.push_back({{},
                   {.inputs = {CaseInput(DType::f32, {b, n, 4}).range(0, 1),
                               {DType::f32, {b, 2, n}},
                               scalar(DType::i64, 4),
                               scalar(DType::f32, 0.3),
                               scalar(DType::f32, -1)},
                    .tolerance = exact,
                    .dims = {{"B", 2}, {"N", 9}},
                    .gradient = false,
                    .other_dtypes = false}});
  return cases;
}

}  // namespace

constinit const Op<NmsAttrs> nms_op{{
    .name = "nms",
    .doc =
        "Non-maximum suppression of boxes f32[batch, n, 4] by scores f32[batch, classes, n]: in each class of each "
        "item, from the best score down (of equal ones the first), a box is taken unless its overlap with one that "
        "is taken, the intersection over the union, is above the fourth operand; at most as many as the third, and "
        "only scores above the fifth. Results are rows of item, class and box, in as many places as there are "
        "scores (the rest is 0), and their number. Boxes are y, x, y, x of opposite corners, or, `centered`, x and y "
        "of the centre, width and height; those without area overlap nothing. The builder function gives just the "
        "rows that count: their number is a size that a run finds. No gradient.",
    .infer = nms_infer,
    .reference = nms_reference,
    .cases = nms_cases,
    .failures =
        [] {
          const TensorType boxes{DType::f32, {1, 3, 4}}, scores{DType::f32, {1, 2, 3}}, n{DType::i64, {}},
              t{DType::f32, {}};
          return std::vector<Failure<NmsAttrs>>{
              {{}, {boxes, scores}, "2 operands are given, expected 5"},
              {{}, {boxes.with(DType::i32), scores, n, t, t}, "boxes are i32[1,3,4], expected f32 of rank 3"},
              {{}, {boxes, {DType::f32, {3}}, n, t, t}, "scores are f32[3], expected f32 of rank 3"},
              {{}, {boxes, scores, t, t, t}, "the number of boxes is f32[], expected i64[]"},
              {{}, {boxes, scores, n, t, n}, "a threshold is i64[], expected f32[]"},
              {{}, {boxes, {DType::f32, {2, 2, 3}}, n, t, t}, "number of batch items: 1 is not 2"},
              {{}, {boxes, {DType::f32, {1, 2, 4}}, n, t, t}, "number of boxes: 3 is not 4"},
              {{}, {{DType::f32, {1, 3, 5}}, scores, n, t, t}, "coordinates of a box: 5 is not 4"},
          };
        },
}};

Value nms(Value boxes, Value scores, Value most, Value overlap, Value score, bool centered) {
  Builder& b = *boxes.builder;
  const Value in[] = {boxes, scores, most, overlap, score};
  const Values v = b.emit(nms_op, Attrs(NmsAttrs{centered}), in);
  return slice(v[0], 0, 0, measure(v[1], scores.type().count()));
}

std::span<const OpDef* const> nms_ops() {
  static constexpr const OpDef* ops[] = {&nms_op};
  return ops;
}

}  // namespace rlx
