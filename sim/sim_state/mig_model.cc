#include "sim_state/mig_model.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/text.h"
#include "sim_state/machine.h"
#include "sim_state/uuid.h"

namespace ndp::sim_state {
namespace {

// GPU instance ids form a tree over the memory slices, so that an id tells kind and place: 0 the
// whole, 1-2 halves, 3-6 quarters, 7-14 eighths. Ids of instances that can coexist never clash.
std::uint32_t InstanceId(const MigModel& model, const GpuInstanceProfile& profile,
                         std::uint32_t start) {
  const std::uint32_t eighths = 8 / model.memory_slices;
  const std::uint32_t size = profile.memory_slices * eighths;
  const std::uint32_t begin = start * eighths;
  // A one-slice instance with two memory slices keeps an eighth's id: its siblings do too.
  if (profile.slices == 1) return 7 + begin;
  if (size >= 8) return 0;
  if (size >= 4) return 1 + begin / 4;
  return 3 + begin / 2;
}

struct Name {
  std::uint32_t compute_slices = 0;  // 0: as many as the GPU instance has
  std::string_view profile;
  std::uint32_t count = 1;
};

Result<Name> ParseName(std::string_view item) {
  Name name{.profile = item};
  if (const auto star = item.find('*'); star != std::string_view::npos) {
    const auto count = ParseUnsigned(Trim(item.substr(star + 1)));
    if (!count || *count == 0 || *count > kMaxInstances) {
      return Error(Code::kInvalidArgument,
                   "\"" + std::string(item) + "\": the count after * must be 1 to 8");
    }
    name.count = static_cast<std::uint32_t>(*count);
    name.profile = Trim(item.substr(0, star));
  }
  if (const auto c = name.profile.find("c."); c != std::string_view::npos) {
    const auto slices = ParseUnsigned(name.profile.substr(0, c));
    if (!slices || ComputeProfile(static_cast<std::uint32_t>(*slices)) < 0) {
      return Error(Code::kInvalidArgument,
                   "\"" + std::string(item) + "\": compute slices must be 1, 2, 3, 4, 6, 7 or 8");
    }
    name.compute_slices = static_cast<std::uint32_t>(*slices);
    name.profile = name.profile.substr(c + 2);
  }
  return name;
}

class Builder {
 public:
  Builder(const MigModel& model, std::string_view gpu_uuid, const MigLayout& before,
          std::uint32_t generation)
      : model_(model), gpu_uuid_(gpu_uuid), before_(before), generation_(generation) {}

  Status AddGap() {
    NDP_TRY(CheckIndex());
    ++index_;
    return {};
  }

  Status Add(const GpuInstanceProfile& profile, std::uint32_t compute_slices) {
    if (compute_slices == 0 || compute_slices == profile.slices) {
      NDP_TRY(GpuInstance * instance, Place(profile));
      return AddDevice(*instance, profile.slices, 0);
    }
    if (compute_slices > profile.slices) {
      return Error(Code::kInvalidArgument,
                   std::string(profile.name) + " has no " + std::to_string(compute_slices) +
                       " compute slices, only " + std::to_string(profile.slices));
    }
    if (open_ == nullptr || open_->profile != profile.number ||
        open_used_ + compute_slices > profile.slices) {
      NDP_TRY(open_, Place(profile));
      open_used_ = 0;
    }
    NDP_TRY(AddDevice(*open_, compute_slices, open_used_));
    open_used_ += compute_slices;
    return {};
  }

  MigLayout Take() { return layout_; }

 private:
  Status CheckIndex() const {
    if (index_ < model_.max_devices) return {};
    return Error(Code::kInvalidArgument, "more than the " + std::to_string(model_.max_devices) +
                                             " MIG devices this GPU has");
  }

  // The first place that is free; memory slices are what instances compete for, and the compute
  // slices together must not exceed what the GPU has.
  Result<GpuInstance*> Place(const GpuInstanceProfile& profile) {
    std::uint32_t same = 0;
    std::uint32_t compute = profile.slices;
    GpuInstance* free = nullptr;
    for (GpuInstance& instance : layout_.instances) {
      if (instance.used == 0) {
        if (free == nullptr) free = &instance;
        continue;
      }
      if (instance.profile == profile.number) ++same;
      compute += FindProfile(model_, instance.profile)->slices;
    }
    const std::uint32_t most = model_.memory_slices == 8 ? 7 : model_.memory_slices;
    if (same < profile.instances && compute <= most && free != nullptr) {
      for (std::uint32_t start = 0; start + profile.memory_slices <= model_.memory_slices;
           start += profile.memory_slices) {
        if (Overlaps(start, profile.memory_slices)) continue;
        *free = {.used = 1,
                 .id = InstanceId(model_, profile, start),
                 .profile = profile.number,
                 .start = start,
                 .size = profile.memory_slices};
        return free;
      }
    }
    return Error(Code::kInvalidArgument,
                 "no room for another " + std::string(profile.name) + " beside the rest");
  }

