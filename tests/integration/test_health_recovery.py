"""Healthy again on evidence only, and in the end without anybody's help."""

import time

import pytest
from simnode import GPU, eventually, quick

# Before field 230: dgx-a100 with the driver of its time.
OLD_DRIVER = ["--recovery-action", "-1"]


def stays_unhealthy(node, plugin, uuid, span_s=1.0):
    """Longer than hold-off and probes take."""
    end = time.monotonic() + span_s
    while time.monotonic() < end:
        assert plugin.verdict(uuid)["verdict"] == "Unhealthy"
        time.sleep(0.05)
    assert node.unhealthy() == {uuid}


def test_recovery_action_holds_a_gpu_and_lets_it_go(node):
    plugin = node.serve(config=quick())
    node.await_events()
    uuid = node.uuid(4)
    node.sim("set", "--gpu", "4", "--recovery-action", "1")
    node.xid(4, 95)
    first = plugin.until_unhealthy(uuid)
    node.wait_for(allocatable=7)
    stays_unhealthy(node, plugin, uuid)
    reads = node.calls()["nvmlDeviceGetMemoryInfo"]
    eventually(lambda: node.calls()["nvmlDeviceGetMemoryInfo"] > reads, "it is asked, and answers")
    assert plugin.verdict(uuid)["since"] == first["since"]
    began = time.monotonic()
    node.sim("set", "--gpu", "4", "--recovery-action", "0")
    plugin.until_healthy(uuid)
    assert time.monotonic() - began >= 0.1, "three probes, one each 50 ms"
    node.wait_for(allocatable=8)
    assert len(node.plugins) == 1 and plugin.process.poll() is None
    assert "the recovery action went back to none" in plugin.log()


def test_a_fault_comes_back_after_hold_off_and_probes(node):
    plugin = node.serve(config=quick(recovery={"holdOff": "700ms"}))
    node.await_events()
    before = time.monotonic()
    node.xid(1, 61)
    # By what the kubelet got: a state that passes may be over before anybody has asked for it.
    lists = eventually(lambda: node.lists()[2:] and node.lists(), "gone and back")
    assert [e["healthy"] for e in lists] == [8, 7, 8]
    assert node.seconds(lists[2]) - before >= 0.7 + 0.1
    plugin.until_healthy(node.uuid(1))


class TestWithoutRecoveryAction:
    """XID 119 on a driver that has no field 230."""

    @pytest.fixture(autouse=True)
    def fault(self, node):
        node.up()
        for gpu in range(8):
            node.sim("set", "--gpu", str(gpu), *OLD_DRIVER)
        node.start_kubelet()
        self.plugin = node.start_plugin(config=quick())
        node.wait_for(allocatable=8)
        node.await_events()
        self.uuid = node.uuid(3)
        node.xid(3, 119)
        self.plugin.until_unhealthy(self.uuid, "XID 119")
        node.wait_for(allocatable=7)
        stays_unhealthy(node, self.plugin, self.uuid)
        yield
        assert self.plugin.process.poll() is None

    def test_lost_and_found_is_not_enough(self, node):
        node.sim("gpu", "--gpu", "3", "--state", "lost")
        eventually(lambda: "GPU is lost" in self.plugin.log() or "is lost" in self.plugin.log(), "seen as lost")
        node.sim("gpu", "--gpu", "3", "--state", "ok")
        stays_unhealthy(node, self.plugin, self.uuid, 1.5)

    @pytest.mark.long
    def test_absent_and_back_is(self, node):
        node.sim("gpu", "--gpu", "3", "--remove")
        eventually(lambda: node.gpus()[3]["state"] == "removed", "removed")
        gone = "the driver does not list it any more"
        eventually(lambda: any(g["uuid"] == self.uuid and gone in g.get("trouble", "")
                               for g in self.plugin.status()["gpus"]), "seen as absent")
        node.sim("gpu", "--gpu", "3", "--add")
        self.plugin.until_healthy(self.uuid)
        node.wait_for(allocatable=8)

    def test_counters_that_fell_are(self, node):
        node.sim("clear", "--gpu", "3")  # the traces of a reset
        self.plugin.until_healthy(self.uuid)
        node.wait_for(allocatable=8)
        assert "fell" in self.plugin.log()

    @pytest.mark.parametrize("how", ["uuid", "index", "pci", "all"])
    def test_so_is_a_person(self, node, how):
        name = {"uuid": self.uuid, "index": "3", "pci": node.gpus()[3]["pci"], "all": "all"}[how]
        node.ndp("health", "clear", name)
        self.plugin.until_healthy(self.uuid)
        node.wait_for(allocatable=8)


