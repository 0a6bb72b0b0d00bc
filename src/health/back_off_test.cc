#include "health/back_off.h"

#include <gtest/gtest.h>

#include <vector>

namespace ndp::health {
namespace {
using namespace std::chrono_literals;

TEST(BackOffTest, WaitsThatFailAtOnceAreFewerThanFiveASecondAndSoonOneAMinute) {
  ManualClock clock;
  BackOff back_off(1s, 60s);
  std::vector<MonoTime> waits;
  const MonoTime end = clock.Now() + 1h;
  while (clock.Now() < end) {
    back_off.Started(clock.Now());
    waits.push_back(clock.Now());
    clock.Advance(back_off.Failed(clock.Now()));
  }
  for (std::size_t i = 1; i < waits.size(); ++i) EXPECT_GE(waits[i] - waits[i - 1], 1s);
  // At 0, 1, 3, 7, 15, 31 and 63 s, then one a minute.
  EXPECT_EQ(waits.size(), 7U + 58U);
}

TEST(BackOffTest, AGoodWaitMakesUpForTheFailuresBefore) {
  ManualClock clock;
  BackOff back_off(1s, 60s);
  back_off.Started(clock.Now());
  EXPECT_EQ(back_off.Failed(clock.Now()), 1s);
  EXPECT_TRUE(back_off.first());
  EXPECT_EQ(back_off.Failed(clock.Now()), 2s);
  EXPECT_FALSE(back_off.first());
  back_off.Started(clock.Now());
  clock.Advance(1min);
  EXPECT_EQ(back_off.Failed(clock.Now()), 4s) << "a minute is not more than a minute";
  back_off.Started(clock.Now());
  clock.Advance(1min + 1s);
  EXPECT_EQ(back_off.Failed(clock.Now()), 1s);
}

}  // namespace
}  // namespace ndp::health
