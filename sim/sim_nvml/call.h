// What every function of the library begins and ends with.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "sim_nvml/library.h"
#include "sim_state/functions.h"

namespace ndp::sim_nvml {

using sim_state::FunctionId;
using sim_state::Gpu;

// What a device handle stands for, copied out of the machine.
struct Target {
  std::shared_ptr<const SessionView> view;
  std::uint32_t index = 0;  // of the physical GPU
  std::uint32_t slot = 0;
  Gpu gpu;
  // Where the handle is a MIG device's (or an instance's): its place in the session's layout.
  std::optional<std::uint32_t> sub;

  const sim_state::MigLayout& mig() const { return view->mig[index]; }
  // Only where the handle is a MIG device's or a compute instance's.
  const sim_state::MigDevice& device() const { return mig().devices[*sub]; }
  // The GPU instance of `device()`.
  const sim_state::GpuInstance& instance() const;
};

enum class Accept { kGpu, kMig, kGpuOrMig, kGpuInstance, kComputeInstance };

// Counts the call, plays faults, and finds the target. Anything but kSuccess is to be returned.
Return Begin(unsigned function, Handle handle, Accept accept, Target* target);
// For functions that name no device.
Return BeginSystem(unsigned function, std::shared_ptr<const SessionView>* view);

template <typename T, typename V>
Return Set(T* out, V value) {
  if (out == nullptr) return kInvalidArgument;
  *out = static_cast<T>(value);
  return kSuccess;
}

inline Return SetText(std::string_view text, char* out, unsigned length) {
  if (out == nullptr) return kInvalidArgument;
  if (length < text.size() + 1) return kInsufficientSize;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return kSuccess;
}

}  // namespace ndp::sim_nvml
