#include "cdi/names.h"

#include <fmt/format.h>

#include "base/text.h"

namespace ndp::cdi {
namespace {

// Kubernetes' limit for the part of an annotation key after the slash.
constexpr std::size_t kMaxKeyName = 63;
constexpr std::string_view kPluginName = "nvidia-device-plugin";

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlphanumeric(char c) { return IsLetter(c) || IsDigit(c); }

Error Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

// First and last character alphanumeric (a letter first, where asked), `inner` allowed besides.
Status ValidateName(std::string_view what, std::string_view name, bool letter_first,
                    std::string_view inner) {
  if (name.empty()) return Invalid(fmt::format("{} is empty", what));
  if (letter_first && !IsLetter(name.front())) {
    return Invalid(fmt::format("{} \"{}\" must start with a letter", what, name));
  }
  if (!IsAlphanumeric(name.front()) || !IsAlphanumeric(name.back())) {
    return Invalid(fmt::format("{} \"{}\" must start and end with a letter or digit", what, name));
  }
  for (char c : name) {
    if (!IsAlphanumeric(c) && inner.find(c) == std::string_view::npos) {
      return Invalid(
          fmt::format("{} \"{}\" may hold only letters, digits and \"{}\"", what, name, inner));
    }
  }
  return {};
}

}  // namespace

Status ValidateVendor(std::string_view vendor) {
  return ValidateName("vendor", vendor, true, "._-");
}

Status ValidateClass(std::string_view device_class) {
  return ValidateName("class", device_class, true, "._-");
}

Status ValidateKind(std::string_view kind) {
  std::size_t slash = kind.find('/');
  if (slash == std::string_view::npos) {
    return Invalid(fmt::format("kind \"{}\" is not of the form vendor/class", kind));
  }
  NDP_TRY(ValidateVendor(kind.substr(0, slash)));
  return ValidateClass(kind.substr(slash + 1));
}

Status ValidateDeviceName(std::string_view name) {
  return ValidateName("device name", name, false, "._-:");
}

std::string OwnName(std::string_view device_class, std::string_view name) {
  return QualifiedName{std::string(kVendor), std::string(device_class), std::string(name)}.Text();
}

Result<QualifiedName> ParseQualifiedName(std::string_view text) {
  std::size_t slash = text.find('/');
  std::size_t equals = text.find('=');
  if (slash == std::string_view::npos || equals == std::string_view::npos || slash > equals) {
    return Invalid(fmt::format("\"{}\" is not of the form vendor/class=device", text));
  }
  std::string_view vendor = text.substr(0, slash);
  std::string_view device_class = text.substr(slash + 1, equals - slash - 1);
  std::string_view name = text.substr(equals + 1);
  std::string context = fmt::format("\"{}\"", text);
  NDP_TRY(ValidateVendor(vendor).Context(context));
  NDP_TRY(ValidateClass(device_class).Context(context));
  NDP_TRY(ValidateDeviceName(name).Context(context));
  return QualifiedName{std::string(vendor), std::string(device_class), std::string(name)};
}

Status ValidateAnnotationPrefix(std::string_view prefix) {
  if (prefix.empty() || prefix.back() != '/' ||
      !IsDns1123Subdomain(prefix.substr(0, prefix.size() - 1))) {
    return Invalid(fmt::format(
        "annotation prefix \"{}\" is not a DNS subdomain followed by a slash, such as \"{}\"",
        prefix, kDefaultAnnotationPrefix));
  }
  return {};
}

Result<std::pair<std::string, std::string>> Annotation(std::string_view prefix, std::string_view id,
                                                       std::span<const std::string> names) {
  std::string name = fmt::format("{}_{}", kPluginName, id);
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  if (name.size() > kMaxKeyName) {
    return Invalid(
        fmt::format("annotation name \"{}\" is longer than {} characters", name, kMaxKeyName));
  }
  NDP_TRY(ValidateName("annotation name", name, false, "._-"));
  for (const std::string& device : names) {
    if (auto parsed = ParseQualifiedName(device); !parsed.ok()) return parsed.error();
  }
  return std::pair(std::string(prefix) + name, Join(names, ","));
}

}  // namespace ndp::cdi
