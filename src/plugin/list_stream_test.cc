#include "plugin/list_stream.h"

#include <gtest/gtest.h>

namespace ndp::plugin {
namespace {

using Step = ListStream::Step;

TEST(ListStreamTest, WritesEachVersionOnce) {
  ListStream stream;
  EXPECT_EQ(stream.Next(), Step::kWait);
  stream.Offer(1);
  EXPECT_EQ(stream.Next(), Step::kWrite);
  EXPECT_EQ(stream.version(), 1U);
  stream.OnWritten();
  EXPECT_EQ(stream.Next(), Step::kWait);
}

TEST(ListStreamTest, ChangesDuringAWriteAreGathered) {
  ListStream stream;
  stream.Offer(1);
  ASSERT_EQ(stream.Next(), Step::kWrite);
  stream.Offer(2);
  stream.Offer(3);
  EXPECT_EQ(stream.Next(), Step::kWait) << "one write in flight";
  stream.OnWritten();
  EXPECT_EQ(stream.Next(), Step::kWrite);
  EXPECT_EQ(stream.version(), 3U);
  stream.OnWritten();
  EXPECT_EQ(stream.Next(), Step::kWait);
}

TEST(ListStreamTest, RetiringSendsTheLastListFirst) {
  ListStream stream;
  stream.Offer(1);
  ASSERT_EQ(stream.Next(), Step::kWrite);
  stream.Offer(2);
  stream.EndAfterOffered();
  stream.OnWritten();
  EXPECT_EQ(stream.Next(), Step::kWrite);
  stream.OnWritten();
  EXPECT_EQ(stream.Next(), Step::kFinish);
  EXPECT_EQ(stream.Next(), Step::kWait) << "finished once";
}

// On SIGTERM no further list may go out: on 1.37 it would overrule a successor's.
TEST(ListStreamTest, EndingNowSendsNothingMore) {
  ListStream stream;
  stream.Offer(1);
  ASSERT_EQ(stream.Next(), Step::kWrite);
  stream.Offer(2);
  stream.EndNow();
  stream.Offer(3);
  stream.OnWritten();
  EXPECT_EQ(stream.Next(), Step::kFinish);
}

TEST(ListStreamTest, ABrokenStreamOnlyFinishes) {
  ListStream stream;
  stream.Offer(1);
  stream.OnBroken();
  EXPECT_EQ(stream.Next(), Step::kFinish);
}

}  // namespace
}  // namespace ndp::plugin
