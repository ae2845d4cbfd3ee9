// simplify-algebra: local identities.
#include "passes/local_rules.h"
#include "passes/passes.h"

namespace rlx {

Graph simplify_algebra(const Graph& g, PassContext& context) {
  return run_local_rules(g, context, {arithmetic_rules(), logic_rules(), movement_rules()});
}

}  // namespace rlx
