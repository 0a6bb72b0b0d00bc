"""A static pod that is there when the kubelet starts is not lost when the plugin was there first."""

import pytest
from simnode import GPU, eventually

CDI = "--device-list-strategy=cdi-cri"


@pytest.fixture
def stopped(node):
    node.stop_kubelet()
    yield node
    if node.kubelet.poll() is not None:
        node.start_kubelet()


@pytest.mark.parametrize("known", [True, False], ids=["known-resource", "fresh-node"])
def test_plugin_first(stopped, known):
    if not known:
        (stopped.kubelet_dir / "kubelet_internal_checkpoint").unlink()
    plugin = stopped.start_plugin(*stopped.machine_args(), CDI)
    eventually(lambda: plugin.get("/livez")[0] == 200, "the plugin runs")
    pod = stopped.pod("static", {GPU: 1})
    stopped.start_kubelet()
    pod.running()
    assert len(stopped.held(pod)) == 1


def test_kubelet_first(stopped):
    stopped.start_kubelet()
    stopped.plugin(CDI)
    pod = stopped.pod("later", {GPU: 1}).running()
    assert len(stopped.held(pod)) == 1
