"""Storms of events, and GPUs that fault again and again."""

import os
import pathlib
import time

from simnode import eventually, quick


def rss_kib(plugin):
    for line in pathlib.Path(f"/proc/{plugin.process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1])
    raise LookupError("RssAnon")


def test_ten_thousand_events_are_one_verdict(node):
    # What is freed is free, also where AddressSanitizer would keep it to look for its use.
    asan = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    plugin = node.serve(config=quick(recovery={"holdOff": "1h"}), env={"ASAN_OPTIONS": asan})
    node.await_events()

    def storm(expected):
        # In bursts that the driver's own queue takes, a tenth of a second each.
        for _ in range(5):
            node.xid(2, 79, "--count", "2000")
        eventually(lambda: plugin.metric("ndp_xid_events_total", xid="79") >= expected, "all are counted", 60)

    storm(10_000)
    node.wait_for(capacity=8, allocatable=7)
    first = rss_kib(plugin)
    for n in range(2, 4):
        storm(10_000 * n)
    assert rss_kib(plugin) - first < 1024, "memory is flat"
    eventually(lambda: plugin.verdict(node.uuid(2))["count"] == 30_000, "the verdict tells how many")
    changes = [frozenset(d["id"] for d in e["devices"] if d["health"] == "Unhealthy") for e in node.lists()]
    assert changes == [frozenset(), frozenset({node.uuid(2)})], "one list for the one change"
    assert sum(" XID" in line for line in plugin.log().splitlines()) <= 10
    assert plugin.get("/livez")[0] == 200


def test_a_storm_over_all_gpus_is_at_most_one_list_a_verdict(node):
    plugin = node.serve(config=quick(recovery={"holdOff": "1h"}))
    node.await_events()
    for gpu in range(8):
        node.xid(gpu, 79, "--count", "400")
    node.wait_for(capacity=8, allocatable=0)
    assert len(node.lists()) <= 1 + 8
    assert plugin.status()["resources"][0]["healthy"] == 0


def fall_and_return(node, gpu, n):
    """The nth fault and its end, by what the kubelet got: states that pass may pass unseen."""
    node.xid(gpu, 61)
    return eventually(lambda: len(node.lists()) == 1 + 2 * n and node.lists(), f"fall and return {n}")


def test_relapses_double_the_hold_off_and_end_in_quarantine(node):
    hold_off = 0.15
    plugin = node.serve(config=quick(recovery={"holdOff": "150ms", "probeInterval": "20ms"}))
    node.await_events()
    uuid = node.uuid(5)
    for relapses in range(4):
        lists = fall_and_return(node, 5, relapses + 1)
        assert [e["healthy"] for e in lists[-3:]] == [8, 7, 8]
        assert node.seconds(lists[-1]) - node.seconds(lists[-2]) >= hold_off * 2**relapses
    assert "quarantined" not in plugin.log()
    node.xid(5, 61)
    verdict = plugin.until_unhealthy(uuid, "quarantined after 4 relapses in 24 hours", "XID 61")
    assert "defective" in verdict["nextStep"]
    node.wait_for(capacity=8, allocatable=7)
    time.sleep(hold_off * 2**4 + 0.5)  # ends by a reset or by hand, not by time
    assert plugin.verdict(uuid)["verdict"] == "Unhealthy"
    node.ndp("health", "clear", uuid)
    node.wait_for(allocatable=8)
    lists = fall_and_return(node, 5, 6)  # relapses are forgotten
    assert node.seconds(lists[-1]) - node.seconds(lists[-2]) >= hold_off
    told = [line for line in plugin.log().splitlines() if "device is Unhealthy" in line]
    assert sum("quarantined after" in line for line in told) == 1


def test_a_reset_ends_a_quarantine(node):
    plugin = node.serve(config=quick(recovery={"holdOff": "20ms", "probeInterval": "10ms"}))
    node.await_events()
    uuid = node.uuid(0)
    for n in range(4):
        fall_and_return(node, 0, n + 1)
    node.xid(0, 61)
    plugin.until_unhealthy(uuid, "quarantined")
    node.sim("clear", "--gpu", "0")
    plugin.until_healthy(uuid)
