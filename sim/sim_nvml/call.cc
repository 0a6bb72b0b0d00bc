#include "sim_nvml/call.h"

namespace ndp::sim_nvml {
namespace {

using Kind = HandleSlot::Kind;

bool Accepts(Accept accept, Kind kind) {
  switch (accept) {
    case Accept::kGpu:
      return kind == Kind::kGpu;
    case Accept::kMig:
      return kind == Kind::kMig;
    case Accept::kGpuOrMig:
      return kind == Kind::kGpu || kind == Kind::kMig;
    case Accept::kGpuInstance:
      return kind == Kind::kGpuInstance;
    case Accept::kComputeInstance:
      return kind == Kind::kComputeInstance;
  }
  return false;
}

}  // namespace

const sim_state::GpuInstance& Target::instance() const {
  for (const auto& instance : mig().instances) {
    if (instance.used != 0 && instance.id == device().gi_id) return instance;
  }
  return mig().instances[0];
}

Return Begin(unsigned function, Handle handle, Accept accept, Target* target) {
  Library& library = Library::Get();
  library.Count(function);
  if (const Return status = library.Session(&target->view)) return status;
  const HandleSlot* found = library.Resolve(handle);
  if (found == nullptr || !Accepts(accept, found->kind) ||
      found->index >= target->view->gpu_count) {
    if (const Return fault = library.Faults(function, -1)) return fault;
    return kInvalidArgument;
  }
  target->index = found->index;
  target->slot = target->view->order[found->index];
  if (const Return fault = library.Faults(function, static_cast<int>(target->slot))) return fault;
  if (const Return state = library.AwaitGpu(target->slot)) return state;
  // The wait may have been long: the driver can be gone by now.
  std::shared_ptr<const SessionView> now;
  if (const Return status = library.Session(&now)) return status;
  const auto machine = library.machine();
  machine->Read([&](const sim_state::Control& control) {
    target->gpu = control.gpus[target->slot];
    return 0;
  });
  if (found->kind != Kind::kGpu) target->sub = found->sub;
  return kSuccess;
}

Return BeginSystem(unsigned function, std::shared_ptr<const SessionView>* view) {
  Library& library = Library::Get();
  library.Count(function);
  if (const Return status = library.Session(view)) return status;
  if (const Return fault = library.Faults(function, -1)) return fault;
  return library.Session(view);
}

}  // namespace ndp::sim_nvml
