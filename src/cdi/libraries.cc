#include "cdi/libraries.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <span>

#include "base/text.h"
#include "cdi/hooks.h"
#include "cdi/paths.h"

namespace ndp::cdi {
namespace {

constexpr std::array<std::string_view, 11> kSearchFolders = {
    "/",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu/nvidia/current",
    "/lib/aarch64-linux-gnu/nvidia/current"};

// Libraries that a driver installs without its version in their names, or for which a distribution
// has one of its own: only where asked for.
constexpr std::array<std::string_view, 11> kExplicitLibraries = {"libEGL.so",
                                                                 "libGL.so",
                                                                 "libGLESv1_CM.so",
                                                                 "libGLESv2.so",
                                                                 "libGLX.so",
                                                                 "libGLdispatch.so",
                                                                 "libOpenCL.so",
                                                                 "libOpenGL.so",
                                                                 "libnvidia-api.so",
                                                                 "libnvidia-egl-xcb.so",
                                                                 "libnvidia-egl-xlib.so"};

constexpr std::size_t kMostFollowed = 1000;

// Real files matching `pattern` in `folders`.
std::vector<std::string> FindIn(const DriverRoot& root, std::span<const std::string> folders,
                                std::string_view pattern) {
  std::vector<std::string> found;
  for (const std::string& folder : folders) {
    for (const std::string& hit : root.Glob(folder, pattern)) {
      auto real = root.Resolve(hit);
      if (real && IsPrintablePath(*real)) AppendOnce(found, std::move(*real));
    }
  }
  return found;
}

// What follows "libcuda.so." in the name of the first hit, else of libnvidia-ml.
Result<std::string> FindVersion(const DriverRoot& root, LibraryLocator& locator,
                                std::string_view version) {
  std::string suffix = version.empty() ? "*.*" : std::string(version);
  for (std::string_view library : {"libcuda.so.", "libnvidia-ml.so."}) {
    auto hits = locator.Find(fmt::format("{}{}", library, suffix));
    if (hits.empty()) continue;
    std::string_view name = BaseName(hits.front());
    if (name.starts_with(library) && name.size() > library.size()) {
      return std::string(name.substr(library.size()));
    }
  }
  return Error(
      Code::kNotFound,
      fmt::format("neither libcuda.so.{0} nor libnvidia-ml.so.{0} is in the library "
                  "folders or the loader's cache under the driver root, seen here at {1}{2}: "
                  "--driver-root-ctr-path must name the folder where it is (/ for a "
                  "program that runs on the node itself)",
                  suffix, root.fs().root().string(),
                  root.IsDirectory("/") ? "" : ", which does not exist"));
}

// "libcuda.so" of "libcuda.so.1"; empty where there is no such part.
std::string_view SoName(std::string_view name) {
  while (!name.ends_with(".so")) {
    std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return {};
    name = name.substr(0, dot);
  }
  return name;
}

// Links that no library's SONAME tells: programs open libcuda.so, and GLVND looks for the
// indirect GLX library under that name.
std::optional<std::string> WellKnownLink(std::string_view folder, std::string_view name) {
  auto link = [&](std::string_view target, std::string_view as) {
    return SymlinkArg(target, JoinPath(folder, as));
  };
  if (WildcardMatch("libcuda.so.*.*", name)) return link("libcuda.so.1", "libcuda.so");
  if (WildcardMatch("libGLX_nvidia.so.*.*", name)) return link(name, "libGLX_indirect.so.0");
  if (WildcardMatch("libnvidia-opticalflow.so.*.*", name)) {
    return link("libnvidia-opticalflow.so.1", "libnvidia-opticalflow.so");
  }
  return std::nullopt;
}

// Only links that the host has too.
void AppendSonameLinks(Discovery& discovery, const std::string& file,
                       std::vector<std::string>& links) {
  std::string folder(ParentPath(file));
  std::string name(BaseName(file));
  auto read = discovery.driver().Soname(file);
  if (!read.ok()) {
    discovery.Warn(fmt::format("no links for library {}: {}", name, read.error().message()));
    return;
  }
  std::string soname = read->value_or(name);
  // A name, not a path: a link must stay in the library's folder.
  if (soname.find('/') != std::string::npos || !IsPrintablePath(soname)) {
    discovery.Warn(fmt::format("no links for library {}: its SONAME is no file name", file));
    return;
  }
  auto add = [&](std::string_view target, std::string_view as) {
    std::string path = JoinPath(folder, as);
    if (as.empty() || as == target || !discovery.driver().ReadLink(path)) return;
    AppendOnce(links, SymlinkArg(target, path));
  };
  add(name, soname);
  std::string_view target = soname.empty() ? std::string_view(name) : soname;
  add(target, SoName(target));
}

}  // namespace

const std::vector<LdCacheEntry>& LibraryLocator::Cached() {
  if (cache_read_) return cached_;
  cache_read_ = true;
  auto text = root_.Read("/etc/ld.so.cache");
  if (!text.ok()) {
    if (text.error().code() != Code::kNotFound) root_.Note(text.error().message());
    return cached_;
  }
  cache_ = *std::move(text);
  auto entries = ParseLdCache(std::as_bytes(std::span(cache_)));
  if (entries.ok()) {
    cached_ = *std::move(entries);
  } else {
    root_.Note(fmt::format("/etc/ld.so.cache: {}", entries.error().message()));
  }
  return cached_;
}

// The cache knows libraries by their SONAMEs, which link to the files with a version: every step of
// the way counts. All names of a library begin alike, so only those that do are followed.
std::vector<std::string> LibraryLocator::FindInCache(std::string_view pattern) {
  std::string_view start = pattern.substr(0, pattern.find('*'));
  if (std::size_t end = start.find(".so"); end != std::string_view::npos) {
    start = start.substr(0, end + 3);
  }
  std::vector<std::string> found;
  std::set<std::string_view> followed;
  for (const LdCacheEntry& entry : Cached()) {
    if (!BaseName(entry.path).starts_with(start) || !IsPrintablePath(entry.path)) continue;
    // A cache that names one library a thousand times is no loader's.
    if (followed.size() == kMostFollowed) break;
    if (!followed.insert(entry.path).second) continue;
    for (const std::string& path : root_.LinkChain(entry.path)) {
      if (!WildcardMatch(pattern, BaseName(path)) || !root_.IsFile(path)) continue;
      auto real = root_.Resolve(path);
      if (real && IsPrintablePath(*real)) AppendOnce(found, std::move(*real));
    }
  }
  return found;
}

std::vector<std::string> LibraryLocator::Find(std::string_view pattern) {
  static const std::vector<std::string> folders(kSearchFolders.begin(), kSearchFolders.end());
  std::vector<std::string> found = FindIn(root_, folders, pattern);
  return found.empty() ? FindInCache(pattern) : found;
}

Result<DriverLibraries> DiscoverLibraries(const Discovery& discovery, LibraryLocator& locator,
                                          std::string_view version) {
  const DriverRoot& root = discovery.driver();
  // It becomes part of patterns and paths.
  if (version.find_first_of("*/") != std::string::npos) {
    return Error(Code::kInvalidArgument, fmt::format("\"{}\" is no version of a driver", version));
  }
  DriverLibraries libraries;
  NDP_TRY(libraries.version, FindVersion(root, locator, version));
  for (const std::string& file : locator.Find(fmt::format("lib*.so.{}", libraries.version))) {
    AppendOnce(libraries.folders, std::string(ParentPath(file)));
  }
  std::vector<std::string> folders = libraries.folders;
  for (const std::string& folder : libraries.folders) folders.push_back(JoinPath(folder, "vdpau"));
  auto add = [&](std::span<const std::string> in, std::string_view pattern) {
    for (std::string& file : FindIn(root, in, pattern))
      AppendOnce(libraries.files, std::move(file));
  };
  add(folders, fmt::format("*.so.{}", libraries.version));
  // NVVM of older drivers, whose name has a version of its own.
  add(libraries.folders, "libnvidia-nvvm70.so.*");
  if (discovery.options().has(config::CdiFeature::kEnableExplicitDriverLibraries)) {
    for (std::string_view name : kExplicitLibraries) add(libraries.folders, name);
  }
  return libraries;
}

std::vector<std::string> LibraryLinks(Discovery& discovery, const std::vector<std::string>& files) {
  std::vector<std::string> links;
  for (const std::string& file : files) {
    std::string_view name = BaseName(file);
    if (auto link = WellKnownLink(ParentPath(file), name)) AppendOnce(links, std::move(*link));
    if (WildcardMatch("*.*.*", name)) AppendSonameLinks(discovery, file, links);
  }
  return links;
}

std::vector<std::string> LdcacheFolders(const std::vector<std::string>& files) {
  std::vector<std::string> folders;
  for (const std::string& file : files) {
    std::string_view name = BaseName(file);
    std::size_t suffix = name.rfind(".so");
    // "lib", at least one character, ".so", then nothing or a dot.
    bool library = name.starts_with("lib") && suffix != std::string_view::npos && suffix > 3 &&
                   (suffix + 3 == name.size() || name[suffix + 3] == '.');
    if (library) AppendOnce(folders, std::string(ParentPath(file)));
  }
  return folders;
}

}  // namespace ndp::cdi
