// The layered drawing of Sugiyama, Tagawa and Toda (1981): layers, order within them, places.
#include "cli/layout.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"

namespace rlx::cli {

namespace {

constexpr double gap_x = 24, gap_y = 44, margin = 24;
constexpr std::size_t longest_bent = 64;  // layers that an arrow may pass and still be led around boxes
constexpr int sweeps = 12;

// A box, or the place where a long arrow passes a layer.
struct Spot {
  double width = 0, height = 0, x = 0;
  std::size_t layer = 0;
  std::vector<std::size_t> up, down;  // neighbours in the layers above and below
};

class Layers {
 public:
  Layers(std::span<const Box> boxes, std::span<const Arrow> arrows) : arrows_(arrows), boxes_(boxes.size()) {
    for (const Box& b : boxes) spots_.push_back({.width = b.width, .height = b.height, .up = {}, .down = {}});
    assign_layers();
    add_bends();
    for (std::size_t i = 0; i < spots_.size(); ++i) {
      if (spots_[i].layer >= order_.size()) order_.resize(spots_[i].layer + 1);
      order_[spots_[i].layer].push_back(i);
    }
  }

  Drawing draw() {
    for (int i = 0; i < sweeps; ++i) sort_layers(i % 2 == 0);
    for (auto& layer : order_) pack(layer);
    for (int i = 0; i < sweeps; ++i) move_layers(i % 2 == 0);
    return finish();
  }

 private:
  void assign_layers() {
    std::vector<std::size_t> first(boxes_, 0), begins(boxes_, 0);
    for (const Arrow& a : arrows_) {
      ensure(a.from < a.to && a.to < boxes_, "an arrow goes backwards");
      begins[a.to] += 1;
    }
    std::vector<Arrow> sorted(arrows_.begin(), arrows_.end());
    std::ranges::sort(sorted, {}, &Arrow::from);
    for (const Arrow& a : sorted) first[a.to] = std::max(first[a.to], first[a.from] + 1);
    // What has no arrow to it lies right above its first reader.
    std::vector<std::size_t> nearest(boxes_, SIZE_MAX);
    for (const Arrow& a : arrows_) nearest[a.from] = std::min(nearest[a.from], first[a.to]);
    for (std::size_t i = 0; i < boxes_; ++i) {
      const bool source = begins[i] == 0 && nearest[i] != SIZE_MAX;
      spots_[i].layer = source ? nearest[i] - 1 : first[i];
    }
  }

  void join(std::size_t above, std::size_t below) {
    spots_[above].down.push_back(below);
    spots_[below].up.push_back(above);
  }

  void add_bends() {
    bends_.resize(arrows_.size());
    for (std::size_t i = 0; i < arrows_.size(); ++i) {
      const Arrow& a = arrows_[i];
      std::size_t last = a.from;
      const std::size_t begin = spots_[a.from].layer, end = spots_[a.to].layer;
      if (end - begin > longest_bent) continue;
      for (std::size_t layer = begin + 1; layer < end; ++layer) {
        spots_.push_back({.width = 6, .height = 0, .x = 0, .layer = layer, .up = {}, .down = {}});
        bends_[i].push_back(spots_.size() - 1);
        join(last, spots_.size() - 1);
        last = spots_.size() - 1;
      }
      join(last, a.to);
    }
  }

  // Every spot to the middle of its neighbours of the layer that was sorted before.
  void sort_layers(bool downwards) {
    std::vector<double> place(spots_.size(), 0);
    const auto number = [&](const std::vector<std::size_t>& layer) {
      for (std::size_t i = 0; i < layer.size(); ++i) place[layer[i]] = static_cast<double>(i);
    };
    for (const auto& layer : order_) number(layer);
    for (std::size_t k = 1; k < order_.size(); ++k) {
      auto& layer = order_[downwards ? k : order_.size() - 1 - k];
      std::vector<std::tuple<double, double, std::size_t>> keyed;  // wish, place, spot
      for (const std::size_t s : layer) {
        const auto& near = downwards ? spots_[s].up : spots_[s].down;
        double sum = 0;
        for (const std::size_t n : near) sum += place[n];
        keyed.emplace_back(near.empty() ? place[s] : sum / static_cast<double>(near.size()), place[s], s);
      }
      std::ranges::sort(keyed);
      for (std::size_t i = 0; i < layer.size(); ++i) layer[i] = std::get<2>(keyed[i]);
      number(layer);
    }
  }

