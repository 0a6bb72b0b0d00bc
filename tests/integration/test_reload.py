"""The configuration is read again on SIGHUP and whenever the file changes; a bad one changes nothing."""

import json
import signal

import pytest
from simnode import GPU, eventually

SHARED = {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}}


def start(node, config, *args):
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    plugin = node.start_plugin(*args, config=config)
    node.wait_for(capacity=2, allocatable=2)
    return plugin


def test_a_changed_file_is_read_whichever_way_it_changes(node):
    """Written in place, replaced, and by the links of a ConfigMap's volume."""
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    volume = node.dir / "volume"
    for name in ("v1", "v2"):
        (volume / name).mkdir(parents=True)
    (volume / "v1/config.yaml").write_text("version: v1\n")
    (volume / "v2/config.yaml").write_text("version: v1\nrescanInterval: 9s\n")
    (volume / "..data").symlink_to("v1")
    (volume / "config.yaml").symlink_to("..data/config.yaml")
    plugin = node.start_plugin(f"--config-file={volume / 'config.yaml'}")
    node.wait_for(capacity=2, allocatable=2)

    def interval(wanted):
        eventually(lambda: plugin.status()["settings"]["rescan-interval"]["value"] == wanted, f"interval {wanted}")

    interval("30s")
    (volume / "..next").symlink_to("v2")
    (volume / "..next").rename(volume / "..data")
    interval("9s")
    (volume / "config.yaml").unlink()
    (volume / "config.yaml").write_text("version: v1\nrescanInterval: 8s\n")
    interval("8s")
    (volume / "config.yaml").write_text("version: v1\nrescanInterval: 7s\n")
    interval("7s")
    assert len(node.events("list")) == 1 and len(node.events("register")) == 1


def test_sighup_reads_it_too(node):
    plugin = start(node, {"rescanInterval": "11s"})
    plugin.signal(signal.SIGHUP)
    eventually(lambda: "no setting has changed" in plugin.log(), "it is read anew")
    assert node.resources()[GPU]["allocatable"] == 2


