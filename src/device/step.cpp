// Steps: declaring uses, and resolving them for a binding.
#include "device/step.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

std::uint32_t StepBuilder::use(const Slot& slot, Access access) {
  step_.uses.push_back({slot.buffer, access, slot.offset, slot.type.plane_bytes(slot.plane)});
  return static_cast<std::uint32_t>(step_.uses.size() - 1);
}

DimToken StepBuilder::dim(Dim size) {
  step_.dims.push_back(std::move(size));
  return DimToken(static_cast<std::uint32_t>(step_.dims.size() - 1));
}

Step StepBuilder::run(Dim items, Index grain, Step::Run function) {
  ensure(grain >= 1 && function, "a step has a grain of at least 1 and a function");
  step_.items = std::move(items);
  step_.grain = grain;
  step_.run = std::move(function);
  return std::move(step_);
}

BoundStep::BoundStep(const Step& step, const DimEnv& dims, const std::function<std::byte*(BufferId)>& address)
    : step_(&step), items_(step.items.evaluate(dims)) {
  for (const Use& u : step.uses) {
    places_.push_back({address(u.buffer) + u.offset.evaluate(dims), static_cast<std::size_t>(u.bytes.evaluate(dims))});
  }
  for (const Dim& d : step.dims) values_.push_back(d.evaluate(dims));
}

void BoundStep::run_all() const {
  for (Index i = 0; i < items_; i += step_->grain) run({i, std::min(items_, i + step_->grain)});
}

}  // namespace rlx
