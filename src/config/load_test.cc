#include "config/load.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "doc/json.h"
#include "testing/result_matchers.h"

namespace ndp::config {
namespace {
using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Flags = std::map<std::string, std::vector<std::string>>;
using Env = std::map<std::string, std::string>;

// Inputs of which nothing comes from the machine.
Inputs From(std::string file, Flags flags = {}, const Env& env = {},
            Program program = Program::kDevicePlugin) {
  Inputs inputs{.program = program, .flags = std::move(flags)};
  inputs.flags["config-file"] = {"c.yaml"};
  inputs.env = [env](const std::string& name) -> std::optional<std::string> {
    const auto at = env.find(name);
    if (at == env.end()) return std::nullopt;
    return at->second;
  };
  inputs.read_file = [file = std::move(file)](const std::string&) -> Result<std::string> {
    return file;
  };
  return inputs;
}

Loaded MustLoad(const Inputs& inputs) {
  auto loaded = Load(inputs);
  EXPECT_THAT(loaded, IsOk());
  return loaded.ok() ? *std::move(loaded) : Loaded{};
}

TEST(LoadTest, FlagBeatsVariableBeatsFileBeatsDefault) {
  const std::string file = "flags:\n  migStrategy: single\n";
  EXPECT_EQ(MustLoad(From("")).settings.common.mig_strategy, MigStrategy::kNone);
  EXPECT_EQ(MustLoad(From(file)).settings.common.mig_strategy, MigStrategy::kSingle);
  const Env env = {{"MIG_STRATEGY", "mixed"}};
  EXPECT_EQ(MustLoad(From(file, {}, env)).settings.common.mig_strategy, MigStrategy::kMixed);
  const Loaded loaded = MustLoad(From(file, {{"mig-strategy", {"none"}}}, env));
  EXPECT_EQ(loaded.settings.common.mig_strategy, MigStrategy::kNone);
  EXPECT_EQ(loaded.origins.at("mig-strategy").Text(), "flag --mig-strategy");
}

TEST(LoadTest, PathsOfThisProcessMayBeRelativeToWhereItWasStarted) {
  const std::string here = std::filesystem::current_path().string();
  const Settings s = MustLoad(From("health: {stateFile: state, fencesFile: n/../fences.yaml}\n"
                                   "cdi: {specDir: n/cdi}\n",
                                   {{"driver-root-ctr-path", {"n/root"}},
                                    {"host-root", {"./n/root/"}},
                                    {"kubelet-socket", {"n/kubelet.sock"}}}))
                         .settings;
  EXPECT_EQ(s.common.config_file, here + "/c.yaml");
  EXPECT_EQ(s.common.driver_root_ctr_path, here + "/n/root");
  EXPECT_EQ(s.common.host_root, here + "/n/root");
  EXPECT_EQ(s.plugin.kubelet_socket, here + "/n/kubelet.sock");
  EXPECT_EQ(s.plugin.socket_dir, here + "/n");
  EXPECT_EQ(s.cdi.spec_dir, here + "/n/cdi");
  EXPECT_EQ(s.health.state_file, here + "/state");
  EXPECT_EQ(s.health.fences_file, here + "/fences.yaml");
}

TEST(LoadTest, PathsOfTheHostAreAbsolute) {
  for (const char* flag : {"driver-root", "dev-root", "mps-root", "nvidia-cdi-hook-path"}) {
    EXPECT_THAT(Load(From("", {{flag, {"n/root"}}})),
                IsErrorThat(Code::kInvalidArgument,
                            AllOf(HasSubstr(flag), HasSubstr("want an absolute path"))));
  }
}

TEST(LoadTest, KeepsTheOriginOfEachValue) {
  const Loaded loaded = MustLoad(
      From("version: v1\nflags:\n  migStrategy: single\n", {}, {{"DEVICE_ID_STRATEGY", "index"}}));
  EXPECT_EQ(loaded.origins.at("mig-strategy").Text(), "file: flags.migStrategy (line 3)");
  EXPECT_EQ(loaded.origins.at("device-id-strategy").Text(), "environment DEVICE_ID_STRATEGY");
  EXPECT_EQ(loaded.origins.at("driver-root").Text(), "default");
}

TEST(LoadTest, AVariableSetButEmptyCountsForTextsOnly) {
  const Loaded loaded = MustLoad(From("", {},
                                      {{"KUBELET_SOCKET", ""},
                                       {"PASS_DEVICE_SPECS", ""},
                                       {"RESCAN_INTERVAL", ""},
                                       {"DEVICE_LIST_STRATEGY", ""}}));
  EXPECT_EQ(loaded.settings.plugin.kubelet_socket, "");
  EXPECT_FALSE(loaded.settings.plugin.pass_device_specs);
  EXPECT_EQ(loaded.settings.plugin.rescan_interval, 30s);
  EXPECT_THAT(loaded.settings.plugin.device_list_strategies,
              ElementsAre(DeviceListStrategy::kEnvvar));
  EXPECT_THAT(Load(From("", {}, {{"MIG_STRATEGY", ""}})),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("MIG_STRATEGY: unknown value \"\"")));
}

TEST(LoadTest, ListsAreRepeatedOrCommaSeparated) {
  const auto both =
      testing::UnorderedElementsAre(DeviceListStrategy::kEnvvar, DeviceListStrategy::kCdiCri);
  const auto strategies = [](const Inputs& inputs) {
    return MustLoad(inputs).settings.plugin.device_list_strategies;
  };
  EXPECT_THAT(strategies(From("", {{"device-list-strategy", {"envvar", "cdi-cri"}}})), both);
  EXPECT_THAT(strategies(From("", {{"device-list-strategy", {"envvar, cdi-cri"}}})), both);
  EXPECT_THAT(strategies(From("", {}, {{"DEVICE_LIST_STRATEGY", "envvar,cdi-cri"}})), both);
  EXPECT_THAT(strategies(From("flags: {plugin: {deviceListStrategy: [envvar, cdi-cri]}}")), both);
  EXPECT_THAT(strategies(From("flags: {plugin: {deviceListStrategy: 'envvar,cdi-cri'}}")), both);
}

TEST(LoadTest, BooleansTakeWhatGoTakes) {
  for (const char* yes : {"true", "TRUE", "t", "T", "1"}) {
    EXPECT_TRUE(MustLoad(From("", {}, {{"GDS_ENABLED", yes}})).settings.plugin.gds_enabled) << yes;
  }
  for (const char* no : {"false", "False", "f", "0"}) {
    EXPECT_FALSE(
        MustLoad(From("", {{"fail-on-init-error", {no}}})).settings.common.fail_on_init_error)
        << no;
  }
  EXPECT_THAT(Load(From("", {}, {{"GDS_ENABLED", "yes"}})),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("GDS_ENABLED: invalid value \"yes\"")));
}

