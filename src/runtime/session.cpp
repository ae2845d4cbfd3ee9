// Compiling: passes, lowering, sharing in place.
#include "runtime/session.h"

#include "core/error.h"
#include "core/thread_pool.h"
#include "passes/legalise.h"
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
  return run_passes(graph, default_passes(), context);
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
