#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "os/process.h"
#include "sim_kubelet/claim.h"
#include "sim_kubelet/commands.h"
#include "sim_kubelet/control.h"
#include "sim_kubelet/demo.h"
#include "sim_kubelet/subcommands.h"

namespace ndp::sim_kubelet {
namespace {

struct Options {
  std::string dir;
  std::string profile = "dgx-h100";
  std::string like = "1.37";
  std::string plugin;
  bool keep = false;
};

// The folder of the machine; one of our own goes with this object.
class Folder {
 public:
  static Result<Folder> Open(const std::string& dir) {
    if (!dir.empty()) return Folder(std::filesystem::absolute(dir), false);
    std::string name = (std::filesystem::temp_directory_path() / "ndp-sim-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return ErrnoError(errno, "create " + name);
    return Folder(name, true);
  }
  Folder(Folder&& other) noexcept
      : path_(std::move(other.path_)), ours_(std::exchange(other.ours_, false)) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder() { Remove(); }

  const std::filesystem::path& path() const { return path_; }
  bool ours() const { return ours_; }
  void Remove() {
    if (!std::exchange(ours_, false)) return;
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    if (error) {
      std::fprintf(stderr, "ndp-sim run: remove %s: %s\n", path_.c_str(), error.message().c_str());
    }
  }

 private:
  Folder(std::filesystem::path path, bool ours) : path_(std::move(path)), ours_(ours) {}
  std::filesystem::path path_;
  bool ours_;
};

template <typename... Args>
void Say(fmt::format_string<Args...> text, Args&&... args) {
  std::puts(fmt::format(text, std::forward<Args>(args)...).c_str());
  std::fflush(stdout);
}

// The program ndp beside this one.
Result<std::filesystem::path> FindPlugin(const std::string& given) {
  if (!given.empty()) {
    // A bare name is looked for in PATH when it is started.
    if (given.contains('/') && access(given.c_str(), X_OK) != 0) {
      return Error(Code::kInvalidArgument,
                   ErrnoError(errno, "--plugin " + given + ": no program to start").message());
    }
    return std::filesystem::path(given);
  }
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  auto plugin = self.parent_path() / "ndp";
  if (!std::filesystem::exists(plugin, error)) {
    return Error(Code::kNotFound,
                 plugin.string() + " is missing: build it, or name one with --plugin");
  }
  return plugin;
}

// As it is to be typed: a program beside this one by its full path where its name does not find it.
std::string ToType(const std::filesystem::path& program) {
  const std::string name = program.filename().string();
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  for (const std::string_view folder : Split(path != nullptr ? path : "", ':')) {
    std::error_code error;
    const auto found = std::filesystem::path(folder) / name;
    if (access(found.c_str(), X_OK) != 0) continue;
    return std::filesystem::equivalent(found, program, error) ? name : program.string();
  }
  return program.string();
}

std::string Self() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "ndp-sim" : ToType(program);
}

void SayHowToPlay(const std::filesystem::path& dir, const std::filesystem::path& plugin) {
  const std::string sim = Self();
  Say("\n== The node stays up; ^C ends it. In another terminal:\n"
      "   {0} kubelet-ctl --dir {1} status\n"
      "   {0} kubelet-ctl --dir {1} "
      "'{{\"command\":\"allocate\",\"resource\":\"nvidia.com/"
      "gpu\",\"count\":4,\"pod\":\"mine\"}}'\n"
      "   {0} fault --dir {1} --gpu 3 --xid 79\n"
      "   {2} health --kubelet-socket {1}/kubelet/{3}\n"
      "   {0} clear --dir {1}",
      sim, dir.string(), plugin.string(), kKubeletSocket);
}

// Why it failed is most often in the plugin's log, which goes with a folder of our own.
void SayWhereToLook(const Folder& folder) {
  constexpr std::size_t kLines = 20;
  const std::filesystem::path log = Demo::LogOf(folder.path());
  if (!folder.ours()) {
    std::fprintf(stderr, "The plugin's log is %s\n", log.c_str());
    return;
  }
  std::deque<std::string> last;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) {
    last.push_back(std::move(line));
    if (last.size() > kLines) last.pop_front();
  }
  if (!last.empty()) std::fputs("The end of the plugin's log (--dir keeps all files):\n", stderr);
  for (const std::string& line : last) std::fprintf(stderr, "  %s\n", line.c_str());
}

Status Run(const Options& options) {
  // First of all, so that none of them ends us while there is something to remove.
  os::BlockSignals({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE});
  NDP_TRY(const Like like, ParseLike(options.like).Context("--like"));
  NDP_TRY(const auto plugin, FindPlugin(options.plugin));
  NDP_TRY(Folder folder, Folder::Open(options.dir));
  const std::filesystem::path kubelet_folder = folder.path() / "kubelet";

  NDP_TRY(const Claim claim, Claim::Of(folder.path()));
  NDP_TRY(const auto loop, os::EventLoop::Create());
  const std::filesystem::path events_path = folder.path() / "kubelet-events.jsonl";
  std::unique_ptr<FILE, int (*)(FILE*)> events(std::fopen(events_path.c_str(), "we"), &std::fclose);
  EventLog log([&events](std::string_view line, const doc::Value&) {
    if (!events) return;
    std::fprintf(events.get(), "%.*s\n", static_cast<int>(line.size()), line.data());
    std::fflush(events.get());
  });
  Kubelet kubelet(*loop, {.folder = kubelet_folder, .bookkeeping = {.like = like}}, log);
  Commands commands(loop->poster(), kubelet, [&loop] { loop->Stop(); });
  Demo demo(*loop, kubelet, {.dir = folder.path(), .plugin = plugin, .profile = options.profile});
  Status result = Error(Code::kUnavailable, "interrupted");
  bool failed = false;
  std::vector<os::EventLoop::Handle> signals;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    signals.push_back(loop->OnSignal(signal, [&loop] { loop->Stop(); }));
  }

