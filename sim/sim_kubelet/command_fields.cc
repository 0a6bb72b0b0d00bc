#include "sim_kubelet/command_fields.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "doc/json.h"

namespace ndp::sim_kubelet {
namespace {

constexpr int kMostNumber = 1'000'000'000;

enum class Type { kText, kNumber, kFlag, kTexts, kNumbers };

struct Field {
  std::string_view name;
  Type type;
  std::string_view otherwise;  // in the help; empty: may be left out
  bool needed = false;
};

Field Needed(std::string_view name, Type type) {
  return {.name = name, .type = type, .otherwise = {}, .needed = true};
}
Field May(std::string_view name, Type type, std::string_view otherwise = {}) {
  return {.name = name, .type = type, .otherwise = otherwise};
}

struct Spec {
  std::string_view name;
  std::vector<Field> fields;
  std::string_view what;
};

const std::vector<Spec>& Specs() {
  using enum Type;
  static const std::vector<Spec> specs = {
      {"status", {}, "resources, devices, endpoints, pods"},
      {"wait",
       {Needed("resource", kText), May("capacity", kNumber), May("allocatable", kNumber),
        May("endpoints", kNumber), May("timeout_ms", kNumber, "10000")},
       "until the node says so"},
      {"allocate",
       {Needed("resource", kText), Needed("count", kNumber), May("pod", kText, "\"pod\""),
        May("container", kText, "\"c\""), May("init", kFlag, "false"), May("numa", kNumbers, "[]")},
       "admit a container as the kubelet does"},
      {"release",
       {Needed("pod", kText), May("keep_checkpoint", kFlag, "false")},
       "the pod is gone; keep_checkpoint: its entry stays until a pod asks, as the real one's may"},
      {"preferred",
       {Needed("resource", kText), Needed("count", kNumber),
        May("available", kTexts, "[]: all healthy"), May("must_include", kTexts, "[]")},
       "GetPreferredAllocation alone"},
      {"raw-allocate",
       {Needed("resource", kText), Needed("devices", kTexts)},
       "Allocate for any ids, past all bookkeeping"},
      {"drop-stream",
       {Needed("resource", kText), May("endpoint", kText)},
       "end a ListAndWatch stream"},
      {"open-stream",
       {Needed("resource", kText), Needed("stream", kText)},
       "one more stream, on a connection of its own"},
      {"close-stream", {Needed("stream", kText)}, "end that one"},
      {"streams", {}, "what each of those has seen"},
      {"refuse",
       {May("count", kNumber, "1"), May("message", kText)},
       "the next Register calls fail"},
      {"delay",
       {Needed("ms", kNumber), May("count", kNumber, "1")},
       "the next Register calls wait first"},
      {"stop", {May("leave_socket", kFlag, "false")}, "leave_socket: as after kill -9"},
      {"start", {}, "again"},
      {"restart",
       {May("down_ms", kNumber, "0"), May("leave_socket", kFlag, "false"),
        May("lose_checkpoint", kFlag, "false")},
       "stop and start"},
      {"quit", {}, "the stand-in ends"},
  };
  return specs;
}

std::string_view TypeName(Type type) {
  switch (type) {
    case Type::kText:
      return "a text";
    case Type::kNumber:
      return "a number from 0 to 1000000000";
    case Type::kFlag:
      return "true or false";
    case Type::kTexts:
      return "a list of texts";
    case Type::kNumbers:
      return "a list of numbers";
  }
  return "";
}

bool IsNumber(const doc::Value& value) {
  const auto number = value.AsInt();
  return number && *number >= 0 && *number <= kMostNumber;
}

bool Fits(const doc::Value& value, Type type) {
  switch (type) {
    case Type::kText:
      return value.AsString().has_value();
    case Type::kNumber:
      return IsNumber(value);
    case Type::kFlag:
      return value.AsBool().has_value();
    case Type::kTexts:
      return value.is_list() && std::ranges::all_of(value.items(), [](const doc::Value& item) {
               return item.AsString().has_value();
             });
    case Type::kNumbers:
      return value.is_list() && std::ranges::all_of(value.items(), IsNumber);
  }
  return false;
}

// With the fields that it needs: {"command":"release","pod":"…"}.
std::string Example(const Spec& spec) {
  std::string text = fmt::format(R"({{"command":"{}")", spec.name);
  for (const Field& field : spec.fields) {
    if (!field.needed) continue;
    const bool list = field.type == Type::kTexts;
    text += fmt::format(R"(,"{}":{})", field.name,
                        field.type == Type::kNumber ? "1" : (list ? R"(["…"])" : R"("…")"));
  }
  return text + "}";
}

std::string FieldsOf(const Spec& spec) {
  std::vector<std::string> texts;
  for (const Field& field : spec.fields) {
    std::string text(field.name);
    if (field.needed) text += "*";
    if (!field.otherwise.empty()) text += fmt::format(" ({})", field.otherwise);
    texts.push_back(std::move(text));
  }
  return Join(texts, ", ");
}

Error Wrong(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

}  // namespace

std::string CommandHelp() {
  std::string help =
      "Commands, one JSON object a line (\"command\" and its fields; * = needed), for example\n"
      R"(  {"command":"allocate","resource":"nvidia.com/gpu","count":2,"pod":"mine"})"
      "\n";
  for (const Spec& spec : Specs()) {
    const std::string fields = FieldsOf(spec);
    help += fmt::format("\n  {:<12}  {}", spec.name, fields);
    // Beside the name, or below where the fields take the line.
    if (fields.empty()) {
      help += spec.what;
    } else {
      help += fmt::format("\n                  {}", spec.what);
    }
  }
  return help;
}

Status CheckCommand(const doc::Value& command) {
  const doc::Value* name = command.Find("command");
  if (name == nullptr || !name->AsString()) {
    return Wrong(R"(a command is an object such as {"command":"status"})");
  }
  const auto spec = std::ranges::find(Specs(), *name->AsString(), &Spec::name);
  if (spec == Specs().end()) {
    std::vector<std::string> names;
    for (const Spec& known : Specs()) names.emplace_back(known.name);
    return Wrong(
        fmt::format("no command '{}': must be one of {}", *name->AsString(), Join(names, ", ")));
  }
  for (const auto& entry : command.entries()) {
    if (entry.key == "command") continue;
    const auto field = std::ranges::find(spec->fields, entry.key, &Field::name);
    if (field == spec->fields.end()) {
      const std::string fields = FieldsOf(*spec);
      return Wrong(fmt::format("{} has no field '{}': {}", spec->name, entry.key,
                               fields.empty() ? "it has none" : "it has " + fields));
    }
    if (!Fits(entry.value, field->type)) {
      return Wrong(fmt::format("{}: '{}' must be {}, not {}", spec->name, entry.key,
                               TypeName(field->type), doc::ToJson(entry.value)));
    }
  }
  for (const Field& field : spec->fields) {
    if (field.needed && command.Find(field.name) == nullptr) {
      return Wrong(fmt::format("{} needs '{}', {}, as in {}", spec->name, field.name,
                               TypeName(field.type), Example(*spec)));
    }
  }
  return {};
}

std::string Fields::TextOr(std::string_view key, std::string fallback) const {
  const doc::Value* value = command_.Find(key);
  return value != nullptr ? value->Text() : std::move(fallback);
}

std::optional<int> Fields::MaybeNumber(std::string_view key) const {
  const doc::Value* value = command_.Find(key);
  if (value == nullptr || !IsNumber(*value)) return std::nullopt;
  return static_cast<int>(*value->AsInt());
}

bool Fields::Flag(std::string_view key) const {
  const doc::Value* value = command_.Find(key);
  return value != nullptr && value->AsBool().value_or(false);
}

std::vector<std::string> Fields::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  if (const doc::Value* list = command_.Find(key)) {
    for (const doc::Value& item : list->items()) texts.push_back(item.Text());
  }
  return texts;
}

std::vector<int> Fields::Numbers(std::string_view key) const {
  std::vector<int> numbers;
  if (const doc::Value* list = command_.Find(key)) {
    for (const doc::Value& item : list->items()) {
      if (IsNumber(item)) numbers.push_back(static_cast<int>(*item.AsInt()));
    }
  }
  return numbers;
}

}  // namespace ndp::sim_kubelet