TEST(LoadTest, FeatureDiscoveryTakesItsOwnVariableFirst) {
  const Env env = {{"GFD_MIG_STRATEGY", "single"}, {"MIG_STRATEGY", "mixed"}};
  EXPECT_EQ(MustLoad(From("", {}, env, Program::kFeatureDiscovery)).settings.common.mig_strategy,
            MigStrategy::kSingle);
  EXPECT_EQ(MustLoad(From("", {}, env)).settings.common.mig_strategy, MigStrategy::kMixed);
  EXPECT_TRUE(MustLoad(From("", {{"oneshot", {"true"}}}, {}, Program::kFeatureDiscovery))
                  .settings.gfd.oneshot);
}

TEST(LoadTest, SleepIntervalIsADurationInfiniteOrNanoseconds) {
  const auto interval = [](const std::string& text) {
    return MustLoad(From("flags: {gfd: {sleepInterval: " + text + "}}"))
        .settings.gfd.sleep_interval;
  };
  EXPECT_EQ(interval("1m30s"), std::optional<Duration>(90s));
  EXPECT_EQ(interval("infinite"), std::nullopt);
  EXPECT_EQ(interval("5000000000"), std::optional<Duration>(5s));
}

TEST(LoadTest, AnEmptyFileIsValid) {
  for (const char* text : {"", "\n", "# nothing\n", "---\n", "{}", "version: v1", "version: ''",
                           "flags:\nsharing:\n"}) {
    const auto loaded = Load(From(text));
    ASSERT_THAT(loaded, IsOk()) << text;
    EXPECT_THAT(loaded->warnings, IsEmpty()) << text;
  }
  Inputs inputs = From("");
  inputs.flags["config-file"] = {"/dev/null"};
  inputs.read_file = ReadConfigFile;
  EXPECT_THAT(Load(inputs), IsOk());
}

