#include "cdi/ld_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "testing/ld_cache_file.h"
#include "testing/result_matchers.h"

namespace ndp::cdi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<std::vector<LdCacheEntry>> Parse(const std::string& file) {
  return ParseLdCache(std::as_bytes(std::span(file)));
}

constexpr LdCacheLine kCuda{"libcuda.so.1", "/usr/lib64/libcuda.so.1"};

TEST(LdCacheTest, Reads64BitLibrariesInOrder) {
  const std::string file = LdCacheFile({{"libz.so.1", "/lib64/libz.so.1"}, kCuda});
  EXPECT_THAT(Parse(file), IsOkAnd(ElementsAre(LdCacheEntry{"libz.so.1", "/lib64/libz.so.1"},
                                               LdCacheEntry{kCuda.name, kCuda.path})));
}

TEST(LdCacheTest, LeavesOut32BitAndForeignOnes) {
  constexpr std::uint32_t kI386 = 0x0803;
  constexpr std::uint32_t kX32 = 0x0801;
  constexpr std::uint32_t kNotElf = 0x0300;
  constexpr std::uint32_t kAarch64 = 0x0a01;
  const std::string file = LdCacheFile(
      {{"a", "/a", kI386}, {"b", "/b", kX32}, {"c", "/c", kNotElf}, {"d", "/d", kAarch64}});
  EXPECT_THAT(Parse(file), IsOkAnd(ElementsAre(LdCacheEntry{"d", "/d"})));
}

TEST(LdCacheTest, SkipsTheOldFormatBeforeTheNew) {
  // One entry of 12 bytes, padded to eight.
  std::string old("ld.so-1.7.0\0\1\0\0\0", 16);
  old.resize(32, '\0');
  const std::string file = old + LdCacheFile({kCuda});
  EXPECT_THAT(Parse(file), IsOkAnd(ElementsAre(LdCacheEntry{kCuda.name, kCuda.path})));
}

TEST(LdCacheTest, OtherFormatsAreRefused) {
  EXPECT_THAT(Parse(""), IsErrorThat(Code::kInvalidArgument, HasSubstr("known format")));
  EXPECT_THAT(Parse("glibc-ld.so.cache1.0"), IsError(Code::kInvalidArgument));
  EXPECT_THAT(Parse(std::string("ld.so-1.7.0\0\xff\xff\xff\xff", 16)),
              IsError(Code::kInvalidArgument));
}

TEST(LdCacheTest, EntriesThatPointOutsideAreLeftOut) {
  std::string file = LdCacheFile({kCuda, kCuda});
  const std::uint32_t far = 0x7fffffff;
  std::memcpy(file.data() + 48 + 8, &far, sizeof(far));  // path of the first
  EXPECT_THAT(Parse(file), IsOkAnd(testing::SizeIs(1)));
  file.pop_back();  // the last text does not end any more
  EXPECT_THAT(Parse(file), IsOkAnd(testing::SizeIs(0)));
}

TEST(LdCacheTest, ACountBeyondTheFileIsCut) {
  std::string file = LdCacheFile({kCuda});
  const std::uint32_t many = 0xffffffff;
  std::memcpy(file.data() + 20, &many, sizeof(many));
  EXPECT_THAT(Parse(file), IsOk());
}

}  // namespace
}  // namespace ndp::cdi
