"""What is not a GPU but is asked for with one: GDRCopy, GPUDirect Storage, InfiniBand, IMEX."""

import os
import stat

import pytest
from container import Added
from driver import check_driver
from simnode import GPU

# As the drivers name them; the numbers are free ones.
NODES = {
    "gdrcopy": ["/dev/gdrdrv"],
    "gds": ["/dev/nvidia-fs0", "/dev/nvidia-fs1"],
    "mofed": ["/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"],
    "imex": ["/dev/nvidia-caps-imex-channels/channel0"],
}


@pytest.fixture
def devices(node):
    """The machine has all of them."""
    made = []
    for minor, path in enumerate(path for paths in NODES.values() for path in paths):
        file = node.dir / "root" / path.lstrip("/")
        file.parent.mkdir(exist_ok=True)
        os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(240, minor))
        made.append(file)
    # Files that GPUDirect Storage needs besides, and nobody else gets.
    files = [node.dir / "root/etc/cufile.json", node.dir / "root/run/udev/c240:0"]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    node.driver.decoys += files
    yield node
    node.clean()
    for file in [*made, *files]:
        file.unlink()
    files[1].parent.rmdir()
    for file in files:
        node.driver.decoys.remove(file)


@pytest.mark.parametrize("strategy", ["cdi-cri", "cdi-annotations"])
def test_they_come_with_a_gpu(devices, plain, strategy):
    node = devices
    node.plugin(f"--device-list-strategy={strategy}", "--gdrcopy-enabled", "--gds-enabled", "--mofed-enabled",
                "--imex-channel-ids=0")
    pod = node.pod("all-classes", {GPU: 1}).running()
    (gpu,) = node.held(pod)
    added = Added(pod.view(), plain)
    nodes = node.driver.gpu_nodes(gpu) | node.driver.nodes(path for paths in NODES.values() for path in paths)
    check_driver(node.driver, added, nodes, [gpu], more=["/etc/cufile.json", "/run/udev"])
    for name in ["NVIDIA_GDRCOPY", "NVIDIA_GDS", "NVIDIA_MOFED"]:
        assert added.env[name] == "enabled"


def test_nothing_of_them_without_being_asked_for(devices, plain):
    devices.plugin("--device-list-strategy=cdi-cri")
    pod = devices.pod("gpu-alone", {GPU: 1}).running()
    (gpu,) = devices.held(pod)
    check_driver(devices.driver, Added(pod.view(), plain), devices.driver.gpu_nodes(gpu), [gpu])


def test_device_specs(node, plain):
    """Without CDI and NVIDIA's runtime: the nodes alone, and the right to use them."""
    node.plugin("--pass-device-specs")
    pod = node.pod("specs", {GPU: 1}).running()
    (gpu,) = node.held(pod)
    added = Added(pod.view(), plain)
    assert added.nodes == node.driver.control_nodes() | node.driver.nodes([f"/dev/nvidia{gpu['minor']}"])
    assert added.mounts == {}
    said = node.run_in(pod, "/bin/sh", "-c", "cat $0 2>&1; true", f"/dev/nvidia{gpu['minor']}")
    assert "No such device or address" in said
