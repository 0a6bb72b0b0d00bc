#include "config/codec.h"

#include "testing/result_matchers.h"

namespace ndp::config {
namespace {
using testing::HasSubstr;

Result<ListenAddress> Listen(const std::string& text) {
  Warnings warnings;
  return Codec<ListenAddress>::Parse({text}, warnings);
}

TEST(ListenAddressTest, TakesPortsHostsAndSockets) {
  EXPECT_THAT(Listen(""), IsOkAnd(ListenAddress{}));
  EXPECT_THAT(Listen(":9440"), IsOkAnd(ListenAddress{.unix_path = "", .host = "", .port = 9440}));
  EXPECT_THAT(Listen("127.0.0.1:80"),
              IsOkAnd(ListenAddress{.unix_path = "", .host = "127.0.0.1", .port = 80}));
  EXPECT_THAT(Listen("[::1]:80"),
              IsOkAnd(ListenAddress{.unix_path = "", .host = "::1", .port = 80}));
  const ListenAddress socket{.unix_path = "/run/ndp.sock", .host = "", .port = 0};
  for (const char* text : {"/run/ndp.sock", "unix:/run/ndp.sock", "unix:///run/ndp.sock"}) {
    EXPECT_THAT(Listen(text), IsOkAnd(socket)) << text;
  }
}

TEST(ListenAddressTest, RefusesTheRest) {
  for (const std::string text :
       {"9440", ":", ":0", ":65536", "host:", "::1:80", "unix:x", "/", "run/x.sock"}) {
    EXPECT_THAT(Listen(text), IsErrorThat(Code::kInvalidArgument, HasSubstr("want"))) << text;
  }
  EXPECT_THAT(Listen("/" + std::string(107, 'x')), IsError(Code::kInvalidArgument));
}

TEST(ListenAddressTest, ShowsWhatItParses) {
  for (const char* text : {"", ":9440", "127.0.0.1:80", "[::1]:80", "/run/ndp.sock"}) {
    const auto address = Listen(text);
    ASSERT_THAT(address, IsOk());
    EXPECT_EQ(Codec<ListenAddress>::Show(*address).Text(), text);
  }
}

TEST(NumberTest, RefusesWhatIsNone) {
  Warnings warnings;
  for (const std::string text : {"", "1x", "1.5", "99999999999"}) {
    EXPECT_THAT(Codec<int>::Parse({text}, warnings), IsError(Code::kInvalidArgument)) << text;
  }
  EXPECT_THAT(Codec<double>::Parse({"2.5"}, warnings), IsOkAnd(2.5));
  for (const std::string text : {"", "inf", "nan", "1e999", "5qps"}) {
    EXPECT_THAT(Codec<double>::Parse({text}, warnings), IsError(Code::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace ndp::config
