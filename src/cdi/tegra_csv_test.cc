#include "cdi/tegra_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::cdi {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ParseCsvTest, TheWholeRootIsNoEntry) {
  CsvEntries entries;
  EXPECT_THAT(ParseCsv("dir, /\ndir, /..\nlib, //.\n", entries), testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(entries, CsvEntries());
}

TEST(TegraCsvTest, SortsEntriesByType) {
  CsvEntries entries;
  EXPECT_THAT(ParseCsv("dev, /dev/nvhost-gpu\nlib, /usr/lib/libcuda.so.1.1\r\n"
                       "  dir,/lib/firmware/tegra19x \nsym, /usr/lib/libcuda.so\n",
                       entries),
              IsEmpty());
  EXPECT_EQ(entries, (CsvEntries{.devices = {"/dev/nvhost-gpu"},
                                 .folders = {"/lib/firmware/tegra19x"},
                                 .libraries = {"/usr/lib/libcuda.so.1.1"},
                                 .links = {"/usr/lib/libcuda.so"}}));
}

TEST(TegraCsvTest, BadLinesAreSkippedAndNumbered) {
  CsvEntries entries;
  EXPECT_THAT(ParseCsv("dev\n\nfile, /x\nlib,\nlib, /a\x01\ndev, /dev/a", entries),
              ElementsAre(1, 3, 4, 5));
  EXPECT_EQ(entries, (CsvEntries{.devices = {"/dev/a"}}));
}

TEST(TegraCsvTest, PathsStayBelowTheRoot) {
  CsvEntries entries;
  ParseCsv("lib, ../../etc/shadow", entries);
  EXPECT_THAT(entries.libraries, ElementsAre("/etc/shadow"));
}

}  // namespace
}  // namespace ndp::cdi
