// Models as the commands of the program take them: any file that becomes a graph, inputs from files or made up.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/executable.h"

namespace rlx::cli {

/// The graph of a model folder, an .onnx file, or a graph in text form (.rlx). Throws Error for anything else.
Graph read_model(const std::string& path);
/// The same; an ONNX model that cannot be imported for all sizes is imported for those of the `given` inputs, or with
/// single integers among these as constants, which are then taken out of `given`.
Graph read_model(const std::string& path, NamedTensors& given);
/// Inputs from `NAME=FILE.npy` texts of the option --input.
NamedTensors read_arrays(const std::vector<std::string>& texts);

/// `NAME=VALUE` pairs as a map; throws Error that names the option for text without `=` and for a name given twice.
std::map<std::string, std::string> pairs(const std::vector<std::string>& texts, std::string_view option);
/// `NAME=SIZE` pairs, checked against the symbols of the graph.
DimEnv sizes(const std::vector<std::string>& texts, const Graph& g);
/// Values for every symbol that `given` lacks: `wish`, moved into the symbol's bounds.
DimEnv complete_sizes(const Graph& g, DimEnv given, Index wish);

/// Inputs made up for a run of these sizes: integers 0 and 1, floats in [0,1), all ones where the name says mask.
NamedTensors made_up_inputs(const Graph& g, const DimEnv& dims, unsigned seed);
/// `known` and what these inputs show of the graph's symbols.
DimEnv sizes_of(const NamedTensors& in, const Graph& g, DimEnv known);
/// Inputs that `in` lacks are made up, in sizes that `in` and `dims` show, and otherwise `wish`. Throws Error for a
/// name in `in` that the graph does not have; nothing is made up unless `random`.
NamedTensors complete_inputs(NamedTensors in, bool random, const Graph& g, const DimEnv& dims, Index wish = 8);
/// The element type of products that an option names: f32 (nothing), bf16, f16 or int8. Throws Error for another.
std::optional<DType> product_type(const std::string& precision);
inline constexpr const char* precision_help = "Products in f32, bf16, f16 or int8 (with constant matrices)";
/// The largest |a - b|, relative to the largest |b| and at least to 1e-30; infinite where one is NaN and the other not.
double difference(const Tensor& a, const Tensor& b);
/// The name of output `i`, or its position.
std::string output_name(const Interface& interface, std::size_t i);

}  // namespace rlx::cli
