// Names of CDI: kinds, device names, qualified names ("vendor/class=device"), and the annotation
// by which a container runtime learns of them. Pure, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ndp::cdi {

inline constexpr std::string_view kVendor = "k8s.device-plugin.nvidia.com";
inline constexpr std::string_view kGpuClass = "gpu";
inline constexpr std::string_view kImexClass = "imex-channel";
inline constexpr std::string_view kGdrCopyClass = "gdrcopy";
inline constexpr std::string_view kGdsClass = "gds";
inline constexpr std::string_view kMofedClass = "mofed";
inline constexpr std::string_view kClasses[] = {kGpuClass, kImexClass, kGdrCopyClass, kGdsClass,
                                                kMofedClass};

inline constexpr std::string_view kDefaultAnnotationPrefix = "cdi.k8s.io/";

// The rules of the CDI specification (SPEC.md); kInvalidArgument says what is wrong.
Status ValidateVendor(std::string_view vendor);
Status ValidateClass(std::string_view device_class);
Status ValidateKind(std::string_view kind);
Status ValidateDeviceName(std::string_view name);

struct QualifiedName {
  std::string vendor;
  std::string device_class;
  std::string name;

  std::string Text() const { return vendor + "/" + device_class + "=" + name; }
  bool operator==(const QualifiedName&) const = default;
};

// A qualified name of our own vendor.
std::string OwnName(std::string_view device_class, std::string_view name);

Result<QualifiedName> ParseQualifiedName(std::string_view text);

// The annotation that hands `names` to the runtime. `prefix` ends in its slash; `id` is fresh for
// each container (a UUID), so that two allocations of one container never share a key.
Result<std::pair<std::string, std::string>> Annotation(std::string_view prefix, std::string_view id,
                                                       std::span<const std::string> names);

// An annotation prefix as Kubernetes takes it: a DNS subdomain and a slash.
Status ValidateAnnotationPrefix(std::string_view prefix);

}  // namespace ndp::cdi
