#include "cdi/spec_dir.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "cdi/names.h"
#include "cdi/text.h"
#include "doc/json.h"
#include "doc/yaml.h"
#include "os/file.h"
#include "os/host_fs.h"

namespace ndp::cdi {
namespace {

namespace stdfs = std::filesystem;

Result<std::string> ReadFile(const stdfs::path& file) {
  return os::HostFs(file.parent_path()).Read(file.filename().string());
}

// The kind that a file defines, if it is a specification of any sort.
std::optional<std::string> KindOf(std::string_view text) {
  auto document = doc::ParseJson(text);  // much faster, and what we write
  if (!document.ok()) document = doc::ParseYaml(text);
  if (!document.ok()) return std::nullopt;
  const doc::Value* kind = document->Find("kind");
  return kind == nullptr ? std::nullopt : kind->AsString();
}

// A file of our name may be replaced if it is one of ours, or nothing a runtime could use: a
// broken file would otherwise stop us for ever.
Status MayReplace(const stdfs::path& file, std::string_view kind) {
  std::error_code error;
  stdfs::file_status status = stdfs::symlink_status(file, error);
  if (!stdfs::exists(status)) return {};
  if (stdfs::is_directory(status)) {
    return Error(Code::kInvalidArgument, fmt::format("{} is a folder: remove it", file.string()));
  }
  auto text = ReadFile(file);
  if (!text.ok()) return {};
  auto present = KindOf(*text);
  if (present && !present->empty() && *present != kind) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} is not ours: it defines \"{}\", ours is \"{}\"; move it away",
                             file.string(), *present, kind));
  }
  return {};
}

bool IsSpecName(const stdfs::path& file) {
  return file.extension() == ".json" || file.extension() == ".yaml";
}

bool IsOurName(std::string_view file) {
  return std::ranges::any_of(kClasses, [file](std::string_view device_class) {
    return file == fmt::format("{}-{}.json", kVendor, device_class);
  });
}

}  // namespace

stdfs::path SpecDir::FileOf(std::string_view kind) const {
  std::string name(kind);
  std::ranges::replace(name, '/', '-');
  return folder_ / (name + ".json");
}

Result<bool> SpecDir::Write(const Spec& spec) const {
  stdfs::path file = FileOf(spec.kind);
  NDP_TRY(os::MakeFolder(folder_));
  NDP_TRY(MayReplace(file, spec.kind));
  return os::AtomicWriteFile(file, ToJson(spec), {.mode = 0644});
}

std::optional<Spec> SpecDir::Read(std::string_view kind) const {
  auto text = ReadFile(FileOf(kind));
  if (!text.ok()) return std::nullopt;
  auto spec = ParseSpec(*text);
  if (!spec.ok() || spec->kind != kind) return std::nullopt;
  return *std::move(spec);
}

std::vector<stdfs::path> SpecDir::RemoveDisabled(const std::set<std::string>& enabled) const {
  std::vector<stdfs::path> removed;
  for (const std::string_view device_class : kClasses) {
    if (enabled.contains(std::string(device_class))) continue;
    std::string kind = fmt::format("{}/{}", kVendor, device_class);
    if (!Read(kind)) continue;
    std::error_code error;
    if (stdfs::remove(FileOf(kind), error)) removed.push_back(FileOf(kind));
  }
  return removed;
}

std::map<stdfs::path, std::vector<std::string>> SpecDir::Conflicts(const Spec& spec) const {
  std::map<stdfs::path, std::vector<std::string>> found;
  const std::string vendor = spec.kind.substr(0, spec.kind.find('/'));
  std::error_code error;
  for (stdfs::directory_iterator entry(folder_, error);
       !error && entry != stdfs::directory_iterator(); entry.increment(error)) {
    const stdfs::path& file = entry->path();
    if (!IsSpecName(file) || file == FileOf(spec.kind)) continue;
    auto text = ReadFile(file);
    // Most are of others, and some take long to read.
    if (!text.ok() || text->find(vendor) == std::string::npos) continue;
    auto other = ParseSpec(*text);
    if (!other.ok() || other->kind != spec.kind) continue;
    for (const Device& device : other->devices) {
      if (spec.Find(device.name) != nullptr) found[file].push_back(device.name);
    }
  }
  return found;
}

std::string SpecDir::OthersState() const {
  std::vector<std::string> files;
  std::error_code error;
  for (stdfs::directory_iterator entry(folder_, error);
       !error && entry != stdfs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!IsSpecName(entry->path()) || IsOurName(name)) continue;
    struct stat state{};
    if (::stat(entry->path().c_str(), &state) != 0) continue;
    files.push_back(fmt::format("{} {} {} {}.{}", name, state.st_ino, state.st_size,
                                state.st_mtim.tv_sec, state.st_mtim.tv_nsec));
  }
  std::ranges::sort(files);
  return fmt::format("{}", fmt::join(files, "\n"));
}

}  // namespace ndp::cdi
