#include "inventory/mig_profile.h"

#include <fmt/format.h>

#include <cmath>

namespace ndp::inventory {

std::string MigProfileAttribute(std::optional<unsigned> gpu_instance_profile) {
  switch (gpu_instance_profile.value_or(0)) {
    case 7:
    case 8:
      return "+me";
    case 10:
    case 11:
    case 12:
    case 17:
      return "+gfx";
    case 13:
    case 14:
      return "-me";
    case 15:
    case 16:
      return "+me.all";
    default:
      return "";
  }
}

std::string MigProfileName(const nvml::MigDevice& device,
                           std::optional<std::uint64_t> gpu_memory_bytes) {
  if (!device.attributes || !gpu_memory_bytes || *gpu_memory_bytes == 0) return "";
  const nvml::MigAttributes& a = *device.attributes;
  if (a.gpu_instance_slices == 0) return "";
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const auto total = static_cast<double>(*gpu_memory_bytes);
  const double share = static_cast<double>(a.memory_mib) * 1024 * 1024 / total;
  const double eighths = std::ceil(share * 8) / 8;
  const auto gb = static_cast<unsigned>(std::lround(eighths * std::ceil(total / kGiB)));
  std::string name;
  if (a.compute_instance_slices != a.gpu_instance_slices) {
    name = fmt::format("{}c.", a.compute_instance_slices);
  }
  return name + fmt::format("{}g.{}gb", a.gpu_instance_slices, gb) +
         MigProfileAttribute(device.gpu_instance_profile);
}

}  // namespace ndp::inventory
