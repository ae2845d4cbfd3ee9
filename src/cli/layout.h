// Places of boxes and arrows: a layered drawing of a graph, from top to bottom.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace rlx::cli {

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double width = 0, height = 0;
};

/// An arrow from one box to one of a higher number.
struct Arrow {
  std::size_t from = 0, to = 0;
};

struct Drawing {
  std::vector<Point> centres;              // of the boxes
  std::vector<std::vector<Point>> routes;  // of the arrows: from the lower edge of a box to the upper edge of another
  double width = 0, height = 0;
};

/// Every box lies below those that it has arrows from; boxes do not overlap, and the order within a layer keeps
/// crossings few. The same graph gives the same drawing. Takes time near the number of boxes and of layers that arrows
/// pass.
Drawing layered(std::span<const Box> boxes, std::span<const Arrow> arrows);

}  // namespace rlx::cli