TEST(LoadTest, JsonIsReadToo) {
  const Loaded loaded = MustLoad(From("{\n\t\"flags\": {\n\t\t\"migStrategy\": \"mixed\"}}"));
  EXPECT_EQ(loaded.settings.common.mig_strategy, MigStrategy::kMixed);
}

TEST(LoadTest, UnknownKeysWarnAndAreRefusedWhenStrict) {
  const std::string file = "flags:\n  plugin:\n    passDeviceSpec: true\n";
  const Loaded loaded = MustLoad(From(file));
  EXPECT_FALSE(loaded.settings.plugin.pass_device_specs);
  EXPECT_THAT(loaded.warnings,
              ElementsAre("unknown key flags.plugin.passDeviceSpec (line 3): did you mean "
                          "flags.plugin.passDeviceSpecs?"));
  EXPECT_THAT(
      Load(From(file, {{"strict-config", {"true"}}})),
      IsErrorThat(Code::kInvalidArgument, AllOf(HasSubstr("configuration file c.yaml: unknown key"),
                                                HasSubstr("--strict-config"))));
  EXPECT_THAT(Load(From(file, {}, {{"STRICT_CONFIG", "true"}})), IsError(Code::kInvalidArgument));
}

TEST(LoadTest, UnknownValuesOfAListAreRefusedWhenStrict) {
  for (const auto& [flag, value] : {std::pair{"cdi-feature-flags", "disable-ipc-discoverer,fly"},
                                    {"cdi-disable-hooks", "update-ldcache,fly"}}) {
    EXPECT_THAT(Load(From("", {{flag, {value}}, {"strict-config", {"true"}}})),
                IsErrorThat(Code::kInvalidArgument, AllOf(HasSubstr(flag), HasSubstr("\"fly\""),
                                                          HasSubstr("--strict-config"))));
  }
  EXPECT_THAT(
      Load(From("", {{"strict-config", {"true"}}}, {{"DP_DISABLE_HEALTHCHECKS", "79,fly"}})),
      IsErrorThat(Code::kInvalidArgument, HasSubstr("DP_DISABLE_HEALTHCHECKS")));
}

TEST(LoadTest, KeysOfAnotherCaseAreTakenWithAWarning) {
  const Loaded loaded =
      MustLoad(From("Flags:\n  migstrategy: mixed\n", {{"strict-config", {"1"}}}));
  EXPECT_EQ(loaded.settings.common.mig_strategy, MigStrategy::kMixed);
  EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("Flags (line 1) is read as flags"),
                                           HasSubstr("migstrategy (line 2)")));
}

struct BadFile {
  std::string file;
  std::string message;
};

