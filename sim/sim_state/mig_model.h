// What MIG can do on each kind of GPU: profiles, their sizes and places. Pure.
//
// Source: NVIDIA's MIG user guide ("Supported MIG Profiles") and the listings of
// `nvidia-smi mig -lgip` that it shows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sim_state/layout.h"

namespace ndp::sim_state {

struct GpuInstanceProfile {
  std::string_view name;     // as nvidia-smi shows it: 1g.10gb+me
  std::uint32_t number = 0;  // NVML's profile number; tells slices and attribute
  std::uint32_t id = 0;      // NVML's id field
  std::uint32_t slices = 0;  // compute slices
  std::uint32_t memory_slices = 0;
  std::uint32_t instances = 0;  // how many fit
  std::uint32_t sm = 0;
  std::uint32_t copy = 0;
  std::uint32_t decoder = 0;
  std::uint32_t encoder = 0;
  std::uint32_t jpeg = 0;
  std::uint32_t ofa = 0;
  std::uint32_t memory_mib = 0;
};

struct MigModel {
  std::string_view name;
  std::uint32_t max_devices = 0;
  std::uint32_t memory_slices = 0;
  std::span<const GpuInstanceProfile> profiles;
};

std::span<const MigModel> MigModels();
// -1 where there is no such model.
int FindMigModel(std::string_view name);

// nullptr where the model lacks the profile.
const GpuInstanceProfile* FindProfile(const MigModel& model, std::uint32_t number);
const GpuInstanceProfile* FindProfile(const MigModel& model, std::string_view name);

// The number and NVML's id of a compute instance profile of so many slices; -1 where none exists.
int ComputeProfile(std::uint32_t slices);
std::uint32_t ComputeProfileSlices(std::uint32_t number);  // 0: no such profile

// The layout for a text such as "1g.10gb*7", "3g.40gb,2g.20gb,1g.10gb*2" or "1c.2g.20gb*2,2g.20gb":
// profile names separated by commas, each perhaps with a count; `-` leaves a MIG index empty. A
// name that begins with `<n>c.` is a compute instance of n slices: one after the other they fill
// GPU instances of their kind. Empty text is the empty layout. Devices that `before` held with the
// same place and profile keep their UUIDs; all others are new.
Result<MigLayout> ParseMigLayout(const MigModel& model, std::string_view text,
                                 std::string_view gpu_uuid, const MigLayout& before,
                                 std::uint32_t generation);

}  // namespace ndp::sim_state
