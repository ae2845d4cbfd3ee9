// The pass runner, and the list of passes.
#include "passes/pass.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "ir/control.h"
#include "ir/outline.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "passes/fuse_norm.h"
#include "passes/legalise.h"
#include "passes/passes.h"
#include "passes/recognise.h"
#include "passes/verify_numerics.h"

namespace rlx {

namespace {

const Pass& find_among(std::span<const Pass> passes, std::string_view name) {
  const auto found = std::ranges::find(passes, name, &Pass::name);
  if (found != passes.end()) return *found;
  std::string known;
  for (const Pass& p : passes) known += (known.empty() ? "" : ", ") + std::string(p.name);
  fail("unknown pass \"{}\", expected one of {}", name, known);
}

void check_names(const std::set<std::string, std::less<>>& names, std::span<const Pass> passes) {
  for (const std::string& n : names) find_among(passes, n);
}

void check_result(const Pass& pass, const Graph& before, const Graph& after) {
  try {
    verify(after);
    verify_interface(before, after);
  } catch (const Error& e) {
    throw InternalError(fmt::format("pass {} broke the graph: {}", pass.name, e.what()));
  }
}

// A pass over the graph, and before that over the bodies of its control flow.
Graph run_with_bodies(const Pass& pass, const Graph& g, PassContext& context) {
  const auto body = [&](const Graph& before) {
    Graph after = pass.run(before, context);
    check_result(pass, before, after);
    return after;
  };
  return pass.run(map_bodies(g, body), context);
}

Graph drop_dead_nodes(const Graph& g, PassContext& context) {
  Graph r = drop_dead(g);
  const std::size_t dropped = g.nodes.size() - r.nodes.size();
  if (dropped > 0) context.remark(fmt::format("{} nodes dropped", dropped));
  return r;
}

}  // namespace

Graph run_passes(const Graph& g, std::span<const Pass> passes, PassContext& context) {
  check_names(context.options.disabled, passes);
  check_names(context.options.print_after, passes);
  verify(g);
  std::optional<NumericsCheck> numerics;
  if (context.options.verify_numerics) numerics.emplace(g, context);
  Graph current = g;
  for (const Pass& p : passes) {
    if (context.options.disabled.contains(p.name)) continue;
    context.current = p.name;
    if (context.options.progress)
      context.options.progress(p.name, static_cast<double>(&p - passes.data()) / static_cast<double>(passes.size()));
    const auto begin = std::chrono::steady_clock::now();
    Graph next = run_with_bodies(p, current, context);
    const auto time = std::chrono::steady_clock::now() - begin;
    check_result(p, current, next);
    if (numerics) numerics->compare(p, next);
    context.report.timings.push_back({std::string(p.name), time, current.nodes.size(), next.nodes.size()});
    if (context.options.print_after.contains(p.name)) context.remark(print(next));
    current = std::move(next);
  }
  context.current.clear();
  return current;
}

std::span<const Pass> all_passes() {
  constexpr double rounding = 1e-5;  // of forms that compute the same in another way
  static constexpr Pass passes[] = {
      {"inline-bodies", "Replaces fusion nodes by their bodies.",
       [](const Graph& g, PassContext&) { return inline_bodies(g); }},

      // Simplify.
      {"fold-constants", "Computes what depends on constants alone, and states shape arithmetic as sizes.",
       fold_constants},
      {"simplify-control", "Moves constants into bodies, and takes known branches and single trips out of theirs.",
       simplify_control},
      {"simplify-algebra", "Applies identities that hold bit by bit for all inputs, and leaves out moves of nothing.",
       simplify_algebra},

      // Recognise.
      {"recognise-activations", "Finds gelu, silu, softplus, relu6 and relatives written out.", recognise_activations,
       rounding},
      {"recognise-softmax", "Finds softmax and log_softmax written out.", recognise_softmax, rounding},
      {"recognise-norms", "Finds layer_norm and rms_norm written out, with scale, shift and casts.", recognise_norms,
       rounding},
      {"recognise-rope", "Finds rope written out with turned halves or neighbours and doubled tables.", recognise_rope,
       rounding},
      {"recognise-attention", "Finds attention written out, with its masks and the splitting of heads.",
       recognise_attention, rounding},
      {"merge-matmuls", "Computes products of one value with several constant matrices as one.", merge_matmuls},
      {"fold-scales", "Takes factors and shifts of the channels of a convolution into its weights and one bias.",
       fold_scales, rounding},

      // Move what is only order and shape.
      {"absorb-layout", "Takes transposes and reshapes into matmul and attention, or moves them until they cancel.",
       absorb_layout},
      {"drop-dead", "Leaves out nodes that neither outputs nor states need.", drop_dead_nodes},

      // Precision, where asked for, and integers where written out.
      {"lower-precision", "Computes products and attention in a shorter float type, if the options ask for it.",
       lower_precision, 0.05},
      {"quantise-products", "Computes products with constant matrices in 8-bit integers, if the options ask for it.",
       quantise_products, 0.1},
      {"encode-activations", "Multiplies encoded matrices by activations in 8-bit blocks, if the options ask for it.",
       encode_activations, 0.05},
      {"open-quantisation", "Takes quantize and dequantize apart, so that they fuse.", open_quantisation},

      // Fuse.
      {"fuse-norm", "Joins layer_norm and rms_norm with the sums they read.", fuse_norm},
      {"fuse-matmul", "Runs elementwise ops on the results of a matmul or conv while they are in the cache.",
       fuse_matmul},
      {"fuse-elementwise", "Joins elementwise nodes of one shape to regions that run as one step.", fuse_elementwise},

      // Suit the device.
      {"legalise", "Takes apart what the device has no kernel for, or says what cannot run.", legalise, rounding},
  };
  return passes;
}

std::span<const Pass> default_passes() { return all_passes(); }

const Pass& find_pass(std::string_view name) { return find_among(all_passes(), name); }

}  // namespace rlx
