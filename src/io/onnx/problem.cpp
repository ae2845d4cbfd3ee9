// What is said of a node that cannot be imported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "io/onnx/importer.h"

namespace rlx::onnx {

namespace {

constexpr std::size_t most_elements = 16, most_parts = 64;

// A list, its end left out where it is long.
template <class T>
std::string list_text(const std::vector<T>& all) {
  const auto first = std::span(all).first(std::min(all.size(), most_elements));
  return fmt::format("[{}{}]", fmt::join(first, ","), all.size() > most_elements ? ",..." : "");
}

std::string value_text(const WireFile& file, const AttributeProto& a) {
  switch (a.type) {
    case AttributeType::real:
      return fmt::format("{}", a.real);
    case AttributeType::integer:
      return std::to_string(a.integer);
    case AttributeType::string:
      return in_quotes(a.string);
    case AttributeType::reals:
      return list_text(reals_of(file, a));
    case AttributeType::integers:
      return list_text(integers_of(file, a));
    case AttributeType::strings: {
      std::vector<std::string> quoted;
      for (const std::string_view s : strings_of(file, a)) quoted.push_back(in_quotes(s));
      return list_text(quoted);
    }
    case AttributeType::tensor:
      if (a.tensors.empty()) break;
      return fmt::format("{}[{}]", element_name(a.tensors[0].type), fmt::join(a.tensors[0].dims, ","));
    default:
      break;
  }
  return std::string(attribute_type_name(a.type));
}

}  // namespace

OnnxProblem problem_of(const WireFile& file, const NodeProto& node, Index opset, const std::string& why,
                       const std::vector<std::string>& types) {
  OnnxProblem p{.position = "",
                .name = std::string(node.name),
                .op = std::string(node.op),
                .domain = std::string(node.domain),
                .version = opset,
                .why = why};
  for (std::size_t i = 0; i < std::min(node.inputs.size(), most_parts); ++i) {
    const bool left_out = node.inputs[i].empty();
    p.operands.emplace_back(node.inputs[i], left_out ? "left out" : i < types.size() ? types[i] : "?");
  }
  for (std::size_t i = 0; i < std::min(node.attributes.size(), most_parts); ++i) {
    const AttributeProto& a = node.attributes[i];
    std::string value = a.reference.empty() ? "" : fmt::format("the caller's {}", in_quotes(a.reference));
    try {
      if (value.empty()) value = value_text(file, a);
    } catch (const Error& e) {
      value = e.what();
    }
    p.attributes.emplace_back(a.name, std::move(value));
  }
  p.results.assign(node.outputs.begin(),
                   node.outputs.begin() + static_cast<std::ptrdiff_t>(std::min(node.outputs.size(), most_parts)));
  return p;
}

}  // namespace rlx::onnx
