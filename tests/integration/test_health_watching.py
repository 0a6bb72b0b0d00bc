"""What cannot be watched, or is not to be, is not Unhealthy for that."""

import time

import pytest
from simnode import GPU, eventually, quick

OFF = {"DP_DISABLE_HEALTHCHECKS": "all"}


@pytest.mark.parametrize("function", ["nvmlDeviceRegisterEvents", "nvmlDeviceGetSupportedEventTypes"])
def test_not_able_to_watch_is_not_unhealthy(node, function):
    node.up("pcie-t4")
    node.sim("function", "--function", function, "--error", "not-supported", "--gpu", "1")
    node.start_kubelet()
    plugin = node.start_plugin(config=quick())
    node.wait_for(capacity=4, allocatable=4)
    eventually(lambda: "cannot be watched" in plugin.log(), "a warning")
    node.await_events()
    node.xid(0, 48)
    plugin.until_unhealthy(node.uuid(0))  # the others are watched
    plugin.signal(1)  # and a refresh does not warn again
    eventually(lambda: plugin.log().count("driver session opened") == 2, "a fresh session")
    node.sim("set", "--gpu", "1", "--temperature", "130", "--threshold", "shutdown=96")
    plugin.until_unhealthy(node.uuid(1), "temperature")  # polls go on
    assert sum("cannot be watched" in line for line in plugin.log().splitlines()) == 1


def test_a_machine_without_events_is_polled(node):
    node.up("pcie-t4")
    for gpu in range(4):
        node.sim("set", "--gpu", str(gpu), "--event-types", "0")
    node.start_kubelet()
    plugin = node.start_plugin(config=quick())
    node.wait_for(capacity=4, allocatable=4)
    node.sim("gpu", "--gpu", "2", "--state", "lost")
    plugin.until_unhealthy(node.uuid(2), "lost")
    node.wait_for(capacity=4, allocatable=3)
    assert node.calls().get("nvmlEventSetWait_v2", 0) == 0


class TestEverythingDisabled:
    def start(self, node, config=None, env=None):
        self.plugin = node.serve(config=config or quick(fencesFile=str(node.dir / "fences.yaml"), polling={}) | {},
                                 env=OFF | (env or {}))
        return self.plugin

    @pytest.fixture
    def config(self, node):
        config = quick(fencesFile=str(node.dir / "fences.yaml"))
        return config

    def test_no_event_and_no_poll_marks_anything(self, node, config):
        plugin = self.start(node, config)
        assert plugin.status()["settings"]["health.polling.enabled"]["value"] in (False, "false")
        node.xid(0, 79)
        node.sim("set", "--gpu", "1", "--recovery-action", "1", "--remap-failure", "1", "--temperature", "200")
        node.sim("set", "--gpu", "2", "--compute-mode", "prohibited", "--fabric", "not-started")
        time.sleep(0.8)  # several polls, had there been any
        assert node.resources()[GPU]["allocatable"] == 8 and len(node.lists()) == 1
        assert node.calls().get("nvmlEventSetWait_v2", 0) == 0

    def test_polls_that_are_written_go_on(self, node, config):
        config["health"]["polling"]["enabled"] = True
        plugin = self.start(node, config)
        node.xid(0, 79)
        node.sim("set", "--gpu", "1", "--remap-failure", "1")
        plugin.until_unhealthy(node.uuid(1), "row remapping failed")
        assert node.unhealthy() <= {node.uuid(1)}

    def test_fences_count(self, node, config):
        plugin = self.start(node, config)
        (node.dir / "fences.yaml").write_text("fences: [{index: 2, reason: out}]")
        plugin.until_unhealthy(node.uuid(2), "fenced: out")

    def test_a_vanished_gpu_counts(self, node, config):
        plugin = self.start(node, config)
        node.sim("gpu", "--gpu", "2", "--remove")
        plugin.until_unhealthy(node.uuid(2), "does not list")
        node.wait_for(capacity=8, allocatable=7)
        node.sim("gpu", "--gpu", "2", "--add")
        node.wait_for(capacity=8, allocatable=8)

    def test_a_driver_that_is_gone_counts(self, node, config):
        plugin = self.start(node, config)
        node.sim("driver gone")
        node.wait_for(capacity=8, allocatable=0)
        assert plugin.status()["health"]["driver"]["graceOver"]
        node.sim("driver back")
        node.wait_for(capacity=8, allocatable=8)

    def test_a_hanging_call_counts(self, node, config):
        plugin = self.start(node, config)
        node.sim("gpu", "--gpu", "4", "--state", "hung")
        plugin.until_unhealthy(node.uuid(4), "does not return")
        node.wait_for(capacity=8, allocatable=7)
        node.sim("gpu", "--gpu", "4", "--state", "ok")
        node.wait_for(capacity=8, allocatable=8)

    def test_a_device_that_cannot_be_handed_out_counts(self, node, config):
        node.up()
        node.start_kubelet()
        # A channel that pods must get and the machine does not have.
        plugin = node.start_plugin(config=config | {"imex": {"channelIDs": [0], "required": True}}, env=OFF)
        node.wait_for(capacity=8, allocatable=0)
        assert "IMEX channel 0" in plugin.device(node.uuid(3))["reason"]

    def test_a_device_node_that_is_missing_counts(self, node, config):
        node.up()
        node.start_kubelet()
        node.remove_device("/dev/nvidia4")
        plugin = node.start_plugin("--pass-device-specs", config=config, env=OFF)
        node.wait_for(capacity=8, allocatable=7)
        assert "/dev/nvidia4 is missing" in plugin.device(node.uuid(4))["reason"]
        node.add_device("/dev/nvidia4", 195, 4)
        node.wait_for(capacity=8, allocatable=8)

    def test_one_xid_enabled_is_acted_on(self, node, config):
        plugin = self.start(node, config, {"DP_ENABLE_HEALTHCHECKS": "79"})
        node.await_events()
        node.xid(0, 48)
        node.xid(1, 95)
        node.sim("fault", "--gpu", "2", "--event", "dbe")
        node.xid(3, 79)
        plugin.until_unhealthy(node.uuid(3), "XID 79")
        node.wait_for(capacity=8, allocatable=7)
        assert node.unhealthy() == {node.uuid(3)}


@pytest.mark.parametrize(("env", "config", "marks", "harmless"), [
    ({"DP_DISABLE_HEALTHCHECKS": "79, 48"}, {}, [95], [79, 48]),
    ({"DP_ENABLE_HEALTHCHECKS": "31"}, {}, [31, 79], [43]),
    ({"DP_DISABLE_HEALTHCHECKS": "79", "DP_ENABLE_HEALTHCHECKS": "79"}, {}, [79], [31]),
    ({}, {"xids": {"policy": "upstream"}}, [94, 8], [13, 31, 43, 45, 68, 109]),
    ({}, {"xids": {"ignore": [79], "fault": [31], "reset": [61]}}, [31, 61], [79]),
])  # fmt: skip
def test_classes_follow_the_settings(node, env, config, marks, harmless):
    plugin = node.serve(config=quick(recovery={"holdOff": "1h"}, **config), env=env)
    node.await_events()
    for xid in harmless:
        node.xid(7, xid)
    for gpu, xid in enumerate(marks):
        node.xid(gpu, xid)
        plugin.until_unhealthy(node.uuid(gpu), f"XID {xid}")
    node.wait_for(capacity=8, allocatable=8 - len(marks))
    assert plugin.verdict(node.uuid(7))["verdict"] == "Healthy"
    for xid in harmless:
        assert plugin.metric("ndp_xid_events_total", gpu=node.uuid(7), xid=str(xid)) == 1
