// Compiling: passes, lowering, sharing in place.
#include "runtime/session.h"

#include "core/error.h"
#include "core/thread_pool.h"
#include "device/view.h"
#include "ir/rewrite.h"
#include "ops/constant/constant.h"
#include "passes/define.h"
#include "runtime/pass_evaluator.h"

namespace rlx {

namespace {

// Whether a node has a view rule or a step on dense operands.
bool accepts(const MakerTable& makers, const Graph& g, Id id, std::string* why) {
  const Node& n = g.nodes[id];
  if (n.op == &constant_op || is_input(n)) return true;
  std::vector<Slot> in, out;
  BufferId buffer = 0;
  for (const Operand o : n.operands) {
    Slot s{buffer++, g.type(o)};
    const Node& from = g.nodes[o.node];
    if (from.op == &constant_op) s.constant = &from.attrs.as<ConstantAttrs>().data;
    in.push_back(std::move(s));
  }
  if (const ViewMaker view = find_view(n.op); view && view({n, in, {}})) return true;
  for (const TensorType& t : n.results) out.push_back({buffer++, t});
  return makers.make({n, in, out, why}).has_value();
}

Graph expand(const Graph& g, const MakerTable& makers) {
  for (Graph current = g;;) {
    bool changed = false;
    current = rewrite(current, [&](Rewriter& r, Id id) -> std::optional<Values> {
      const Node& n = current.nodes[id];
      if (is_input(n) || accepts(makers, current, id, nullptr) || !n.op->has_definition()) return std::nullopt;
      changed = true;
      return define(*n.op, n.attrs, r.operands(id), n.bodies);
    });
    if (!changed) return current;
  }
}

}  // namespace

Session::Session(std::shared_ptr<Device> device, const SessionOptions& options)
    : device_(std::move(device)), executor_(options.executor) {
  ensure(device_ != nullptr, "a session has a device");
  require(options.threads >= 0, "{} threads are asked for, expected 0 or more", options.threads);
  if (!executor_) executor_ = options.threads == 0 ? shared_thread_pool() : std::make_shared<ThreadPool>(options.threads);
  weights_ = std::make_shared<WeightStore>(*device_);
}

Graph Session::optimise(const Graph& graph, const CompileOptions& options, Report* report) const {
  Report unread;
  const DeviceInfo target{.name = device_->info().name, .accepts = [this](const Graph& g, Id id, std::string* why) {
                            return accepts(device_->makers(), g, id, why);
                          }};
  PassContext context{.device = target, .options = options, .report = report ? *report : unread};
  use_reference(context);
  return expand(run_passes(graph, all_passes(), context), device_->makers());
}

Executable Session::compile(const Graph& graph, const CompileOptions& passes, const ExecutableOptions& options,
                            Report* report) const {
  const auto optimised = std::make_shared<const Graph>(optimise(graph, passes, report));
  Program program = lower(optimised, device_->makers(),
                          [this](const Slot& from, const Slot& to) { return device_->copy_step(from, to); });
  share_in_place(program);
  return {std::move(program), Interface(*optimised), device_, executor_, weights_, options};
}

}  // namespace rlx
