#include "config/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/one_line.h"
#include "base/text.h"
#include "config/keys.h"
#include "config/node.h"
#include "config/resolve.h"
#include "config/sections.h"
#include "doc/yaml.h"

namespace ndp::config {
namespace {

struct Given {
  std::vector<std::string> values;
  Origin origin;
};

// Elements of a list, however they were joined.
std::vector<std::string> SplitElements(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    for (std::string_view part : Split(text, ',')) {
      if (const auto trimmed = Trim(part); !trimmed.empty()) out.emplace_back(trimmed);
    }
  }
  return out;
}

std::optional<Given> FromFlag(const Option& option, const Inputs& inputs) {
  if (option.flag.empty() || !option.of(inputs.program)) return std::nullopt;
  const auto at = inputs.flags.find(std::string(option.flag));
  if (at == inputs.flags.end() || at->second.empty()) return std::nullopt;
  return Given{.values = at->second,
               .origin = {.source = Source::kFlag, .name = fmt::format("--{}", option.flag)}};
}

std::optional<Given> FromEnvironment(const Option& option, const Inputs& inputs) {
  const bool empty_counts = option.bind.kind == Kind::kText || option.bind.kind == Kind::kChoice;
  for (std::string_view name : option.EnvOf(inputs.program)) {
    const auto value = inputs.env(std::string(name));
    if (!value || (value->empty() && !empty_counts)) continue;
    return Given{.values = {*value},
                 .origin = {.source = Source::kEnvironment, .name = std::string(name)}};
  }
  return std::nullopt;
}

// The texts of a value of the file, which must have the type of the option.
Result<std::vector<std::string>> FileTexts(const Option& option, const Node& node) {
  switch (option.bind.kind) {
    case Kind::kBool: {
      NDP_TRY(const bool value, node.Bool());
      return std::vector<std::string>{value ? "true" : "false"};
    }
    case Kind::kNumber: {
      if (!node.value().AsFloat()) return node.WrongType("a number");
      return std::vector<std::string>{node.value().Text()};
    }
    case Kind::kList: {
      std::vector<std::string> texts;
      if (node.value().is_map()) return node.WrongType("a list, or one comma separated text");
      if (!node.value().is_list()) {
        NDP_TRY(std::string text, node.Text());
        return std::vector<std::string>{std::move(text)};
      }
      NDP_TRY(const std::vector<Node> items, node.Items());
      for (const Node& item : items) {
        NDP_TRY(std::string text, item.Text());
        texts.push_back(std::move(text));
      }
      return texts;
    }
    case Kind::kText:
    case Kind::kChoice:
    case Kind::kDuration:
      break;
  }
  NDP_TRY(std::string text, node.Text());
  return std::vector<std::string>{std::move(text)};
}

Result<std::optional<Given>> FromFile(const Option& option, const Node& root) {
  if (option.key.empty()) return std::optional<Given>();
  NDP_TRY(const Node node, root.Find(option.key));
  if (!node.set()) return std::optional<Given>();
  NDP_TRY(auto texts, FileTexts(option, node));
  return std::optional(Given{
      .values = std::move(texts),
      .origin = {.source = Source::kFile, .name = std::string(option.key), .line = node.line()}});
}

std::optional<Given> FromDefault(const Option& option) {
  if (option.fallback.empty()) return std::nullopt;
  return Given{.values = {std::string(option.fallback)}, .origin = {}};
}

// Gives one option the value that counts, if there is any: flag, variable, file, default.
Status Apply(const Option& option, const Inputs& inputs, const Node& root, bool strict,
             Loaded& loaded) {
  const std::string file = fmt::format("configuration file {}", loaded.settings.common.config_file);
  // The file's value is read also where a flag or a variable wins: its type is checked.
  NDP_TRY(std::optional<Given> given, FromFile(option, root).Context(file));
  if (auto env = FromEnvironment(option, inputs)) given = std::move(env);
  if (auto flag = FromFlag(option, inputs)) given = std::move(flag);
  if (!given) given = FromDefault(option);

  // Another program's option may have the same flag as one of ours: it goes by its key.
  const std::string_view id = option.of(inputs.program) ? option.id() : option.key;
  if (!id.empty()) {
    loaded.origins.insert_or_assign(std::string(id), given ? given->origin : Origin{});
  }
  if (!given) return {};

  if (option.bind.kind == Kind::kList) given->values = SplitElements(given->values);
  std::vector<std::string> warnings;
  const Origin& origin = given->origin;
  const bool from_file = origin.source == Source::kFile;
  const std::string where = from_file ? Where{origin.name, origin.line}.Text() : origin.name;
  const std::string context = from_file ? fmt::format("{}: {}", file, where) : where;
  NDP_TRY(option.bind.set(given->values, loaded.settings, warnings).Context(context));
  for (const std::string& warning : warnings) {
    // A value that nobody knows is left out of its list.
    if (strict && option.bind.kind == Kind::kList) {
      return Error(Code::kInvalidArgument,
                   fmt::format("{}: {} (refused by --strict-config)", context, warning));
    }
    loaded.warnings.push_back(fmt::format("{}: {}", where, warning));
  }
  return {};
}

Status CheckVersion(const Node& root) {
  NDP_TRY(const Node version, root.At("version"));
  if (!version.set()) return {};
  NDP_TRY(const std::string text, version.Text());
  if (text.empty() || text == "v1") return {};
  return version.Bad(fmt::format("unknown version \"{}\": want v1", text));
}

// Parses the file and leaves only keys that exist.
Result<doc::Value> ReadDocument(const std::string& text, bool strict, Loaded& loaded,
                                std::vector<std::string>& unknown) {
  NDP_TRY(doc::Value root, doc::ParseYaml(text));
  if (root.is_null()) return root;
  if (!root.is_map()) return Node(root).WrongType("a map of settings");
  KeyFindings keys = CanonicalizeKeys(root);
  if (strict && !keys.unknown.empty()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} (refused by --strict-config)", fmt::join(keys.unknown, "; ")));
  }
  unknown = keys.unknown;
  for (auto* findings : {&keys.warnings, &keys.unknown}) {
    for (std::string& finding : *findings) loaded.warnings.push_back(std::move(finding));
  }
  return root;
}