  bool Overlaps(std::uint32_t start, std::uint32_t size) const {
    return std::ranges::any_of(layout_.instances, [&](const GpuInstance& other) {
      return other.used != 0 && start < other.start + other.size && other.start < start + size;
    });
  }

  Status AddDevice(const GpuInstance& instance, std::uint32_t slices, std::uint32_t start) {
    NDP_TRY(CheckIndex());
    std::uint32_t ci_id = 0;
    for (const MigDevice& other : layout_.devices) {
      if (other.used != 0 && other.gi_id == instance.id) ++ci_id;
    }
    MigDevice device{.used = 1,
                     .gi_id = instance.id,
                     .ci_id = ci_id,
                     .ci_profile = static_cast<std::uint32_t>(ComputeProfile(slices)),
                     .start = start,
                     .size = slices};
    SetText(device.uuid, Uuid(instance, device));
    layout_.devices[index_++] = device;
    return {};
  }

  std::string Uuid(const GpuInstance& instance, const MigDevice& device) const {
    for (const MigDevice& old : before_.devices) {
      if (old.used == 0 || old.gi_id != device.gi_id || old.ci_id != device.ci_id ||
          old.ci_profile != device.ci_profile) {
        continue;
      }
      for (const GpuInstance& gi : before_.instances) {
        if (gi.used != 0 && gi.id == instance.id && gi.profile == instance.profile) return old.uuid;
      }
    }
    std::string name(gpu_uuid_);
    for (const std::uint32_t part :
         {instance.id, instance.profile, device.ci_id, device.ci_profile, generation_}) {
      name += "/" + std::to_string(part);
    }
    return "MIG-" + FormatUuid(NameUuid(name));
  }

  const MigModel& model_;
  std::string_view gpu_uuid_;
  const MigLayout& before_;
  std::uint32_t generation_;
  MigLayout layout_;
  std::uint32_t index_ = 0;
  GpuInstance* open_ = nullptr;  // of the compute instances named by `<n>c.`
  std::uint32_t open_used_ = 0;
};

std::string ProfileNames(const MigModel& model) {
  std::vector<std::string> names;
  for (const auto& profile : model.profiles) names.emplace_back(profile.name);
  return Join(names, ", ");
}

}  // namespace

int FindMigModel(std::string_view name) {
  const auto models = MigModels();
  const auto found = std::ranges::find(models, name, &MigModel::name);
  return found == models.end() ? -1 : static_cast<int>(found - models.begin());
}

const GpuInstanceProfile* FindProfile(const MigModel& model, std::uint32_t number) {
  const auto found = std::ranges::find(model.profiles, number, &GpuInstanceProfile::number);
  return found == model.profiles.end() ? nullptr : &*found;
}

const GpuInstanceProfile* FindProfile(const MigModel& model, std::string_view name) {
  const auto found = std::ranges::find(model.profiles, name, &GpuInstanceProfile::name);
  return found == model.profiles.end() ? nullptr : &*found;
}

// Compute instance profile numbers by slices, as NVML numbers them.
int ComputeProfile(std::uint32_t slices) {
  constexpr int kNumbers[] = {-1, 0, 1, 2, 3, -1, 6, 4, 5};
  return slices < std::size(kNumbers) ? kNumbers[slices] : -1;
}

std::uint32_t ComputeProfileSlices(std::uint32_t number) {
  constexpr std::uint32_t kSlices[] = {1, 2, 3, 4, 7, 8, 6};
  return number < std::size(kSlices) ? kSlices[number] : 0;
}

Result<MigLayout> ParseMigLayout(const MigModel& model, std::string_view text,
                                 std::string_view gpu_uuid, const MigLayout& before,
                                 std::uint32_t generation) {
  Builder builder(model, gpu_uuid, before, generation);
  if (Trim(text).empty()) return builder.Take();
  for (const std::string_view part : Split(text, ',')) {
    const std::string_view item = Trim(part);
    if (item == "-") {
      NDP_TRY(builder.AddGap());
      continue;
    }
    NDP_TRY(const Name name, ParseName(item));
    const GpuInstanceProfile* profile = FindProfile(model, name.profile);
    if (profile == nullptr) {
      return Error(
          Code::kInvalidArgument,
          "\"" + std::string(item) + "\" is no profile of this GPU; it has " + ProfileNames(model));
    }
    for (std::uint32_t i = 0; i < name.count; ++i) {
      NDP_TRY(builder.Add(*profile, name.compute_slices).Context(item));
    }
  }
  return builder.Take();
}

}  // namespace ndp::sim_state
