"""What programs in a container can do with what they were given."""

import pytest
from realnode import main_container
from simnode import GPU


@pytest.fixture
def pod(node):
    node.plugin("--device-list-strategy=cdi-cri")
    return node.pod("inside", {GPU: 1}).running()


def test_libraries_load_by_their_names(node, pod):
    folder = node.driver.inside(node.driver.libraries)
    names = ["libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1"]
    loaded = node.run_in(pod, "/bin/load", *names)
    assert loaded.split() == [f"{folder}/{name}" for name in names]
    # By the loader's cache, which NVIDIA's hook wrote into this container alone.
    cache = pod.view().library_cache
    for name in names:
        assert cache[name] == f"{folder}/{name}"


def test_only_the_own_gpu_can_be_opened(node, pod):
    """Making the node of another GPU oneself does not help: the kernel refuses to open it."""
    (own,) = node.held(pod)
    other = next(gpu for gpu in node.gpus() if gpu["uuid"] != own["uuid"])
    script = "mknod /tmp/own c 195 $0; mknod /tmp/other c 195 $1; cat /tmp/own; cat /tmp/other; true"
    said = node.run_in(pod, "/bin/sh", "-c", f"exec 2>&1; {script}", str(own["minor"]), str(other["minor"]))
    # No driver is behind the simulated machine's numbers.
    assert "/tmp/own': No such device or address" in said
    assert "/tmp/other': Operation not permitted" in said


def test_containers_of_one_pod_have_their_own_gpus(node, plain):
    node.plugin("--device-list-strategy=cdi-cri")
    pod = node.pod("two", containers=[main_container({GPU: 1}), main_container({GPU: 2}, "second"),
                                      main_container({}, "third")]).running()
    seen = [{path for path in pod.view(name).nodes if path[:11] == "/dev/nvidia" and path[11:].isdigit()}
            for name in ["main", "second", "third"]]
    assert [len(nodes) for nodes in seen] == [1, 2, 0]
    assert not seen[0] & seen[1]
