#include "base/result.h"

#include <cerrno>
#include <memory>

#include "testing/result_matchers.h"

namespace ndp {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Error(Code::kInvalidArgument, "odd number");
  return n / 2;
}

Result<int> Quarter(int n) {
  NDP_TRY(int half, Half(n).Context("first half"));
  NDP_TRY(int quarter, Half(half).Context("second half"));
  return quarter;
}

Status CheckEven(int n) {
  NDP_TRY(Half(n));
  return {};
}

TEST(ResultTest, TryPassesValuesAndErrorsOn) {
  EXPECT_THAT(Quarter(8), IsOkAnd(2));
  EXPECT_THAT(Quarter(6), IsErrorThat(Code::kInvalidArgument, "second half: odd number"));
  EXPECT_THAT(CheckEven(2), IsOk());
  EXPECT_THAT(CheckEven(1), IsError(Code::kInvalidArgument));
}

TEST(ResultTest, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  auto taken = *std::move(result);
  EXPECT_EQ(*taken, 3);
}

TEST(ErrnoErrorTest, MapsToWhatACallerDoes) {
  EXPECT_EQ(ErrnoError(ENOENT, "open /x").message(), "open /x: No such file or directory");
  EXPECT_EQ(ErrnoError(ENOENT, "").code(), Code::kNotFound);
  EXPECT_EQ(ErrnoError(EACCES, "").code(), Code::kPermissionDenied);
  EXPECT_EQ(ErrnoError(ECONNREFUSED, "").code(), Code::kUnavailable);
}

}  // namespace
}  // namespace ndp
