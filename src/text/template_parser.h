// Chat templates as trees.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template_value.h"

namespace rlx::chat {

enum class NodeType : std::uint8_t {
  // Expressions; their operands are `children`.
  constant,
  name,
  list,
  tuple,
  dict,         // keys and values alternate
  attribute,    // .text of the first
  subscript,    // the second of the first
  slice,        // of the first: from, to, step, each possibly null
  call,         // the first, with arguments
  filter,       // `text` on the first (null: the body of a block), with arguments
  test,         // `text` on the first, with arguments
  unary,        // `text`
  binary,       // `text`
  comparison,   // all, with `operators` between
  both,         // and
  either,       // or
  negation,     // not
  concat,       // ~
  conditional,  // the first if the second else the third, which may be null
  // Statements; blocks are `body` and `other`.
  text,
  output,
  branch,  // if the first: body, else other
  loop,    // targets, then children: what to walk over, condition or null
  assign,  // targets; the child is the value, or the body is
  macro,   // text: name; params; body
  stop,    // break
  next,    // continue
  block,   // body, with variables of its own if `scoped`
};

struct Node {
  NodeType type = NodeType::constant;
  int line = 0;
  int depth = 1;  // of the tree from here down
  std::string text;
  Value value;
  std::vector<const Node*> children;
  std::vector<std::pair<std::string, const Node*>> named;  // arguments by name; parameters with default or null
  std::vector<std::string> operators;
  std::vector<const Node*> targets;  // names, attributes of namespaces, or tuples of those
  std::vector<const Node*> body, other;
  bool scoped = false;
};

/// The tree and what it consists of. Values of constants point into the nodes.
struct Tree {
  std::deque<Node> nodes;
  std::vector<const Node*> body;
};

/// An Error names the line and what was expected, or what is not supported.
Tree parse_template(std::string_view source, std::string_view name, const TemplateLimits& limits);

}  // namespace rlx::chat
