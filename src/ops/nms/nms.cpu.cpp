// Steps of nms on the CPU: classes one after the other, in f32.
#include "ops/nms/nms.h"

#include <algorithm>

#include "device/step.h"

namespace rlx {

namespace {

struct Box {
  float lo[2], hi[2], area;
};

Box box_of(const float* b, bool centered) {
  Box box{};
  for (int i = 0; i < 2; ++i) {
    const float half = b[i + 2] / 2;
    box.lo[i] = centered ? b[i] - half : std::min(b[i], b[i + 2]);
    box.hi[i] = centered ? b[i] + half : std::max(b[i], b[i + 2]);
  }
  box.area = (box.hi[0] - box.lo[0]) * (box.hi[1] - box.lo[1]);
  return box;
}

bool overlaps(const Box& a, const Box& b, float limit) {
  const float height = std::min(a.hi[0], b.hi[0]) - std::max(a.lo[0], b.lo[0]),
              width = std::min(a.hi[1], b.hi[1]) - std::max(a.lo[1], b.lo[1]);
  if (!(height > 0 && width > 0)) return 0 > limit;
  const float both = height * width, all = a.area + b.area - both;
  const bool areas = both > 0 && a.area > 0 && b.area > 0 && all > 0;
  return (areas ? both / all : 0) > limit;
}

struct Options {
  bool centered;
  std::int64_t most;
  float limit, least;
};

// The boxes of one class, best first; `order` and `kept` are work space.
void take_boxes(const float* boxes, const float* scores, Index count, const Options& o, std::vector<Index>& order,
                std::vector<Box>& kept, std::vector<Index>& taken) {
  order.clear();
  kept.clear();
  taken.clear();
  for (Index i = 0; i < count; ++i) {
    if (scores[i] > o.least) order.push_back(i);
  }
  std::ranges::sort(order,
                    [&](Index i, Index j) { return scores[i] > scores[j] || (scores[i] == scores[j] && i < j); });
  for (const Index i : order) {
    if (static_cast<std::int64_t>(kept.size()) >= o.most) return;
    const Box box = box_of(boxes + i * 4, o.centered);
    if (std::ranges::any_of(kept, [&](const Box& k) { return overlaps(k, box, o.limit); })) continue;
    kept.push_back(box);
    taken.push_back(i);
  }
}

std::optional<Step> nms_step(const StepArgs& n) {
  for (const Slot& in : n.in) {
    if (!in.dense()) return n.decline("nms reads densely");
  }
  const std::vector<Dim>& dims = n.in[1].type.dims;
  StepBuilder s("nms");
  const auto boxes = s.read<float>(n.in[0]), scores = s.read<float>(n.in[1]);
  const auto most = s.read<std::int64_t>(n.in[2]);
  const auto limit = s.read<float>(n.in[3]), least = s.read<float>(n.in[4]);
  const auto rows = s.write<std::int64_t>(n.out[0]), found = s.write<std::int64_t>(n.out[1]);
  const auto items = s.dim(dims[0]), kinds = s.dim(dims[1]), count = s.dim(dims[2]);
  const bool centered = n.node.attrs.as<NmsAttrs>().centered;
  return s.run(1, 1, [=](const Memory& m, const DimValues& d, Range) {
    const Options o{centered, m[most][0], m[limit][0], m[least][0]};
    const Index each = d[count];
    std::vector<Index> order, taken;
    std::vector<Box> kept;
    std::int64_t* to = m[rows].data();
    for (Index item = 0; item < d[items]; ++item) {
      for (Index kind = 0; kind < d[kinds]; ++kind) {
        take_boxes(m[boxes].data() + item * each * 4, m[scores].data() + (item * d[kinds] + kind) * each, each, o,
                   order, kept, taken);
        for (const Index i : taken) {
          *to++ = item;
          *to++ = kind;
          *to++ = i;
        }
      }
    }
    m[found][0] = (to - m[rows].data()) / 3;
    std::fill(to, m[rows].data() + m[rows].size(), 0);
  });
}

}  // namespace

std::span<const MakerRow> nms_cpu() {
  static const MakerRow rows[] = {{&nms_op, nms_step}};
  return rows;
}

}  // namespace rlx
