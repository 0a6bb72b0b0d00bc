#include "health/fences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/result_matchers.h"

namespace ndp::health {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Optional;
using ::testing::SizeIs;

constexpr WallTime kNow{std::chrono::sys_days{std::chrono::year{2026} / 11 / 29}};

inventory::Inventory Node(std::initializer_list<const char*> uuids) {
  inventory::Inventory node;
  for (const char* uuid : uuids) {
    const auto index = static_cast<unsigned>(node.gpus.size());
    node.gpus.push_back({.nvml = {.index = index,
                                  .uuid = uuid,
                                  .pci_bus_id = "0000:0" + std::to_string(index) + ":00.0"}});
  }
  return node;
}

std::vector<Fence> Parse(std::string_view yaml) {
  auto fences = ParseFences(yaml);
  EXPECT_THAT(fences, IsOk());
  return fences.ok() ? *fences : std::vector<Fence>();
}

TEST(ParseFencesTest, ReadsTheThreeWaysToNameAGpu) {
  const auto fences = Parse(R"(
fences:
- uuid: GPU-5f3a
  reason: RMA 4711
- index: 3
  reason: fan
  expires: 2026-12-01T08:00:00Z
- pci: 00000000:07:00.0
)");
  ASSERT_THAT(fences, SizeIs(3));
  EXPECT_EQ(fences[0].uuid, "GPU-5f3a");
  EXPECT_EQ(fences[0].reason, "RMA 4711");
  EXPECT_EQ(fences[1].index, 3U);
  EXPECT_THAT(fences[1].expires, Optional(kNow + 2 * 24h + 8h));
  EXPECT_EQ(fences[2].pci_bus_id, "0000:07:00.0");
  EXPECT_EQ(fences[2].reason, "no reason given");
  EXPECT_EQ(fences[1].line, 5);
}

TEST(ParseFencesTest, AListAtTheTopAndOneKeyForAllForms) {
  const auto fences = Parse("[{gpu: 3}, {gpu: GPU-a}, {gpu: '07:00.0'}, {uuid: MIG-x}]");
  ASSERT_THAT(fences, SizeIs(4));
  EXPECT_EQ(fences[0].index, 3U);
  EXPECT_EQ(fences[1].uuid, "GPU-a");
  EXPECT_EQ(fences[2].pci_bus_id, "0000:07:00.0");
}

TEST(ParseFencesTest, NothingIsNoFence) {
  EXPECT_THAT(Parse(""), IsEmpty());
  EXPECT_THAT(Parse("fences:"), IsEmpty());
  EXPECT_THAT(Parse("fences: []"), IsEmpty());
}

TEST(ParseFencesTest, ErrorsNameLineAndWhatWouldBeRight) {
  const auto fails = [](std::string_view yaml, std::string_view message) {
    EXPECT_THAT(ParseFences(yaml),
                IsErrorThat(Code::kInvalidArgument, HasSubstr(std::string(message))))
        << yaml;
  };
  fails("fences:\n- reason: x\n", "line 2: the fence names no GPU");
  fails("fences:\n- index: -1\n", "line 2: index '-1': give NVML's index");
  fails("fences:\n- uuid: 5f3a\n", "give GPU-");
  fails("fences:\n- pci: nonsense\n", "give a PCI address");
  fails("fences:\n- gpu: nonsense\n", "a UUID or an index");
  fails("fences:\n- index: 1\n  uuid: GPU-a\n", "line 3: a fence names one GPU");
  fails("fences:\n- index: 1\n  expires: tomorrow\n", "line 3: expires 'tomorrow'");
  fails("fences:\n- index: 1\n  resaon: x\n", "line 3: unknown key 'resaon'");
  fails("fences:\n- 3\n", "line 2: a fence is a map");
  fails("fences: 3\n", "give a list");
  fails("gpus: []\n", "unknown key 'gpus'");
  fails("fences: [\n", "line");
}

TEST(ParseWallTimeTest, TakesWhatRfc3339Allows) {
  EXPECT_THAT(ParseWallTime("2026-11-29T00:00:00Z"), Optional(kNow));
  EXPECT_THAT(ParseWallTime("2026-11-29T01:30:00.123+01:30"), Optional(kNow));
  EXPECT_THAT(ParseWallTime("2026-11-28 19:00:00-0500"), Optional(kNow));
  // Further away than nanoseconds reach: never, or long over.
  EXPECT_THAT(ParseWallTime("9999-12-31T23:59:59Z"), Optional(WallTime::max()));
  EXPECT_THAT(ParseWallTime("0001-01-01T00:00:00+23:59"), Optional(WallTime::min()));
  for (const char* bad : {"", "2026-11-29", "2026-13-01T00:00:00Z", "2026-11-31T00:00:00Z",
                          "2026-11-29T24:00:00Z", "2026-11-29T00:00:00", "2026-11-29T00:00:00.Z",
                          "2026-11-29T00:00:00+1", "2026x11-29T00:00:00Z"}) {
    EXPECT_EQ(ParseWallTime(bad), std::nullopt) << bad;
  }
}

TEST(ResolveGpuTest, TakesWhatAnOperatorSays) {
  const auto node = Node({"GPU-a", "GPU-b"});
  EXPECT_EQ(ResolveGpu("1", node), "GPU-b");
  EXPECT_EQ(ResolveGpu("0000:01:00.0", node), "GPU-b");
  EXPECT_EQ(ResolveGpu("GPU-zz", node), "GPU-zz");
  EXPECT_EQ(ResolveGpu("7", node), "");
  EXPECT_EQ(ResolveGpu("x", node), "");
}

TEST(FenceBookTest, AnIndexStaysWithItsGpuWhenOthersDropOut) {
  FenceBook book;
  book.Replace(Parse("[{index: 1, reason: x}]"), kNow);
  EXPECT_THAT(book.Resolve(Node({"GPU-a", "GPU-b", "GPU-c"})), IsEmpty());
  EXPECT_THAT(book.Active(kNow), ElementsAre(Key("GPU-b")));
  book.Resolve(Node({"GPU-b", "GPU-c"}));
  EXPECT_THAT(book.Active(kNow), ElementsAre(Key("GPU-b")));
  book.Replace(Parse("[{index: 1, reason: y}, {uuid: GPU-z}]"), kNow + 1h);
  book.Resolve(Node({"GPU-b", "GPU-c"}));
  const auto active = book.Active(kNow);
  EXPECT_THAT(active, ElementsAre(Key("GPU-b"), Key("GPU-z")));
  EXPECT_EQ(active.at("GPU-b").reason, "y");
  EXPECT_EQ(active.at("GPU-b").since, kNow) << "it was fenced all the time";
}

TEST(FenceBookTest, AnIndexStaysWithItsGpuOverARestart) {
  FenceBook book;
  book.Replace(Parse("[{index: 1}, {pci: '0000:00:00.0'}]"), kNow);
  book.Resolve(Node({"GPU-a", "GPU-b", "GPU-c"}));
  FenceBook next;
  next.Remember(book.remembered());
  next.Replace(Parse("[{index: 1}]"), kNow);
  EXPECT_THAT(next.Resolve(Node({"GPU-b", "GPU-c"})), IsEmpty());
  EXPECT_THAT(next.Active(kNow), ElementsAre(Key("GPU-b")));
  EXPECT_THAT(next.remembered(), ElementsAre(Key("1"))) << "and no more than the file has";
  next.Replace({}, kNow);
  next.Replace(Parse("[{index: 1}]"), kNow);
  next.Resolve(Node({"GPU-b", "GPU-c"}));
  EXPECT_THAT(next.Active(kNow), ElementsAre(Key("GPU-c"))) << "a new fence is of today's index";
}

TEST(FenceBookTest, FencesThatNameNoGpuAreReturnedAndWait) {
  FenceBook book;
  book.Replace(Parse("[{index: 5}, {pci: '0000:01:00.0'}]"), kNow);
  EXPECT_THAT(book.Active(kNow), IsEmpty());
  EXPECT_THAT(book.Resolve(Node({"GPU-a", "GPU-b"})), SizeIs(1));
  EXPECT_THAT(book.Active(kNow), ElementsAre(Key("GPU-b")));
  book.Replace(Parse("[{uuid: GPU-b}, {uuid: GPU-elsewhere}]"), kNow);
  const auto unknown = book.Resolve(Node({"GPU-a", "GPU-b"}));
  ASSERT_THAT(unknown, SizeIs(1));
  EXPECT_EQ(unknown[0].uuid, "GPU-elsewhere");
}

TEST(FenceBookTest, ExpiredFencesAreOver) {
  FenceBook book;
  book.Replace(Parse("[{uuid: GPU-a, expires: 2026-11-29T01:00:00Z}, {uuid: GPU-b}]"), kNow);
  EXPECT_THAT(book.Active(kNow), SizeIs(2));
  EXPECT_THAT(book.NextExpiry(kNow), Optional(kNow + 1h));
  EXPECT_THAT(book.Active(kNow + 1h), ElementsAre(Key("GPU-b")));
  EXPECT_EQ(book.NextExpiry(kNow + 1h), std::nullopt);
}

}  // namespace
}  // namespace ndp::health
