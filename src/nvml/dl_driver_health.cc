// What health polls read of one GPU.
#include "nvml/dl_driver.h"

namespace ndp::nvml {
namespace {

constexpr int kUncorrected = 1;
constexpr int kCorrected = 0;
constexpr int kVolatile = 0;
constexpr int kGpuSensor = 0;
constexpr int kShutdownThreshold = 0;

}  // namespace

Reply<std::uint64_t> DlDriver::UsedMemory(const std::string& pci_bus_id) {
  auto device = Find(pci_bus_id);
  if (!device) return std::unexpected(device.error());
  abi::Memory memory{};
  if (auto got = lib().Call(lib().device_memory, *device, &memory); !got) {
    return std::unexpected(got.error());
  }
  return memory.used;
}

Reply<int> DlDriver::RecoveryAction(abi::Device device) const {
  abi::FieldValue field{};
  field.field_id = abi::kFieldRecoveryAction;
  if (auto got = lib().Call(lib().field_values, device, 1, &field); !got) {
    return std::unexpected(got.error());
  }
  if (field.nvml_return != kSuccess) {
    return std::unexpected(
        Failure{field.nvml_return, "nvmlDeviceGetFieldValues", "field 230 (recovery action)"});
  }
  switch (field.value_type) {
    case 2:
    case 3:
    case 4:
      return static_cast<int>(field.value.ul);
    case 6:
      return field.value.us;
    default:
      return static_cast<int>(field.value.u);
  }
}

Reply<int> DlDriver::RecoveryAction(const std::string& pci_bus_id) {
  auto device = Find(pci_bus_id);
  if (!device) return std::unexpected(device.error());
  return RecoveryAction(*device);
}

Reply<HealthSample> DlDriver::Sample(const std::string& pci_bus_id) {
  auto found = Find(pci_bus_id);
  if (!found) return std::unexpected(found.error());
  const abi::Device device = *found;
  HealthSample sample;
  // NOT_SUPPORTED leaves the value absent; any other failure is reported beside the values.
  const auto keep = [&sample](const auto& reply) {
    if (!reply && !reply.error().unsupported()) sample.failures.push_back(reply.error());
    return reply.has_value();
  };
  const auto read = [&](auto& target, const auto& function, auto... args) {
    typename std::remove_reference_t<decltype(target)>::value_type value{};
    if (keep(lib().Call(function, device, args..., &value))) target = value;
  };
  if (auto action = RecoveryAction(device); keep(action)) sample.recovery_action = *action;
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failure = 0;
  if (keep(lib().Call(lib().remapped_rows, device, &corrected, &uncorrected, &pending, &failure))) {
    sample.remapped_rows = HealthSample::RemappedRows{.correctable = corrected,
                                                      .uncorrectable = uncorrected,
                                                      .pending = pending != 0,
                                                      .failure = failure != 0};
  }
  int retired = 0;
  if (keep(lib().Call(lib().retired_pages_pending, device, &retired))) {
    sample.retired_pages_pending = retired != 0;
  }
  read(sample.volatile_uncorrected_ecc, lib().total_ecc_errors, kUncorrected, kVolatile);
  read(sample.volatile_corrected_ecc, lib().total_ecc_errors, kCorrected, kVolatile);
  unsigned replays = 0;
  if (keep(lib().Call(lib().pcie_replay_counter, device, &replays))) sample.pcie_replays = replays;
  read(sample.total_energy_mj, lib().total_energy);
  read(sample.temperature, lib().temperature, kGpuSensor);
  read(sample.temperature_shutdown, lib().temperature_threshold, kShutdownThreshold);
  read(sample.compute_mode, lib().device_compute_mode);
  sample.fabric = ReadFabric(device);
  return sample;
}

}  // namespace ndp::nvml
