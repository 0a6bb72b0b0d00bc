// `ndp cdi generate|list|validate`: CDI specifications for people, and for runtimes that are used
// without the plugin.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/path.h"
#include "cdi/registry.h"
#include "cdi/text.h"
#include "cdi/validate.h"
#include "cmd/arguments.h"
#include "cmd/cdi_generate.h"
#include "cmd/command.h"
#include "os/file.h"
#include "os/host_fs.h"

namespace ndp::cmd {
namespace {

namespace stdfs = std::filesystem;

Status Validate(const std::string& file) {
  const stdfs::path path = stdfs::absolute(file);
  NDP_TRY(const std::string text, os::HostFs(path.parent_path()).Read(path.filename().string()));
  auto spec = cdi::ParseSpec(text);
  if (!spec.ok()) return std::move(spec).Context(file).error();
  NDP_TRY(cdi::Validate(*spec).Context(file));
  fmt::print("{}: valid, cdiVersion {}, {} with {} devices\n", file, spec->version, spec->kind,
             spec->devices.size());
  return {};
}

int List(const std::vector<std::string>& folders) {
  const cdi::Registry registry = cdi::ReadRegistry({folders.begin(), folders.end()});
  for (const auto& [name, file] : registry.names) fmt::print("{}\t{}\n", name, file.string());
  for (const std::string& problem : registry.problems) fmt::print(stderr, "{}\n", problem);
  if (registry.names.empty() && registry.problems.empty())
    fmt::print(stderr, "no CDI devices in {}\n", fmt::join(folders, ", "));
  return registry.problems.empty() ? kOk : kFailed;
}

Status Generate(const GenerateOptions& options, const std::string& format,
                const std::string& output) {
  NDP_TRY(const cdi::Built built, GenerateSpec(options));
  for (const std::string& warning : built.warnings) fmt::print(stderr, "warning: {}\n", warning);
  for (const auto& [uuid, reason] : built.troubles) {
    fmt::print(stderr, "warning: {} is left out: {}\n", uuid, reason);
  }
  if (!built.gpu_trouble.empty()) return Error(Code::kUnavailable, built.gpu_trouble);
  const cdi::Spec* spec = built.Find(options.cdi.gpu_class);
  if (spec == nullptr) return Error(Code::kNotFound, "this machine has no usable GPU");
  // The name of the file tells a runtime how to read it.
  const bool json = format == "json" || (format.empty() && output.ends_with(".json"));
  std::string text = json ? cdi::ToJson(*spec) : cdi::ToYaml(*spec);
  if (output.empty() || output == "-") {
    if (json) text += '\n';
    std::fputs(text.c_str(), stdout);
    return {};
  }
  return os::WriteNamedFile(AbsoluteFrom(output), text);  // a fresh node has no /etc/cdi
}

int Report(const std::string& name, const Status& status) {
  if (status.ok()) return kOk;
  fmt::print(stderr, "{}: {}\n", name, status.error().message());
  return kFailed;
}

void AddGenerateOptions(Arguments& generate, GenerateOptions& options, std::string& naming) {
  generate.Path("--driver-root", options.cdi.driver_root, "driver root on the host [/]");
  generate.Path("--dev-root", options.cdi.dev_root,
                "root of the device nodes on the host [the driver root]");
  generate.Path("--driver-root-ctr-path", options.driver_root,
                "where this process sees the driver root [the driver root]");
  generate.Path("--host-root", options.host_root, "where this process sees /sys and /proc [/]");
  generate.Option("--device-name-strategy", naming, "names of devices [index]",
                  {"index", "uuid", "type-index"});
  generate.Option("--nvidia-cdi-hook-path", options.cdi.hook_path,
                  "NVIDIA's hook program on the host [/usr/bin/nvidia-cdi-hook]");
  generate.Option("--vendor", options.cdi.vendor, "first part of the kind [nvidia.com]");
  generate.Option("--class", options.cdi.gpu_class, "second part of the kind [gpu]");
  generate.Flag("--no-all-device", options.no_all_device, "without the device \"all\"");
  generate.List("--disable-hook", options.disabled_hooks, "hooks to leave out; all for all");
}

}  // namespace

int RunCdi(const std::string& name, const std::vector<std::string>& args) {
  Arguments arguments(name, "CDI specifications of this machine's GPUs");
  arguments.RequireSubCommand();

  GenerateOptions options;
  std::string naming = "index";
  std::string format;
  std::string output;
  Arguments generate = arguments.SubCommand("generate", "write what this machine has");
  generate.Option("--format", format, "json or yaml [by the output's name, else yaml]",
                  {"json", "yaml"});
  generate.Option("--output", output,
                  "a file, written whole at once; links are followed [standard output]");
  AddGenerateOptions(generate, options, naming);

  std::vector<std::string> folders = {"/etc/cdi", "/var/run/cdi"};
  const std::string what = "every name that runtimes can resolve, and its file";
  Arguments list = arguments.SubCommand("list", what);
  list.List("--spec-dir", folders, "folders, a later one wins [/etc/cdi,/var/run/cdi]");

  std::string file;
  Arguments validate = arguments.SubCommand("validate", "say whether a runtime would take a file");
  validate.Required("FILE", file, "a specification in JSON or YAML");

  if (const auto status = arguments.Parse(args)) return *status;
  if (validate.chosen()) return Report(name, Validate(file));
  if (list.chosen()) return List(folders);
  options.cdi.naming = naming == "uuid"    ? cdi::Naming::kUuid
                       : naming == "index" ? cdi::Naming::kIndex
                                           : cdi::Naming::kTypeIndex;
  return Report(name, Generate(options, format, output));
}

}  // namespace ndp::cmd
