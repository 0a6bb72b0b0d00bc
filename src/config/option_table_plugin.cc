#include <fmt/format.h>

#include <algorithm>

#include "config/check.h"
#include "config/codec.h"
#include "config/option_table.h"

namespace ndp::config {
namespace {

// The hooks that may stand in a spec; `all` is none of them.
constexpr std::string_view kHooks[] = {"create-symlinks",
                                       "enable-cuda-compat",
                                       "update-ldcache",
                                       "disable-device-node-modification",
                                       "update-application-profile",
                                       "chmod"};

Status SetDisabledHooks(const Values& values, Settings& settings, Warnings& warnings) {
  Cdi& cdi = settings.cdi;
  cdi.disable_all_hooks = false;
  cdi.disabled_hooks.clear();
  for (const std::string& name : values) {
    if (name == "all") {
      cdi.disable_all_hooks = true;
    } else if (std::ranges::find(kHooks, name) != std::end(kHooks)) {
      cdi.disabled_hooks.insert(name);
    } else {
      std::vector<std::string_view> known(std::begin(kHooks), std::end(kHooks));
      known.emplace_back("all");
      warnings.push_back(UnknownChoice(name, known).message() + "; ignored");
    }
  }
  return {};
}

doc::Value ShowDisabledHooks(const Settings& settings) {
  doc::Value list = doc::Value::List();
  if (settings.cdi.disable_all_hooks) list.Append("all");
  for (const std::string& name : settings.cdi.disabled_hooks) list.Append(name);
  return list;
}

Status AnyStrategy(const std::set<DeviceListStrategy>& strategies) {
  if (!strategies.empty()) return {};
  return Error(Code::kInvalidArgument,
               fmt::format("no strategy: want one or more of {}",
                           fmt::join(AllNames<DeviceListStrategy>(), ", ")));
}

void AddAllocateOptions(std::vector<Option>& table) {
  table.insert(
      table.end(),
      {
          {.flag = "device-list-strategy",
           .env = {"DEVICE_LIST_STRATEGY"},
           .key = "flags.plugin.deviceListStrategy",
           .fallback = "envvar",
           .help = "How a container's devices reach its runtime; several may be given",
           .programs = kPlugin,
           .bind =
               Bind([](auto& s) -> auto& { return s.plugin.device_list_strategies; }, AnyStrategy)},
          {.flag = "device-id-strategy",
           .env = {"DEVICE_ID_STRATEGY"},
           .key = "flags.plugin.deviceIDStrategy",
           .fallback = "uuid",
           .help = "How devices are named to the runtime",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.plugin.device_id_strategy; })},
          {.flag = "pass-device-specs",
           .env = {"PASS_DEVICE_SPECS"},
           .key = "flags.plugin.passDeviceSpecs",
           .fallback = "false",
           .help = "Also hand the device nodes to the kubelet",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.plugin.pass_device_specs; })},
          {.flag = "shared-devices-allocation-policy",
           .env = {"SHARED_DEVICES_ALLOCATION_POLICY"},
           .key = "flags.plugin.sharedDevicesAllocationPolicy",
           .fallback = "distributed",
           .help = "Spread replicas over GPUs, or fill one GPU first",
           .programs = kPlugin,
           .bind =
               Bind([](auto& s) -> auto& { return s.plugin.shared_devices_allocation_policy; })},
          {.flag = "mps-root",
           .env = {"MPS_ROOT"},
           .key = "flags.mpsRoot",
           .fallback_text = "none; required with MPS",
           .help = "Folder on the host where the MPS daemons' pipes and logs are",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.plugin.mps_root; }, AbsolutePath)},
          {.flag = "gdrcopy-enabled",
           .env = {"GDRCOPY_ENABLED"},
           .key = "flags.gdrcopyEnabled",
           .fallback = "false",
           .help = "Give containers the GDRCopy device",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.plugin.gdrcopy_enabled; })},
          {.flag = "gds-enabled",
           .env = {"GDS_ENABLED"},
           .key = "flags.gdsEnabled",
           .fallback = "false",
           .help = "Give containers GPUDirect Storage",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.plugin.gds_enabled; })},
          {.flag = "mofed-enabled",
           .env = {"MOFED_ENABLED"},
           .key = "flags.mofedEnabled",
           .fallback = "false",
           .help = "Give containers the InfiniBand devices",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.plugin.mofed_enabled; })},
          {.flag = "imex-channel-ids",
           .env = {"IMEX_CHANNEL_IDS"},
           .key = "imex.channelIDs",
           .fallback_text = "none",
           .help = "IMEX channels given to every container: none, or 0",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.imex.channel_ids; }, ImexChannels)},
          {.flag = "imex-required",
           .env = {"IMEX_REQUIRED"},
           .key = "imex.required",
           .fallback = "false",
           .help = "Devices are Unhealthy while an IMEX channel is missing",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.imex.required; })},
      });
}

