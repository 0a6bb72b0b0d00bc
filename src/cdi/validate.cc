#include "cdi/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "cdi/canonical.h"
#include "cdi/names.h"

namespace ndp::cdi {
namespace {

constexpr std::array<std::string_view, 6> kHookNames = {
    "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};

// Kubernetes' limit, which the CDI library applies to annotations.
constexpr std::size_t kMaxAnnotationBytes = 256 << 10;

Error Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

Status ValidateEnv(const std::vector<std::string>& env) {
  for (const std::string& entry : env) {
    if (entry.find('=') == std::string::npos || entry.starts_with('=')) {
      return Invalid(fmt::format("env \"{}\" is not of the form KEY=value", entry));
    }
  }
  return {};
}

Status ValidateNode(const DeviceNode& node) {
  if (node.path.empty()) return Invalid("device node without a path");
  if (node.type.size() > 1 || std::string_view("bcup").find(node.type) == std::string_view::npos) {
    return Invalid(
        fmt::format("device node {}: type \"{}\" is none of b, c, u, p", node.path, node.type));
  }
  // "none" is of newer versions of the specification.
  if (node.permissions != "none" &&
      node.permissions.find_first_not_of("rwm") != std::string::npos) {
    return Invalid(fmt::format("device node {}: permissions \"{}\" hold more than r, w, m",
                               node.path, node.permissions));
  }
  return {};
}

Status ValidateHook(const Hook& hook) {
  if (std::ranges::find(kHookNames, hook.hook_name) == kHookNames.end()) {
    return Invalid(fmt::format("hook name \"{}\" is not one of OCI's", hook.hook_name));
  }
  if (hook.path.empty()) return Invalid(fmt::format("hook {} without a path", hook.hook_name));
  return ValidateEnv(hook.env).Context(fmt::format("hook {}", hook.hook_name));
}

Status ValidateNetDevices(const std::vector<NetDevice>& devices) {
  std::set<std::string> hosts;
  std::set<std::string> names;
  for (const NetDevice& device : devices) {
    if (device.host_interface_name.empty() || device.name.empty()) {
      return Invalid("net device without hostInterfaceName or name");
    }
    if (!hosts.insert(device.host_interface_name).second || !names.insert(device.name).second) {
      return Invalid(
          fmt::format("net device {} ({}) appears twice", device.host_interface_name, device.name));
    }
  }
  return {};
}

// `line`: of what is looked at, when it returns an error.
Status ValidateEdits(const Edits& edits, Line& line) {
  line = edits.line;
  NDP_TRY(ValidateEnv(edits.env));
  for (const DeviceNode& node : edits.device_nodes) {
    line = node.line;
    NDP_TRY(ValidateNode(node));
  }
  for (const Hook& hook : edits.hooks) {
    line = hook.line;
    NDP_TRY(ValidateHook(hook));
  }
  for (const Mount& mount : edits.mounts) {
    line = mount.line;
    if (mount.host_path.empty() || mount.container_path.empty()) {
      return Invalid(fmt::format("mount \"{}\" at \"{}\" lacks a path", mount.host_path,
                                 mount.container_path));
    }
  }
  line = edits.line;
  if (edits.intel_rdt) {
    const std::string& clos = edits.intel_rdt->clos_id;
    // A folder name below /sys/fs/resctrl.
    if (clos.size() >= 4096 || clos == "." || clos == ".." ||
        clos.find_first_of("/\n") != std::string::npos) {
      return Invalid(fmt::format("intelRdt: closID \"{}\" is not a folder name", clos));
    }
  }
  return ValidateNetDevices(edits.net_devices);
}

// A label name as Kubernetes defines it: optional DNS subdomain and slash, then at most 63
// characters.
bool IsQualifiedKey(std::string_view key) {
  if (std::size_t slash = key.find('/'); slash != std::string_view::npos) {
    if (!IsDns1123Subdomain(ToLower(key.substr(0, slash)))) return false;
    key.remove_prefix(slash + 1);
  }
  return key.size() <= 63 && key.find(':') == std::string_view::npos &&
         ValidateDeviceName(key).ok();
}

Status ValidateAnnotations(const std::map<std::string, std::string>& annotations) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : annotations) {
    if (!IsQualifiedKey(key)) {
      return Invalid(fmt::format("annotation key \"{}\" is not a qualified name", key));
    }
    bytes += key.size() + value.size();
  }
  if (bytes > kMaxAnnotationBytes) {
    return Invalid(fmt::format("annotations hold {} bytes, at most {} are allowed", bytes,
                               kMaxAnnotationBytes));
  }
  return {};
}

Status ValidateDevice(const Device& device, Line& line) {
  line = device.line;
  NDP_TRY(ValidateDeviceName(device.name));
  std::string context = fmt::format("device {}", device.name);
  NDP_TRY(ValidateAnnotations(device.annotations).Context(context));
  if (device.edits.empty()) {
    return Invalid(fmt::format("{}: invalid device, empty device edits", context));
  }
  return ValidateEdits(device.edits, line).Context(context);
}

Status ValidateAll(const Spec& spec, Line& line) {
  if (!IsKnownVersion(spec.version)) {
    return Invalid(
        fmt::format("cdiVersion \"{}\" is no released version (0.1.0 … 1.1.0)", spec.version));
  }
  std::string minimum = MinimumVersion(spec);
  if (VersionLess(spec.version, minimum)) {
    return Invalid(
        fmt::format("cdiVersion {} is too old for what the file uses, at least {} is "
                    "needed",
                    spec.version, minimum));
  }
  NDP_TRY(ValidateKind(spec.kind));
  NDP_TRY(ValidateAnnotations(spec.annotations));
  NDP_TRY(ValidateEdits(spec.edits, line).Context("containerEdits"));
  line = {};
  if (spec.devices.empty()) return Invalid("invalid spec, no devices");
  std::set<std::string> names;
  for (const Device& device : spec.devices) {
    NDP_TRY(ValidateDevice(device, line));
    line = device.line;
    if (!names.insert(device.name).second) {
      return Invalid(fmt::format("device {} appears twice", device.name));
    }
  }
  return {};
}

}  // namespace

Status Validate(const Spec& spec) {
  Line line;
  Status valid = ValidateAll(spec, line);
  if (line.number == 0) return valid;
  return std::move(valid).Context(fmt::format("line {}", line.number));
}

}  // namespace ndp::cdi
