"""Any order of start, stop and restart of kubelet and plugin ends with the right list."""

import socket

import pytest
from simnode import GPU, eventually


@pytest.mark.parametrize("like", ["1.34", "1.37"])
class TestOrders:
    def test_plugin_first(self, node, like):
        node.up()
        plugin = node.start_plugin()
        eventually(lambda: plugin.get("/livez")[0] == 200, "the plugin runs")
        node.start_kubelet(like)
        node.wait_for(allocatable=8)

    def test_kubelet_restart(self, node, like):
        node.up()
        node.start_kubelet(like)
        node.start_plugin()
        node.wait_for(allocatable=8)
        for _ in range(3):
            node.do("restart")
            node.wait_for(allocatable=8)

    def test_stream_lost(self, node, like):
        node.up()
        node.start_kubelet(like)
        plugin = node.start_plugin()
        node.wait_for(allocatable=8)
        node.do("drop-stream", resource=GPU)
        eventually(lambda: plugin.status()["resources"][0]["registration"]["registrations"] >= 2, "registered again")
        node.wait_for(allocatable=8)

    def test_kill_and_start(self, node, like):
        node.up()
        node.start_kubelet(like)
        node.start_plugin().kill()
        node.start_plugin()
        node.wait_for(allocatable=8)
        node.plugins[1].kill()
        node.start_plugin()
        eventually(lambda: node.plugins[2].status()["resources"][0]["registration"]["registered"], "registered")
        node.wait_for(allocatable=8)
        node.allocate(1)

    def test_second_instance_then_the_first_ends(self, node, like):
        node.up()
        node.start_kubelet(like)
        first = node.start_plugin()
        node.wait_for(allocatable=8)
        second = node.start_plugin()
        eventually(lambda: second.status()["resources"][0]["registration"]["registered"], "the second registers")
        assert first.stop() == 0
        eventually(lambda: second.status()["resources"][0]["registration"]["registered"], "still registered")
        node.wait_for(allocatable=8)
        node.allocate(2)

    def test_refused_registrations_are_retried(self, node, like):
        node.up()
        node.start_kubelet(like)
        node.do("refuse", count=3)
        plugin = node.start_plugin()
        node.wait_for(allocatable=8)
        # The kubelet has the list before the plugin has the answer to its Register.
        eventually(lambda: plugin.status()["resources"][0]["registration"].get("lastError", "") == "",
                   "no refusal is the last word")


def test_without_a_kubelet_socket_it_serves_and_does_not_register(node):
    node.up()
    node.start_kubelet()
    plugin = node.start_plugin("--kubelet-socket=")
    eventually(lambda: plugin.get("/readyz")[0] == 200, "ready without a kubelet")
    assert GPU not in node.resources()


def test_garbage_on_the_socket_harms_nobody(node):
    node.serve()
    path = next(node.kubelet_dir.glob("nvidia-gpu-*.sock"))
    for _ in range(5):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"\x00\xff garbage \r\n" * 100)
    node.allocate(1)
    assert node.resources()[GPU]["allocatable"] == 8


def test_a_missing_socket_folder_is_waited_for(node):
    node.up()
    plugin = node.start_plugin()
    eventually(lambda: "socket folder is missing" in plugin.log(), "one warning")
    node.start_kubelet()
    node.wait_for(allocatable=8)


def test_dead_sockets_of_our_own_are_removed(node):
    node.serve()
    node.plugins[0].kill()
    dead = set(node.kubelet_dir.glob("nvidia-gpu-*.sock"))
    assert dead
    node.start_plugin()
    eventually(lambda: not dead & set(node.kubelet_dir.glob("nvidia-gpu-*.sock")), "the dead socket is gone")
