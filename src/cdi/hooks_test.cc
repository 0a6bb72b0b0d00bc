#include "cdi/hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::cdi {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> ArgsOf(const Options& options) {
  Edits edits;
  AddHook(options, kUpdateLdcache, {"--folder", "/usr/lib64"}, edits);
  return edits.hooks.empty() ? std::vector<std::string>() : edits.hooks[0].args;
}

TEST(HooksTest, NvidiaCtkHasHooksAsSubCommands) {
  EXPECT_THAT(ArgsOf({.hook_path = "/usr/bin/nvidia-ctk"}),
              ElementsAre("nvidia-ctk", "hook", "update-ldcache", "--folder", "/usr/lib64"));
  EXPECT_THAT(ArgsOf({.hook_path = "/opt/nvidia-cdi-hook"}),
              ElementsAre("nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib64"));
}

TEST(HooksTest, AllRunWhenTheContainerIsCreated) {
  Edits edits;
  AddHook({}, kUpdateApplicationProfile, {}, edits);
  ASSERT_EQ(edits.hooks.size(), 1U);
  EXPECT_EQ(edits.hooks[0].hook_name, "createContainer");
  EXPECT_THAT(edits.hooks[0].env, ElementsAre("NVIDIA_CTK_DEBUG=false"));
}

TEST(HooksTest, DisabledHooksAreLeftOut) {
  EXPECT_THAT(ArgsOf({.disabled_hooks = {"update-ldcache"}}), IsEmpty());
  EXPECT_THAT(ArgsOf({.disable_all_hooks = true}), IsEmpty());
  EXPECT_THAT(ArgsOf({.disabled_hooks = {"create-symlinks"}}), testing::Not(IsEmpty()));
}

TEST(HooksTest, NothingToDoIsNoHook) {
  Edits edits;
  AddSymlinkHook({}, {}, edits);
  AddLdcacheHook({}, {}, edits);
  EXPECT_THAT(edits.hooks, IsEmpty());
}

}  // namespace
}  // namespace ndp::cdi
