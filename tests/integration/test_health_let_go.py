"""health.recovery.releaseFaultyGpu: a GPU that needs a reset is not held open, all others are."""

import json

import pytest
from simnode import eventually, quick


def held(node):
    """The GPUs that the plugin's session holds open."""
    return [gpu for session in json.loads(node.sim("sessions", "--json")) for gpu in session["gpus"]
            if session["eventSets"]]


@pytest.mark.long
def test_a_gpu_that_needs_a_reset_can_be_reset(node):
    # The processes that look at it take longer to start than a call of the driver does.
    config = quick(watchdog="30s", recovery={"releaseFaultyGpu": True})
    plugin = node.serve(config=config)
    node.await_events()
    uuid = node.uuid(3)
    node.xid(3, 79)
    plugin.until_unhealthy(uuid, "XID 79")
    node.wait_for(capacity=8, allocatable=7)
    others = [gpu for gpu in range(8) if gpu != 3]
    eventually(lambda: held(node) == others, "it is let go, and no other")
    assert "in use by another client" in node.sim("reset", "--gpu", "4", ok=False)
    assert node.unhealthy() == {uuid}
    # The others are watched in the new session, and what was known of this one is still told.
    node.await_events(more_than=node.waits())
    node.xid(5, 61)
    told = f"device is Unhealthy device={node.uuid(5)}"
    eventually(lambda: told in plugin.log(), "and heard of")
    assert len(plugin.status()["gpus"]) == 8
    # Short sessions look at it now and then, so the reset may have to be tried again.
    eventually(lambda: "in use" not in node.sim("reset", "--gpu", "3", ok=False), "it can be reset")
    plugin.until_healthy(uuid)
    assert "evidence of a reset" in plugin.log()
    eventually(lambda: held(node) == list(range(8)), "it is taken back")
    node.wait_for(capacity=8, allocatable=8)
    assert plugin.process.poll() is None


def test_without_the_setting_it_is_held(node):
    plugin = node.serve(config=quick())
    node.await_events()
    node.xid(3, 79)
    plugin.until_unhealthy(node.uuid(3), "XID 79")
    assert held(node) == list(range(8))
    assert "in use by another client" in node.sim("reset", "--gpu", "3", ok=False)
