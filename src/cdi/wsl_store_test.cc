#include "cdi/wsl_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_node.h"

namespace ndp::cdi {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(WslStoreTest, AsksDxcoreForTheStoresOfAdaptersThatCanCompute) {
  FakeNode node;
  node.Folder("/usr/lib/wsl/lib");
  node.Folder("/usr/lib/wsl/drivers/left_from_an_update");
  std::filesystem::copy_file(NDP_FAKE_DXCORE, node.Path("/usr/lib/wsl/lib/libdxcore.so"));
  EXPECT_THAT(FindDriverStores(DriverRoot(node.fs())),
              ElementsAre("/usr/lib/wsl/drivers/iigd_dch.inf_amd64_1",
                          "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_2"));
}

TEST(WslStoreTest, WithoutDxcoreEveryFolderOfDriversIsOne) {
  FakeNode node;
  node.Folder("/usr/lib/wsl/drivers/b");
  node.Folder("/usr/lib/wsl/drivers/a");
  node.File("/usr/lib/wsl/drivers/file");
  EXPECT_THAT(FindDriverStores(DriverRoot(node.fs())),
              ElementsAre("/usr/lib/wsl/drivers/a", "/usr/lib/wsl/drivers/b"));
}

TEST(WslStoreTest, NeitherIsNone) {
  FakeNode node;
  EXPECT_THAT(FindDriverStores(DriverRoot(node.fs())), IsEmpty());
}

}  // namespace
}  // namespace ndp::cdi