  NDP_TRY(demo.MakeMachine());
  NDP_TRY(kubelet.Start());
  NDP_TRY(auto control, ServeControl(*loop, kubelet_folder / kControlSocket, commands));
  std::thread([&, post = loop->poster()] {
    Status status = demo.Tell();
    if (status.ok() && options.keep) {
      SayHowToPlay(folder.path(), plugin);
      post.Post([&result] { result = Status(); });
      return;
    }
    if (status.ok()) status = demo.StopPlugin();
    post.Post([&result, &failed, &loop, status = std::move(status)] {
      result = status;
      failed = !status.ok();
      loop->Stop();
    });
  }).detach();
  loop->Run();

  demo.Abort();
  control.reset();
  kubelet.Stop(false);
  if (result.ok()) {
    Say("\nAll of it happened as it should.{}",
        options.keep ? "" : " To play with such a node: " + Self() + " run --keep");
  }
  if (!result.ok()) {
    std::fprintf(stderr, "ndp-sim run: %s\n", result.error().message().c_str());
  }
  if (failed) SayWhereToLook(folder);
  folder.Remove();
  std::fflush(stdout);
  _exit(result.ok() ? 0 : 1);  // the thread may still wait for something that never comes
}

}  // namespace

void AddRun(sim_cmd::Command& program) {
  auto command = program.Sub(
      "run", "Show a whole node: machine, kubelet and device plugin; a pod, a fault, a recovery");
  auto options = std::make_shared<Options>();
  command.Add("--profile", options->profile,
              "The machine (ndp-sim profiles lists them; default dgx-h100)");
  command.Add("--dir", options->dir,
              "Folder of the machine (default: a temporary one, removed in the end)");
  command.Add("--like", options->like, "Whose manners the kubelet has: 1.34 or 1.37");
  command.Add("--plugin", options->plugin, "The program ndp (default: beside this one)");
  command.Flag("--keep", options->keep, "Leave the node up in the end, until ^C");
  command.OnRun([options] { return Run(*options); });
}

}  // namespace ndp::sim_kubelet
