"""A fault reaches exactly the devices that it is about, and every stream that lists them."""

import json

import pytest
from simnode import GPU, quick

SHARED = {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 4}]}}}
MIXED = {"flags": {"migStrategy": "mixed"}}
# Verdicts that stay for the length of a test.
LASTING = quick(recovery={"holdOff": "1h"})


def test_every_replica_of_the_gpu(node):
    plugin = node.serve(capacity=32, config=LASTING | SHARED)
    node.await_events()
    uuid = node.uuid(0)
    node.xid(0, 79)
    node.wait_for(capacity=32, allocatable=28)
    assert node.unhealthy() == {f"{uuid}::{n}" for n in range(4)}
    for n in range(4):
        device = plugin.device(f"{uuid}::{n}")
        assert device["health"] == "Unhealthy" and device["xid"] == 79 and device["class"] == "reset"
        assert "XID 79" in device["reason"] and device["since"] and device["count"] == 1 and device["nextStep"]


class TestMig:
    """GPU 3 in MIG mode; the others whole."""

    def start(self, node, layout, counts):
        node.up()
        node.sim("mig", "--gpu", "3", "--mode", "on")
        node.sim("mig", "--gpu", "3", "--profiles", layout)
        node.start_kubelet()
        self.plugin = node.start_plugin(config=LASTING | MIXED)
        self.node = node
        self.counts = counts
        for resource, count in counts.items():
            node.wait_for(resource, capacity=count, allocatable=count)
        node.wait_for(capacity=7, allocatable=7)
        node.await_events()
        self.mig = node.gpus()[3]["mig"]

    def unhealthy(self):
        return set().union(*(self.node.unhealthy(resource) for resource in self.counts))

    def expect(self, bad):
        """Exactly these MIG devices, and no GPU."""
        for resource, count in self.counts.items():
            ids = {d["id"] for d in self.node.resources()[resource]["devices"]}
            self.node.wait_for(resource, capacity=count, allocatable=count - len(ids & bad))
        assert self.unhealthy() == bad
        assert self.node.unhealthy() == set()

    def heal(self):
        self.node.ndp("health", "clear", "all")
        self.expect(set())

    @pytest.fixture
    def seven(self, node):
        self.start(node, "1g.10gb*7", {"nvidia.com/mig-1g.10gb": 7})

    def test_the_instance_that_the_event_names(self, seven):
        target = next(m for m in self.mig if m["gi"] == self.mig[2]["gi"])
        self.node.xid(3, 61, "--gi", str(target["gi"]), "--ci", str(target["ci"]))
        self.expect({target["uuid"]})
        verdict = self.plugin.verdict(target["uuid"])
        assert verdict["class"] == "fault" and f"GPU instance {target['gi']}" in verdict["reason"]
        self.heal()
        self.node.xid(3, 61)
        self.expect({m["uuid"] for m in self.mig})
        self.heal()
        self.node.xid(3, 95, "--gi", str(target["gi"]))
        self.expect({m["uuid"] for m in self.mig})
        assert self.plugin.verdict(target["uuid"])["class"] == "reset"

    def test_seven_devices_over_three_resources(self, node):
        self.start(node, "1g.10gb*5,1g.10gb+me,1g.20gb",
                   {"nvidia.com/mig-1g.10gb": 5, "nvidia.com/mig-1g.10gb.me": 1, "nvidia.com/mig-1g.20gb": 1})
        waiting = [s["eventSets"] for s in json.loads(self.node.sim("sessions", "--json")) if s["eventSets"]]
        assert waiting == [1], "one wait whatever the number of resources"
        self.node.xid(3, 95, "--gi", str(self.mig[1]["gi"]), "--ci", "0")
        self.expect({m["uuid"] for m in self.mig})

    def test_a_gpu_instance_stands_for_all_its_compute_instances(self, node):
        self.start(node, "1c.2g.20gb*2,1g.10gb*5",
                   {"nvidia.com/mig-1c.2g.20gb": 2, "nvidia.com/mig-1g.10gb": 5})
        pair = [m for m in self.mig if m["profile"] == "1c.2g.20gb"]
        assert len(pair) == 2 and pair[0]["gi"] == pair[1]["gi"]
        self.node.xid(3, 61, "--gi", str(pair[0]["gi"]))
        self.expect({m["uuid"] for m in pair})
        self.heal()
        self.node.xid(3, 61, "--gi", str(pair[1]["gi"]), "--ci", str(pair[1]["ci"]))
        self.expect({pair[1]["uuid"]})

    def test_replicas_of_one_mig_device(self, node):
        node.up()
        node.sim("mig", "--gpu", "3", "--mode", "on")
        node.sim("mig", "--gpu", "3", "--profiles", "1g.10gb*7")
        node.start_kubelet()
        name = "nvidia.com/mig-1g.10gb"
        node.start_plugin(config=LASTING | MIXED | {
            "sharing": {"timeSlicing": {"resources": [{"name": name, "replicas": 2}]}}})
        node.wait_for(name, capacity=14, allocatable=14)
        node.await_events()
        target = node.gpus()[3]["mig"][4]
        node.xid(3, 61, "--gi", str(target["gi"]), "--ci", str(target["ci"]))
        node.wait_for(name, capacity=14, allocatable=12)
        assert node.unhealthy(name) == {f"{target['uuid']}::{n}" for n in range(2)}


def streams(node):
    return node.do("streams")["streams"]


def until_seen(node, name, unhealthy):
    from simnode import eventually

    return eventually(lambda: streams(node)[name]["unhealthy"] == unhealthy, f"stream {name} sees {unhealthy}")


def test_a_stream_opened_after_one_was_cancelled_gets_the_news(node):
    node.serve(config=LASTING)
    node.await_events()
    node.do("open-stream", resource=GPU, stream="A")
    until_seen(node, "A", [])
    node.do("close-stream", stream="A")
    node.do("open-stream", resource=GPU, stream="B")
    until_seen(node, "B", [])
    node.xid(2, 79)
    until_seen(node, "B", [node.uuid(2)])
    seen = streams(node)
    assert seen["B"]["lists"] == 2 and seen["B"]["devices"] == 8
    assert not seen["A"]["open"] and seen["A"]["unhealthy"] == []


def test_ten_streams_all_get_it(node):
    node.serve(config=LASTING)
    node.await_events()
    names = [f"s{n}" for n in range(10)]
    for name in names:
        node.do("open-stream", resource=GPU, stream=name)
        until_seen(node, name, [])
    node.xid(6, 48)
    for name in names:
        until_seen(node, name, [node.uuid(6)])
    assert [streams(node)[name]["lists"] for name in names] == [2] * 10
    node.wait_for(allocatable=7)
