"""One GPU that is lost, or gone, costs itself and nothing else."""

import time

import pytest
from simnode import GPU, eventually, quick


def test_a_lost_gpu_stays_listed_and_harms_no_other(node):
    plugin = node.serve(config=quick())
    node.await_events()
    uuid = node.uuid(5)
    waits = node.calls()["nvmlEventSetWait_v2"]
    node.sim("gpu", "--gpu", "5", "--state", "lost")
    node.wait_for(capacity=8, allocatable=7)
    assert node.unhealthy() == {uuid}
    assert plugin.until_unhealthy(uuid, "lost")["class"] == "reset"
    healthy = {d["id"] for d in node.resources()[GPU]["devices"]} - {uuid}
    assert set(node.do("preferred", resource=GPU, count=1)["devices"]) <= healthy
    assert set(node.allocate(1)["devices"]) <= healthy
    # The set is built anew without it: events of the others are heard.
    eventually(lambda: node.calls()["nvmlEventSetWait_v2"] > waits, "waited for again")
    node.xid(6, 79)
    plugin.until_unhealthy(node.uuid(6), "XID 79")


def stays_calm(node, plugin):
    """Fewer than five event waits and two log lines a second."""
    waits, lines, start = node.calls()["nvmlEventSetWait_v2"], len(plugin.log().splitlines()), time.monotonic()
    time.sleep(2)  # to show what does not happen
    span = time.monotonic() - start
    assert (node.calls()["nvmlEventSetWait_v2"] - waits) / span < 5
    assert (len(plugin.log().splitlines()) - lines) / span < 2, plugin.log()


def test_nothing_spins_around_a_lost_gpu(node):
    # As shipped: no quick intervals that would hide or make calls of their own.
    plugin = node.serve()
    node.await_events()
    node.sim("gpu", "--gpu", "5", "--state", "lost")
    node.wait_for(capacity=8, allocatable=7)
    stays_calm(node, plugin)
    assert node.resources()[GPU]["allocatable"] == 7


@pytest.mark.parametrize("status", ["gpu-is-lost", "unknown"])
def test_an_event_wait_that_always_fails_is_backed_off_from(node, status):
    plugin = node.serve()
    node.await_events()
    node.sim("function", "--function", "nvmlEventSetWait_v2", "--error", status)
    eventually(lambda: plugin.metric("ndp_event_wait_failures_total") >= 2, "the wait fails again and again")
    stays_calm(node, plugin)
    assert node.resources()[GPU]["allocatable"] == 8
    node.sim("function", "--function", "nvmlEventSetWait_v2", "--ok")
    waits = node.calls()["nvmlEventSetWait_v2"]
    # The back-off has grown to seconds by now; polls go on meanwhile and events are heard after it.
    eventually(lambda: node.calls()["nvmlEventSetWait_v2"] > waits, "waited for again")
    node.xid(1, 79)
    node.wait_for(allocatable=7)


@pytest.mark.long
def test_a_gpu_that_vanishes_is_unhealthy_listed_and_comes_back(node):
    plugin = node.serve(config=quick())
    node.await_events()
    uuid = node.uuid(2)
    node.sim("gpu", "--gpu", "2", "--remove")
    node.wait_for(capacity=8, allocatable=7)
    assert node.unhealthy() == {uuid}
    assert plugin.until_unhealthy(uuid)["class"] == "reset"
    gone = "the driver does not list it any more"
    eventually(lambda: any(g["uuid"] == uuid and gone in g.get("trouble", "") for g in plugin.status()["gpus"]),
               "gone from the enumeration")
    node.sim("gpu", "--gpu", "2", "--add")
    # Absent and back is evidence of a reset: hold-off and probes, then Healthy.
    node.wait_for(capacity=8, allocatable=8)
    plugin.until_healthy(uuid)


def test_an_order_that_changes_leaves_verdicts_with_their_gpus(node):
    plugin = node.serve(config=quick(recovery={"holdOff": "1h"}))
    node.await_events()
    uuid = node.uuid(0)
    node.xid(0, 79)
    plugin.until_unhealthy(uuid, "XID 79")
    node.sim("gpu", "--order", "7,6,5,4,3,2,1,0")
    plugin.signal(1)  # a new session sees the new order
    eventually(lambda: [g["uuid"] for g in plugin.status()["gpus"]][7] == uuid, "the new order is seen")
    node.wait_for(capacity=8, allocatable=7)
    assert node.unhealthy() == {uuid}
