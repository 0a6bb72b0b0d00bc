// The sub-commands of `ndp`: each is a program of its own, found by the name it is called by
// (nvidia-device-plugin, …) or by its first argument.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ndp::cmd {

struct Command {
  std::string_view name;   // "device-plugin"
  std::string_view alias;  // "nvidia-device-plugin", the name of its link; may be empty
  std::string_view summary;
  // argv[0] is the name for messages ("ndp device-plugin"). Returns the exit status.
  int (*run)(const std::string& name, const std::vector<std::string>& args);
  // It reads SIGHUP, SIGINT, SIGQUIT and SIGTERM in its loop: they stay blocked, as they are from
  // the program's first instruction. To any other command they do what they do by default.
  bool reads_signals = false;
};

std::span<const Command> Commands();

// Exit statuses.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// "ndp 0.1.0 (commit 1234567)".
std::string VersionText();

int RunCdi(const std::string& name, const std::vector<std::string>& args);
int RunDevicePlugin(const std::string& name, const std::vector<std::string>& args);
int RunExamine(const std::string& name, const std::vector<std::string>& args);
int RunHealth(const std::string& name, const std::vector<std::string>& args);
int RunInventory(const std::string& name, const std::vector<std::string>& args);
int RunRelease(const std::string& name, const std::vector<std::string>& args);
int RunResume(const std::string& name, const std::vector<std::string>& args);

}  // namespace ndp::cmd
