// Sequences and optional values: lists that the importer knows element by element, gone when the graph is made.
#include <algorithm>

#include "core/checked.h"
#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/slice/slice.h"

namespace rlx::onnx {

namespace {

constexpr Index most_elements = 65536;  // of a list

Items one(Item item) { return {std::move(item)}; }

Items identity(NodeArgs& n) {
  n.expect(1, 1);
  return one(n.item(0));
}

const Item& sequence(NodeArgs& n, std::size_t i) {
  const Item& item = n.item(i);
  require(item.sequence && !item.optional, "operand {} is {}, expected a sequence", i, kind_of(item));
  return item;
}

void require_type(const Values& list, Value element) {
  require(list.empty() || list[0].dtype() == element.dtype(), "a sequence of {} takes no {}",
          list.empty() ? "" : name(list[0].dtype()), name(element.dtype()));
}

Items construct(NodeArgs& n) {
  Values all = n.all();
  for (const Value& v : all) require_type(all, v);
  return one(Item::list(std::move(all)));
}

Items empty(NodeArgs& n) {
  n.expect(0, 0);
  n.ignore("dtype");
  return one(Item::list({}));
}

// Operand `i` as a position in a list of `size` places, `standard` when it is left out.
std::ptrdiff_t position(NodeArgs& n, std::size_t i, std::size_t size, Index standard) {
  const auto count = static_cast<Index>(size);
  const Index at = n.has_item(i) ? n.number(i) : standard;
  require(-count <= at && at < count, "position {} is out of range for {} places", at, count);
  return static_cast<std::ptrdiff_t>(at < 0 ? at + count : at);
}

Items insert(NodeArgs& n) {
  n.expect(2, 3);
  Values list = sequence(n, 0).values;
  require(static_cast<Index>(list.size()) < most_elements, "a sequence has more than {} elements", most_elements);
  require_type(list, n[1]);
  const auto count = static_cast<Index>(list.size());
  const Index at = n.has_item(2) ? n.number(2) : count;
  require(-count <= at && at <= count, "position {} is out of range for {} elements", at, count);
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(at < 0 ? at + count : at), n[1]);
  return one(Item::list(std::move(list)));
}

Items erase(NodeArgs& n) {
  n.expect(1, 2);
  Values list = sequence(n, 0).values;
  list.erase(list.begin() + position(n, 1, list.size(), -1));
  return one(Item::list(std::move(list)));
}

Items at(NodeArgs& n) {
  n.expect(2, 2);
  const Values& list = sequence(n, 0).values;
  return one(list[static_cast<std::size_t>(position(n, 1, list.size(), 0))]);
}

Items length(NodeArgs& n) {
  n.expect(1, 1);
  const auto count = static_cast<double>(sequence(n, 0).values.size());
  return one(constant(n.builder(), DType::i64, count));
}

// Sizes of the parts along an axis of `size` elements.
std::vector<Index> part_sizes(NodeArgs& n, const Dim& size) {
  if (n.has(1) && n[1].rank() == 1) return n.numbers(1);
  const Index each = n.has(1) ? n.number(1) : 1;
  require(size.is_constant(), "the split axis has size {}, which depends on the data of a run", size.text());
  require(each >= 1, "split is {}, expected 1 or more", each);
  const Index total = size.constant(), parts = total / each + (total % each != 0);
  require(parts <= most_elements, "a sequence has more than {} elements", most_elements);
  std::vector<Index> all(static_cast<std::size_t>(parts), each);
  if (total % each != 0) all.back() = total % each;
  return all;
}

Items split(NodeArgs& n) {
  n.expect(1, 2);
  const Value x = n[0];
  const Index axis = axis_of(n.integer("axis", 0), x.rank());
  const bool keep = n.integer("keepdims", 1) != 0 || n.has(1);
  const std::vector<Index> sizes = part_sizes(n, x.dim(axis));
  Checked sum = 0;
  for (const Index s : sizes) {
    require(s >= 0, "split has the element {}", s);
    sum = sum + Checked(s);
  }
  n.builder().check(x.dim(axis), sum.value("the sum of split"), "sum of split");
  Values parts;
  Index from = 0;
  for (const Index s : sizes) {
    const Value part = slice(x, axis, from, from + s);
    parts.push_back(keep ? part : squeeze(part, {axis}));
    from += s;
  }
  return one(Item::list(std::move(parts)));
}

Items join(NodeArgs& n) {
  n.expect(1, 1);
  Values parts = sequence(n, 0).values;
  require(!parts.empty(), "the sequence is empty, so that its type is not known");
  const bool new_axis = n.integer("new_axis", 0) != 0;
  const Index axis = axis_of(n.integer("axis"), parts[0].rank() + (new_axis ? 1 : 0));
  for (Value& v : parts) {
    if (new_axis) v = unsqueeze(v, {axis});
  }
  return one(concat(parts, axis));
}

Items map(NodeArgs& n) {
  const GraphProto& body = n.graph("body");
  const std::size_t count = sequence(n, 0).values.size();
  std::vector<Values> lists(body.outputs.size());
  for (std::size_t k = 0; k < count; ++k) {
    Items in;
    for (std::size_t i = 0; i < n.count(); ++i) {
      const Item& item = n.item(i);
      require(!item.sequence || item.values.size() == count, "operand {} has {} elements, operand 0 has {}", i,
              item.values.size(), count);
      in.push_back(item.sequence ? Item(item.values[k]) : item);
    }
    const Items out = n.importer().inline_graph(body, n.frame(), in);
    for (std::size_t i = 0; i < out.size(); ++i) {
      require(out[i].tensor(), "result {} of the body is {}, expected a tensor", i, kind_of(out[i]));
      lists[i].push_back(out[i].values[0]);
    }
  }
  Items all;
  for (Values& l : lists) all.push_back(Item::list(std::move(l)));
  return all;
}

Items optional(NodeArgs& n) {
  n.expect(0, 1);
  n.ignore("type");
  Item item;
  if (n.has_item(0)) item = n.item(0);
  item.none = !n.has_item(0);
  item.optional = true;
  return one(std::move(item));
}

Items get_element(NodeArgs& n) {
  n.expect(1, 1);
  Item item = n.item(0);
  require(!item.none, "the optional value is empty");
  item.optional = false;
  return one(std::move(item));
}

Items has_element(NodeArgs& n) {
  n.expect(0, 1);
  const bool there = n.has_item(0) && !n.item(0).none;
  return one(constant(n.builder(), DType::boolean, there ? 1 : 0));
}

}  // namespace

OperatorRows sequence_rows() {
  static constexpr OperatorRow rows[] = {
      {"Identity", 1, nullptr, identity},
      {"SequenceConstruct", 11, nullptr, construct},
      {"SequenceEmpty", 11, nullptr, empty},
      {"SequenceInsert", 11, nullptr, insert},
      {"SequenceErase", 11, nullptr, erase},
      {"SequenceAt", 11, nullptr, at},
      {"SequenceLength", 11, nullptr, length},
      {"SplitToSequence", 11, nullptr, split},
      {"ConcatFromSequence", 11, nullptr, join},
      {"SequenceMap", 17, nullptr, map},
      {"Optional", 15, nullptr, optional},
      {"OptionalGetElement", 15, nullptr, get_element},
      {"OptionalHasElement", 15, nullptr, has_element},
  };
  return rows;
}

}  // namespace rlx::onnx
