"""A GPU is re-partitioned while the plugin runs and pods hold instances."""

import signal

import pytest
from simnode import GPU, eventually

SMALL = "nvidia.com/mig-1g.10gb"
HALF = "nvidia.com/mig-3g.40gb"


def uuids(node, gpu):
    return {device["uuid"] for device in node.gpus()[gpu]["mig"]}


def start(node, *args):
    """GPU 0 and 1 in seven slices, GPU 2 whole."""
    node.up("dgx-h100", "--gpus", "3")
    node.partition(0, "1g.10gb*7")
    node.partition(1, "1g.10gb*7")
    node.start_kubelet()
    plugin = node.start_plugin("--mig-strategy=mixed", *args)
    node.wait_for(SMALL, capacity=14, allocatable=14)
    node.wait_for(GPU, capacity=1, allocatable=1)
    return plugin


def lists(node, resource):
    """Each list as ({healthy ids}, {unhealthy ids})."""
    return [({d["id"] for d in e["devices"] if d["health"] == "Healthy"},
             {d["id"] for d in e["devices"] if d["health"] != "Healthy"})
            for e in node.events("list", resource=resource)]  # fmt: skip


@pytest.mark.long
def test_held_instances_stay_and_everything_else_is_undisturbed(node):
    plugin = start(node, "--rescan-interval=100ms")
    old, untouched = uuids(node, 1), uuids(node, 0)
    node.allocate(14, SMALL, pod="slices")
    node.allocate(1, GPU, pod="whole")
    node.sim("mig", "--gpu", "1", "--profiles", "3g.40gb*2")
    node.wait_for(HALF, capacity=2, allocatable=2)
    node.wait_for(SMALL, capacity=14, allocatable=7)
    # One list for what changed; none for what did not; nobody had to register anew.
    assert lists(node, SMALL) == [(untouched | old, set()), (untouched, old)]
    assert len(lists(node, GPU)) == 1 and len(node.events("register", resource=SMALL)) == 1
    assert lists(node, HALF) == [(uuids(node, 1), set())]
    assert "pod holds it" in plugin.device(next(iter(old)), SMALL)["reason"]
    answer = node.allocate(1, HALF, pod="half")
    assert answer["response"]["envs"]["NVIDIA_VISIBLE_DEVICES"] in uuids(node, 1)
    # Let go: the old ids leave in one more list, when the kubelet has had them Unhealthy for 10 s.
    node.do("release", pod="slices")
    eventually(lambda: node.resources()[SMALL]["capacity"] == 7, "the old ids leave", 40)
    assert lists(node, SMALL)[2:] == [(untouched, set())]
    assert len(lists(node, GPU)) == 1 and len(lists(node, HALF)) == 1


@pytest.mark.long
def test_a_resource_whose_last_instance_goes_is_retired_and_may_come_back(node):
    node.up("dgx-h100", "--gpus", "1")
    node.partition(0, "1g.10gb*7")
    node.start_kubelet()
    plugin = node.start_plugin("--mig-strategy=mixed", "--rescan-interval=100ms")
    node.wait_for(SMALL, capacity=7, allocatable=7)
    node.sim("mig", "--gpu", "0", "--profiles", "3g.40gb*2")
    node.wait_for(HALF, capacity=2, allocatable=2)
    node.wait_for(SMALL, capacity=7, allocatable=0)
    eventually(lambda: node.resources()[SMALL]["capacity"] == 0, "an empty list", 40)
    eventually(lambda: [r["name"] for r in plugin.status()["resources"]] == [HALF], "its server has ended")
    assert lists(node, SMALL)[-1] == (set(), set())
    node.sim("mig", "--gpu", "0", "--profiles", "1g.10gb*7")
    node.wait_for(SMALL, capacity=7, allocatable=7)
    node.allocate(2, SMALL)


@pytest.mark.parametrize("sign", ["SIGHUP", "device nodes", "a device node that goes"])
def test_a_repartition_is_noticed_at_once_by(node, sign):
    goes = node.dir / "root/dev/nvidia-caps/nvidia-cap998"
    goes.parent.mkdir(parents=True)
    goes.touch()
    plugin = start(node, "--rescan-interval=1h")
    node.sim("mig", "--gpu", "1", "--profiles", "2g.20gb*3")
    if sign == "SIGHUP":
        plugin.signal(signal.SIGHUP)
    elif sign == "a device node that goes":
        goes.unlink()
    else:
        (node.dir / "root/dev/nvidia-caps/nvidia-cap999").touch()
    node.wait_for("nvidia.com/mig-2g.20gb", capacity=3, allocatable=3)
    node.wait_for(SMALL, allocatable=7)


def test_two_compute_instances_are_made_of_one_while_the_other_slices_are_held(node):
    start(node, "--rescan-interval=100ms")
    kept = uuids(node, 0)
    node.allocate(14, SMALL, pod="slices")
    node.sim("mig", "--gpu", "1", "--profiles", "1g.10gb*3,1c.2g.20gb*2")
    node.wait_for("nvidia.com/mig-1c.2g.20gb", capacity=2, allocatable=2)
    # The three slices that are the same before and after keep their ids and stay Healthy.
    node.wait_for(SMALL, capacity=14, allocatable=10)
    healthy, unhealthy = lists(node, SMALL)[-1]
    assert healthy == kept | (uuids(node, 1) & healthy) and len(unhealthy) == 4


@pytest.mark.long
def test_under_single_no_wrong_slice_is_offered_while_the_layouts_change(node):
    node.up("dgx-h100", "--gpus", "2")
    for gpu in range(2):
        node.partition(gpu, "1g.10gb*7")
    node.start_kubelet()
    node.start_plugin("--mig-strategy=single", "--rescan-interval=100ms")
    node.wait_for(GPU, capacity=14, allocatable=14)
    before = uuids(node, 0) | uuids(node, 1)
    node.sim("mig", "--gpu", "0", "--profiles", "3g.40gb*2")
    node.wait_for(GPU, allocatable=0)
    node.sim("mig", "--gpu", "1", "--profiles", "3g.40gb*2")
    node.wait_for(GPU, allocatable=4)
    after = uuids(node, 0) | uuids(node, 1)
    for healthy, _ in lists(node, GPU):
        assert healthy in (before, set(), after)


def test_a_gpu_goes_into_mig_mode_while_a_pod_holds_it(node):
    """As after a maintenance: the plugin lets go of the driver by ending, the pod's claim outlives it."""
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    node.start_plugin("--mig-strategy=mixed")
    node.wait_for(GPU, capacity=2, allocatable=2)
    whole = set(node.allocate(2, pod="whole")["devices"])
    node.plugins[0].stop()
    node.partition(0, "3g.40gb*2")
    plugin = node.start_plugin("--mig-strategy=mixed")
    node.wait_for(HALF, capacity=2)
    node.wait_for(GPU, capacity=2, allocatable=1)
    assert {d["id"] for d in node.resources()[GPU]["devices"]} == whole
    # Its slices wait until the pod has let go of the whole.
    node.wait_for(HALF, allocatable=0)
    assert "pod holds" in plugin.device("MIG-", HALF)["reason"]
    node.do("release", pod="whole")
    node.wait_for(HALF, allocatable=2)
