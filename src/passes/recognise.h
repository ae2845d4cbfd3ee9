// Recognition: composite ops found again in graphs that exporters and frontends took apart.
//
// A rewrite fires only where both forms are equal for all inputs, up to rounding: axes, constants, shapes, element
// types and masks are compared. Two liberties are taken. A written form that overflows on the way, for arguments within
// a factor 8 of the largest number, gets the finite result. A row of scores that hides every key, where the written
// softmax divides 0 by 0, gets what attention gives: zeros. Inner values that something else reads, or that are
// outputs, keep the written form in place.
#pragma once

#include "passes/pass.h"

namespace rlx {

/// gelu, gelu_tanh, silu, softplus, relu, relu6 and relatives, rsqrt, from elementwise arithmetic.
Graph recognise_activations(const Graph& g, PassContext& context);
/// softmax and log_softmax from exponentials less the maximum.
Graph recognise_softmax(const Graph& g, PassContext& context);
/// layer_norm and rms_norm over trailing axes from means, with scale and shift, and casts around.
Graph recognise_norms(const Graph& g, PassContext& context);
/// rope from slices, negation and concatenation of halves or neighbours, times cosines and sines.
Graph recognise_rope(const Graph& g, PassContext& context);
/// attention from two matmuls around a softmax, with scale, soft cap, masks and the splitting of heads. Expects softmax
/// to be recognised.
Graph recognise_attention(const Graph& g, PassContext& context);
/// Products of one value with several constant matrices as one product and slices of it; biases too where all have
/// one. Every element keeps its bits.
Graph merge_matmuls(const Graph& g, PassContext& context);
/// Constants that every channel of a convolution by constant weights is multiplied with, divided by or moved by, as
/// part of the weights and one bias. What would leave the normal numbers stays.
Graph fold_scales(const Graph& g, PassContext& context);

}  // namespace rlx
