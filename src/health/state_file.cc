#include "health/state_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "doc/json.h"
#include "os/file.h"

namespace ndp::health {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::uintmax_t kLargestState = 4 << 20;

template <typename Time>
std::int64_t Ticks(Time time) {
  return std::chrono::duration_cast<Duration>(time.time_since_epoch()).count();
}

void SetIf(doc::Value& map, std::string_view key, const std::optional<std::uint64_t>& value) {
  if (value) map.Set(key, *value);
}

doc::Value ToDoc(const Cause& cause) {
  doc::Value out = doc::Value::Map();
  out.Set("class", CauseClassName(cause.cause_class));
  if (cause.scope.gpu_instance) out.Set("gi", *cause.scope.gpu_instance);
  if (cause.scope.compute_instance) out.Set("ci", *cause.scope.compute_instance);
  SetIf(out, "xid", cause.xid);
  out.Set("reason", cause.reason);
  out.Set("nextStep", cause.next_step);
  out.Set("since", Ticks(cause.since));
  out.Set("count", cause.count);
  return out;
}

doc::Value ToDoc(const GpuRecord& record) {
  doc::Value out = doc::Value::Map();
  doc::Value causes = doc::Value::List();
  for (const Cause& cause : record.causes) causes.Append(ToDoc(cause));
  out.Set("causes", std::move(causes));
  doc::Value conditions = doc::Value::Map();
  for (int i = 0; i < kConditions; ++i) {
    if (const auto& cause = record.conditions[static_cast<std::size_t>(i)]) {
      conditions.Set(ConditionName(static_cast<Condition>(i)), ToDoc(*cause));
    }
  }
  out.Set("conditions", std::move(conditions));
  out.Set("awaitsReset", record.awaits_reset);
  out.Set("quarantined", record.quarantined);
  out.Set("actionWasSet", record.action_was_set);
  out.Set("fabricCompleted", record.fabric_completed);
  out.Set("lastFault", Ticks(record.last_fault));
  if (record.recovered) out.Set("recovered", Ticks(*record.recovered));
  doc::Value relapses = doc::Value::List();
  for (MonoTime at : record.relapses) relapses.Append(Ticks(at));
  out.Set("relapses", std::move(relapses));
  doc::Value counters = doc::Value::Map();
  SetIf(counters, "uncorrectedEcc", record.counters.uncorrected_ecc);
  SetIf(counters, "correctedEcc", record.counters.corrected_ecc);
  SetIf(counters, "pcieReplays", record.counters.pcie_replays);
  SetIf(counters, "energyMj", record.counters.energy_mj);
  out.Set("counters", std::move(counters));
  out.Set("updated", Ticks(record.updated));
  return out;
}

// Readers of one map; what is absent or of another kind keeps its default.
class Reader {
 public:
  explicit Reader(const doc::Value& map) : map_(map) {}

  std::optional<std::int64_t> Int(std::string_view key) const {
    const doc::Value* value = map_.Find(key);
    return value != nullptr ? value->AsInt() : std::nullopt;
  }
  std::optional<std::uint64_t> Unsigned(std::string_view key) const {
    const auto value = Int(key);
    return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
  }
  bool Bool(std::string_view key) const {
    const doc::Value* value = map_.Find(key);
    return value != nullptr && value->AsBool().value_or(false);
  }
  std::string Text(std::string_view key) const {
    const doc::Value* value = map_.Find(key);
    return value != nullptr ? value->AsString().value_or("") : "";
  }
  MonoTime Mono(std::string_view key) const {
    return MonoTime(Duration(std::max<std::int64_t>(Int(key).value_or(0), 0)));
  }
  const doc::Value& Child(std::string_view key) const {
    static const doc::Value nothing;
    const doc::Value* value = map_.Find(key);
    return value != nullptr ? *value : nothing;
  }