  double apart(std::size_t a, std::size_t b) const { return (spots_[a].width + spots_[b].width) / 2 + gap_x; }

  void pack(const std::vector<std::size_t>& layer) {
    double x = 0;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) x += apart(layer[i - 1], layer[i]);
      spots_[layer[i]].x = x;
    }
    for (const std::size_t s : layer) spots_[s].x -= x / 2;
  }

  // The places nearest to those wished for, in order and apart: blocks of spots that touch move as one.
  void settle(const std::vector<std::size_t>& layer, const std::vector<double>& wish) {
    struct Block {
      double sum = 0;
      std::size_t count = 0;
      double mean() const { return sum / static_cast<double>(count); }
    };
    std::vector<Block> blocks;
    std::vector<double> shift(layer.size(), 0);
    for (std::size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) shift[i] = shift[i - 1] + apart(layer[i - 1], layer[i]);
      blocks.push_back({wish[i] - shift[i], 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
        const Block last = blocks.back();
        blocks.pop_back();
        blocks.back().sum += last.sum;
        blocks.back().count += last.count;
      }
    }
    std::size_t i = 0;
    for (const Block& b : blocks) {
      for (std::size_t k = 0; k < b.count; ++k, ++i) spots_[layer[i]].x = b.mean() + shift[i];
    }
  }

  void move_layers(bool downwards) {
    for (std::size_t k = 1; k < order_.size(); ++k) {
      const auto& layer = order_[downwards ? k : order_.size() - 1 - k];
      std::vector<double> wish;
      for (const std::size_t s : layer) {
        const auto& near = downwards ? spots_[s].up : spots_[s].down;
        double sum = 0;
        for (const std::size_t n : near) sum += spots_[n].x;
        wish.push_back(near.empty() ? spots_[s].x : sum / static_cast<double>(near.size()));
      }
      settle(layer, wish);
    }
  }

  Drawing finish() {
    double least = 0, most = 0;
    for (const Spot& s : spots_) {
      least = std::min(least, s.x - s.width / 2);
      most = std::max(most, s.x + s.width / 2);
    }
    Drawing d;
    d.width = most - least + 2 * margin;
    std::vector<double> middle;
    double y = margin;
    for (const auto& layer : order_) {
      double height = 0;
      for (const std::size_t s : layer) height = std::max(height, spots_[s].height);
      middle.push_back(y + height / 2);
      y += height + gap_y;
    }
    d.height = y - gap_y + margin;
    const auto centre = [&](std::size_t s) { return Point{spots_[s].x - least + margin, middle[spots_[s].layer]}; };
    for (std::size_t i = 0; i < boxes_; ++i) d.centres.push_back(centre(i));
    for (std::size_t i = 0; i < arrows_.size(); ++i) {
      const std::size_t from = arrows_[i].from, to = arrows_[i].to;
      auto& route = d.routes.emplace_back();
      const Point a = centre(from), b = centre(to);
      route.push_back({a.x, a.y + spots_[from].height / 2});
      for (const std::size_t s : bends_[i]) route.push_back(centre(s));
      route.push_back({b.x, b.y - spots_[to].height / 2});
    }
    return d;
  }

  std::span<const Arrow> arrows_;
  std::size_t boxes_;
  std::vector<Spot> spots_;
  std::vector<std::vector<std::size_t>> order_, bends_;
};

}  // namespace

Drawing layered(std::span<const Box> boxes, std::span<const Arrow> arrows) { return Layers(boxes, arrows).draw(); }

}  // namespace rlx::cli
