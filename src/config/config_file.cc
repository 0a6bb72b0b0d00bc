#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "config/load.h"

namespace ndp::config {

std::optional<std::string> ProcessEnv(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets
  if (value == nullptr) return std::nullopt;
  return value;
}

Result<std::string> ReadConfigFile(const std::string& path) {
  constexpr std::size_t kMaxSize = std::size_t{4} << 20;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoError(errno, "open");
  const auto close_fd = [](const int* it) { close(*it); };
  const std::unique_ptr<const int, decltype(close_fd)> closer(&fd, close_fd);
  struct stat info{};
  if (fstat(fd, &info) != 0) return ErrnoError(errno, "stat");
  if (S_ISDIR(info.st_mode)) {
    return Error(Code::kInvalidArgument, "is a folder: want a file, YAML or JSON");
  }
  // Read without waiting, an empty pipe would look like an empty configuration.
  if (S_ISFIFO(info.st_mode)) {
    return Error(Code::kInvalidArgument, "is a pipe: want a file, YAML or JSON");
  }
  std::string text;
  char chunk[16384];
  while (true) {
    const ssize_t got = read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read");
    if (got == 0) return text;
    text.append(chunk, static_cast<std::size_t>(got));
    if (text.size() > kMaxSize) {
      return Error(Code::kInvalidArgument, "is larger than 4 MiB: want a configuration");
    }
  }
}

}  // namespace ndp::config
