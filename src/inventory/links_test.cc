#include "inventory/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::inventory {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<LinkTarget> kTwo = {{"GPU-a", "0000:07:00.0"}, {"GPU-b", "0000:0b:00.0"}};

nvml::NvLink To(const std::string& pci) {
  return {.link = 0, .end = nvml::LinkEnd::kGpu, .remote_pci_bus_id = pci};
}
nvml::NvLink ToSwitch() {
  return {.link = 0, .end = nvml::LinkEnd::kSwitch, .remote_pci_bus_id = "0000:c1:00.0"};
}

LinkMatrix::Pair PairOf(const std::vector<GpuLinks>& links,
                        std::vector<std::string>* warnings = nullptr) {
  return BuildLinkMatrix(kTwo, links, warnings).pairs.at({"GPU-b", "GPU-a"});
}

TEST(LinkMatrixTest, CountsDirectLinks) {
  const auto pair = PairOf({{{-1, 40}, {To("0000:0b:00.0"), To("0000:0b:00.0")}},
                            {{-1, -1}, {To("0000:07:00.0"), To("0000:07:00.0")}}});
  EXPECT_EQ(pair, (LinkMatrix::Pair{.ancestor = 40, .nvlinks = 2}));
}

TEST(LinkMatrixTest, ASwitchMakesAFullFabricOfTheSmallerCount) {
  const auto pair = PairOf(
      {{{-1, 50}, {ToSwitch(), ToSwitch(), ToSwitch()}}, {{-1, -1}, {ToSwitch(), ToSwitch()}}});
  EXPECT_EQ(pair.nvlinks, 2U);
}

TEST(LinkMatrixTest, AsymmetryTakesTheSmallerCountAndWarns) {
  std::vector<std::string> warnings;
  const auto pair = PairOf({{{-1, 10}, {To("0000:0b:00.0")}}, {{-1, -1}, {}}}, &warnings);
  EXPECT_EQ(pair.nvlinks, 0U);
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("GPU-a counts 1 NVLinks to GPU-b, which counts 0 back")));
}

TEST(LinkMatrixTest, AFailedQueryIsTheWorstLevel) {
  EXPECT_EQ(PairOf({{{-1, -1}, {}}, {{-1, -1}, {}}}).ancestor, 50);
}

}  // namespace
}  // namespace ndp::inventory
