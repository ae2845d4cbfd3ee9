// ONNX files: the parts of a model as views into the file, every count, length and nesting checked.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/os_posix.h"
#include "io/onnx/wire.h"

namespace rlx::onnx {

/// Limits. Opening a file takes its size (mapped) and at most three times `most_described` bytes for the description.
inline constexpr Index most_described = Index{64} << 20;          // bytes of the structures below, all together
inline constexpr int deepest = 32;                                // graphs inside graphs, types inside types
inline constexpr std::size_t most_axes = 64;                      // of a tensor or a shape
inline constexpr std::size_t most_listed = std::size_t{1} << 21;  // elements of a list in an attribute

/// The format's numbers of element types (TensorProto.DataType).
enum class ElementType : std::int32_t {
  undefined = 0,
  f32,
  u8,
  i8,
  u16,
  i16,
  i32,
  i64,
  string,
  boolean,
  f16,
  f64,
  u32,
  u64,
  c64,
  c128,
  bf16,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  u4,
  i4,
  f4e2m1,
  f8e8m0,
  u2,
  i2,
};
/// Name as in the standard, `FLOAT16`; `type 99` for a number it lacks.
std::string element_name(std::int32_t type);

/// A tensor: an initialiser or an attribute. Elements stay in the file.
struct TensorProto {
  std::string_view name;
  std::vector<Index> dims;
  std::int32_t type = 0;
  bool has_raw = false, has_segment = false, external = false;
  std::uint8_t typed = 0;  // which lists of typed elements hold something: bit i for field 4 + i
  std::string_view raw;
  std::string_view body;            // the whole message, for typed elements
  std::string_view location;        // of external data
  std::string_view offset, length;  // decimal numbers, or empty
};

/// One size of a declared shape: a number, a name, or unknown.
struct DimProto {
  enum class Kind : std::uint8_t { unknown, value, name };
  Kind kind = Kind::unknown;
  Index value = 0;
  std::string_view name;
};

/// A declared input or output.
struct ValueInfo {
  std::string_view name;
  std::string_view kind;    // `tensor`, `sequence`, `map`, `optional`, `sparse tensor`, or empty: nothing is declared
  std::int32_t type = 0;    // element type of a tensor
  std::string_view inside;  // the same of what a sequence or an optional value holds
  bool has_shape = false;
  std::vector<DimProto> dims;
};

struct GraphProto;

/// The format's numbers of attribute types (AttributeProto.AttributeType).
enum class AttributeType : std::int32_t {
  undefined = 0,
  real,
  integer,
  string,
  tensor,
  graph,
  reals,
  integers,
  strings,
  tensors,
  graphs,
  sparse_tensor,
  sparse_tensors,
  type,
  types,
};
std::string_view attribute_type_name(AttributeType type);

/// An attribute of a node, or the standard value of an attribute of a function. Lists stay in the file.
struct AttributeProto {
  std::string_view name;
  std::string_view reference;  // the attribute of the enclosing function that this one takes its value from
  AttributeType type = AttributeType::undefined;
  float real = 0;
  Index integer = 0;
  std::string_view string;
  std::string_view body;  // the whole message, for lists
  std::vector<TensorProto> tensors;
  std::vector<std::unique_ptr<GraphProto>> graphs;
};

struct NodeProto {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;  // an empty name: left out
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<std::string_view> sparse_initializers;  // names
  std::vector<ValueInfo> inputs, outputs, values;
};

struct OpsetImport {
  std::string_view domain;  // empty: the standard operators; `ai.onnx` is read as that
  Index version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> standard;  // attributes with a standard value
  std::vector<NodeProto> nodes;
  std::vector<OpsetImport> opsets;
};

/// An open model. Views stay valid as long as `bytes`.
struct ModelProto {
  WireFile file;
  Bytes bytes;
  Index ir_version = 0, model_version = 0;
  std::string_view producer, producer_version, domain;
  std::vector<OpsetImport> opsets;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

/// Reads a whole file. Throws Error that names the file, the offset and the value: for bytes that are no message, text
/// that is not UTF-8, single fields that are there twice, nesting over `deepest`, more than `most_axes` sizes, several
/// values in one attribute, and a description over `most_described`. Unknown fields are skipped.
std::unique_ptr<const ModelProto> read_model(const std::string& path, FileMode mode = FileMode::map);
/// The same over bytes; `name` stands for the path in messages.
std::unique_ptr<const ModelProto> read_model(const Bytes& bytes, const std::string& name);

/// Elements of the lists of an attribute.
std::vector<Index> integers_of(const WireFile& file, const AttributeProto& attribute);
std::vector<float> reals_of(const WireFile& file, const AttributeProto& attribute);
std::vector<std::string_view> strings_of(const WireFile& file, const AttributeProto& attribute);

}  // namespace rlx::onnx
