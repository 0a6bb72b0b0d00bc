#include "web/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/result_matchers.h"

namespace ndp::web {
namespace {

using testing::HasSubstr;
using testing::VariantWith;

TEST(AddressTest, EveryFormIsUnderstood) {
  EXPECT_THAT(ParseAddress(":9440"), IsOkAnd(VariantWith<TcpAddress>(TcpAddress{"", 9440})));
  EXPECT_THAT(ParseAddress("localhost:80"),
              IsOkAnd(VariantWith<TcpAddress>(TcpAddress{"localhost", 80})));
  EXPECT_THAT(ParseAddress("[::1]:9440"),
              IsOkAnd(VariantWith<TcpAddress>(TcpAddress{"::1", 9440})));
  EXPECT_THAT(ParseAddress("/run/ndp.sock"),
              IsOkAnd(VariantWith<UnixAddress>(UnixAddress{"/run/ndp.sock"})));
}

TEST(AddressTest, AWrongAddressIsNamedAndSaysWhatWouldBeRight) {
  for (const char* text :
       {"", "9440", "host:", "host:port", ":65536", ":-1", "::1:80", "[::1:80", "[]:80", "/run/"}) {
    EXPECT_THAT(ParseAddress(text),
                IsErrorThat(Code::kInvalidArgument,
                            AllOf(HasSubstr("'" + std::string(text) + "'"), HasSubstr(":9440"))));
  }
}

}  // namespace
}  // namespace ndp::web
