#include "sim_kubelet/pods.h"

#include "base/text.h"
#include "doc/json.h"

namespace ndp::sim_kubelet {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string ToBase64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = i; j < i + 3; ++j) {
      group = group << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0U);
    }
    const std::size_t used = std::min<std::size_t>(bytes.size() - i, 3) + 1;
    for (std::size_t j = 0; j < 4; ++j) {
      out += j < used ? kBase64[group >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return out;
}

std::string FromBase64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t value = kBase64.find(c);
    if (value == std::string_view::npos) break;  // the padding
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFFU);
    }
  }
  return out;
}

// FNV-1a, 32 bits as the kubelet's.
std::uint32_t Checksum(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

doc::Value ToList(const std::vector<std::string>& texts) {
  doc::Value list = doc::Value::List();
  for (const std::string& text : texts) list.Append(text);
  return list;
}

std::vector<std::string> ToTexts(const doc::Value& list) {
  std::vector<std::string> texts;
  for (const doc::Value& item : list.items()) texts.push_back(item.Text());
  return texts;
}

}  // namespace

std::set<std::string> Holding::Ids() const {
  std::set<std::string> ids;
  for (const auto& [node, of_node] : devices) ids.insert(of_node.begin(), of_node.end());
  return ids;
}

std::string FormatCheckpoint(const Checkpoint& checkpoint) {
  doc::Value entries = doc::Value::List();
  for (const Holding& holding : checkpoint.holdings) {
    doc::Value devices = doc::Value::Map();
    for (const auto& [node, ids] : holding.devices) devices.Set(std::to_string(node), ToList(ids));
    doc::Value entry = doc::Value::Map();
    entry.Set("PodUID", holding.pod);
    entry.Set("ContainerName", holding.container);
    entry.Set("ResourceName", holding.resource);
    entry.Set("DeviceIDs", std::move(devices));
    entry.Set("AllocResp", ToBase64(holding.response));
    entries.Append(std::move(entry));
  }
  doc::Value registered = doc::Value::Map();
  for (const auto& [resource, ids] : checkpoint.registered) registered.Set(resource, ToList(ids));
  doc::Value data = doc::Value::Map();
  data.Set("PodDeviceEntries", std::move(entries));
  data.Set("RegisteredDevices", std::move(registered));
  const std::uint32_t checksum = Checksum(doc::ToJson(data));
  doc::Value file = doc::Value::Map();
  file.Set("Data", std::move(data));
  file.Set("Checksum", checksum);
  return doc::ToJson(file);
}

Result<Checkpoint> ParseCheckpoint(std::string_view text) {
  NDP_TRY(const doc::Value file, doc::ParseJson(text));
  const doc::Value* data = file.Find("Data");
  if (data == nullptr) return Error(Code::kInvalidArgument, "checkpoint without Data");
  Checkpoint checkpoint;
  if (const doc::Value* entries = data->Find("PodDeviceEntries")) {
    for (const doc::Value& entry : entries->items()) {
      Holding holding{.pod = entry.TextAt("PodUID"),
                      .container = entry.TextAt("ContainerName"),
                      .resource = entry.TextAt("ResourceName"),
                      .devices = {},
                      .response = FromBase64(entry.TextAt("AllocResp"))};
      if (const doc::Value* devices = entry.Find("DeviceIDs")) {
        for (const auto& of_node : devices->entries()) {
          holding.devices[ParseSigned(of_node.key).value_or(-1)] = ToTexts(of_node.value);
        }
      }
      checkpoint.holdings.push_back(std::move(holding));
    }
  }
  if (const doc::Value* registered = data->Find("RegisteredDevices")) {
    for (const auto& entry : registered->entries()) {
      checkpoint.registered[entry.key] = ToTexts(entry.value);
    }
  }
  return checkpoint;
}

}  // namespace ndp::sim_kubelet
