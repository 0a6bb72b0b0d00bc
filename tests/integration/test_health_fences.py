"""Fences: GPUs that a person has taken out, by a file."""

import datetime

import pytest
from simnode import eventually, quick


@pytest.fixture
def fences(node):
    node.fences = node.dir / "etc/fences.yaml"
    node.fences.parent.mkdir()

    def write(text):
        new = node.fences.with_name("new")
        new.write_text(text)
        new.rename(node.fences)

    return write


def when_told(plugin, words):
    """The time of the last line of the log with these words."""
    line = [line for line in plugin.log().splitlines() if words in line][-1]
    return datetime.datetime.fromisoformat(line.split()[0]).timestamp()


def serve(node):
    node.config = quick(fencesFile=str(node.fences), recovery={"holdOff": "1h"})
    return node.serve(config=node.config)


@pytest.mark.parametrize("key", ["uuid", "index", "pci"])
def test_fenced_and_unfenced_within_a_second(node, fences, key):
    plugin = serve(node)
    gpu = node.gpus()[3]
    on, off = [], []
    # By the file's time and the log's, so that neither this program nor one busy moment counts.
    for _ in range(3):
        fences(f"fences:\n- {key}: '{gpu[key]}'\n  reason: RMA 4711\n")
        plugin.until_unhealthy(gpu["uuid"], "fenced: RMA 4711")
        node.wait_for(capacity=8, allocatable=7)
        assert node.unhealthy() == {gpu["uuid"]}
        assert plugin.device(gpu["uuid"])["reason"] == "fenced: RMA 4711"
        assert plugin.verdict(gpu["uuid"])["class"] == "fence"
        on.append(when_told(plugin, "device is Unhealthy") - node.fences.stat().st_mtime)
        fences("fences: []\n")
        node.wait_for(capacity=8, allocatable=8)
        plugin.until_healthy(gpu["uuid"])
        off.append(when_told(plugin, "device is Healthy") - node.fences.stat().st_mtime)
    assert min(on) < 1 and min(off) < 1


def test_a_file_that_is_removed_fences_nobody(node, fences):
    serve(node)
    fences("fences: [{index: 3}]")
    node.wait_for(capacity=8, allocatable=7)
    node.fences.unlink()
    node.wait_for(capacity=8, allocatable=8)


def test_an_expired_fence_is_over(node, fences):
    plugin = serve(node)
    # For ever, and for a moment: however slow this machine is, it is seen before it is over.
    text = ("fences:\n- {{index: 1, reason: for now, expires: {}}}\n"
            "- {{index: 2, reason: long ago, expires: 2001-01-01T00:00:00Z}}\n")
    fences(text.format("9999-12-31T23:59:59Z"))
    plugin.until_unhealthy(node.uuid(1), "for now")
    node.wait_for(capacity=8, allocatable=7)
    assert node.unhealthy() == {node.uuid(1)}
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)
    fences(text.format(f"{soon:%Y-%m-%dT%H:%M:%SZ}"))
    node.wait_for(capacity=8, allocatable=8)
    plugin.until_healthy(node.uuid(1))


def test_a_malformed_file_leaves_the_last_good_fences(node, fences):
    plugin = serve(node)
    fences("fences:\n- index: 3\n  reason: good\n")
    node.wait_for(capacity=8, allocatable=7)
    fences("fences:\n- index: 2\n  reason: better\n- indexx: 4\n")
    eventually(lambda: "indexx" in plugin.log(), "the mistake is named")
    line = next(line for line in plugin.log().splitlines() if "indexx" in line)
    assert "line 4" in line and str(node.fences) in line
    assert node.unhealthy() == {node.uuid(3)}
    fences("fences: [")
    eventually(lambda: sum("last good ones" in line for line in plugin.log().splitlines()) == 2, "named as well")
    assert node.unhealthy() == {node.uuid(3)}
    fences("fences: [{index: 2}]")
    eventually(lambda: node.unhealthy() == {node.uuid(2)}, "a good file counts again")


def test_an_index_stays_with_its_gpu(node, fences):
    plugin = serve(node)
    uuid, gone = node.uuid(3), node.uuid(0)
    fences("fences: [{index: 3, reason: the third}]")
    plugin.until_unhealthy(uuid, "the third")
    node.sim("gpu", "--gpu", "0", "--remove")
    plugin.until_unhealthy(gone)
    eventually(lambda: len(node.unhealthy()) == 2, "the kubelet knows")
    assert node.unhealthy() == {uuid, gone}
    # Also for a plugin that starts anew with the file there and GPU 0 gone.
    plugin.stop()
    lists = len(node.lists())
    again = node.start_plugin(config=node.config)
    eventually(lambda: len(node.lists()) > lists, "a new list")
    again.until_unhealthy(uuid, "the third")
    # A GPU that is not there at the start is not listed: it is in no pod's hands.
    eventually(lambda: node.unhealthy() == {uuid}, "the same GPU")
    node.wait_for(capacity=7, allocatable=6)
    for event in node.lists()[lists:]:
        assert {d["id"] for d in event["devices"] if d["health"] == "Unhealthy"} <= {uuid, gone}


def test_a_fence_is_in_the_very_first_list(node, fences):
    fences("fences: [{index: 5, reason: before}]")
    node.up()
    node.start_kubelet()
    node.start_plugin(config=quick(fencesFile=str(node.fences)))
    node.wait_for(capacity=8, allocatable=7)
    assert len(node.lists()) == 1 and node.unhealthy() == {node.uuid(5)}


def test_clearing_does_not_lift_a_fence(node, fences):
    plugin = serve(node)
    fences("fences: [{index: 3, reason: mine}]")
    plugin.until_unhealthy(node.uuid(3), "mine")
    node.ndp("health", "clear", "all")
    assert plugin.verdict(node.uuid(3))["verdict"] == "Unhealthy"


def test_the_clear_file_beside_the_fences(node, fences):
    plugin = serve(node)
    node.await_events()
    node.xid(1, 79)
    node.xid(2, 79)
    plugin.until_unhealthy(node.uuid(1))
    plugin.until_unhealthy(node.uuid(2))
    (node.fences.parent / "clear").write_text("1\n")
    plugin.until_healthy(node.uuid(1))
    assert plugin.verdict(node.uuid(2))["verdict"] == "Unhealthy"
    (node.fences.parent / "clear").write_text("")
    plugin.until_healthy(node.uuid(2))
