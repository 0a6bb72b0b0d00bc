// Event sets.
#include <algorithm>
#include <limits>

#include "sim_nvml/call.h"

namespace ndp::sim_nvml {
namespace {

using sim_state::Event;
using sim_state::kEventRing;

constexpr std::int64_t kMillisecond = 1'000'000;

// The next event for the set, if one has come.
bool Take(const Machine& machine, EventSet& set, EventData* data) {
  const std::scoped_lock lock(set.mutex);
  const std::uint64_t head = machine.control().event_head.load(std::memory_order_acquire);
  if (head > kEventRing) set.cursor = std::max(set.cursor, head - kEventRing + 1);
  for (; set.cursor < head; ++set.cursor) {
    const std::optional<Event> event = machine.EventAt(set.cursor);
    if (!event) continue;
    for (const auto& registration : set.registrations) {
      if (registration.slot != event->gpu || (registration.types & event->type) == 0 ||
          registration.since > set.cursor) {
        continue;
      }
      *data = {.device = Library::Get().ToHandle(HandleSlot::Kind::kGpu, registration.index),
               .type = event->type,
               .data = event->data,
               .gi_id = event->gi_id,
               .ci_id = event->ci_id};
      ++set.cursor;
      return true;
    }
  }
  return false;
}

// A set that holds a lost GPU is of no use until it is built anew without it.
bool HoldsLostGpu(const Machine& machine, EventSet& set) {
  const std::scoped_lock lock(set.mutex);
  return std::ranges::any_of(set.registrations, [&](const auto& registration) {
    const auto& gpu = machine.control().gpus[registration.slot];
    return gpu.present == 0 || gpu.state == sim_state::GpuState::kLost;
  });
}

// Changes wake a wait; a rule that ends by the clock does not, so it is slept until that. An idle
// wait is one wake-up, as with a real driver.
std::int64_t UntilRuleEnds(const Machine& machine) {
  return machine.Read([](const sim_state::Control& control) {
    const std::int64_t now = sim_state::MonotonicNs();
    std::int64_t next = std::numeric_limits<std::int64_t>::max();
    for (unsigned i = 0; i < control.rule_count && i < sim_state::kMaxRules; ++i) {
      const std::int64_t end = control.rules[i].until_ns;
      if (end > now) next = std::min(next, end - now);
    }
    return next;
  });
}

Return Wait(unsigned function, Handle handle, EventData* data, unsigned timeout_ms) {
  std::shared_ptr<const SessionView> view;
  if (const Return status = BeginSystem(function, &view)) return status;
  Library& library = Library::Get();
  const std::shared_ptr<EventSet> set = library.FindEventSet(handle);
  if (set == nullptr || data == nullptr) return kInvalidArgument;
  const auto machine = library.machine();
  const std::int64_t deadline = sim_state::MonotonicNs() + timeout_ms * kMillisecond;
  for (;;) {
    const std::uint32_t seen = machine->Changes();
    // The driver may go, and a fault may be set, while somebody waits.
    if (const Return status = library.Session(&view)) return status;
    if (set->freed.load()) return kInvalidArgument;
    if (const Return fault = library.Faults(function, -1, Library::Play::kAllButLatency)) {
      return fault;
    }
    if (Take(*machine, *set, data)) return kSuccess;
    if (HoldsLostGpu(*machine, *set)) return kGpuIsLost;
    const std::int64_t left = deadline - sim_state::MonotonicNs();
    if (left <= 0) return kTimeout;
    library.Wait(*machine, seen, std::min(left, UntilRuleEnds(*machine)));
  }
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names.

NVML_API int nvmlEventSetCreate(Handle* set) {
  std::shared_ptr<const SessionView> view;
  if (const Return status = BeginSystem(FunctionId("nvmlEventSetCreate"), &view)) return status;
  if (set == nullptr) return kInvalidArgument;
  *set = Library::Get().AddEventSet();
  return kSuccess;
}

NVML_API int nvmlEventSetFree(Handle set) {
  std::shared_ptr<const SessionView> view;
  if (const Return status = BeginSystem(FunctionId("nvmlEventSetFree"), &view)) return status;
  return Library::Get().RemoveEventSet(set) ? kSuccess : kInvalidArgument;
}

NVML_API int nvmlDeviceGetSupportedEventTypes(Handle device, std::uint64_t* types) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceGetSupportedEventTypes"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (target.gpu.event_types == 0) return kNotSupported;
  return Set(types, target.gpu.event_types);
}

NVML_API int nvmlDeviceRegisterEvents(Handle device, std::uint64_t types, Handle handle) {
  Target target;
  if (const Return status =
          Begin(FunctionId("nvmlDeviceRegisterEvents"), device, Accept::kGpu, &target)) {
    return status;
  }
  if (target.gpu.event_types == 0 || (types & ~target.gpu.event_types) != 0) return kNotSupported;
  const std::shared_ptr<EventSet> set = Library::Get().FindEventSet(handle);
  if (set == nullptr) return kInvalidArgument;
  const std::scoped_lock lock(set->mutex);
  for (auto& registration : set->registrations) {
    if (registration.slot != target.slot) continue;
    registration.types |= types;
    return kSuccess;
  }
  set->registrations.push_back(
      {.slot = target.slot,
       .index = target.index,
       .types = types,
       .since = Library::Get().machine()->control().event_head.load(std::memory_order_acquire)});
  return kSuccess;
}

NVML_API int nvmlEventSetWait(Handle set, EventData* data, unsigned timeout_ms) {
  return Wait(FunctionId("nvmlEventSetWait"), set, data, timeout_ms);
}
NVML_API int nvmlEventSetWait_v2(Handle set, EventData* data, unsigned timeout_ms) {
  return Wait(FunctionId("nvmlEventSetWait_v2"), set, data, timeout_ms);
}

// NOLINTEND(readability-identifier-naming)

}  // namespace ndp::sim_nvml
