#include "sim_root/elf.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ndp::sim_root {
namespace {

// The loader itself is the judge.
TEST(ElfTest, TheLoaderTakesItAndKnowsItsSoname) {
  char folder[] = "/tmp/ndp-sim-elf-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/file.so";
  std::ofstream(path, std::ios::binary) << MakeSharedObject("libndp-sim-test.so.7");
  void* library = dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  // Found by its SONAME, though no file has that name.
  void* again = dlopen("libndp-sim-test.so.7", RTLD_NOW | RTLD_NOLOAD);
  EXPECT_EQ(again, library);
  if (again != nullptr) dlclose(again);
  dlclose(library);
  unlink(path.c_str());
  rmdir(folder);
}

}  // namespace
}  // namespace ndp::sim_root
