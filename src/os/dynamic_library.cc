#include "os/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

namespace ndp::os {

Result<DynamicLibrary> DynamicLibrary::Open(const std::filesystem::path& path) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Error(Code::kNotFound, "load " + path.string() + ": " +
                                      (why != nullptr ? why : "the loader gave no reason"));
  }
  std::filesystem::path real = path;
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr &&
      map->l_name[0] != '\0') {
    std::error_code error;
    auto resolved = std::filesystem::canonical(map->l_name, error);
    real = error ? std::filesystem::path(map->l_name) : std::move(resolved);
  }
  return DynamicLibrary(handle, std::move(real));
}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* DynamicLibrary::RawSymbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace ndp::os
