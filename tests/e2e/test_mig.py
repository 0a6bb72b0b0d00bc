"""Containers on slices of a GPU."""

import pytest
from container import Added
from driver import check_driver
from simnode import GPU, eventually

SMALL, HALF, QUARTER = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "nvidia.com/mig-2g.20gb"
MIXED = ["--mig-strategy=mixed", "--device-list-strategy=cdi-cri", "--rescan-interval=500ms"]


@pytest.fixture
def sliced(node):
    """GPU 7 in three slices, while no plugin runs."""
    node.partition(7, "3g.40gb,1g.10gb*2")
    yield node
    node.clean()
    node.sim("mig", "--gpu", "7", "--mode", "off")


def test_a_slice_brings_its_own_capabilities_and_no_others(sliced, plain):
    sliced.plugin(*MIXED)
    pods = {resource: sliced.pod(resource.split("-")[1].replace(".", "-"), {resource: 1}) for resource in [SMALL, HALF]}
    for resource, pod in pods.items():
        pod.running()
        ((gpu, mig),) = sliced.held_mig(pod, resource)
        assert gpu["minor"] == 7
        check_driver(sliced.driver, Added(pod.view(), plain), sliced.driver.mig_nodes(gpu, mig), [])


def test_slices_of_several_kinds_and_a_whole_gpu_in_one_container(sliced, plain):
    sliced.plugin(*MIXED)
    pod = sliced.pod("all", {SMALL: 2, HALF: 1, GPU: 1}).running()
    (whole,) = sliced.held(pod)
    nodes = sliced.driver.gpu_nodes(whole)
    for resource in [SMALL, HALF]:
        for gpu, mig in sliced.held_mig(pod, resource):
            nodes |= sliced.driver.mig_nodes(gpu, mig)
    assert sum("nvidia-cap" in path for path in nodes) == 6
    check_driver(sliced.driver, Added(pod.view(), plain), nodes, [whole])


def test_pods_live_through_a_repartition(sliced, plain):
    """Free slices become others; the slice in use stays, and so does what runs on it."""
    sliced.plugin(*MIXED)
    pod = sliced.pod("stays", {HALF: 1}).running()
    whole = sliced.pod("whole", {GPU: 1}).running()
    before = [it.container_status()["containerID"] for it in (pod, whole)]
    ((_, held),) = sliced.held_mig(pod, HALF)

    sliced.sim("mig", "--gpu", "7", "--profiles", "3g.40gb,2g.20gb")
    eventually(lambda: len(sliced.advertised().get(QUARTER, [])) == 1, "the new slice is offered")
    eventually(lambda: not sliced.advertised().get(SMALL), "the old ones are not")
    new = sliced.pod("new", {QUARTER: 1}).running()
    ((gpu, mig),) = sliced.held_mig(new, QUARTER)
    check_driver(sliced.driver, Added(new.view(), plain), sliced.driver.mig_nodes(gpu, mig), [])

    assert [it.container_status()["containerID"] for it in (pod, whole)] == before
    assert pod.resource_health(HALF) == {held["uuid"]: "Healthy"}
    # Made anew from the names of its old Allocate.
    sliced.kill(pod)
    pod.restarted(1)
    ((gpu, again),) = sliced.held_mig(pod, HALF)
    assert again == held
    check_driver(sliced.driver, Added(pod.view(), plain), sliced.driver.mig_nodes(gpu, again), [])
