#include "sim_control/simulation.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "base/text.h"
#include "sim_profile/build.h"
#include "sim_root/device_nodes.h"
#include "sim_root/driver_files.h"
#include "sim_root/files.h"
#include "sim_root/host_files.h"
#include "sim_state/sessions.h"
#include "sim_state/uuid.h"

namespace ndp::sim_control {
namespace {

namespace fs = std::filesystem;
using sim_profile::Platform;
using sim_state::Control;
using sim_state::Machine;

Status WriteStaticFiles(const fs::path& root, const UpOptions& options, const Control& control) {
  const sim_profile::Profile& profile = options.profile;
  NDP_TRY(sim_root::WriteBootId(root, NewBootId()));
  NDP_TRY(sim_root::WriteFile(root / "sys/class/dmi/id/product_name", profile.name + "\n", 0444));
  NDP_TRY(sim_root::WriteFile(root / "sys/module/firmware_class/parameters/path", "\n", 0644));
  if (control.driver_present != 0) {
    NDP_TRY(sim_root::WriteDriverFiles(sim_root::DriverRoot(root, control), profile.driver,
                                       options.nvml, control.driver_layout));
  }
  if (profile.platform == Platform::kTegra) return sim_root::WriteTegraFiles(root);
  if (profile.platform == Platform::kWsl) return sim_root::WriteWslFiles(root);
  return {};
}

}  // namespace

Simulation::Lock::~Lock() {
  if (fd_ >= 0) close(fd_);
}

Result<Simulation::Lock> Simulation::Exclude(const fs::path& root) {
  const fs::path path = root / ".ndp-sim/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoError(errno, "open " + path.string());
  Lock lock(fd);
  while (flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoError(errno, "lock " + path.string());
  }
  return lock;
}

Result<Simulation> Simulation::Up(const UpOptions& options) {
  const fs::path root = options.dir / "root";
  const fs::path state = root / sim_state::kStatePath;
  std::error_code error;
  fs::create_directories(state.parent_path(), error);
  if (error) return ErrnoError(error.value(), "create folder " + state.parent_path().string());
  NDP_TRY(Lock lock, Exclude(root));
  if (const auto old = Machine::Open(state); old.ok()) {
    const auto sessions = sim_state::OpenSessions(**old);
    if (!sessions.empty()) {
      return Error(Code::kUnavailable,
                   options.dir.string() + ": the machine that is up there is in use by pid " +
                       std::to_string(sessions[0].pid) + " (" + sessions[0].command + ")");
    }
    // What an older machine had and this one lacks must not stay.
    for (const char* made :
         {"dev", "dev.list", "etc", "home", "lib", "proc", "run", "sys", "usr"}) {
      NDP_TRY(sim_root::Remove(root / made));
    }
  }
  NDP_TRY(auto machine, Machine::Create(state));
  NDP_TRY(machine->Write([&](Control& control) {
    return sim_profile::BuildMachine(
        options.profile,
        {.gpus = options.gpus, .seed = options.seed, .now_ns = sim_state::RealtimeNs()}, control);
  }));
  Simulation simulation(fs::absolute(root), std::move(machine), std::move(lock));
  NDP_TRY(WriteStaticFiles(root, options, simulation.control()));
  NDP_TRY(simulation.WriteFiles());
  return simulation;
}

Status Simulation::Find(const fs::path& dir) {
  std::error_code ignored;
  if (fs::exists(dir / "root" / sim_state::kStatePath, ignored)) return {};
  return Error(Code::kNotFound, dir.string() + ": no simulated machine here (ndp-sim up --dir " +
                                    dir.string() + " makes one)");
}

Result<Simulation> Simulation::Open(const fs::path& dir) {
  NDP_TRY(Find(dir));
  const fs::path root = dir / "root";
  NDP_TRY(Lock lock, Exclude(root));
  NDP_TRY(auto machine, Machine::Open(root / sim_state::kStatePath));
  return Simulation(fs::absolute(root), std::move(machine), std::move(lock));
}

fs::path Simulation::driver_root() const { return sim_root::DriverRoot(root_, control()); }

Status Simulation::WriteFiles() {
  NDP_TRY(sim_root::WriteHostFiles(root_, control()));
  return sim_root::WriteNodes(sim_root::DevRoot(root_, control()), sim_root::NodesOf(control()));
}

Result<std::uint32_t> Simulation::FindGpu(std::string_view text) const {
  const auto number = ParseUnsigned(text);
  const auto pci = NormalizePciBusId(text);
  std::uint32_t known = 0;
  for (std::uint32_t slot = 0; slot < sim_state::kMaxGpus; ++slot) {
    const sim_state::Gpu& gpu = control().gpus[slot];
    if (gpu.uuid[0] == '\0') continue;
    ++known;
    if (number == slot || text == gpu.uuid || pci == sim_root::SysfsPciId(gpu.pci)) return slot;
  }
  return Error(Code::kInvalidArgument, "--gpu " + std::string(text) + ": this machine has " +
                                           std::to_string(known) +
                                           " GPUs, named 0, 1, ..., by UUID or by PCI bus id");
}

std::optional<std::string> Simulation::UserOf(std::uint32_t slot) const {
  for (const auto& session : sim_state::OpenSessions(*machine_)) {
    if ((session.attached >> slot & 1U) != 0) {
      return "pid " + std::to_string(session.pid) + " (" + session.command + ")";
    }
  }
  return std::nullopt;
}

Result<fs::path> FindNvmlLibrary() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path();
  for (const char* place : {"libnvidia-ml.so.1", "../lib/ndp-sim/libnvidia-ml.so.1"}) {
    const fs::path candidate = (folder / place).lexically_normal();
    if (fs::is_regular_file(candidate, error)) return candidate;
  }
  return Error(Code::kNotFound, "no libnvidia-ml.so.1 in " + folder.string() +
                                    " or ../lib/ndp-sim: name the simulated library by --nvml");
}

std::string NewBootId() {
  std::random_device random;
  auto id = sim_state::NameUuid(std::to_string(random()) + std::to_string(random()) +
                                std::to_string(sim_state::RealtimeNs()));
  id[6] = static_cast<std::uint8_t>((id[6] & 0x0FU) | 0x40U);
  return sim_state::FormatUuid(id);
}

}  // namespace ndp::sim_control
