#include "health/event_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::health {
namespace {
using ::testing::IsEmpty;
using ::testing::SizeIs;

nvml::Event Xid(std::uint64_t xid, std::optional<unsigned> gi = {}) {
  return {.type = nvml::kEventXid, .data = xid, .pci_bus_id = "0000:01:00.0", .gpu_instance = gi};
}

TEST(EventBatchTest, OnlyTheFirstEventWakesTheLoop) {
  EventBatch batch;
  EXPECT_TRUE(batch.Add(Xid(79)));
  EXPECT_FALSE(batch.Add(Xid(79)));
  EXPECT_FALSE(batch.Add(Xid(31)));
  batch.Take();
  EXPECT_TRUE(batch.Add(Xid(79)));
}

TEST(EventBatchTest, EqualEventsAreCountedOthersKeepTheirOrder) {
  EventBatch batch;
  for (int i = 0; i < 10'000; ++i) batch.Add(Xid(31));
  batch.Add(Xid(79));
  batch.Add(Xid(31, 2));
  batch.Add(Xid(31));
  const auto events = batch.Take();
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[0].count, 10'001U);
  EXPECT_EQ(events[1].event.data, 79U);
  EXPECT_EQ(events[2].event.gpu_instance, 2U);
  EXPECT_THAT(batch.Take(), IsEmpty());
}

TEST(EventBatchTest, AStormOfDifferentEventsStaysSmall) {
  EventBatch batch;
  for (std::uint64_t i = 0; i < 3000; ++i) batch.Add(Xid(i));
  EXPECT_THAT(batch.Take(), SizeIs(1024));
  EXPECT_EQ(batch.dropped(), 3000U - 1024U);
}

}  // namespace
}  // namespace ndp::health
