#include "health/board_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doc/json.h"

namespace ndp::health {
namespace {
using ::testing::HasSubstr;

HealthBoard Board() {
  HealthBoard board;
  board.devices["GPU-a"] = {.index = "10",
                            .pci_bus_id = "0000:dd:00.0",
                            .healthy = false,
                            .reason = "XID 79: GPU has fallen off the bus",
                            .cause_class = "reset",
                            .xid = 79,
                            .next_step = "reset it",
                            .since = WallTime(std::chrono::seconds(1'000'000'000)),
                            .count = 2};
  board.devices["GPU-b"] = {
      .index = "2", .pci_bus_id = "0000:1b:00.0", .warnings = {"a row remapping is pending"}};
  board.devices["GPU-gone"] = {.healthy = false, .reason = "gone", .cause_class = "reset"};
  return board;
}

TEST(BoardDocumentTest, SaysEverythingAboutEveryDevice) {
  EXPECT_EQ(
      doc::ToJson(BoardDocument(Board())),
      R"({"driver":{"available":true},"devices":[{"device":"GPU-a","index":"10","pciBusId":"0000:dd:00.0","verdict":"Unhealthy",)"
      R"("reason":"XID 79: GPU has fallen off the bus","class":"reset","xid":79,)"
      R"("since":"2001-09-09T01:46:40.000Z","count":2,"nextStep":"reset it"},)"
      R"({"device":"GPU-b","index":"2","pciBusId":"0000:1b:00.0","verdict":"Healthy",)"
      R"("warnings":["a row remapping is pending"]},)"
      R"({"device":"GPU-gone","verdict":"Unhealthy","reason":"gone","class":"reset",)"
      R"("since":"1970-01-01T00:00:00.000Z","count":0,"nextStep":""}]})");
}

TEST(BoardDocumentTest, ADriverThatIsGoneIsToldWithItsReason) {
  HealthBoard board;
  board.driver = {.available = false, .reason = "nvmlInit fails", .grace_over = true};
  EXPECT_THAT(doc::ToJson(BoardDocument(board)), HasSubstr(R"("reason":"nvmlInit fails")"));
  EXPECT_THAT(BoardText(BoardDocument(board)), HasSubstr("driver: not available since"));
}

TEST(BoardTextTest, IsForPeople) {
  EXPECT_EQ(BoardText(BoardDocument(Board())),
            "   2  GPU-b  Healthy\n"
            "      warning: a row remapping is pending\n"
            "  10  GPU-a  Unhealthy  XID 79: GPU has fallen off the bus\n"
            "      0000:dd:00.0, class reset, since 2001-09-09T01:46:40.000Z, seen 2x\n"
            "      next: reset it\n"
            "   -  GPU-gone  Unhealthy  gone\n"
            "      class reset, since 1970-01-01T00:00:00.000Z, seen 0x\n"
            "      next: \n");
}

}  // namespace
}  // namespace ndp::health
