"""SIGTERM ends the plugin with status 0 and without its sockets, whatever it is doing.

Two seconds are the rule, and the soak tests hold the release build to it; a sanitized program on a
busy machine is allowed more.
"""

import os

import pytest
from simnode import GPU, eventually

SOON_S = float(os.environ.get("NDP_STOP_WITHIN_S", "4"))


def stopped(node, plugin):
    assert plugin.stop(SOON_S) == 0
    assert not list(node.kubelet_dir.glob("nvidia-*.sock"))


@pytest.mark.parametrize("function", ["nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetUUID"])
def test_while_the_first_scan_hangs(node, function):
    node.up("dgx-h100", "--gpus", "2")
    node.sim("function", "--function", function, "--hang")
    node.start_kubelet()
    plugin = node.start_plugin()
    eventually(lambda: node.calls().get(function), "the hanging call is made")
    stopped(node, plugin)


def test_at_once(node):
    node.up("dgx-h100", "--gpus", "2")
    plugin = node.start_plugin()
    eventually(lambda: " settings " in plugin.log(), "it has started")
    stopped(node, plugin)


def test_while_it_waits_for_a_driver(node):
    node.up("none")
    plugin = node.start_plugin("--fail-on-init-error=false")
    eventually(lambda: "no usable NVIDIA driver" in plugin.log(), "it waits")
    stopped(node, plugin)


def test_while_it_waits_for_a_kubelet(node):
    node.up("dgx-h100", "--gpus", "2")
    node.kubelet_dir.mkdir()
    plugin = node.start_plugin()
    eventually(lambda: "serving a resource" in plugin.log(), "it serves")
    stopped(node, plugin)


def test_during_registration(node):
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    node.do("delay", ms=60000, count=1000)
    plugin = node.start_plugin()
    eventually(lambda: node.events("register"), "the kubelet holds Register back")
    stopped(node, plugin)


@pytest.mark.parametrize("function", ["nvmlDeviceGetUUID", "nvmlShutdown"])
def test_while_a_later_call_hangs(node, function):
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    plugin = node.start_plugin("--rescan-interval=100ms")
    node.wait_for(allocatable=2)
    before = node.calls().get(function, 0)
    node.sim("function", "--function", function, "--hang")
    plugin.signal(1)  # a fresh session, and so a shutdown of the old one
    eventually(lambda: node.calls().get(function, 0) > before, "the hanging call is made")
    node.allocate(1)
    stopped(node, plugin)


@pytest.mark.parametrize("function", ["nvmlEventSetWait_v2", "nvmlDeviceGetTopologyCommonAncestor"])
def test_while_a_call_hangs_that_follows_the_registration(node, function):
    node.up("dgx-h100", "--gpus", "2")
    node.sim("function", "--function", function, "--hang")
    node.start_kubelet()
    plugin = node.start_plugin()
    node.wait_for(allocatable=2)
    eventually(lambda: node.calls().get(function), "the hanging call is made")
    node.allocate(1)
    stopped(node, plugin)


@pytest.mark.parametrize("like", ["1.34", "1.37"])
def test_the_kubelet_sees_the_streams_end_and_no_further_list(node, like):
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet(like)
    plugin = node.start_plugin()
    node.wait_for(allocatable=2)
    lists = len(node.events("list"))
    stopped(node, plugin)
    node.wait_for(GPU, capacity=2, allocatable=0)
    assert len(node.events("list")) == lists
