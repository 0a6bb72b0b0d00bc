#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "os/process.h"
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

// The folder of the machine; one of our own is removed in the end.
class Folder {
 public:
  static Result<Folder> Open(const std::string& dir) {
    if (!dir.empty()) return Folder(std::filesystem::absolute(dir), false);
    std::string name = (std::filesystem::temp_directory_path() / "ndp-sim-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return ErrnoError(errno, "create " + name);
    return Folder(name, true);
  }
  const std::filesystem::path& path() const { return path_; }
  void Remove() const {
    std::error_code ignored;
    if (ours_) std::filesystem::remove_all(path_, ignored);
  }

 private:
  Folder(std::filesystem::path path, bool ours) : path_(std::move(path)), ours_(ours) {}
  std::filesystem::path path_;
  bool ours_;
};

// The program ndp beside this one.
Result<std::filesystem::path> FindPlugin(const std::string& given) {
  if (!given.empty()) return std::filesystem::path(given);
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  auto plugin = self.parent_path() / "ndp";
  if (!std::filesystem::exists(plugin, error)) {
    return Error(Code::kNotFound,
                 plugin.string() + " is missing: build it, or name one with --plugin");
  }
  return plugin;
}

void SayHowToPlay(const std::filesystem::path& dir) {
  std::printf(
      "\n== The node stays up; ^C ends it. In another terminal:\n"
      "   ndp-sim kubelet-ctl --dir %s status\n"
      "   ndp-sim kubelet-ctl --dir %s "
      "'{\"command\":\"allocate\",\"resource\":\"nvidia.com/gpu\",\"count\":4,\"pod\":\"mine\"}'\n"
      "   ndp-sim fault --dir %s --gpu 3 --xid 79; ndp-sim clear --dir %s\n",
      dir.c_str(), dir.c_str(), dir.c_str(), dir.c_str());
  std::fflush(stdout);
}

Status Run(const Options& options) {
  NDP_TRY(const Like like, ParseLike(options.like).Context("--like"));
  NDP_TRY(const auto plugin, FindPlugin(options.plugin));
  NDP_TRY(const Folder folder, Folder::Open(options.dir));
  const std::filesystem::path kubelet_folder = folder.path() / "kubelet";

  os::BlockSignals({SIGTERM, SIGINT, SIGPIPE});
  NDP_TRY(const auto loop, os::EventLoop::Create());
  std::error_code ignored;
  std::filesystem::create_directories(folder.path(), ignored);
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
  const auto term = loop->OnSignal(SIGTERM, [&loop] { loop->Stop(); });
  const auto interrupt = loop->OnSignal(SIGINT, [&loop] { loop->Stop(); });

  if (Status made = demo.MakeMachine(); !made.ok()) {
    folder.Remove();
    return made;
  }
  NDP_TRY(kubelet.Start());
  NDP_TRY(auto control, ServeControl(*loop, kubelet_folder / kControlSocket, commands));
  std::thread([&, post = loop->poster()] {
    Status status = demo.Tell();
    if (status.ok() && options.keep) {
      SayHowToPlay(folder.path());
      post.Post([&result] { result = Status(); });
      return;
    }
    if (status.ok()) status = demo.StopPlugin();
    post.Post([&result, &loop, status = std::move(status)] {
      result = status;
      loop->Stop();
    });
  }).detach();
  loop->Run();

  demo.Abort();
  control.reset();
  kubelet.Stop(false);
  if (result.ok()) {
    std::printf("\nAll of it happened as it should.%s\n",
                options.keep ? "" : " To play with such a node: ndp-sim run --keep");
  }
  if (!result.ok()) {
    std::fprintf(stderr, "ndp-sim run: %s\n", result.error().message().c_str());
  }
  // After a failure the logs are wanted.
  if (result.ok()) folder.Remove();
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
