// Compiling: passes, lowering, sharing in place.
#include "runtime/session.h"

#include "core/error.h"
#include "core/thread_pool.h"
#include "ir/builder.h"
#include "ir/control.h"
#include "ir/measure.h"
#include "passes/legalise.h"
#include "runtime/chain.h"
#include "runtime/pass_evaluator.h"

namespace rlx {

Session::Session(std::shared_ptr<Device> device, const SessionOptions& options)
    : device_(std::move(device)), executor_(options.executor) {
  ensure(device_ != nullptr, "a session has a device");
  require(options.threads >= 0, "{} threads are asked for, expected 0 or more", options.threads);
  if (!executor_)
    executor_ = options.threads == 0 ? shared_thread_pool() : std::make_shared<ThreadPool>(options.threads);
  weights_ = std::make_shared<WeightStore>(*device_);
}

Graph Session::optimise(const Graph& graph, const CompileOptions& options, Report* report) const {
  Report unread;
  const DeviceInfo target{.name = device_->info().name, .accepts = accepts_by(device_->makers())};
  PassContext context{.device = target, .options = options, .report = report ? *report : unread};
  use_reference(context);
  // Constants are folded by the kernels that would compute them in a run, so that folding changes no bit.
  context.evaluate_node = [this](const Node& n, std::span<const Tensor> operands) { return run_alone(n, operands); };
  return run_passes(graph, default_passes(), context);
}

std::vector<Tensor> Session::run_alone(const Node& n, std::span<const Tensor> operands) const {
  Builder b;
  Values in;
  NamedTensors inputs;
  for (const Tensor& t : operands) {
    const std::string name = "a" + std::to_string(in.size());
    in.push_back(b.input(name, t.type()));
    inputs.emplace(name, t);
  }
  const Graph g = b.finish(b.emit(*n.op, n.attrs, in, n.bodies));
  const DeviceInfo target{.name = device_->info().name, .accepts = accepts_by(device_->makers())};
  Report unread;
  PassContext context{.device = target, .options = {}, .report = unread};
  const auto legal = [&](const Graph& part) { return legalise(part, context); };
  return prepare(std::make_shared<const Graph>(legal(map_bodies(g, legal))), {}).run(inputs);
}

Executable Session::prepare(std::shared_ptr<const Graph> graph, const ExecutableOptions& options) const {
  Interface interface(*graph);
  if (!measures(*graph).empty()) {
    Segments segments = cut_segments(*graph);
    graph.reset();
    std::vector<Executable> parts;
    for (const Segment& s : segments.parts) parts.push_back(prepare(s.graph, options));
    return Executable(std::make_unique<detail::Chain>(std::move(interface), std::move(segments), std::move(parts)));
  }
  Program program = lower(std::move(graph), device_->makers(),
                          [this](const Slot& from, const Slot& to) { return device_->copy_step(from, to); });
  share_in_place(program);
  return {std::move(program), std::move(interface), device_, executor_, weights_, options};
}

Executable Session::compile(const Graph& graph, const CompileOptions& passes, const ExecutableOptions& options,
                            Report* report) const {
  // Passes come first, then the weights: each counts for half.
  CompileOptions first = passes;
  ExecutableOptions second = options;
  if (passes.progress) {
    first.progress = [&](std::string_view what, double done) { passes.progress(what, done / 2); };
    second.progress = [&](std::string_view what, double done) { passes.progress(what, 0.5 + done / 2); };
  }
  Executable made = prepare(std::make_shared<const Graph>(optimise(graph, first, report)), second);
  if (passes.progress) passes.progress("done", 1);
  return made;
}

}  // namespace rlx