 private:
  const doc::Value& map_;
};

Cause CauseFrom(const doc::Value& value) {
  const Reader read(value);
  Cause cause{.xid = read.Unsigned("xid"),
              .reason = read.Text("reason"),
              .next_step = read.Text("nextStep"),
              .since = WallTime(Duration(read.Int("since").value_or(0))),
              .count = read.Unsigned("count").value_or(1)};
  const std::string name = read.Text("class");
  for (CauseClass each : {CauseClass::kFault, CauseClass::kReset, CauseClass::kCondition}) {
    if (CauseClassName(each) == name) cause.cause_class = each;
  }
  if (const auto gi = read.Unsigned("gi")) cause.scope.gpu_instance = static_cast<unsigned>(*gi);
  if (const auto ci = read.Unsigned("ci")) {
    cause.scope.compute_instance = static_cast<unsigned>(*ci);
  }
  return cause;
}

GpuRecord RecordFrom(const doc::Value& value) {
  const Reader read(value);
  GpuRecord record;
  for (const doc::Value& cause : read.Child("causes").items()) {
    record.causes.push_back(CauseFrom(cause));
  }
  const Reader conditions(read.Child("conditions"));
  for (int i = 0; i < kConditions; ++i) {
    const doc::Value& cause = conditions.Child(ConditionName(static_cast<Condition>(i)));
    if (cause.is_map()) record.conditions[static_cast<std::size_t>(i)] = CauseFrom(cause);
  }
  record.awaits_reset = read.Bool("awaitsReset");
  record.quarantined = read.Bool("quarantined");
  record.action_was_set = read.Bool("actionWasSet");
  record.fabric_completed = read.Bool("fabricCompleted");
  record.last_fault = read.Mono("lastFault");
  if (read.Int("recovered")) record.recovered = read.Mono("recovered");
  for (const doc::Value& at : read.Child("relapses").items()) {
    if (const auto ticks = at.AsInt(); ticks && *ticks >= 0) {
      record.relapses.emplace_back(Duration(*ticks));
    }
  }
  const Reader counters(read.Child("counters"));
  record.counters = {.uncorrected_ecc = counters.Unsigned("uncorrectedEcc"),
                     .corrected_ecc = counters.Unsigned("correctedEcc"),
                     .pcie_replays = counters.Unsigned("pcieReplays"),
                     .energy_mj = counters.Unsigned("energyMj")};
  record.updated = read.Mono("updated");
  return record;
}

}  // namespace

doc::Value ToDoc(const SavedState& state) {
  doc::Value out = doc::Value::Map();
  out.Set("version", kVersion);
  out.Set("boot", state.boot_id);
  out.Set("module", state.module);
  doc::Value gpus = doc::Value::Map();
  for (const auto& [uuid, record] : state.gpus) gpus.Set(uuid, ToDoc(record));
  out.Set("gpus", std::move(gpus));
  doc::Value fences = doc::Value::Map();
  for (const auto& [selector, uuid] : state.fences) fences.Set(selector, uuid);
  out.Set("fences", std::move(fences));
  return out;
}

Result<SavedState> FromDoc(const doc::Value& document) {
  if (!document.is_map()) return Error(Code::kInvalidArgument, "not a health state");
  const Reader read(document);
  if (read.Int("version") != kVersion) {
    return Error(Code::kInvalidArgument, "a health state of another version");
  }
  SavedState state{
      .boot_id = read.Text("boot"), .module = read.Text("module"), .gpus = {}, .fences = {}};
  for (const doc::Value::Entry& entry : read.Child("gpus").entries()) {
    if (entry.value.is_map()) state.gpus.insert_or_assign(entry.key, RecordFrom(entry.value));
  }
  for (const doc::Value::Entry& entry : read.Child("fences").entries()) {
    if (const auto uuid = entry.value.AsString()) state.fences.insert_or_assign(entry.key, *uuid);
  }
  return state;
}

SavedState Merge(const SavedState& file, const SavedState& ours) {
  SavedState result = ours;
  if (file.boot_id != ours.boot_id) return result;
  for (const auto& [uuid, record] : file.gpus) {
    const auto [at, fresh] = result.gpus.try_emplace(uuid, record);
    if (!fresh && record.updated > at->second.updated) at->second = record;
  }
  return result;
}

Result<SavedState> StateFile::Load() const {
  SavedState nothing{.boot_id = boot_id_, .module = {}, .gpus = {}, .fences = {}};
  std::error_code error;
  const auto size = std::filesystem::file_size(path_, error);
  if (error == std::errc::no_such_file_or_directory) return nothing;
  if (error) return ErrnoError(error.value(), path_.string());
  if (size > kLargestState) {
    return Error(Code::kInvalidArgument, path_.string() + ": too large for a health state");
  }
  std::ifstream in(path_, std::ios::binary);
  if (!in) return ErrnoError(errno, path_.string());
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  NDP_TRY(const doc::Value document, doc::ParseJson(text).Context(path_.string()));
  NDP_TRY(SavedState state, FromDoc(document).Context(path_.string()));
  if (state.boot_id == boot_id_) return state;
  nothing.fences = std::move(state.fences);
  return nothing;
}

Status StateFile::Store(const SavedState& ours) const {
  // Beside the file, since a rename takes a lock on the file itself along.
  NDP_TRY(const os::FileLock lock, os::FileLock::Acquire(path_.string() + ".lock"));
  // A file that cannot be read is replaced: keeping it would help nobody.
  const auto file = Load();
  const SavedState merged = file.ok() ? Merge(*file, ours) : ours;
  const auto written = os::AtomicWriteFile(path_, doc::ToJson(ToDoc(merged)) + "\n");
  if (!written.ok()) return written.error();
  return {};
}

}  // namespace ndp::health
