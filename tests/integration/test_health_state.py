"""Verdicts outlive the process, but neither a reset nor a reboot."""

import fcntl
import json

import pytest
from simnode import GPU, eventually, quick

LASTING = quick(recovery={"holdOff": "1h"})


def fault(node, gpu, xid):
    plugin = node.serve(config=LASTING)
    node.await_events()
    node.xid(gpu, xid)
    verdict = plugin.until_unhealthy(node.uuid(gpu), f"XID {xid}")
    node.wait_for(allocatable=7)
    # What a reset is told by later has been read.
    state = node.kubelet_dir / ".ndp-health"
    eventually(lambda: json.loads(state.read_text())["gpus"][node.uuid(gpu)]["counters"].get("energyMj"),
               "the counters are kept")
    return plugin, verdict


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restarted_plugin_knows(node, how):
    plugin, before = fault(node, 6, 79)
    plugin.stop() if how == "stop" else plugin.kill()
    again = node.start_plugin(config=LASTING)
    node.wait_for(capacity=8, allocatable=7)
    assert node.unhealthy() == {node.uuid(6)}
    assert all(len([d for d in e["devices"] if d["health"] == "Unhealthy"]) == 1 for e in node.lists()[-1:])
    after = again.verdict(node.uuid(6))
    for key in ("verdict", "reason", "class", "xid", "since"):
        assert after[key] == before[key], key


def test_the_first_list_after_a_restart_has_it(node):
    plugin, _ = fault(node, 6, 79)
    plugin.stop()
    lists = len(node.lists())
    node.start_plugin(config=LASTING)
    eventually(lambda: len(node.lists()) > lists, "a new list")
    first = node.lists()[lists]
    assert {d["id"] for d in first["devices"] if d["health"] == "Unhealthy"} == {node.uuid(6)}


def test_a_reset_while_it_was_stopped_is_seen_by_the_counters(node):
    plugin, _ = fault(node, 6, 79)
    plugin.stop()
    node.sim("reset", "--gpu", "6")
    again = node.start_plugin(config=quick())
    node.wait_for(capacity=8, allocatable=8)
    again.until_healthy(node.uuid(6))
    assert "evidence of a reset" in again.log() and "fell" in again.log()


def test_after_a_reboot_it_is_probed_afresh(node):
    plugin, _ = fault(node, 6, 79)
    plugin.stop()
    node.sim("boot")
    again = node.start_plugin(config=LASTING)
    node.wait_for(capacity=8, allocatable=8)
    assert again.verdict(node.uuid(6))["verdict"] == "Healthy"
    node.await_events()
    node.xid(1, 79)
    again.until_unhealthy(node.uuid(1))
    state = json.loads((node.kubelet_dir / ".ndp-health").read_text())
    boot = (node.dir / "root/proc/sys/kernel/random/boot_id").read_text().strip()
    assert state["boot"] == boot and not state["gpus"].get(node.uuid(6), {}).get("causes")


def test_a_module_loaded_anew_while_it_was_stopped_is_a_reset(node):
    plugin, _ = fault(node, 6, 79)
    plugin.stop()
    module = node.dir / "root/sys/module/nvidia"
    module.rename(module.with_name("old"))
    module.mkdir()
    again = node.start_plugin(config=quick())
    node.wait_for(capacity=8, allocatable=8)
    assert "module was loaded anew" in again.log()


@pytest.mark.parametrize("where", ["/proc/ndp-health", "/nonexistent/ndp-health"])
def test_a_file_that_cannot_be_written_is_one_warning(node, where):
    plugin = node.serve(config=quick(stateFile=where, recovery={"holdOff": "1h"}))
    node.await_events()
    node.xid(0, 79)
    plugin.until_unhealthy(node.uuid(0))
    node.xid(1, 79)
    plugin.until_unhealthy(node.uuid(1))
    node.wait_for(allocatable=6)
    lines = [line for line in plugin.log().splitlines() if "health state" in line]
    assert len(lines) == 1 and " W " in lines[0] and "memory only" in lines[0], lines
    node.ndp("health", "clear", "all")
    node.wait_for(allocatable=8)


def test_a_state_file_that_moves_on_a_reload_has_what_is_known(node):
    _, before = fault(node, 6, 79)
    moved = node.dir / "moved"
    config = quick(recovery={"holdOff": "1h"}, stateFile=str(moved))
    node.write_config(config)
    eventually(lambda: json.loads(moved.read_text())["gpus"][node.uuid(6)]["causes"], "written there")
    node.plugins[0].stop()
    after = node.start_plugin(config=config).until_unhealthy(node.uuid(6), "XID 79")
    assert after["since"] == before["since"]


def test_a_file_that_makes_no_sense_is_one_warning(node):
    node.up()
    node.start_kubelet()
    (node.kubelet_dir / ".ndp-health").write_text("{ not json")
    plugin = node.start_plugin(config=LASTING)
    node.wait_for(capacity=8, allocatable=8)
    assert sum("health state cannot be read" in line for line in plugin.log().splitlines()) == 1
    node.await_events()
    node.xid(0, 79)
    plugin.until_unhealthy(node.uuid(0))
    eventually(lambda: json.loads((node.kubelet_dir / ".ndp-health").read_text())["gpus"], "written anew")


def test_a_lock_that_is_never_let_go_is_one_warning_and_waited_for(node):
    node.up()
    node.start_kubelet()
    with (node.kubelet_dir / ".ndp-health.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        plugin = node.start_plugin(config=LASTING)
        node.wait_for(capacity=8, allocatable=8)
        node.await_events()
        node.xid(0, 79)
        eventually(lambda: "held by another process" in plugin.log(), "said")
        assert not (node.kubelet_dir / ".ndp-health").exists()
    eventually((node.kubelet_dir / ".ndp-health").exists, "written in the end")
    assert sum("held by another process" in line for line in plugin.log().splitlines()) == 1


def test_two_instances_share_it(node):
    plugin, before = fault(node, 6, 79)
    second = node.start_plugin(config=LASTING)
    after = second.until_unhealthy(node.uuid(6))
    assert after["since"] == before["since"]
    assert len(list((node.kubelet_dir / ".ndp").glob("*.sock"))) == 2
    node.ndp("health", "clear", "6")
    plugin.until_healthy(node.uuid(6))
    second.until_healthy(node.uuid(6))
    assert plugin.stop() == 0
    node.wait_for(GPU, capacity=8, allocatable=8)
