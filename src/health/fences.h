// Fences: GPUs that a person has taken out, in a YAML file. Pure; one thread.
//
//   fences:
//   - uuid: GPU-5f3a…            # or `index: 3`, or `pci: 0000:07:00.0`
//     reason: RMA 4711
//     expires: 2026-12-01T08:00:00Z   # optional
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "health/board.h"
#include "inventory/inventory.h"

namespace ndp::health {

struct Fence {
  // One of the three.
  std::string uuid;  // of a GPU or a MIG device
  std::optional<unsigned> index;
  std::string pci_bus_id;  // normalised

  std::string reason;
  std::optional<WallTime> expires;
  int line = 0;
  bool SameGpu(const Fence& other) const;
  // "3" or the PCI address: what has to be turned into a UUID. Empty where the fence has one.
  std::string Selector() const;
};

// The file's text; an empty one has no fences. kInvalidArgument names the line and what would be
// right. A list at the top does as well as a `fences` key.
Result<std::vector<Fence>> ParseFences(std::string_view yaml);

// 2026-12-01T08:00:00Z, with fractions and offsets. nullopt: not such a time.
std::optional<WallTime> ParseWallTime(std::string_view text);

// One GPU as an operator names it: UUID, index or PCI address. Empty where the inventory has none
// such; a UUID is taken as it is.
std::string ResolveGpu(std::string_view name, const inventory::Inventory& inventory);

// The fences in force. An index or address becomes a UUID once, when it is first met: after a GPU
// has dropped out, "3" must not hit its neighbour. Over a restart of the program, too, so whoever
// owns the book keeps what it remembers.
class FenceBook {
 public:
  // UUIDs by selector, as an earlier process had them. Before the first Replace.
  void Remember(std::map<std::string, std::string> uuids) { remembered_ = std::move(uuids); }
  const std::map<std::string, std::string>& remembered() const { return remembered_; }

  // A file that was read well. What it shares with the one before keeps its UUID and its time.
  void Replace(std::vector<Fence> fences, WallTime now);
  // Gives UUIDs to the fences that have none yet. Returns those that name no GPU or MIG device of
  // the inventory; a UUID is fenced all the same, for when it comes.
  std::vector<Fence> Resolve(const inventory::Inventory& inventory);

  // By UUID.
  std::map<std::string, Fenced> Active(WallTime now) const;
  std::optional<WallTime> NextExpiry(WallTime now) const;

 private:
  struct Entry {
    Fence fence;
    std::string uuid;  // empty: not resolved yet
    WallTime since{};
  };
  std::vector<Entry> entries_;
  std::map<std::string, std::string> remembered_;  // of the fences in the file, and no others
};

}  // namespace ndp::health
