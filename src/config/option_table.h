// The rows of the option table, in four parts. For option.cc only.
#pragma once

#include <vector>

#include "config/option.h"

namespace ndp::config {

void AddNodeOptions(std::vector<Option>& table);     // what every program knows
void AddPluginOptions(std::vector<Option>& table);   // the device plugin's flags, CDI, IMEX, web
void AddHealthOptions(std::vector<Option>& table);   // health
void AddClusterOptions(std::vector<Option>& table);  // gpu-feature-discovery, config-manager

inline constexpr unsigned kPlugin = static_cast<unsigned>(Program::kDevicePlugin);
inline constexpr unsigned kGfd = static_cast<unsigned>(Program::kFeatureDiscovery);
inline constexpr unsigned kMps = static_cast<unsigned>(Program::kMpsControlDaemon);
inline constexpr unsigned kManager = static_cast<unsigned>(Program::kConfigManager);
inline constexpr unsigned kNode = kPlugin | kGfd | kMps;
inline constexpr unsigned kEvery = kNode | kManager;

}  // namespace ndp::config
