"""Drivers and device nodes that the plugin sees elsewhere than the container runtime does."""

import pathlib
import subprocess
from collections.abc import Iterator

import pytest
from container import Added
from driver import check_driver
from simnode import GPU

CDI = "--device-list-strategy=cdi-cri"


@pytest.fixture
def bind(node) -> Iterator:
    """Makes a folder of the machine visible at another place of the host as well."""
    places = []

    def make(source: str, place: str) -> str:
        pathlib.Path(place).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", str(node.dir / source), place], check=True)
        places.append(place)
        return place

    yield make
    node.clean()
    for place in reversed(places):
        subprocess.run(["umount", place], check=True)


def check_gpu(node, plain) -> None:
    pod = node.pod("roots", {GPU: 1}).running()
    (gpu,) = node.held(pod)
    added = Added(pod.view(), plain)
    check_driver(node.driver, added, node.driver.gpu_nodes(gpu), [gpu])


def test_a_driver_container(node, bind, plain):
    node.plugin(CDI, roots=[f"--driver-root={bind('root', '/run/nvidia/driver')}"])
    check_gpu(node, plain)
    text = next((node.dir / "cdi").glob("*-gpu.json")).read_text()
    assert f'"{node.dir}/root' not in text, "a path of the plugin in a file for the host"


def test_device_nodes_apart_from_the_driver(node, bind, plain):
    bind("root/dev", "/run/devices/dev")
    node.plugin(CDI, roots=[f"--driver-root={bind('root', '/run/nvidia/driver')}", "--dev-root=/run/devices"])
    check_gpu(node, plain)
    assert '"hostPath":"/run/devices/dev/nvidia0"' in next((node.dir / "cdi").glob("*-gpu.json")).read_text()
