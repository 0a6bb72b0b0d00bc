#include "health/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doc/json.h"
#include "os/file.h"
#include "testing/result_matchers.h"
#include "testing/temp_dir.h"

namespace ndp::health {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

GpuRecord FullRecord() {
  GpuRecord record;
  record.causes = {{.cause_class = CauseClass::kReset,
                    .xid = 79,
                    .reason = "XID 79: \"off\" the bus",
                    .next_step = "reset",
                    .since = WallTime(1'700'000'000s) + 123ns,
                    .count = 7},
                   {.cause_class = CauseClass::kFault,
                    .scope = {.gpu_instance = 2, .compute_instance = 0},
                    .reason = "XID 61"}};
  record.conditions[3] = Cause{.cause_class = CauseClass::kCondition, .reason = "hot"};
  record.awaits_reset = true;
  record.quarantined = true;
  record.action_was_set = true;
  record.fabric_completed = true;
  record.last_fault = MonoTime(1234s);
  record.recovered = MonoTime(1000s);
  record.relapses = {MonoTime(1s), MonoTime(2s)};
  record.counters = {.uncorrected_ecc = 1, .pcie_replays = 0, .energy_mj = 1ULL << 50};
  record.updated = MonoTime(1235s);
  return record;
}

SavedState State(std::string boot, GpuRecord record, MonoTime updated) {
  record.updated = updated;
  return {.boot_id = std::move(boot),
          .module = "m",
          .gpus = {{"GPU-a", std::move(record)}},
          .fences = {}};
}

TEST(SavedStateTest, EverythingComesBack) {
  const SavedState state{.boot_id = "b",
                         .module = "7:9",
                         .gpus = {{"GPU-a", FullRecord()}, {"GPU-b", {}}},
                         .fences = {{"3", "GPU-a"}, {"0000:07:00.0", "GPU-b"}}};
  const auto text = doc::ToJson(ToDoc(state));
  const auto document = doc::ParseJson(text);
  ASSERT_THAT(document, IsOk());
  const auto back = FromDoc(*document);
  ASSERT_THAT(back, IsOk());
  EXPECT_TRUE(*back == state) << text;
}

TEST(SavedStateTest, WhatIsNoStateIsRefused) {
  EXPECT_THAT(FromDoc(doc::Value(3)), IsError(Code::kInvalidArgument));
  EXPECT_THAT(FromDoc(doc::Value::Map()),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("another version")));
  const auto odd = doc::ParseJson(R"({"version":1,"boot":"b","gpus":{"GPU-a":3,"GPU-b":{}}})");
  ASSERT_THAT(odd, IsOk());
  const auto state = FromDoc(*odd);
  ASSERT_THAT(state, IsOk());
  EXPECT_THAT(state->gpus, ElementsAre(Key("GPU-b")));
}

TEST(MergeTest, TheLaterRecordOfEachGpuCounts) {
  const SavedState older = State("b", FullRecord(), MonoTime(1s));
  const SavedState newer = State("b", {}, MonoTime(2s));
  EXPECT_TRUE(Merge(older, newer).gpus.at("GPU-a").healthy());
  EXPECT_FALSE(Merge(newer, State("b", FullRecord(), MonoTime(3s))).gpus.at("GPU-a").healthy());
  EXPECT_TRUE(Merge(newer, older).gpus.at("GPU-a").healthy());
  SavedState other = newer;
  other.gpus = {{"GPU-b", FullRecord()}};
  EXPECT_THAT(Merge(older, other).gpus, ElementsAre(Key("GPU-a"), Key("GPU-b")));
}

TEST(MergeTest, OfAnotherBootNothingStays) {
  const SavedState ours{.boot_id = "now", .module = {}, .gpus = {}, .fences = {}};
  EXPECT_THAT(Merge(State("before", FullRecord(), MonoTime(9s)), ours).gpus, IsEmpty());
}

TEST(StateFileTest, IsReadBackAndSharedByTwoInstances) {
  const TempDir dir;
  const StateFile one(dir / ".ndp-health", "b");
  EXPECT_THAT(one.Load(), IsOk()) << "no file is no fault";
  ASSERT_THAT(one.Store(State("b", FullRecord(), MonoTime(1s))), IsOk());
  SavedState second{.boot_id = "b", .module = "m", .gpus = {{"GPU-b", FullRecord()}}, .fences = {}};
  const StateFile two(dir / ".ndp-health", "b");
  ASSERT_THAT(two.Store(second), IsOk());
  const auto state = one.Load();
  ASSERT_THAT(state, IsOk());
  EXPECT_THAT(state->gpus, ElementsAre(Key("GPU-a"), Key("GPU-b")));
}

TEST(StateFileTest, AfterARebootTheFileIsVoidAndWrittenAnew) {
  const TempDir dir;
  SavedState before = State("old", FullRecord(), MonoTime(9s));
  before.fences = {{"3", "GPU-a"}};
  ASSERT_THAT(StateFile(dir / "f", "old").Store(before), IsOk());
  const StateFile now(dir / "f", "new");
  EXPECT_THAT(now.Load()->gpus, IsEmpty());
  EXPECT_EQ(now.Load()->fences, before.fences) << "a person's decision is no verdict";
  ASSERT_THAT(now.Store({.boot_id = "new", .module = {}, .gpus = {}, .fences = {}}), IsOk());
  EXPECT_THAT(dir.Read("f"), HasSubstr("\"new\""));
}

TEST(StateFileTest, ABrokenFileIsAnErrorOnReadingAndReplacedOnWriting) {
  const TempDir dir;
  dir.Write("f", "{ not json");
  const StateFile file(dir / "f", "b");
  EXPECT_THAT(file.Load(), IsErrorThat(Code::kInvalidArgument, HasSubstr("/f")));
  EXPECT_THAT(file.Store(State("b", FullRecord(), MonoTime(1s))), IsOk());
  EXPECT_THAT(file.Load(), IsOk());
}

TEST(StateFileTest, AnotherInstanceWritingMeansLater) {
  const TempDir dir;
  const StateFile file(dir / "f", "b");
  const auto lock = os::FileLock::Acquire(dir / "f.lock");
  ASSERT_THAT(lock, IsOk());
  EXPECT_THAT(file.Store({.boot_id = "b", .module = {}, .gpus = {}, .fences = {}}),
              IsError(Code::kUnavailable));
}

TEST(StateFileTest, AFolderThatIsNotThereIsAnError) {
  const StateFile file("/nonexistent-folder/f", "b");
  EXPECT_THAT(file.Load(), IsOk());
  EXPECT_FALSE(file.Store({.boot_id = "b", .module = {}, .gpus = {}, .fences = {}}).ok());
}

}  // namespace
}  // namespace ndp::health
