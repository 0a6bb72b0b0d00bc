// MIG devices of one GPU, as a scan reads them.
#include <array>

#include "nvml/dl_driver.h"

namespace ndp::nvml {
namespace {

// Highest GPU instance profile number known, with some room for newer drivers: a number that the
// GPU lacks answers NOT_SUPPORTED or INVALID_ARGUMENT.
constexpr unsigned kProfileNumbers = 24;

}  // namespace

void DlDriver::ReadMig(abi::Device device, Gpu& gpu) const {
  unsigned current = 0;
  unsigned pending = 0;
  if (auto got = lib().Call(lib().device_mig_mode, device, &current, &pending); !got) {
    if (!got.error().unsupported()) gpu.mig_failure = got.error();
    return;
  }
  gpu.mig_mode = MigMode{.current = current == 1, .pending = pending == 1};
  if (current != 1) return;
  if (auto got = lib().Call(lib().device_max_mig, device, &gpu.mig_slots); !got) {
    gpu.mig_failure = got.error();
    return;
  }
  std::vector<std::pair<unsigned, unsigned>> profile_numbers;  // {id, number}, read once a GPU
  for (unsigned slot = 0; slot < gpu.mig_slots; ++slot) {
    abi::Device mig = nullptr;
    if (auto got = lib().Call(lib().device_mig_by_index, device, slot, &mig); !got) {
      const int status = got.error().status;
      if (status != kNotFound && status != kInvalidArgument) gpu.mig_failure = got.error();
      continue;
    }
    if (auto read = ReadMigDevice(device, mig, slot, profile_numbers)) {
      gpu.mig_devices.push_back(*std::move(read));
    } else {
      gpu.mig_failure = read.error();
    }
  }
}

Reply<MigDevice> DlDriver::ReadMigDevice(
    abi::Device gpu, abi::Device mig, unsigned slot,
    std::vector<std::pair<unsigned, unsigned>>& profile_numbers) const {
  MigDevice out{.slot = slot};
  std::array<char, 97> buffer{};
  if (auto got = lib().Call(lib().device_uuid, mig, buffer.data(), 96U); !got) {
    return std::unexpected(got.error());
  }
  buffer.back() = '\0';
  out.uuid = buffer.data();
  if (auto got = lib().Call(lib().mig_gpu_instance_id, mig, &out.gpu_instance); !got) {
    return std::unexpected(got.error());
  }
  if (auto got = lib().Call(lib().mig_compute_instance_id, mig, &out.compute_instance); !got) {
    return std::unexpected(got.error());
  }
  abi::Attributes a{};
  if (lib().Call(lib().mig_attributes, mig, &a)) {
    out.attributes = MigAttributes{.multiprocessors = a.multiprocessors,
                                   .copy_engines = a.copy_engines,
                                   .decoders = a.decoders,
                                   .encoders = a.encoders,
                                   .jpeg_engines = a.jpeg_engines,
                                   .ofa_engines = a.ofa_engines,
                                   .gpu_instance_slices = a.gpu_instance_slices,
                                   .compute_instance_slices = a.compute_instance_slices,
                                   .memory_mib = a.memory_mib};
  }
  abi::GpuInstance instance = nullptr;
  abi::GpuInstanceInfo info{};
  if (!lib().Call(lib().gpu_instance_by_id, gpu, out.gpu_instance, &instance) ||
      !lib().Call(lib().gpu_instance_info, instance, &info)) {
    return out;  // not permitted, say: the profile then follows from the attributes alone
  }
  if (profile_numbers.empty()) {
    for (unsigned number = 0; number < kProfileNumbers; ++number) {
      abi::GpuInstanceProfileInfo profile{};
      if (lib().Call(lib().gpu_instance_profile_info, gpu, number, &profile)) {
        profile_numbers.emplace_back(profile.id, number);
      }
    }
  }
  for (const auto& [id, number] : profile_numbers) {
    if (id == info.profile_id) out.gpu_instance_profile = number;
  }
  return out;
}

}  // namespace ndp::nvml
