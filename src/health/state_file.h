// The file in which verdicts outlive the program: per GPU what is latched, why, and the counters
// that tell a reset. Keyed by boot id, since a reboot makes all of it void; shared by two
// instances (a rolling update), merged GPU by GPU under a lock.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"
#include "doc/value.h"
#include "health/gpu_record.h"

namespace ndp::health {

struct SavedState {
  std::string boot_id;
  // Identity of the loaded nvidia module: another one means every GPU was reset. Empty: unknown.
  std::string module;
  std::map<std::string, GpuRecord> gpus;  // by UUID
  // UUIDs of fenced GPUs, by the index or PCI address that the fences file has. A person's decision
  // about a GPU, not a verdict: kept over a reboot as well.
  std::map<std::string, std::string> fences;
  bool operator==(const SavedState&) const = default;
};

// Pure. FromDoc drops what it cannot read of one GPU and keeps the others; kInvalidArgument where
// it is no such document at all.
doc::Value ToDoc(const SavedState& state);
Result<SavedState> FromDoc(const doc::Value& document);

// The later record of each GPU, and our fences; of another boot nothing stays. Pure.
SavedState Merge(const SavedState& file, const SavedState& ours);

class StateFile {
 public:
  StateFile(std::filesystem::path path, std::string boot_id)
      : path_(std::move(path)), boot_id_(std::move(boot_id)) {}

  // Nothing where there is no file; only the fences where it is of another boot.
  Result<SavedState> Load() const;
  // kUnavailable: another instance is writing; try again soon.
  Status Store(const SavedState& ours) const;

  const std::filesystem::path& path() const { return path_; }
  const std::string& boot_id() const { return boot_id_; }

 private:
  std::filesystem::path path_;
  std::string boot_id_;
};

}  // namespace ndp::health
