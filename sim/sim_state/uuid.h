// UUIDs that a name determines, so that a profile gives the same ids in every run. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ndp::sim_state {

// 128 bits in the form of a version 5 UUID. Not RFC 9562's hash: nothing here checks that.
std::array<std::uint8_t, 16> NameUuid(std::string_view name);
std::string FormatUuid(const std::array<std::uint8_t, 16>& uuid);

}  // namespace ndp::sim_state