TEST(LoadTest, BadFilesAreRefusedWithPathLineAndWhatIsRight) {
  const BadFile cases[] = {
      {"version: v2", "version (line 1): unknown version \"v2\": want v1"},
      {"flags: [", "line 1"},
      {"- a\n", "line 1: want a map of settings, got a list"},
      {"just text", "line 1: want a map of settings, got a text"},
      {"flags: 5", "flags (line 1): want a map, got a number (5)"},
      {"flags:\n  migStrategy: [none]", "flags.migStrategy (line 2): want a text, got a list"},
      {"flags:\n  migStrategy: mixd",
       "flags.migStrategy (line 2): unknown value \"mixd\": want one "
       "of none, single, mixed (did you mean \"mixed\"?)"},
      {"flags:\n  failOnInitError: \"true\"",
       "flags.failOnInitError (line 2): want true or false, got a text \"true\""},
      {"flags: {plugin: {deviceListStrategy: []}}", "flags.plugin.deviceListStrategy (line 1): no"},
      {"flags: {nvidiaDriverRoot: run/nvidia}", "want an absolute path"},
      {"flags: {plugin: {cdiAnnotationPrefix: cdi.k8s.io}}", "followed by a slash"},
      {"imex: {channelIDs: [0, 1]}", "imex.channelIDs (line 1): invalid value \"0,1\""},
      {"imex: {channelIDs: [a]}", "want a whole number"},
      {"rescanInterval: 30", "rescanInterval (line 1): invalid duration \"30\""},
      {"rescanInterval: 0s", "want a duration of more than 0s"},
      {"health: {recovery: {probes: 0}}", "health.recovery.probes (line 1)"},
      {"health: {recovery: {probes: many}}", "want a number, got a text \"many\""},
      {"health: {grace: -1s}", "want a duration of 0s or more"},
      {"web: {listenAddress: localhost}", "want host:port"},
      {"web: {listenAddress: ':99999'}", "want host:port"},
  };
  for (const BadFile& bad : cases) {
    EXPECT_THAT(Load(From(bad.file)),
                IsErrorThat(Code::kInvalidArgument, AllOf(HasSubstr("configuration file c.yaml: "),
                                                          HasSubstr(bad.message))))
        << bad.file;
  }
}

TEST(LoadTest, TheFileIsCheckedAlsoWhereAFlagWins) {
  EXPECT_THAT(Load(From("flags: {migStrategy: {}}", {{"mig-strategy", {"none"}}})),
              IsError(Code::kInvalidArgument));
}

TEST(LoadTest, BadFlagsNameTheFlag) {
  EXPECT_THAT(
      Load(From("", {{"device-id-strategy", {"uid"}}})),
      IsErrorThat(Code::kInvalidArgument,
                  HasSubstr("--device-id-strategy: unknown value \"uid\": want one of uuid, "
                            "index (did you mean \"uuid\"?)")));
  EXPECT_THAT(Load(From("", {{"no-such-flag", {"1"}}})),
              IsErrorThat(Code::kInvalidArgument,
                          HasSubstr("--no-such-flag: unknown option of device-plugin")));
}

TEST(LoadTest, UnreadableFilesAreRefused) {
  const std::filesystem::path dir =
      std::filesystem::path(testing::TempDir()) / "ndp-config-load-test";
  std::filesystem::create_directories(dir);
  Inputs inputs = From("");
  inputs.read_file = ReadConfigFile;
  inputs.flags["config-file"] = {dir / "missing.yaml"};
  EXPECT_THAT(Load(inputs), IsErrorThat(Code::kNotFound, HasSubstr("missing.yaml: ")));
  inputs.flags["config-file"] = {dir};
  EXPECT_THAT(Load(inputs), IsErrorThat(Code::kInvalidArgument, HasSubstr("is a folder")));
  std::ofstream(dir / "large.yaml") << std::string(5 << 20, '#');
  inputs.flags["config-file"] = {dir / "large.yaml"};
  EXPECT_THAT(Load(inputs), IsErrorThat(Code::kInvalidArgument, HasSubstr("larger than 4 MiB")));
  std::ofstream(dir / "good.yaml") << "flags: {migStrategy: mixed}";
  inputs.flags["config-file"] = {dir / "good.yaml"};
  EXPECT_EQ(MustLoad(inputs).settings.common.mig_strategy, MigStrategy::kMixed);
  std::filesystem::remove_all(dir);
}

TEST(LoadTest, DerivedValuesFollowWhatTheyAreDerivedFrom) {
  const Settings settings = MustLoad(From("flags: {nvidiaDriverRoot: /run/nvidia/driver}",
                                          {{"kubelet-socket", {"/tmp/k/kubelet.sock"}}}))
                                .settings;
  EXPECT_EQ(settings.common.dev_root, "/run/nvidia/driver");
  EXPECT_EQ(settings.plugin.socket_dir, "/tmp/k");
  EXPECT_EQ(settings.health.state_file, "/tmp/k/.ndp-health");
  const Settings other = MustLoad(From("flags: {nvidiaDevRoot: /dev2}\nhealth: {stateFile: ''}", {},
                                       {{"KUBELET_SOCKET", ""}}))
                             .settings;
  EXPECT_EQ(other.common.dev_root, "/dev2");
  EXPECT_EQ(other.plugin.socket_dir, "/var/lib/kubelet/device-plugins");
  EXPECT_EQ(other.health.state_file, "");
}