void AddCdiOptions(std::vector<Option>& table) {
  table.insert(
      table.end(),
      {
          {.flag = "cdi-annotation-prefix",
           .env = {"CDI_ANNOTATION_PREFIX"},
           .key = "flags.plugin.cdiAnnotationPrefix",
           .fallback = "cdi.k8s.io/",
           .help = "Prefix of the annotations of strategy cdi-annotations, with its slash",
           .programs = kPlugin,
           .bind =
               Bind([](auto& s) -> auto& { return s.cdi.annotation_prefix; }, AnnotationPrefix)},
          {.flag = "nvidia-cdi-hook-path",
           .aliases = {"nvidia-ctk-path"},
           .env = {"NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH"},
           .key = "flags.plugin.nvidiaCTKPath",
           .fallback = "/usr/bin/nvidia-ctk",
           .help = "Program on the host that CDI hooks run",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.cdi.hook_path; }, AbsolutePath)},
          {.flag = "cdi-spec-dir",
           .env = {"CDI_SPEC_DIR"},
           .key = "cdi.specDir",
           .fallback = "/var/run/cdi",
           .help = "Folder that CDI specs are written to",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.cdi.spec_dir; }, NonEmpty)},
          {.flag = "cdi-feature-flags",
           .env = {"CDI_FEATURE_FLAGS"},
           .fallback_text = "none",
           .help = "Features of CDI generation: disable-nvsandboxutils, "
                   "enable-explicit-driver-libraries, enable-coherent-annotations, "
                   "no-additional-gids-for-device-nodes, disable-ipc-discoverer, "
                   "disable-multiple-csv-devices",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.cdi.features; })},
          {.flag = "cdi-disable-hooks",
           .env = {"CDI_DISABLE_HOOKS"},
           .fallback_text = "none",
           .help = "Hooks left out of CDI specs: all, create-symlinks, enable-cuda-compat, "
                   "update-ldcache, disable-device-node-modification, "
                   "update-application-profile, chmod",
           .programs = kPlugin,
           .bind = {.kind = Kind::kList,
                    .choices = {},
                    .set = SetDisabledHooks,
                    .show = ShowDisabledHooks}},
      });
}

void AddServeOptions(std::vector<Option>& table) {
  table.insert(
      table.end(),
      {
          {.flag = "kubelet-socket",
           .env = {"KUBELET_SOCKET"},
           .fallback = "/var/lib/kubelet/device-plugins/kubelet.sock",
           .help = "The kubelet's socket; empty: do not register. Our own sockets are beside it",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.plugin.kubelet_socket; })},
          {.flag = "rescan-interval",
           .env = {"RESCAN_INTERVAL"},
           .key = "rescanInterval",
           .fallback = "30s",
           .help = "How often devices are looked for anew",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.plugin.rescan_interval; }, Positive)},
          {.flag = "listen-address",
           .env = {"LISTEN_ADDRESS"},
           .key = "web.listenAddress",
           .fallback_text = "empty: off",
           .help = "Where /livez, /readyz, /metrics and /status.json are served: :port, host:port "
                   "or the path of a unix socket",
           .programs = kPlugin,
           .bind = Bind([](auto& s) -> auto& { return s.web.listen_address; })},
      });
}

}  // namespace

void AddPluginOptions(std::vector<Option>& table) {
  AddAllocateOptions(table);
  AddCdiOptions(table);
  AddServeOptions(table);
}

}  // namespace ndp::config
