// The texts of the settings' enumerations, as they are written in flags, variables and files.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "config/settings.h"

namespace ndp::config {

template <typename E>
struct EnumNames;  // kAll: each value and its text

#define NDP_CONFIG_ENUM(type, count, ...)                                                      \
  template <>                                                                                  \
  struct EnumNames<type> {                                                                     \
    static constexpr std::array<std::pair<type, std::string_view>, count> kAll{{__VA_ARGS__}}; \
  }

NDP_CONFIG_ENUM(MigStrategy, 3, {MigStrategy::kNone, "none"}, {MigStrategy::kSingle, "single"},
                {MigStrategy::kMixed, "mixed"});
NDP_CONFIG_ENUM(MigSinglePartial, 2, {MigSinglePartial::kNone, "none"},
                {MigSinglePartial::kMajority, "majority"});
NDP_CONFIG_ENUM(DeviceListStrategy, 4, {DeviceListStrategy::kEnvvar, "envvar"},
                {DeviceListStrategy::kVolumeMounts, "volume-mounts"},
                {DeviceListStrategy::kCdiAnnotations, "cdi-annotations"},
                {DeviceListStrategy::kCdiCri, "cdi-cri"});
NDP_CONFIG_ENUM(DeviceIdStrategy, 2, {DeviceIdStrategy::kUuid, "uuid"},
                {DeviceIdStrategy::kIndex, "index"});
NDP_CONFIG_ENUM(AllocationPolicy, 2, {AllocationPolicy::kDistributed, "distributed"},
                {AllocationPolicy::kPacked, "packed"});
NDP_CONFIG_ENUM(DiscoveryStrategy, 4, {DiscoveryStrategy::kAuto, "auto"},
                {DiscoveryStrategy::kNvml, "nvml"}, {DiscoveryStrategy::kTegra, "tegra"},
                {DiscoveryStrategy::kVfio, "vfio"});
NDP_CONFIG_ENUM(SharingStrategy, 3, {SharingStrategy::kNone, "none"},
                {SharingStrategy::kTimeSlicing, "time-slicing"}, {SharingStrategy::kMps, "mps"});
NDP_CONFIG_ENUM(XidPolicy, 2, {XidPolicy::kCatalogue, "catalogue"},
                {XidPolicy::kUpstream, "upstream"});
NDP_CONFIG_ENUM(XidClass, 5, {XidClass::kIgnore, "ignore"}, {XidClass::kApplication, "application"},
                {XidClass::kDriver, "driver"}, {XidClass::kFault, "fault"},
                {XidClass::kReset, "reset"});
NDP_CONFIG_ENUM(CdiFeature, 6, {CdiFeature::kDisableNvsandboxutils, "disable-nvsandboxutils"},
                {CdiFeature::kEnableExplicitDriverLibraries, "enable-explicit-driver-libraries"},
                {CdiFeature::kEnableCoherentAnnotations, "enable-coherent-annotations"},
                {CdiFeature::kNoAdditionalGidsForDeviceNodes,
                 "no-additional-gids-for-device-nodes"},
                {CdiFeature::kDisableIpcDiscoverer, "disable-ipc-discoverer"},
                {CdiFeature::kDisableMultipleCsvDevices, "disable-multiple-csv-devices"});
NDP_CONFIG_ENUM(FallbackStrategy, 3, {FallbackStrategy::kNamed, "named"},
                {FallbackStrategy::kSingle, "single"}, {FallbackStrategy::kEmpty, "empty"});
NDP_CONFIG_ENUM(log::Format, 2, {log::Format::kText, "text"}, {log::Format::kJson, "json"});
#undef NDP_CONFIG_ENUM

template <typename E>
constexpr std::string_view Name(E value) {
  for (const auto& [known, text] : EnumNames<E>::kAll) {
    if (known == value) return text;
  }
  return {};
}

template <typename E>
constexpr std::optional<E> FromName(std::string_view name) {
  for (const auto& [value, text] : EnumNames<E>::kAll) {
    if (text == name) return value;
  }
  return std::nullopt;
}

template <typename E>
std::vector<std::string_view> AllNames() {
  std::vector<std::string_view> names;
  for (const auto& [value, text] : EnumNames<E>::kAll) names.push_back(text);
  return names;
}

}  // namespace ndp::config
