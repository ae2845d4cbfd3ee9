// Control steps: which body runs, how often, and on which memory. Nothing is allocated and nothing but the values of
// the last trip is copied: a body reads its slices and carried values where they are and writes its results where they
// go.
#include "ir/control.h"

#include "core/error.h"
#include "runtime/executable_impl.h"

namespace rlx::detail {

namespace {

using Clock = std::chrono::steady_clock;

Running body_of(const Running& r, std::size_t number, std::size_t body) {
  return {r.program.controls[number].bodies[body], r.layout.controls[number].bodies[body], r.part.bodies[number][body],
          r.numbers.controls[number].bodies[body], r.frame.bodies[number][body]};
}

// Uses of a control step as addresses.
std::span<const Memory::Place> places_of(const Running& r, const Control& c) {
  return std::span(r.frame.places).subspan(r.layout.steps[c.step].uses_begin, r.program.steps[c.step].uses.size());
}

std::byte* at(const Memory::Place& place, Index offset) { return place.address ? place.address + offset : nullptr; }

}  // namespace

bool ExecutableImpl::flag(const std::byte* address) const {
  std::byte value{};
  if (device->info().host_memory) {
    value = *address;
  } else {
    device->download({&value, 1}, address);
  }
  return value != std::byte{0};
}

void ExecutableImpl::run_control(const Running& r, std::size_t number, const RunOptions& o) const {
  const OpDef* op = r.program.controls[number].op;
  if (op == &if_op()) return run_branch(r, number, o);
  return op == &scan_op() ? run_scan(r, number, o) : run_while(r, number, o);
}

void ExecutableImpl::run_body(const Running& body, const RunOptions& o) const {
  set_externals(body);
  std::size_t s = 0;
  try {
    for (; s < body.program.steps.size(); ++s) {
      if (o.cancel && o.cancel->cancelled()) fail("the run was cancelled");
      if (o.deadline && Clock::now() > *o.deadline) fail("the deadline passed");
      run_step(body, s, o);
      end_step(body, s);
    }
  } catch (const Error& e) {
    fail("{}: {}", body.part.node_texts[s], e.what());
  }
}

void ExecutableImpl::run_branch(const Running& r, std::size_t number, const RunOptions& o) const {
  const Control& c = r.program.controls[number];
  const auto places = places_of(r, c);
  const Running body = body_of(r, number, flag(places[0].address) ? 0 : 1);
  require(body.numbers.refused.empty(), "{}", body.numbers.refused);
  std::size_t to = 0;
  for (std::uint32_t i = 1; i < c.operands + c.results; ++i) body.frame.addresses[to++] = places[i].address;
  run_body(body, o);
}

void ExecutableImpl::run_scan(const Running& r, std::size_t number, const RunOptions& o) const {
  const Control& c = r.program.controls[number];
  const Binding::ControlAt& sizes = r.numbers.controls[number];
  const auto places = places_of(r, c);
  const Running body = body_of(r, number, 0);
  for (std::uint32_t i = 0; sizes.trips == 0 && i < c.carried; ++i) {
    if (sizes.carried_bytes[i] > 0)
      device->copy(places[c.operands + i].address, places[i].address, sizes.carried_bytes[i]);
  }
  if (sizes.trips == 0) return;
  require(body.numbers.refused.empty(), "{}", body.numbers.refused);
  std::vector<std::byte*>& to = body.frame.addresses;
  for (std::uint32_t i = c.carried + c.scanned; i < c.operands; ++i) to[i] = places[i].address;
  for (Index t = 0; t < sizes.trips; ++t) {
    const auto slice = [&](std::uint32_t k) {
      return (c.backward[k] ? sizes.trips - 1 - t : t) * sizes.slice_bytes[k];
    };
    const bool last = (sizes.trips - 1 - t) % 2 == 0;  // the last trip writes the results themselves
    for (std::uint32_t i = 0; i < c.carried; ++i) {
      const Memory::Place &result = places[c.operands + i], &second = places[c.second() + i];
      to[i] = (t == 0 ? places[i] : last ? second : result).address;
      to[c.operands + i] = (last ? result : second).address;
    }
    for (std::uint32_t i = 0; i < c.scanned; ++i) to[c.carried + i] = at(places[c.carried + i], slice(i));
    for (std::uint32_t i = c.carried; i < c.results; ++i)
      to[c.operands + i] = at(places[c.operands + i], slice(c.scanned + i - c.carried));
    run_body(body, o);
  }
}

void ExecutableImpl::run_while(const Running& r, std::size_t number, const RunOptions& o) const {
  const Control& c = r.program.controls[number];
  const Binding::ControlAt& sizes = r.numbers.controls[number];
  const auto places = places_of(r, c);
  const Running body = body_of(r, number, 0);
  std::vector<std::byte*>& to = body.frame.addresses;
  const std::size_t inputs = c.operands - 1;
  std::byte* const next = places[c.second() + c.carried].address;
  for (std::size_t i = 0; i < inputs; ++i) to[i] = places[1 + i].address;
  bool in_results = false;
  for (bool goes_on = flag(places[0].address); goes_on; goes_on = flag(next)) {
    require(body.numbers.refused.empty(), "{}", body.numbers.refused);
    to[inputs] = next;
    for (std::uint32_t i = 0; i < c.carried; ++i)
      to[inputs + 1 + i] = places[(in_results ? c.second() : c.operands) + i].address;
    run_body(body, o);
    for (std::uint32_t i = 0; i < c.carried; ++i) to[i] = to[inputs + 1 + i];
    in_results = !in_results;
  }
  for (std::uint32_t i = 0; !in_results && i < c.carried; ++i) {
    if (sizes.carried_bytes[i] > 0) device->copy(places[c.operands + i].address, to[i], sizes.carried_bytes[i]);
  }
}

}  // namespace rlx::detail
