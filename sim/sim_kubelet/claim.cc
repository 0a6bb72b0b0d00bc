#include "sim_kubelet/claim.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace ndp::sim_kubelet {

Status MakeKubeletFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::create_directories(folder, error)) {
    std::filesystem::permissions(folder, std::filesystem::perms(0750), error);
  }
  if (error) return ErrnoError(error.value(), "create " + folder.string());
  return {};
}

Result<Claim> Claim::Of(const std::filesystem::path& dir) {
  const std::filesystem::path folder = dir / "kubelet";
  NDP_TRY(MakeKubeletFolder(folder));
  // The folder itself, since a file of ours in it would be one that the real kubelet does not have.
  os::UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "open " + folder.string());
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return ErrnoError(errno, "lock " + folder.string());
    return Error(Code::kUnavailable,
                 dir.string() +
                     ": a kubelet stand-in plays here already (ndp-sim kubelet-ctl --dir " +
                     dir.string() + " quit ends it)");
  }
  return Claim(std::move(fd));
}

}  // namespace ndp::sim_kubelet
