#include "os/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace ndp::os {
namespace {

// KiB of this program's own code that are resident.
long ResidentCode() {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool code = false;
  long sum = 0;
  while (std::getline(maps, line)) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' '))
      code = line.find("r-xp") != std::string::npos && line.find("os_test") != std::string::npos;
    if (code && line.starts_with("Rss:")) sum += std::stol(line.substr(4));
  }
  return sum;
}

TEST(MemoryTest, CodeIsLetGoOfAndComesBackAsItIsUsed) {
  const long before = ResidentCode();
  ASSERT_GT(before, 0);
  EXPECT_GT(GiveBackStartMemory(), 100'000U);
  const std::string still_works = std::to_string(before) + "!";
  EXPECT_TRUE(still_works.ends_with("!"));
  EXPECT_LT(ResidentCode(), before);
}

TEST(MemoryTest, WhatWasWrittenStays) {
  static std::string written;
  static int number = 5;
  written = "a text that is too long for the small string buffer";
  number = 7;
  GiveBackStartMemory();
  EXPECT_EQ(written, "a text that is too long for the small string buffer");
  EXPECT_EQ(number, 7);
}

}  // namespace
}  // namespace ndp::os
