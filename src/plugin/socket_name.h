// File names of plugin sockets in the kubelet's folder. Pure, any thread.
//
//   nvidia-gpu-5f3a90c1.sock   one registration of nvidia.com/gpu by this program
//   nvidia-gpu.sock            what upstream's plugin uses for it, and ours where nothing registers
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ndp::plugin {

// "gpu" of "nvidia.com/gpu".
std::string_view ResourceBaseName(std::string_view resource);

std::string FixedSocketName(std::string_view resource);
std::string RegistrationSocketName(std::string_view resource, std::uint32_t number);

// Whether the file may be a socket of this program or upstream's, for any resource.
bool IsPluginSocket(std::string_view file);
// Whether the file is one registration's socket of this program, for any resource.
bool IsRegistrationSocket(std::string_view file);
// Whether the file is a socket that serves this very resource, of this program or upstream's.
bool ServesResource(std::string_view file, std::string_view resource);

}  // namespace ndp::plugin
