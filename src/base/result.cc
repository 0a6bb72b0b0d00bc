#include "base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace ndp {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kPermissionDenied:
      return "permission denied";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kDeadlineExceeded:
      return "deadline exceeded";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

Error Error::WithContext(std::string_view context) const& {
  return Error(*this).WithContext(context);
}

Error Error::WithContext(std::string_view context) && {
  std::string text;
  text.reserve(context.size() + 2 + message_.size());
  text.append(context).append(": ").append(message_);
  return {code_, std::move(text)};
}

Error ErrnoError(int errno_value, std::string_view what) {
  Code code = Code::kInternal;
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
      code = Code::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kPermissionDenied;
      break;
    case EAGAIN:
    case ECONNREFUSED:
    case EBUSY:
      code = Code::kUnavailable;
      break;
    default:
      break;
  }
  return {code, std::string(what) + ": " + std::generic_category().message(errno_value)};
}

std::ostream& operator<<(std::ostream& out, const Error& error) {
  return out << CodeName(error.code()) << ": " << error.message();
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace ndp
