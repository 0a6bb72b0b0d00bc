#include "sim_state/mig_model.h"

#include <fmt/format.h>

#include <set>

#include "sim_state/uuid.h"
#include "testing/result_matchers.h"

namespace ndp::sim_state {
namespace {

using testing::HasSubstr;

const MigModel& Model(std::string_view name) {
  return MigModels()[static_cast<std::size_t>(FindMigModel(name))];
}

Result<MigLayout> Parse(std::string_view model, std::string_view text, const MigLayout& before = {},
                        std::uint32_t generation = 0) {
  return ParseMigLayout(Model(model), text, "GPU-x", before, generation);
}

int Devices(const MigLayout& layout) {
  int count = 0;
  for (const auto& device : layout.devices) count += device.used != 0 ? 1 : 0;
  return count;
}

TEST(MigModelTest, EveryProfileFitsAsOftenAsItsTableSays) {
  for (const MigModel& model : MigModels()) {
    for (const auto& profile : model.profiles) {
      const std::string name(profile.name);
      const std::string all = fmt::format("{}*{}", name, profile.instances);
      const auto full = Parse(model.name, all);
      ASSERT_THAT(full, IsOk()) << model.name << " " << name;
      EXPECT_EQ(Devices(*full), static_cast<int>(profile.instances)) << model.name << " " << name;
      EXPECT_THAT(Parse(model.name, fmt::format("{},{}", all, name)),
                  IsError(Code::kInvalidArgument))
          << model.name << " " << name;
    }
  }
}

TEST(MigModelTest, IdsAndPlacesOfOneLayoutDiffer) {
  const auto layout = Parse("h100", "3g.40gb,2g.20gb,1g.10gb*2");
  ASSERT_THAT(layout, IsOk());
  std::set<std::uint32_t> ids;
  std::set<std::string> uuids;
  std::uint32_t slices = 0;
  for (const auto& instance : layout->instances) {
    if (instance.used == 0) continue;
    ids.insert(instance.id);
    EXPECT_LE(instance.id, 14U);  // what mig-minors has room for
    for (std::uint32_t i = 0; i < instance.size; ++i) {
      EXPECT_EQ(slices >> (instance.start + i) & 1U, 0U);
      slices |= 1U << (instance.start + i);
    }
  }
  for (const auto& device : layout->devices) {
    if (device.used != 0) uuids.insert(device.uuid);
  }
  EXPECT_EQ(ids.size(), 4U);
  EXPECT_EQ(uuids.size(), 4U);
}

TEST(MigModelTest, ComputeInstancesShareAGpuInstance) {
  const auto layout = Parse("h100", "1c.3g.40gb*3");
  ASSERT_THAT(layout, IsOk());
  EXPECT_EQ(Devices(*layout), 3);
  EXPECT_EQ(layout->instances[1].used, 0U);
  EXPECT_EQ(layout->devices[0].gi_id, layout->devices[2].gi_id);
  EXPECT_EQ(layout->devices[2].ci_id, 2U);
  EXPECT_EQ(layout->devices[2].start, 2U);
}

TEST(MigModelTest, ADashLeavesAGap) {
  const auto layout = Parse("h100", "1g.10gb,-,1g.10gb");
  ASSERT_THAT(layout, IsOk());
  EXPECT_EQ(layout->devices[0].used, 1U);
  EXPECT_EQ(layout->devices[1].used, 0U);
  EXPECT_EQ(layout->devices[2].used, 1U);
}

TEST(MigModelTest, DevicesThatStayKeepTheirUuids) {
  const auto before = Parse("h100", "3g.40gb,1g.10gb");
  const auto after = Parse("h100", "3g.40gb,2g.20gb", *before, 1);
  ASSERT_THAT(after, IsOk());
  EXPECT_STREQ(after->devices[0].uuid, before->devices[0].uuid);
  EXPECT_STRNE(after->devices[1].uuid, before->devices[1].uuid);
}

TEST(MigModelTest, WrongNamesSayWhatThereIs) {
  EXPECT_THAT(Parse("a30", "1g.10gb"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("1g.6gb, 1g.6gb+me")));
  EXPECT_THAT(Parse("h100", "1g.10gb*0"), IsErrorThat(Code::kInvalidArgument, HasSubstr("1 to 8")));
  EXPECT_THAT(Parse("h100", "3c.2g.20gb"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("only 2")));
  EXPECT_THAT(Parse("h100", "3g.40gb*2,1g.10gb"),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("no room")));
}

TEST(MigModelTest, ComputeProfileNumbersAndSlicesAgree) {
  for (std::uint32_t slices = 0; slices < 10; ++slices) {
    const int number = ComputeProfile(slices);
    if (number < 0) continue;
    EXPECT_EQ(ComputeProfileSlices(static_cast<std::uint32_t>(number)), slices);
  }
}

TEST(UuidTest, ANameAlwaysGivesTheSameUuid) {
  const std::string uuid = FormatUuid(NameUuid("dgx-h100//0"));
  EXPECT_EQ(uuid, FormatUuid(NameUuid("dgx-h100//0")));
  EXPECT_NE(uuid, FormatUuid(NameUuid("dgx-h100//1")));
  EXPECT_EQ(uuid.size(), 36U);
  EXPECT_EQ(uuid[14], '5');
}

}  // namespace
}  // namespace ndp::sim_state
