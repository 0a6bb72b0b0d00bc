// Shared objects that hold nothing but their name, for the driver libraries of a simulated root:
// loaders, ldconfig and ELF readers take them for real. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ndp::sim_root {

// The bytes of an ELF64 file for this machine's architecture with the DT_SONAME given.
std::string MakeSharedObject(std::string_view soname);

}  // namespace ndp::sim_root
