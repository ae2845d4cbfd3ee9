// Models of tests/data/onnx, and ONNX messages made by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "io/onnx/model.h"

namespace rlx::test {

/// A file of tests/data/onnx.
std::string onnx_file(const std::string& name);
/// What the reader finds in a model, in the form of the checked-in dumps.
std::string dump(const onnx::ModelProto& model);

/// Messages of the wire format, written by hand.
std::string varint(std::uint64_t value);
std::string number_field(int field, std::uint64_t value);
std::string bytes_field(int field, std::string_view bytes);
std::string float_field(int field, float value);

/// Parts of models: each returns the message without its field.
struct NodeText {
  std::string op;
  std::vector<std::string> in, out;
  std::vector<std::string> attributes;  // messages
  std::string name = "n", domain;
};
std::string message(const NodeText& node);
std::string integer_attribute(const std::string& name, std::int64_t value);
std::string integers_attribute(const std::string& name, const std::vector<std::int64_t>& values);
std::string graph_attribute(const std::string& name, std::string_view graph);
/// A tensor of type `type` with raw elements.
std::string raw_tensor(const std::string& name, int type, const std::vector<std::int64_t>& dims, std::string_view raw);
std::string i64_tensor(const std::string& name, const std::vector<std::int64_t>& values);
/// A tensor with external data.
std::string external_tensor(const std::string& name, int type, const std::vector<std::int64_t>& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries);
/// A declared value; a size below 0 is named after its number, `d1` for -1.
std::string value_info(const std::string& name, int type, const std::vector<std::int64_t>& dims);

struct GraphText {
  std::vector<NodeText> nodes;
  std::vector<std::string> inputs, outputs, initializers;  // messages
};
std::string message(const GraphText& graph);
/// A model of IR version 8 with version `opset` of the standard operators.
std::string model(const GraphText& graph, std::int64_t opset = 17);

/// A model `y = OP(x, …)`, x an f32 [2,3] unless `inputs` are given, all others initialisers.
std::string one_node(const NodeText& node, const std::vector<std::string>& initializers = {}, std::int64_t opset = 17,
                     const std::vector<std::string>& inputs = {});

}  // namespace rlx::test
