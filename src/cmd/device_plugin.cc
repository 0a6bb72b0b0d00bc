// `ndp device-plugin`: settings, loop and node; nothing else happens here.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"
#include "cmd/command.h"
#include "cmd/options.h"
#include "config/load.h"
#include "doc/json.h"
#include "node/node.h"
#include "os/event_loop.h"
#include "os/file_limit.h"
#include "os/memory.h"

namespace ndp::cmd {
namespace {

// About thirty for the node, ten for each resource, and some to spare.
constexpr std::uint64_t kLeastFiles = 64;

void Begin(const config::Loaded& loaded) {
  log::Init(loaded.settings.log);
  log::Info("starting", {{"version", VersionText()}});
  for (const std::string& warning : loaded.warnings) log::Warning(warning);
  log::Info("settings", {log::Field::Json("settings", doc::ToJson(config::ToJson(loaded)))});
}

void Adopted(const config::Loaded& before, const config::Loaded& now) {
  log::Init(now.settings.log);
  for (const std::string& warning : now.warnings) log::Warning(warning);
  const doc::Value changes = config::Changes(before, now);
  if (changes.entries().empty()) {
    log::Info("no setting has changed");
  } else {
    log::Info("settings have changed", {log::Field::Json("changes", doc::ToJson(changes))});
  }
}

}  // namespace

int RunDevicePlugin(const std::string& name, const std::vector<std::string>& args) {
  const Parsed parsed = ParseCommandLine(config::Program::kDevicePlugin, name, args);
  if (parsed.exit) return *parsed.exit;

  if (const Status files = os::RaiseFileLimit(kLeastFiles); !files.ok()) {
    fmt::print(stderr, "{}: {}\n", name, files.error().message());
    return kFailed;
  }

  const config::Inputs inputs{.program = config::Program::kDevicePlugin, .flags = parsed.given};
  auto loaded = config::Load(inputs);
  if (!loaded) {
    fmt::print(stderr, "{}: {}\n", name, loaded.error().message());
    return loaded.error().code() == Code::kInvalidArgument ? kUsage : kFailed;
  }
  Begin(*loaded);

  auto loop = os::EventLoop::Create();
  if (!loop) {
    fmt::print(stderr, "{}: {}\n", name, loop.error().message());
    return kFailed;
  }
  SystemClock clock;
  int exit_code = kOk;
  node::Node node(*std::move(loaded), {.loop = **loop,
                                       .clock = clock,
                                       .reload = [&inputs] { return config::Load(inputs); },
                                       .adopted = Adopted,
                                       .exit =
                                           [&](int code) {
                                             exit_code = code;
                                             (*loop)->Stop();
                                           },
                                       .version = VersionText()});
  node.Start();
  // Most of a start runs once; a second later the node is served, or waits for its driver.
  const os::EventLoop::Handle give_back =
      (*loop)->After(std::chrono::seconds(1), [] { os::GiveBackStartMemory(); });
  (*loop)->Run();
  // Workers may hang in the driver for ever: nobody waits for them, and no destructor that they
  // could still need runs.
  std::fflush(nullptr);
  ::_exit(exit_code);
}

}  // namespace ndp::cmd
