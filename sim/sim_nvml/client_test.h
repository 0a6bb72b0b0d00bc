// A client of the simulated library, for its tests: a machine in a temporary folder and the library
// that was installed there, loaded as any client loads it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "sim_control/simulation.h"
#include "sim_nvml/abi.h"
#include "sim_profile/profile.h"
#include "sim_root/driver_files.h"

namespace ndp::sim_nvml {

class ClientTest : public testing::Test {
 protected:
  void Up(const std::string& profile, std::uint32_t gpus = 0) {
    char folder[] = "/tmp/ndp-sim-nvml-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    dir_ = folder;
    auto loaded = sim_profile::LoadProfile(profile);
    ASSERT_TRUE(loaded.ok());
    auto up = sim_control::Simulation::Up({.dir = dir_,
                                           .profile = *std::move(loaded),
                                           .gpus = gpus,
                                           .seed = "",
                                           .nvml = NDP_SIM_NVML});
    ASSERT_TRUE(up.ok()) << up.error().message();
    simulation_ = std::make_unique<sim_control::Simulation>(*std::move(up));
    Load();
  }

  void Load() {
    const auto path = dir_ / "root" / sim_root::kLibraryFolder / "libnvidia-ml.so.1";
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void Unload() {
    if (library_ != nullptr) dlclose(library_);
    library_ = nullptr;
  }

  void TearDown() override {
    Unload();
    simulation_.reset();
    std::filesystem::remove_all(dir_);
  }

  // Call("nvmlDeviceGetCount_v2", &count)
  template <typename... Args>
  int Call(const char* function, Args... args) {
    using Function = int (*)(Args...);
    const auto symbol = reinterpret_cast<Function>(dlsym(library_, function));
    return symbol == nullptr ? -1 : symbol(args...);
  }

  Handle Gpu(unsigned index) {
    Handle handle = nullptr;
    EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", index, &handle), kSuccess);
    return handle;
  }
  std::string Uuid(Handle handle) {
    char text[96] = {};
    EXPECT_EQ(Call("nvmlDeviceGetUUID", handle, &text[0], 96U), kSuccess);
    return text;
  }

  std::filesystem::path dir_;
  std::unique_ptr<sim_control::Simulation> simulation_;
  void* library_ = nullptr;
};

}  // namespace ndp::sim_nvml
