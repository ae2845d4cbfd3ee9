// Steps: declaring uses, and resolving them for a binding.
#include "device/step.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

std::uint32_t StepBuilder::use(const Slot& slot, Access access) {
  const Dim dense = slot.type.plane_bytes(slot.plane);
  if (slot.dense()) return use({slot.buffer, access, slot.offset, dense, nullptr, dense});
  // From the first to behind the last element; one element where a size is 0, which run() does not reach.
  Dim elements = 1;
  for (std::size_t i = 0; i < slot.strides.size(); ++i)
    elements = elements + max(slot.type.dims[i] - 1, 0) * slot.strides[i];
  const Dim span = ceildiv(elements * Index{bits(slot.type.dtype)}, 8);
  return use({slot.buffer, access, slot.offset, span, nullptr, min(span, dense)});
}

std::uint32_t StepBuilder::use(Use use) {
  step_.uses.push_back(std::move(use));
  return static_cast<std::uint32_t>(step_.uses.size() - 1);
}

DimToken StepBuilder::dim(Dim size) {
  step_.dims.push_back(std::move(size));
  return DimToken(static_cast<std::uint32_t>(step_.dims.size() - 1));
}

Step StepBuilder::run(Dim items, Dim grain, Step::Run function) {
  ensure(grain.bounds().lo >= 1 && function, "a step has a grain of at least 1 and a function");
  step_.items = std::move(items);
  step_.grain = std::move(grain);
  step_.run = std::move(function);
  return std::move(step_);
}

BoundStep::BoundStep(const Step& step, const DimEnv& dims, const std::function<std::byte*(BufferId)>& address)
    : step_(&step), items_(step.items.evaluate(dims)), grain_(step.grain.evaluate(dims)) {
  for (const Use& u : step.uses) {
    places_.push_back({address(u.buffer) + u.offset.evaluate(dims), static_cast<std::size_t>(u.bytes.evaluate(dims))});
  }
  for (const Dim& d : step.dims) values_.push_back(d.evaluate(dims));
}

void BoundStep::run_all() const {
  for (Index i = 0; i < items_; i += grain_) run({i, std::min(items_, i + grain_)});
}

}  // namespace rlx
