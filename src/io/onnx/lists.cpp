// Lists of attributes, and the names of the format's numbers.
#include <array>

#include "core/error.h"
#include "io/onnx/model.h"

namespace rlx::onnx {

std::string element_name(std::int32_t type) {
  static constexpr std::array<std::string_view, 27> names{
      "UNDEFINED", "FLOAT",      "UINT8",      "INT8",         "UINT16",         "INT16",      "INT32",
      "INT64",     "STRING",     "BOOL",       "FLOAT16",      "DOUBLE",         "UINT32",     "UINT64",
      "COMPLEX64", "COMPLEX128", "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
      "UINT4",     "INT4",       "FLOAT4E2M1", "FLOAT8E8M0",   "UINT2",          "INT2"};
  if (type < 0 || type >= static_cast<std::int32_t>(names.size())) return fmt::format("type {}", type);
  return std::string(names[static_cast<std::size_t>(type)]);
}

std::string_view attribute_type_name(AttributeType type) {
  static constexpr std::array<std::string_view, 15> names{
      "undefined", "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
      "strings",   "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"};
  return names[static_cast<std::size_t>(type)];
}

namespace {

template <class T>
void append(const WireReader& in, std::vector<T>& list, T value) {
  if (list.size() >= most_listed) in.fail(fmt::format("a list of more than {} elements", most_listed));
  list.push_back(value);
}

}  // namespace

std::vector<Index> integers_of(const WireFile& file, const AttributeProto& a) {
  std::vector<Index> all;
  WireReader in(file, a.body, "attribute");
  const auto push = [&](std::uint64_t v) { append(in, all, static_cast<Index>(v)); };
  for (Field f; in.next(f);) {
    if (f.number != 8) continue;
    if (f.wire == Wire::bytes) {
      each_varint(file, f.bytes, push);
    } else {
      push(f.value);
    }
  }
  return all;
}

std::vector<float> reals_of(const WireFile& file, const AttributeProto& a) {
  std::vector<float> all;
  WireReader in(file, a.body, "attribute");
  for (Field f; in.next(f);) {
    if (f.number != 7) continue;
    if (f.wire == Wire::bytes) {
      each_fixed<float>(file, f.bytes, [&](float v) { append(in, all, v); });
    } else {
      append(in, all, in.real(f, "floats"));
    }
  }
  return all;
}

std::vector<std::string_view> strings_of(const WireFile& file, const AttributeProto& a) {
  std::vector<std::string_view> all;
  WireReader in(file, a.body, "attribute");
  for (Field f; in.next(f);) {
    if (f.number == 9) append(in, all, in.bytes(f, "strings"));
  }
  return all;
}

}  // namespace rlx::onnx
