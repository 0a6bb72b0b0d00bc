// Result<T>: a value or an Error. What every fallible function of the project returns.
//
//   Result<int> Half(int n) {
//     if (n % 2 != 0) return Error(Code::kInvalidArgument, "odd number");
//     return n / 2;
//   }
//   NDP_TRY(int half, Half(8).Context("halve the replicas"));
//
// Any thread. Errors gain context once per layer, outermost first, lower case.
#pragma once

#include <expected>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace ndp {

// Each is something that a caller does differently.
enum class Code {
  kInvalidArgument,   // the input is wrong: say what would be right, change nothing
  kNotFound,          // absent: often not a failure
  kPermissionDenied,  // a right is missing
  kUnavailable,       // may work later: retry
  kUnsupported,       // this driver, kernel or machine cannot do it
  kDeadlineExceeded,  // took too long
  kInternal,          // everything else
};

std::string_view CodeName(Code code);

class Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // "context: message".
  Error WithContext(std::string_view context) const&;
  Error WithContext(std::string_view context) &&;

  bool operator==(const Error&) const = default;

 private:
  Code code_;
  std::string message_;
};

// errno's text behind `what`; ENOENT is kNotFound, EACCES and EPERM kPermissionDenied.
Error ErrnoError(int errno_value, std::string_view what);

std::ostream& operator<<(std::ostream& out, const Error& error);

template <typename T = void>
class [[nodiscard]] Result {
 public:
  using Value = T;

  Result(T value) : state_(std::move(value)) {}                       // NOLINT
  Result(Error error) : state_(std::unexpected(std::move(error))) {}  // NOLINT
  template <typename U>
    requires(std::is_convertible_v<U &&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error> &&
             !std::is_same_v<std::remove_cvref_t<U>, Result>)
  Result(U&& value) : state_(T(std::forward<U>(value))) {}  // NOLINT

  bool ok() const { return state_.has_value(); }
  explicit operator bool() const { return ok(); }

  // Only where ok() holds.
  T& value() & { return *state_; }
  const T& value() const& { return *state_; }
  T&& value() && { return std::move(*state_); }
  T& operator*() & { return *state_; }
  const T& operator*() const& { return *state_; }
  T&& operator*() && { return std::move(*state_); }
  T* operator->() { return &*state_; }
  const T* operator->() const { return &*state_; }

  // Only where ok() does not hold.
  const Error& error() const& { return state_.error(); }
  Error&& error() && { return std::move(state_.error()); }

  T value_or(T fallback) const& {
    if (ok()) return *state_;
    return fallback;
  }

  Result Context(std::string_view context) && {
    if (ok()) return std::move(*this);
    return Result(std::move(state_.error()).WithContext(context));
  }

 private:
  std::expected<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using Value = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

  Result Context(std::string_view context) && {
    if (ok()) return {};
    return Result(std::move(*error_).WithContext(context));
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace ndp

#define NDP_CONCAT_INNER(a, b) a##b
#define NDP_CONCAT(a, b) NDP_CONCAT_INNER(a, b)

// NDP_TRY(declaration, expression): returns the error, or declares the value. The one-argument
// form is for Status.
#define NDP_TRY_2(declaration, expression)                    \
  auto NDP_CONCAT(ndp_try_, __LINE__) = (expression);         \
  if (!NDP_CONCAT(ndp_try_, __LINE__).ok())                   \
    return std::move(NDP_CONCAT(ndp_try_, __LINE__)).error(); \
  declaration = *std::move(NDP_CONCAT(ndp_try_, __LINE__))
#define NDP_TRY_1(expression)                                                          \
  do {                                                                                 \
    if (auto ndp_try = (expression); !ndp_try.ok()) return std::move(ndp_try).error(); \
  } while (false)
#define NDP_TRY_PICK(a, b, name, ...) name
#define NDP_TRY(...) NDP_TRY_PICK(__VA_ARGS__, NDP_TRY_2, NDP_TRY_1)(__VA_ARGS__)

// A broken invariant ends the program: prints file, line and condition.
#define NDP_CHECK(condition)                                              \
  do {                                                                    \
    if (!(condition)) ::ndp::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)

namespace ndp {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}  // namespace ndp