Status ReadSections(const Node& root, Loaded& loaded) {
  Settings& settings = loaded.settings;
  NamingSwitch naming{.on = settings.plugin.enable_resource_naming};
  NDP_TRY(const Node sharing, root.At("sharing"));
  NDP_TRY(const Node resources, root.At("resources"));
  NDP_TRY(const Node devices, root.At("devices"));
  NDP_TRY(const Node xids, root.Find("health.xids"));
  NDP_TRY(settings.sharing, ReadSharing(sharing, naming, loaded.warnings));
  NDP_TRY(settings.names, ReadNameRules(resources, naming));
  NDP_TRY(settings.devices, ReadDevices(devices));
  NDP_TRY(settings.health.xids.moved, ReadMovedXids(xids));
  if (!naming.ignored.empty()) {
    loaded.warnings.push_back(
        fmt::format("ignored without --enable-resource-naming, as upstream does: {}",
                    fmt::join(naming.ignored, "; ")));
  }
  for (const auto& [name, node] : {std::pair{"sharing", &sharing},
                                   {"resources", &resources},
                                   {"devices", &devices},
                                   {"health.xids", &xids}}) {
    if (node->set()) {
      loaded.origins[name] = {.source = Source::kFile, .name = name, .line = node->line()};
    } else {
      loaded.origins.try_emplace(name);
    }
  }
  return {};
}

Status ApplyAll(const Inputs& inputs, const Node& root, bool strict, Loaded& loaded) {
  for (const Option& option : AllOptions()) {
    NDP_TRY(Apply(option, inputs, root, strict, loaded));
  }
  return {};
}

Status CheckFlagsExist(const Inputs& inputs) {
  for (const auto& [name, values] : inputs.flags) {
    const auto options = OptionsOf(inputs.program);
    const bool known = std::ranges::any_of(
        options, [&name](const Option* option) { return option->flag == name; });
    if (!known) {
      return Error(Code::kInvalidArgument,
                   fmt::format("--{}: unknown option of {}", name, ProgramName(inputs.program)));
    }
  }
  return {};
}

Status ApplyDocument(const Inputs& inputs, const Node& root, const std::string& file, bool strict,
                     Loaded& loaded) {
  NDP_TRY(CheckVersion(root).Context(file));
  NDP_TRY(ApplyAll(inputs, root, strict, loaded));
  NDP_TRY(ReadSections(root, loaded).Context(file));
  return Resolve(loaded);
}

Result<Loaded> Read(const Inputs& inputs) {
  NDP_TRY(CheckFlagsExist(inputs));
  Loaded loaded{.program = inputs.program};
  // A first round without the file says which file, and how strictly to read it.
  const doc::Value nothing;
  Loaded first = loaded;
  NDP_TRY(ApplyAll(inputs, Node(nothing), false, first));
  const bool strict = first.settings.common.strict_config;
  const std::string path = first.settings.common.config_file;
  const std::string file = fmt::format("configuration file {}", path);

  doc::Value root;
  std::vector<std::string> unknown;
  if (!path.empty()) {
    NDP_TRY(const std::string text, inputs.read_file(path).Context(file));
    NDP_TRY(root, ReadDocument(text, strict, loaded, unknown).Context(file));
  }
  loaded.settings.common.config_file = path;  // for the messages of ApplyAll
  const Status applied = ApplyDocument(inputs, Node(root), file, strict, loaded);
  if (applied.ok()) return loaded;
  // A misspelt key may be why, and is to be corrected in any case.
  if (unknown.empty()) return applied.error();
  return Error(applied.error().code(),
               fmt::format("{}; and {}", applied.error().message(), fmt::join(unknown, "; ")));
}

}  // namespace

Result<Loaded> Load(const Inputs& inputs) {
  auto loaded = Read(inputs);
  // Values are quoted as they were given, and may hold anything.
  if (!loaded) return Error(loaded.error().code(), OneLine(loaded.error().message()));
  for (std::string& warning : loaded->warnings) warning = OneLine(warning);
  return loaded;
}

}  // namespace ndp::config
