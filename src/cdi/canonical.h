// The canonical form of a specification: what stays the same for the same node, byte for byte.
// Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "cdi/spec.h"

namespace ndp::cdi {

// Drops repeated entries, and from each device what the common edits give anyway (unless the device
// would be left with nothing), and sorts devices, nodes, mounts and group ids.
void Simplify(Spec& spec);

// The oldest version of the CDI specification that has all that `spec` uses: old runtimes refuse
// files of a version they do not know.
std::string MinimumVersion(const Spec& spec);

// A released version, with or without a leading v.
bool IsKnownVersion(std::string_view version);
// a < b, for known versions.
bool VersionLess(std::string_view a, std::string_view b);

}  // namespace ndp::cdi