TEST(LoadTest, RootsOfDevAreFoldersToAppendTo) {
  const auto dev_root = [](const std::string& flags) {
    return MustLoad(From("flags: {" + flags + "}")).settings.common.dev_root;
  };
  EXPECT_EQ(dev_root("nvidiaDriverRoot: /run/nvidia/driver/"), "/run/nvidia/driver");
  EXPECT_EQ(dev_root("nvidiaDriverRoot: //"), "/");
  // What is given may be the /dev itself.
  EXPECT_EQ(dev_root("nvidiaDevRoot: /run/nvidia/driver/dev"), "/run/nvidia/driver");
  EXPECT_EQ(dev_root("nvidiaDevRoot: /run//nvidia/driver/dev/"), "/run/nvidia/driver");
  EXPECT_EQ(dev_root("nvidiaDevRoot: /run/nvidia/mydev"), "/run/nvidia/mydev");
  EXPECT_EQ(dev_root("nvidiaDevRoot: /dev"), "/");
  EXPECT_EQ(dev_root("nvidiaDevRoot: /"), "/");
}

TEST(LoadTest, DisablingHealthChecksTurnsPollsOffUnlessTheFileSaysOtherwise) {
  const Env env = {{"DP_DISABLE_HEALTHCHECKS", "all"}, {"DP_ENABLE_HEALTHCHECKS", "79"}};
  const Health off = MustLoad(From("", {}, env)).settings.health;
  EXPECT_TRUE(off.xids.disabled.all);
  EXPECT_FALSE(off.polling.enabled);
  EXPECT_TRUE(off.xids.enabled.Contains(79));
  EXPECT_FALSE(off.xids.enabled.Contains(80));
  EXPECT_TRUE(MustLoad(From("health: {polling: {enabled: true}}", {}, env))
                  .settings.health.polling.enabled);
  const Loaded some = MustLoad(From("", {}, {{"DP_DISABLE_HEALTHCHECKS", "13,abc, 31"}}));
  EXPECT_THAT(some.settings.health.xids.disabled.xids, ElementsAre(13, 31));
  EXPECT_TRUE(some.settings.health.polling.enabled);
  EXPECT_THAT(some.warnings, ElementsAre(HasSubstr("DP_DISABLE_HEALTHCHECKS: \"abc\" is ignored")));
}

TEST(LoadTest, UnknownCdiFeaturesAndHooksWarnOnly) {
  const Loaded loaded =
      MustLoad(From("", {{"cdi-feature-flags", {"disable-nvsandbox-utils,no-such"}}},
                    {{"CDI_DISABLE_HOOKS", "update-ldcache,no-hook"}}));
  EXPECT_THAT(loaded.settings.cdi.features, ElementsAre(CdiFeature::kDisableNvsandboxutils));
  EXPECT_THAT(loaded.settings.cdi.disabled_hooks, ElementsAre("update-ldcache"));
  EXPECT_THAT(loaded.warnings, testing::UnorderedElementsAre(
                                   HasSubstr("--cdi-feature-flags: unknown value \"no-such\""),
                                   HasSubstr("CDI_DISABLE_HOOKS: unknown value \"no-hook\"")));
  EXPECT_TRUE(MustLoad(From("", {{"cdi-disable-hooks", {"all"}}})).settings.cdi.disable_all_hooks);
}

TEST(LoadTest, MpsNeedsItsRootAndNoMixedStrategy) {
  const std::string mps = "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}";
  EXPECT_THAT(Load(From(mps)), IsErrorThat(Code::kInvalidArgument, HasSubstr("--mps-root")));
  const Flags root = {{"mps-root", {"/run/nvidia/mps"}}};
  EXPECT_THAT(Load(From(mps, root)), IsOk());
  EXPECT_THAT(Load(From(mps, root, {{"MIG_STRATEGY", "mixed"}})),
              IsErrorThat(Code::kInvalidArgument, HasSubstr("environment MIG_STRATEGY: mixed")));
  EXPECT_THAT(Load(From(mps, {}, {}, Program::kFeatureDiscovery)), IsOk());
}