@pytest.mark.long
def test_the_log_tells_what_changed_and_how_many_devices_that_makes(node):
    def config(replicas):
        return {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": replicas}]}}}

    plugin = node.serve(capacity=32, config=config(4))
    node.write_config(config(2))
    node.wait_for(capacity=16, allocatable=16)
    lines = plugin.log().splitlines()
    assert sum(" settings settings=" in line for line in lines) == 1, "all of them at the start alone"
    changed = next(line for line in lines if "settings have changed" in line)
    changes = json.loads(json.loads(changed[changed.index("changes=") + 8:]))
    assert list(changes) == ["sharing"]
    assert [changes["sharing"][key]["resources"][0]["replicas"] for key in ("was", "value")] == [4, 2]
    assert any(line.endswith(f"another number of devices resource={GPU} devices=16 before=32") for line in lines)


def test_what_did_not_change_is_not_touched(node):
    """A new name for one resource leaves the other's server, socket, stream and registration alone."""
    node.up("mixed")
    node.start_kubelet()
    rules = [{"pattern": "*T4*", "name": "t4"}, {"pattern": "*A100*", "name": "a100"}]
    plugin = node.start_plugin("--enable-resource-naming", config={"resources": {"gpus": rules}})
    node.wait_for("nvidia.com/t4", allocatable=2)
    node.wait_for("nvidia.com/a100", allocatable=2)
    before = {r["name"]: r["registration"] for r in plugin.status()["resources"]}["nvidia.com/t4"]
    rules[1]["name"] = "big"
    node.write_config({"resources": {"gpus": rules}})
    node.wait_for("nvidia.com/big", allocatable=2)
    node.wait_for("nvidia.com/a100", allocatable=0)
    after = {r["name"]: r["registration"] for r in plugin.status()["resources"]}["nvidia.com/t4"]
    assert after == before
    assert len(node.events("list", resource="nvidia.com/t4")) == 1


@pytest.mark.parametrize("signalled", [False, True])
def test_a_refused_file_keeps_the_old_one_and_says_why(node, signalled):
    plugin = start(node, {})
    if signalled:
        # Not even the file's own folder is looked at: only the signal tells.
        node.write_config("version: v7\n")
        plugin.signal(signal.SIGHUP)
    else:
        node.write_config("version: v7\n")
    eventually(lambda: "configError" in plugin.status(), "the file is refused")
    assert "version" in plugin.status()["configError"] and "v7" in plugin.status()["configError"]
    assert plugin.get("/readyz")[0] == 200
    assert "ndp_config_error 1" in plugin.get("/metrics")[1]
    node.allocate(1)
    node.write_config(SHARED)
    node.wait_for(allocatable=2)  # one of the two is held whole: only the other's replicas are free
    eventually(lambda: "ndp_config_error 0" in plugin.get("/metrics")[1], "the error is over")


@pytest.mark.parametrize("how", ["removed", "a folder", "unreadable bytes"])
def test_a_file_that_goes_keeps_the_old_configuration(node, how):
    plugin = start(node, {"rescanInterval": "11s"})
    file = node.dir / "config.yaml"
    file.unlink()
    if how == "a folder":
        file.mkdir()
    elif how == "unreadable bytes":
        file.write_bytes(bytes(range(256)) * 4)
    eventually(lambda: "configError" in plugin.status(), "the reload is refused")
    assert str(file) in plugin.status()["configError"]
    assert plugin.status()["settings"]["rescan-interval"]["value"] == "11s"
    assert node.resources()[GPU]["allocatable"] == 2


def test_every_strategy_can_change_while_running(node):
    plugin = start(node, {})
    uuids = [gpu["uuid"] for gpu in node.gpus()]

    def visible(wanted, **flags):
        node.write_config({"flags": {"plugin": flags}})

        def answer():
            return node.do("raw-allocate", resource=GPU, devices=[uuids[1]])["response"]

        eventually(lambda: answer()["envs"].get("NVIDIA_VISIBLE_DEVICES") == wanted, f"{flags} is in force")

    visible(uuids[1])
    visible("1", deviceIDStrategy="index")
    visible("/var/run/nvidia-container-devices", deviceListStrategy="volume-mounts")
    visible(None, deviceListStrategy=["cdi-cri"])
    assert len(node.events("register")) == 1
    assert plugin.process.poll() is None


def test_an_address_that_cannot_be_had_keeps_the_old_one(node):
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    first, second = node.dir / "first.web", node.dir / "second.web"
    plugin = node.start_plugin(config={"web": {"listenAddress": str(first)}}, listen=False)
    node.wait_for(allocatable=2)
    plugin.web = first
    node.write_config({"web": {"listenAddress": str(node.dir / "no/such/folder/web.sock")}})
    why = eventually(lambda: plugin.status().get("configError"), "refused, and told at the old address")
    assert "no/such/folder" in why
    node.write_config({"web": {"listenAddress": str(second)}})
    eventually(second.exists, "the new address")
    plugin.web = second
    eventually(lambda: plugin.get("/readyz")[0] == 200, "served there")
    assert not first.exists()


def test_a_configuration_that_does_not_fit_a_late_driver_is_told_and_can_be_mended(node):
    node.up("dgx-h100", "--gpus", "2")
    node.sim("driver gone")
    node.start_kubelet()
    entry = {"name": GPU, "replicas": 2, "devices": [9]}
    plugin = node.start_plugin("--fail-on-init-error=false", "--enable-resource-naming",
                               config={"sharing": {"timeSlicing": {"resources": [entry]}}})
    eventually(lambda: "no usable NVIDIA driver" in plugin.log(), "it waits for a driver")
    node.sim("driver back")
    eventually(lambda: "9 is no device" in plugin.status().get("configError", ""), "what does not fit is told")
    assert plugin.get("/readyz")[0] == 503 and GPU not in node.resources()
    node.write_config(SHARED)
    node.wait_for(capacity=4, allocatable=4)
    eventually(lambda: plugin.get("/readyz")[0] == 200, "ready")
