"""One node for all tests: kubelet and containerd start once, plugins and pods come and go."""

import os
import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))

from container import View  # noqa: E402
from realnode import RealNode  # noqa: E402
from simnode import pytest_runtest_makereport  # noqa: E402

__all__ = ["pytest_runtest_makereport"]


@pytest.fixture(scope="session")
def machine() -> Iterator[RealNode]:
    folder = os.environ.get("NDP_E2E_DIR")
    assert folder, "tests/e2e/run.sh makes the private namespaces that these tests need"
    node = RealNode(pathlib.Path(folder), os.environ["NDP_E2E_CGROUP"])
    try:
        node.up("dgx-h100")
        node.start_containerd()
        node.start_kubelet()
        yield node
    finally:
        node.close()


@pytest.fixture
def node(machine: RealNode, request: pytest.FixtureRequest) -> Iterator[RealNode]:
    yield machine
    if getattr(request.node, "failed", False):
        for plugin in machine.plugins:
            print(f"---- {plugin.log_path.name}\n{plugin.log()[-6000:]}")
        kubelet = (machine.dir / "kubelet.log").read_text(errors="replace")
        print(f"---- kubelet.log\n{kubelet[-6000:]}")
    machine.clean()


@pytest.fixture(scope="session")
def plain(machine: RealNode) -> View:
    """A container that asked for nothing: whatever others have beyond it came from the plugin."""
    pod = machine.pod("plain").running()
    machine.pods.remove(pod)  # it stays
    return pod.view()
