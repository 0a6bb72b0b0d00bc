#include "health/examination_document.h"

#include <algorithm>

namespace ndp::health {
namespace {

doc::Value ToDoc(const nvml::Failure& failure) {
  doc::Value out = doc::Value::Map();
  out.Set("status", failure.status);
  out.Set("call", failure.call);
  out.Set("text", failure.text);
  return out;
}

nvml::Failure FailureFrom(const doc::Value& value) {
  const auto text = [&](std::string_view key) {
    const doc::Value* found = value.Find(key);
    return found != nullptr ? found->AsString().value_or("") : std::string();
  };
  const doc::Value* status = value.Find("status");
  return {.status = status != nullptr ? static_cast<int>(status->AsInt().value_or(nvml::kUnknown))
                                      : static_cast<int>(nvml::kUnknown),
          .call = text("call"),
          .text = text("text")};
}

// The numbers of a sample, each with its key: written and read by one list.
template <typename Sample, typename Visit>
void EachNumber(Sample& sample, Visit visit) {
  visit("recoveryAction", sample.recovery_action);
  visit("retiredPagesPending", sample.retired_pages_pending);
  visit("volatileUncorrectedEcc", sample.volatile_uncorrected_ecc);
  visit("volatileCorrectedEcc", sample.volatile_corrected_ecc);
  visit("pcieReplays", sample.pcie_replays);
  visit("totalEnergyMillijoules", sample.total_energy_mj);
  visit("temperature", sample.temperature);
  visit("temperatureShutdown", sample.temperature_shutdown);
  visit("computeMode", sample.compute_mode);
}

std::int64_t Int(const doc::Value& map, std::string_view key) {
  const doc::Value* found = map.Find(key);
  if (found == nullptr) return 0;
  if (const auto flag = found->AsBool()) return *flag ? 1 : 0;
  return found->AsInt().value_or(0);
}

void ReadSample(const doc::Value& document, nvml::HealthSample& sample) {
  EachNumber(sample, [&](const char* key, auto& value) {
    using Number = typename std::remove_reference_t<decltype(value)>::value_type;
    if (document.Find(key) != nullptr) value = static_cast<Number>(Int(document, key));
  });
  if (const doc::Value* rows = document.Find("remappedRows")) {
    sample.remapped_rows = nvml::HealthSample::RemappedRows{
        .correctable = static_cast<unsigned>(Int(*rows, "correctable")),
        .uncorrectable = static_cast<unsigned>(Int(*rows, "uncorrectable")),
        .pending = Int(*rows, "pending") != 0,
        .failure = Int(*rows, "failure") != 0};
  }
  if (const doc::Value* fabric = document.Find("fabric")) {
    const std::int64_t state = std::clamp<std::int64_t>(Int(*fabric, "state"), 0, 3);
    sample.fabric = nvml::Fabric{.state = static_cast<nvml::FabricState>(state),
                                 .status = static_cast<int>(Int(*fabric, "status")),
                                 .clique = static_cast<unsigned>(Int(*fabric, "clique"))};
  }
  if (const doc::Value* failures = document.Find("failures")) {
    for (const doc::Value& failure : failures->items()) {
      sample.failures.push_back(FailureFrom(failure));
    }
  }
}

}  // namespace

void AddSample(doc::Value& out, const nvml::HealthSample& sample) {
  EachNumber(sample, [&out](const char* key, const auto& value) {
    if (value) out.Set(key, *value);
  });
  if (sample.remapped_rows) {
    doc::Value& rows = out.Set("remappedRows", doc::Value::Map());
    rows.Set("correctable", sample.remapped_rows->correctable);
    rows.Set("uncorrectable", sample.remapped_rows->uncorrectable);
    rows.Set("pending", sample.remapped_rows->pending);
    rows.Set("failure", sample.remapped_rows->failure);
  }
  if (sample.fabric) {
    doc::Value& fabric = out.Set("fabric", doc::Value::Map());
    fabric.Set("state", static_cast<int>(sample.fabric->state));
    fabric.Set("status", sample.fabric->status);
    fabric.Set("clique", sample.fabric->clique);
  }
}

doc::Value ToDoc(const Examination& examination) {
  doc::Value out = doc::Value::Map();
  out.Set("uuid", examination.uuid);
  if (examination.failure) out.Set("failure", ToDoc(*examination.failure));
  AddSample(out, examination.sample);
  doc::Value failures = doc::Value::List();
  for (const nvml::Failure& failure : examination.sample.failures) failures.Append(ToDoc(failure));
  out.Set("failures", std::move(failures));
  return out;
}

Result<Examination> ExaminationFrom(const doc::Value& document) {
  const doc::Value* uuid = document.is_map() ? document.Find("uuid") : nullptr;
  if (uuid == nullptr || !uuid->AsString()) {
    return Error(Code::kInvalidArgument, "not an examination of a GPU");
  }
  Examination examination{.failure = {}, .uuid = *uuid->AsString(), .sample = {}};
  if (const doc::Value* failure = document.Find("failure")) {
    examination.failure = FailureFrom(*failure);
  }
  ReadSample(document, examination.sample);
  return examination;
}

}  // namespace ndp::health
