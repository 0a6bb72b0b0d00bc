#include "plugin/socket_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace ndp::plugin {
namespace {

constexpr std::string_view kPrefix = "nvidia-";
constexpr std::string_view kSuffix = ".sock";
constexpr std::size_t kDigits = 8;

// What stands between prefix and suffix; empty where the file is no plugin's socket.
std::string_view Stem(std::string_view file) {
  if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) return {};
  if (file.size() <= kPrefix.size() + kSuffix.size()) return {};
  file.remove_prefix(kPrefix.size());
  file.remove_suffix(kSuffix.size());
  return file;
}

// "-5f3a90c1", lower case as we write it.
bool EndsWithNumber(std::string_view stem) {
  if (stem.size() < kDigits + 2) return false;
  const std::string_view tail = stem.substr(stem.size() - kDigits);
  return stem[stem.size() - kDigits - 1] == '-' && std::ranges::all_of(tail, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::string_view ResourceBaseName(std::string_view resource) {
  return resource.substr(resource.find('/') + 1);  // npos + 1 is 0: no prefix, all of it
}

std::string FixedSocketName(std::string_view resource) {
  return fmt::format("{}{}{}", kPrefix, ResourceBaseName(resource), kSuffix);
}

std::string RegistrationSocketName(std::string_view resource, std::uint32_t number) {
  return fmt::format("{}{}-{:08x}{}", kPrefix, ResourceBaseName(resource), number, kSuffix);
}

bool IsPluginSocket(std::string_view file) { return !Stem(file).empty(); }

bool IsRegistrationSocket(std::string_view file) { return EndsWithNumber(Stem(file)); }

bool ServesResource(std::string_view file, std::string_view resource) {
  const std::string_view stem = Stem(file);
  const std::string_view base = ResourceBaseName(resource);
  if (stem == base) return true;
  return EndsWithNumber(stem) && stem.substr(0, stem.size() - kDigits - 1) == base;
}

}  // namespace ndp::plugin
