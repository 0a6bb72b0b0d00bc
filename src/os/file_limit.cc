#include "os/file_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace ndp::os {
namespace {

constexpr rlim_t kEnough = 4096;

}  // namespace

Status RaiseFileLimit(std::uint64_t least) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return ErrnoError(errno, "read the limit of open files");
  if (limit.rlim_cur < kEnough) {
    rlimit raised = limit;
    raised.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  if (limit.rlim_cur >= least) return {};
  return Error(Code::kUnsupported, "the limit of open files (ulimit -n) is " +
                                       std::to_string(limit.rlim_cur) + ": want " +
                                       std::to_string(least) + " or more");
}

}  // namespace ndp::os
