// The name of a MIG profile, as NVIDIA's tools print it: [<c>c.]<g>g.<gb>gb[+attr|-attr].
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nvml/driver.h"

namespace ndp::inventory {

// "+me", "+me.all", "+gfx", "-me" or nothing, by GPU instance profile number.
std::string MigProfileAttribute(std::optional<unsigned> gpu_instance_profile);

// gb: the MIG device's share of the memory, rounded up to the next eighth, times the GPU's memory
// in whole GiB (rounded up), to the nearest integer. Empty where slices or memory are unknown.
std::string MigProfileName(const nvml::MigDevice& device,
                           std::optional<std::uint64_t> gpu_memory_bytes);

}  // namespace ndp::inventory
