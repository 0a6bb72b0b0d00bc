"""Shared and renamed resources."""

import pytest
from container import Added
from driver import check_driver
from simnode import GPU, eventually

CDI = "--device-list-strategy=cdi-cri"


def test_two_pods_share_a_gpu(node, plain):
    """With time slicing each sees the whole GPU, and only that one."""
    config = {"sharing": {"timeSlicing": {"renameByDefault": True, "resources": [{"name": GPU, "replicas": 3}]}}}
    plugin = node.plugin(CDI, "--shared-devices-allocation-policy=packed", config=config)
    shared = f"{GPU}.shared"
    assert {entry["name"]: entry["capacity"] for entry in plugin.status()["resources"]}[shared] == 24
    pods = [node.pod(name, {shared: 1}) for name in ["first", "second"]]
    held = [node.held(pod.running(), shared) for pod in pods]
    assert len(held[0]) == 1
    assert held[0] == held[1]
    for pod in pods:
        check_driver(node.driver, Added(pod.view(), plain), node.driver.gpu_nodes(held[0][0]), held[0])


def test_several_replicas_of_one_gpu_inject_it_once(node, plain):
    config = {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}}
    node.plugin("--device-list-strategy=cdi-annotations", "--shared-devices-allocation-policy=packed", config=config)
    pod = node.pod("both", {GPU: 2}).running()
    assert len(pod.resource_health(GPU)) == 2
    (gpu,) = node.held(pod)
    check_driver(node.driver, Added(pod.view(), plain), node.driver.gpu_nodes(gpu), [gpu])


def test_a_renamed_resource(node, plain):
    config = {"resources": {"gpus": [{"pattern": "*H100*", "name": "hopper"}]}}
    node.plugin(CDI, "--enable-resource-naming", config=config)
    pod = node.pod("renamed", {"nvidia.com/hopper": 1}).running()
    (gpu,) = node.held(pod, "nvidia.com/hopper")
    check_driver(node.driver, Added(pod.view(), plain), node.driver.gpu_nodes(gpu), [gpu])


def test_names_by_index(node, plain):
    node.plugin(CDI, "--device-id-strategy=index")
    pod = node.pod("by-index", {GPU: 1}).running()
    (gpu,) = node.held(pod)
    check_driver(node.driver, Added(pod.view(), plain), node.driver.gpu_nodes(gpu), [gpu])


@pytest.mark.parametrize("config", [
    {"resources": {"gpus": [{"pattern": "*H100*", "name": "hopper"}]}},
    {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}},
], ids=["renamed", "shared"])
def test_a_node_whose_jobs_have_ended_can_be_changed(node, config):
    """The kubelet does not write down that they ended before the next pod comes; it says so when asked."""
    node.plugin(CDI, "--enable-resource-naming", config={})
    node.pod("job", {GPU: 8}).running().remove()
    node.write_config(config)
    resource, count = ("nvidia.com/hopper", 8) if "resources" in config else (GPU, 16)
    eventually(lambda: len(node.advertised().get(resource, [])) == count, "everything is offered in the new way", 60)
    node.pod("next", {resource: 1}).running()
