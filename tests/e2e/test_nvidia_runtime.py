"""Where NVIDIA's container runtime is the default one, as on most nodes of today.

It reads NVIDIA_VISIBLE_DEVICES, or the mounts of `volume-mounts`, and injects what they name, by
NVIDIA's own code from the driver.
"""

import pathlib
import subprocess
from collections.abc import Iterator

import pytest
from container import Added, View
from driver import check_driver
from realnode import RealNode
from simnode import GPU


@pytest.fixture(scope="module")
def nvidia(machine: RealNode) -> Iterator[RealNode]:
    machine.stop_containerd()
    machine.start_containerd("nvidia")
    # It reads these of the host itself, wherever the driver is.
    root = machine.dir / "root"
    mount("--bind", str(root / "sys/bus/pci/devices"), "/sys/bus/pci/devices")
    mount("-t", "tmpfs", "ndp-e2e", "/proc/driver")
    pathlib.Path("/proc/driver/nvidia-caps").symlink_to(root / "proc/driver/nvidia-caps")
    yield machine
    subprocess.run(["umount", "/sys/bus/pci/devices", "/proc/driver"], check=True)
    machine.stop_containerd()
    machine.start_containerd()


def mount(*args: str) -> None:
    subprocess.run(["mount", *args], check=True)


@pytest.fixture(scope="module")
def plain_nvidia(nvidia: RealNode) -> View:
    pod = nvidia.pod("plain").running()
    nvidia.pods.remove(pod)
    return pod.view()


@pytest.mark.parametrize("strategy", ["envvar", "volume-mounts"])
@pytest.mark.parametrize("names", ["uuid", "index"])
def test_it_injects_the_gpus_that_the_plugin_names(nvidia, node, plain_nvidia, strategy, names):
    node.plugin(f"--device-list-strategy={strategy}", f"--device-id-strategy={names}")
    pod = node.pod(f"{strategy}-{names}", {GPU: 2}).running()
    added = Added(pod.view(), plain_nvidia)
    # Its links of display nodes lie below the driver root; ours do not (docs/cdi.md).
    added.links = {path.removeprefix(str(node.driver.root)): target for path, target in added.links.items()}
    gpus = node.held(pod)
    assert len(gpus) == 2
    check_driver(node.driver, added, node.driver.gpu_nodes(gpus[0]) | node.driver.gpu_nodes(gpus[1]), gpus)


def test_it_injects_a_slice(nvidia, node, plain_nvidia):
    node.partition(7, "1g.10gb*2")
    try:
        node.plugin("--mig-strategy=mixed")
        pod = node.pod("slice", {"nvidia.com/mig-1g.10gb": 1}).running()
        ((gpu, mig),) = node.held_mig(pod, "nvidia.com/mig-1g.10gb")
        check_driver(node.driver, Added(pod.view(), plain_nvidia), node.driver.mig_nodes(gpu, mig), [])
    finally:
        node.clean()
        node.sim("mig", "--gpu", "7", "--mode", "off")


def test_it_leaves_alone_what_containerd_injected(nvidia, node, plain_nvidia):
    """With both kinds of strategies the GPUs come by CDI, once."""
    node.plugin("--device-list-strategy=envvar,cdi-cri")
    pod = node.pod("both", {GPU: 1}).running()
    (gpu,) = node.held(pod)
    check_driver(node.driver, Added(pod.view(), plain_nvidia), node.driver.gpu_nodes(gpu), [gpu])