def test_harmless_xids_are_counted_and_nothing_more(node):
    plugin = node.serve(config=quick())
    node.await_events()
    for gpu, xid in enumerate([94, 31, 63, 92, 69]):
        node.xid(gpu, xid)
    for gpu, xid in enumerate([94, 31, 63, 92, 69]):
        eventually(lambda g=gpu, x=xid: plugin.metric("ndp_xid_events_total", gpu=node.uuid(g), xid=str(x)) == 1,
                   f"XID {xid} is counted")
    time.sleep(0.5)  # polls, and the second reading of nothing
    assert all(v["verdict"] == "Healthy" for v in plugin.verdicts().values())
    assert node.resources()[GPU]["allocatable"] == 8
    assert len(node.lists()) == 1


def test_xid_154_is_what_the_recovery_action_says(node):
    # Without polls only the event makes anybody look.
    plugin = node.serve(config=quick(polling={"enabled": False}))
    node.await_events()
    node.xid(2, 154)
    eventually(lambda: plugin.metric("ndp_xid_events_total", xid="154") == 1, "counted")
    eventually(lambda: node.calls().get("nvmlDeviceGetFieldValues", 0) > 0, "the action is read")
    time.sleep(0.3)
    assert plugin.verdict(node.uuid(2))["verdict"] == "Healthy"
    node.sim("set", "--gpu", "3", "--recovery-action", "1")
    node.xid(3, 154)
    verdict = plugin.until_unhealthy(node.uuid(3), "recovery action 1", "reset")
    assert verdict["class"] == "reset"
    node.wait_for(allocatable=7)


def test_an_action_that_comes_late_is_read_again(node):
    plugin = node.serve(config=quick(polling={"enabled": False}))
    node.await_events()
    node.xid(3, 94)
    eventually(lambda: plugin.metric("ndp_xid_events_total", xid="94") == 1, "counted")
    node.sim("set", "--gpu", "3", "--recovery-action", "4")
    plugin.until_unhealthy(node.uuid(3), "recovery action 4", "drain and reset")


def test_the_event_of_a_changed_action_needs_no_xid(node):
    plugin = node.serve(config=quick(polling={"enabled": False}))
    node.await_events()
    node.sim("set", "--gpu", "6", "--recovery-action", "2")
    node.sim("fault", "--gpu", "6", "--event", "recovery-action")
    assert plugin.until_unhealthy(node.uuid(6), "recovery action 2", "reboot")["class"] == "reset"


@pytest.mark.parametrize("event", ["fatal-poison", "unavailable"])
def test_a_newer_event_has_the_gpu_looked_at(node, event):
    plugin = node.serve(config=quick(polling={"enabled": False}))
    node.await_events()
    node.sim("fault", "--gpu", "2", "--event", event)  # alone it marks nothing
    node.sim("set", "--gpu", "5", "--recovery-action", "1")
    node.sim("fault", "--gpu", "5", "--event", event)
    assert plugin.until_unhealthy(node.uuid(5), "recovery action 1")["class"] == "reset"
    assert node.unhealthy() <= {node.uuid(5)} and plugin.verdict(node.uuid(2))["verdict"] == "Healthy"


def test_without_recovery_it_stays_until_a_restart(node):
    config = quick(recovery={"enabled": False})
    plugin = node.serve(config=config)
    node.await_events()
    node.xid(0, 61)
    plugin.until_unhealthy(node.uuid(0))
    stays_unhealthy(node, plugin, node.uuid(0))
    plugin.stop()
    node.start_plugin(config=config)
    node.wait_for(capacity=8, allocatable=8)
