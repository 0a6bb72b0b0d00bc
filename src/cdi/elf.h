// The one thing we want of an ELF file: its SONAME. The file may be broken or hostile: every offset
// is checked, nothing is read twice without bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace ndp::cdi {

// Reads up to into.size() bytes at `offset`; returns how many there were. Driver libraries are
// large (100 MB), and a file that shrinks under a mapping would kill the program, so the reader
// asks for the few bytes it needs.
using ReadAt = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> into)>;

// 64-bit little-endian ELF. nullopt: a library without a SONAME. kInvalidArgument: no such ELF,
// broken, or more than one SONAME.
Result<std::optional<std::string>> ReadSoname(const ReadAt& read);

// The same over a file in memory.
Result<std::optional<std::string>> ReadSoname(std::span<const std::byte> file);

}  // namespace ndp::cdi