TEST(LoadTest, VfioIsForFeatureDiscoveryOnly) {
  const std::string file = "flags: {deviceDiscoveryStrategy: vfio}";
  EXPECT_THAT(Load(From(file, {}, {}, Program::kFeatureDiscovery)), IsOk());
  EXPECT_THAT(Load(From(file)), IsErrorThat(Code::kInvalidArgument, HasSubstr("vfio")));
}

TEST(LoadTest, ConfigManagerNamesWhatItNeeds) {
  Inputs inputs = From("");
  inputs.program = Program::kConfigManager;
  inputs.flags = {{"node-name", {"n1"}}, {"config-file-srcdir", {"/configs"}}};
  EXPECT_THAT(Load(inputs), IsErrorThat(Code::kInvalidArgument, HasSubstr("CONFIG_FILE_DST")));
  inputs.flags["config-file-dst"] = {"/config/config.yaml"};
  inputs.flags["fallback-strategies"] = {"named,single"};
  const Loaded loaded = MustLoad(inputs);
  EXPECT_THAT(loaded.settings.manager.fallback_strategies,
              ElementsAre(FallbackStrategy::kNamed, FallbackStrategy::kSingle));
}

TEST(LoadTest, ARefusedFileNamesItsUnknownKeysToo) {
  EXPECT_THAT(Load(From("flags: {migStrategi: single}\nsharing:\n  timeSlicing:\n    resources:\n"
                        "    - {name: gpu, replica: 3}\n")),
              IsErrorThat(Code::kInvalidArgument,
                          AllOf(HasSubstr("no replicas"), HasSubstr("flags.migStrategi"),
                                HasSubstr("migStrategy"), HasSubstr("resources[0].replica"))));
}

TEST(ToJsonTest, PrintsEachValueWithItsOrigin) {
  const Loaded loaded =
      MustLoad(From("flags:\n  migStrategy: single\n"
                    "sharing:\n  timeSlicing:\n    resources:\n    - {name: gpu, replicas: 4}\n",
                    {{"device-list-strategy", {"envvar", "cdi-cri"}}}));
  const std::string json = doc::ToJson(ToJson(loaded));
  for (const char* part :
       {R"j("mig-strategy":{"value":"single","origin":"file: flags.migStrategy (line 2)"})j",
        R"j("device-list-strategy":{"value":["envvar","cdi-cri"],"origin":"flag --device-list-)j",
        R"j("health.grace":{"value":"30s","origin":"default"})j",
        R"j("name":"nvidia.com/gpu","offeredAs":"nvidia.com/gpu","devices":"all","replicas":4)j",
        R"j("origin":"sharing.timeSlicing.resources[0] (line 6)")j"}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
  EXPECT_THAT(json, Not(HasSubstr("sleep-interval")));
}

TEST(ChangesTest, HasWhatIsAnotherValueNow) {
  const std::string sharing =
      "sharing:\n  timeSlicing:\n    resources:\n    - {name: gpu, replicas: 4}\n";
  const Loaded before = MustLoad(From("rescanInterval: 7s\n" + sharing));
  EXPECT_EQ(doc::ToJson(Changes(before, before)), "{}");
  EXPECT_EQ(doc::ToJson(Changes(before, MustLoad(From("rescanInterval: 7s\n\n" + sharing)))), "{}")
      << "a line that has moved";
  EXPECT_EQ(doc::ToJson(Changes(before, MustLoad(From(sharing)))),
            R"({"rescan-interval":{"value":"30s","origin":"default","was":"7s"}})");
  EXPECT_THAT(doc::ToJson(Changes(before, MustLoad(From("rescanInterval: 7s\n")))),
              testing::StartsWith(R"({"sharing":{"value")"));
}

}  // namespace
}  // namespace ndp::config
