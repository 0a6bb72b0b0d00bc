#include "cdi/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::cdi {
namespace {

using testing::ElementsAre;

TEST(OptionsTest, HostPathsAreExplicitWhereTheDriverRootIsSeenElsewhere) {
  config::Settings settings;
  settings.common.driver_root_ctr_path = "/driver-root";
  EXPECT_TRUE(OptionsFrom(settings, {}).explicit_host_paths);
  settings.common.driver_root_ctr_path = "//";
  EXPECT_FALSE(OptionsFrom(settings, {}).explicit_host_paths);
}

TEST(OptionsTest, OnlyConfiguredClassesAreEnabled) {
  config::Settings settings;
  EXPECT_THAT(EnabledClasses(OptionsFrom(settings, {})), ElementsAre("gpu"));
  settings.imex.channel_ids = {0};
  settings.plugin.gds_enabled = true;
  EXPECT_THAT(EnabledClasses(OptionsFrom(settings, {})), ElementsAre("gds", "gpu", "imex-channel"));
}

TEST(OptionsTest, TheProcessHasAnEnvironment) {
  const Environment environment = ProcessEnvironment();
  EXPECT_FALSE(environment.kernel_release.empty());
  EXPECT_FALSE(environment.data_dirs.empty());
}

}  // namespace
}  // namespace ndp::cdi
