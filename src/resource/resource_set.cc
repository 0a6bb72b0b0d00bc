#include "resource/resource_set.h"

#include <algorithm>

namespace ndp::resource {

std::string_view Resource::base_name() const {
  const std::string_view text = name;
  const std::size_t slash = text.rfind('/');
  return slash == std::string_view::npos ? text : text.substr(slash + 1);
}

std::size_t Resource::ids() const {
  std::size_t count = 0;
  for (const Device& device : devices) count += static_cast<std::size_t>(device.ids());
  return count;
}

const Resource* ResourceSet::Find(std::string_view name) const {
  const auto it = std::ranges::find(resources, name, &Resource::name);
  return it == resources.end() ? nullptr : &*it;
}

}  // namespace ndp::resource
