// A shared library loaded at run time. Move-only; dlclose when it goes. Any thread, one at a time.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace ndp::os {

class DynamicLibrary {
 public:
  // kNotFound with the loader's own words where it cannot be loaded. A name without a slash is
  // looked for by the loader.
  static Result<DynamicLibrary> Open(const std::filesystem::path& path);

  DynamicLibrary(DynamicLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  // nullptr where the library has no such symbol: often not a failure (an older driver).
  template <typename Function>
  Function* Symbol(const char* name) const {
    return reinterpret_cast<Function*>(RawSymbol(name));
  }

  // The real file behind the symbolic links, e.g. /usr/lib/libnvidia-ml.so.570.86.15.
  const std::filesystem::path& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::filesystem::path path)
      : handle_(handle), path_(std::move(path)) {}
  void* RawSymbol(const char* name) const;

  void* handle_ = nullptr;
  std::filesystem::path path_;
};

}  // namespace ndp::os
