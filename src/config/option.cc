#include "config/option.h"

#include "config/option_table.h"

namespace ndp::config {

std::string_view ProgramName(Program program) {
  switch (program) {
    case Program::kDevicePlugin:
      return "device-plugin";
    case Program::kFeatureDiscovery:
      return "feature-discovery";
    case Program::kMpsControlDaemon:
      return "mps-control-daemon";
    case Program::kConfigManager:
      return "config-manager";
  }
  return {};
}

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return "text";
    case Kind::kChoice:
      return "choice";
    case Kind::kBool:
      return "boolean";
    case Kind::kNumber:
      return "number";
    case Kind::kDuration:
      return "duration";
    case Kind::kList:
      return "list";
  }
  return {};
}

std::vector<std::string_view> Option::EnvOf(Program program) const {
  if (!of(program)) return {};
  std::vector<std::string_view> names;
  if (program == Program::kFeatureDiscovery && !gfd_env.empty()) names.push_back(gfd_env);
  names.insert(names.end(), env.begin(), env.end());
  return names;
}

std::span<const Option> AllOptions() {
  static const std::vector<Option> options = [] {
    std::vector<Option> table;
    AddNodeOptions(table);
    AddPluginOptions(table);
    AddHealthOptions(table);
    AddClusterOptions(table);
    return table;
  }();
  return options;
}

std::vector<const Option*> OptionsOf(Program program) {
  std::vector<const Option*> options;
  for (const Option& option : AllOptions()) {
    if (option.of(program)) options.push_back(&option);
  }
  return options;
}

std::span<const std::string_view> StructuredKeys() {
  static constexpr std::string_view kKeys[] = {
      "version",
      "sharing.timeSlicing.renameByDefault",
      "sharing.timeSlicing.failRequestsGreaterThanOne",
      "sharing.timeSlicing.resources[].name",
      "sharing.timeSlicing.resources[].rename",
      "sharing.timeSlicing.resources[].devices",
      "sharing.timeSlicing.resources[].replicas",
      "sharing.mps.renameByDefault",
      "sharing.mps.failRequestsGreaterThanOne",
      "sharing.mps.resources[].name",
      "sharing.mps.resources[].rename",
      "sharing.mps.resources[].devices",
      "sharing.mps.resources[].replicas",
      "resources.gpus[].pattern",
      "resources.gpus[].name",
      "resources.mig[].pattern",
      "resources.mig[].name",
      "devices.include[].index",
      "devices.include[].uuid",
      "devices.include[].pciBusId",
      "devices.include[].name",
      "devices.include[].minMemory",
      "devices.exclude[].index",
      "devices.exclude[].uuid",
      "devices.exclude[].pciBusId",
      "devices.exclude[].name",
      "devices.exclude[].minMemory",
      "health.xids.ignore",
      "health.xids.application",
      "health.xids.driver",
      "health.xids.fault",
      "health.xids.reset",
  };
  return kKeys;
}

}  // namespace ndp::config
