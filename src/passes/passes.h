// The passes, each a function from graph to graph; pass.h runs them.
#pragma once

#include "passes/pass.h"

namespace rlx {

/// Computes nodes whose operands are all constants, and integer vectors whose elements inference knows as sizes.
/// Results are at most 16 MiB, or smaller than their operands; broadcasts, coordinates and transposed weights stay as
/// they are where only movement would be saved. Encoded operands are never decoded. Uses context.evaluate_node. A node
/// that fails stays, and the run says why.
Graph fold_constants(const Graph& g, PassContext& context);

/// Identities that hold bit by bit for all inputs, NaN apart: arithmetic, logic, casts, and moves that move nothing.
/// A power of 2 becomes a product, which is the correctly rounded form of it.
Graph simplify_algebra(const Graph& g, PassContext& context);

/// Computes products of f32 values in the type of CompileOptions::matmul_dtype: casts before, f32 again behind. Changes
/// results as far as that type rounds operands and results; the type's standard kernels sum in f32. Throws Error for
/// any other type than bf16, f16 and i8, which is left to quantise_products.
Graph lower_precision(const Graph& g, PassContext& context);

/// Where CompileOptions::matmul_dtype is i8: products of f32 values with a constant matrix in 8-bit integers. Weights
/// become symmetric codes with a scale a column, the other operand codes with scale and zero point a row
/// (quantize_rows) when run.
/// Matrices of fewer than 4,096 weights, sums of fewer than 32 products, weights that are not finite, and what
/// CompileOptions::quantise refuses stay f32. Comes after merge-matmuls and absorb-layout, before the fusions.
Graph quantise_products(const Graph& g, PassContext& context);
/// What CompileOptions::quantise is asked about: the label of a product, or a short form of the node.
std::string product_name(const Graph& g, Id id);

/// Where CompileOptions::encode_activations is set: products of f32 values with encoded constant matrices that are made
/// of integers become products of `encode`d values, in the format a8. Products of one value share its blocks. Comes
/// before the fusions.
Graph encode_activations(const Graph& g, PassContext& context);

/// Replaces quantize and dequantize, blocks apart, by their definitions, so that they join the regions around them.
Graph open_quantisation(const Graph& g, PassContext& context);

/// Bodies of control flow get constants as constants and no operand that they do not read; an if whose condition is a
/// constant becomes its branch, a scan of one trip its body, a call its body. What then depends on constants alone is
/// computed. Comes after fold-constants. Keeps every bit.
Graph simplify_control(const Graph& g, PassContext& context);

/// Moves transposes and reshapes towards the outputs, behind elementwise ops, until they cancel or become flags of
/// matmul and attention. A transpose that something else reads stays, so that nothing is done twice. Keeps every bit.
Graph absorb_layout(const Graph& g, PassContext& context);

/// Joins scalar ops and casts of one shape to fusion nodes, with the broadcasts and one-element constants that only
/// they read. A value is computed once; one that is read elsewhere too, or is an output, becomes a result of its
/// region. Values of another shape stay outside, where they are computed for fewer elements.
Graph fuse_elementwise(const Graph& g, PassContext& context);

/// Groups every matmul and conv with the elementwise ops behind it, as far as each is the only reader of the one
/// before, has the shape of the product, and the device takes the group as one node. A product that is an output or has
/// two readers keeps its own value. Comes before fuse-elementwise, which would take bias and activation without the
/// product.
Graph fuse_matmul(const Graph& g, PassContext& context);

}  // namespace rlx
