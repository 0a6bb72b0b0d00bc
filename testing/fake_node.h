// A machine's files in a folder of the test's own: a driver's libraries, device nodes (dev.list),
// /sys. The driver root and the host are one folder unless a test makes two.
//
//   FakeNode node;
//   node.Library("/usr/lib64", "libcuda.so.570.86.15", "libcuda.so.1");
//   node.Device("/dev/nvidia0", 195, 0);
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "os/host_fs.h"
#include "testing/elf_file.h"
#include "testing/temp_dir.h"

namespace ndp {

class FakeNode {
 public:
  const os::HostFs& fs() const { return fs_; }
  std::filesystem::path Path(std::string_view path) const { return fs_.Path(path); }

  void File(std::string_view path, std::string_view content = "") const {
    dir_.Write(path.substr(1), content);
  }
  void Program(std::string_view path) const {
    File(path);
    EXPECT_EQ(chmod(Path(path).c_str(), 0755), 0);
  }
  void Folder(std::string_view path) const { std::filesystem::create_directories(Path(path)); }
  void Link(std::string_view path, std::string_view target) const {
    std::filesystem::create_directories(Path(path).parent_path());
    std::filesystem::create_symlink(target, Path(path));
  }

  // A library with its SONAME link beside it, unless the two names are one.
  void Library(std::string_view folder, std::string_view name, std::string_view soname) const {
    File(fmt::format("{}/{}", folder, name), ElfFile(soname));
    if (soname != name) Link(fmt::format("{}/{}", folder, soname), name);
  }

  void Device(std::string_view path, unsigned major, unsigned minor, unsigned mode = 0666,
              unsigned gid = 0) {
    devices_ += fmt::format("{} c {} {} {:04o} {}\n", path, major, minor, mode, gid);
    File("/dev.list", devices_);
    Folder("/dev");
  }

  void RemoveDevice(std::string_view path) {
    const std::size_t at = devices_.find(fmt::format("{} c ", path));
    ASSERT_NE(at, std::string::npos) << path;
    devices_.erase(at, devices_.find('\n', at) + 1 - at);
    File("/dev.list", devices_);
  }

  // card<n> and renderD<127 + n> of a GPU, with their links by PCI address.
  void Drm(std::string_view bus_id, unsigned card) {
    const std::string names[] = {fmt::format("card{}", card), fmt::format("renderD{}", 127 + card)};
    const std::string_view kinds[] = {"card", "render"};
    const unsigned minors[] = {card, 127 + card};
    const unsigned groups[] = {44, 109};
    for (int i = 0; i < 2; ++i) {
      Folder(fmt::format("/sys/bus/pci/devices/{}/drm/{}", bus_id, names[i]));
      Device(fmt::format("/dev/dri/{}", names[i]), 226, minors[i], 0660, groups[i]);
      Link(fmt::format("/dev/dri/by-path/pci-{}-{}", bus_id, kinds[i]), "../" + names[i]);
    }
  }

 private:
  TempDir dir_;
  os::HostFs fs_{dir_.path()};
  std::string devices_;
};

}  // namespace ndp
