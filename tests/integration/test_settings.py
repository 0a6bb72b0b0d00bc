"""The settings in force are told at start, each with where it came from."""

import json
import re

from simnode import eventually


def told(plugin):
    """The settings of the first log line that has them (of a plugin with --log-format=json)."""
    def look():
        for line in plugin.log().splitlines():
            entry = json.loads(line) if line.startswith("{") else {}
            if "settings" in entry:
                return json.loads(entry["settings"]) if isinstance(entry["settings"], str) else entry["settings"]
        return None
    return eventually(look, "the settings are logged")


def documented(repository):
    """Flag or key of every option that docs/configuration.md gives the device plugin."""
    text = (repository / "docs/configuration.md").read_text()
    text = text[text.index("## Options of all programs"):text.index("## Options of gpu-feature-discovery")]
    names = set()
    for row in re.findall(r"^\| (.*) \|$", text, re.M):
        flag, _variable, key = [cell.strip() for cell in row.split("|")[:3]]
        if flag.startswith("`--"):
            names.add(re.match(r"`--([a-z0-9-]+)", flag)[1])
        elif key.startswith("`"):
            names.add(key.strip("`"))
        elif "DP_" in row:
            names.add(re.search(r"`(DP_\w+)`", row)[1])
    return names


def test_every_option_is_told_with_its_value_and_its_origin(node, pytestconfig):
    node.up("none")
    plugin = node.start_plugin(
        "--log-format=json", "--mig-strategy=mixed", "--device-list-strategy", "envvar,volume-mounts",
        config={"flags": {"migStrategy": "single", "plugin": {"passDeviceSpecs": True, "deviceIDStrategy": "index"}},
                "rescanInterval": "7s"},
        env={"MIG_STRATEGY": "none", "DEVICE_ID_STRATEGY": "uuid", "GDS_ENABLED": "TRUE", "MOFED_ENABLED": "",
             "DP_DISABLE_HEALTHCHECKS": "48,63", "NVIDIA_DRIVER_ROOT": "/run/nvidia/driver"})
    settings = told(plugin)
    missing = {name for name in documented(pytestconfig.rootpath) if name not in settings}
    assert not missing - {"DP_ENABLE_HEALTHCHECKS", "DP_DISABLE_HEALTHCHECKS"}, missing
    assert all("value" in entry and entry["origin"] for entry in settings.values())

    def of(name):
        return settings[name]["value"], settings[name]["origin"]

    assert of("mig-strategy") == ("mixed", "flag --mig-strategy")
    assert of("device-list-strategy") == (["envvar", "volume-mounts"], "flag --device-list-strategy")
    assert of("device-id-strategy") == ("uuid", "environment DEVICE_ID_STRATEGY")
    assert of("gds-enabled") == (True, "environment GDS_ENABLED")
    assert of("mofed-enabled") == (False, "default")  # empty is unset for a boolean
    value, origin = of("pass-device-specs")
    assert value is True and "flags.plugin.passDeviceSpecs" in origin and "line" in origin
    assert of("rescan-interval")[0] == "7s" and "rescanInterval" in of("rescan-interval")[1]
    assert of("driver-root") == ("/run/nvidia/driver", "environment NVIDIA_DRIVER_ROOT")
    assert of("dev-root")[0] == "/run/nvidia/driver"


def test_a_log_in_json_is_that_from_its_first_line(node):
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    plugin = node.start_plugin(env={"LOG_FORMAT": "json"})
    node.wait_for(allocatable=2)
    lines = [json.loads(line) for line in plugin.log().splitlines()]
    assert lines[0]["msg"] == "starting" and lines[0]["version"]
    assert isinstance(next(line for line in lines if line["msg"] == "settings")["settings"], dict)
    assert next(line for line in lines if line["msg"] == "GPUs found")["count"] == 2
    assert next(line for line in lines if line["msg"] == "serving a resource")["devices"] == 2


def test_status_tells_the_same(node):
    node.up("dgx-h100", "--gpus", "1")
    plugin = node.start_plugin("--log-format=json", env={"V": "4"})
    eventually(lambda: plugin.get("/status.json")[0] == 200, "the status is there")
    assert plugin.status()["settings"] == told(plugin)


def test_a_setting_whose_feature_is_not_there_yet_is_one_warning(node):
    node.up("dgx-h100", "--gpus", "1")
    node.start_kubelet()
    plugin = node.start_plugin("--node-config-label=nvidia.com/device-plugin.config")
    node.wait_for(allocatable=1)
    warnings = [line for line in plugin.log().splitlines() if " W " in line and "not there yet" in line]
    assert len(warnings) == 1 and "node-config-label" in warnings[0]


def test_aliases_and_list_forms(node):
    node.up("none")
    plugin = node.start_plugin("--log-format=json", "--nvidia-driver-root=/a", "--container-driver-root=/b",
                               "--device-list-strategy=envvar", "--device-list-strategy=volume-mounts",
                               env={"NVIDIA_CTK_PATH": "/c", "PASS_DEVICE_SPECS": "t"})
    settings = told(plugin)
    assert settings["driver-root"]["value"] == "/a"
    assert settings["driver-root-ctr-path"]["value"] == "/b"
    assert settings["device-list-strategy"]["value"] == ["envvar", "volume-mounts"]
    assert settings["nvidia-cdi-hook-path"]["value"] == "/c"
    assert settings["pass-device-specs"]["value"] is True
