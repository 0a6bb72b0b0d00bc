"""Nonsense by way of the sockets and the folder: one clear answer, and everything goes on."""

import shutil
import socket

import pytest
from simnode import GPU, eventually


def ids(node):
    return [d["id"] for d in node.plugins[0].status()["resources"][0]["devices"]]


def refused(node, command, code, words, **fields):
    answer = node.ask(command, resource=GPU, **fields)
    assert not answer["ok"], answer
    for word in (code, GPU, *words):
        assert word in answer["error"], answer


def test_requests_that_make_no_sense(node):
    """One after another to one plugin, which goes on as before."""
    plugin = node.serve()
    a, b, c = ids(node)[:3]
    refused(node, "raw-allocate", "NOT_FOUND", ["GPU-nobody"], devices=[a, "GPU-nobody"])
    refused(node, "raw-allocate", "NOT_FOUND", [f"{a}::0"], devices=[f"{a}::0"])
    refused(node, "raw-allocate", "NOT_FOUND", ["''"], devices=[""])
    refused(node, "raw-allocate", "NOT_FOUND", ["x" * 50], devices=["x" * 5000])
    refused(node, "preferred", "INVALID_ARGUMENT", ["9", "8"], count=9)
    refused(node, "preferred", "INVALID_ARGUMENT", ["1", "2"], count=1, must_include=[a, b])
    refused(node, "preferred", "INVALID_ARGUMENT", [c], count=2, available=[a, b], must_include=[c])
    refused(node, "preferred", "INVALID_ARGUMENT", ["GPU-nobody"], count=1, available=["GPU-nobody", a])
    refused(node, "preferred", "INVALID_ARGUMENT", ["1000000000"], count=1_000_000_000)
    assert node.do("preferred", resource=GPU, count=0)["devices"] == []
    assert node.do("raw-allocate", resource=GPU, devices=[])["response"]["envs"] == {}
    assert node.do("raw-allocate", resource=GPU, devices=[b, b, b])["response"]["envs"] == {"NVIDIA_VISIBLE_DEVICES": b}
    assert len(node.events("list")) == 1 and len(node.events("register")) == 1
    assert plugin.get("/livez")[0] == 200


GARBAGE = [b"\x00\xff garbage \r\n" * 1000, b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 500,
           b""]  # fmt: skip


@pytest.mark.parametrize("whose", ["a resource", "the web", "control"])
def test_garbage_on_a_socket(node, whose):
    plugin = node.serve()
    path = {"a resource": "nvidia-gpu-*.sock", "the web": "*.web", "control": ".ndp/*"}[whose]
    folder = node.dir if whose == "the web" else node.kubelet_dir
    found = next(p for p in folder.glob(path) if p.is_socket())
    for text in GARBAGE * 5:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(found))
            try:
                connection.sendall(text)
            except BrokenPipeError:
                pass  # it has hung up on us: as good an answer as any
    node.allocate(1)
    assert plugin.get("/livez")[0] == 200 and node.resources()[GPU]["allocatable"] == 8


def test_a_missing_folder_is_waited_for_with_one_warning(node):
    node.up("dgx-h100", "--gpus", "1")
    plugin = node.start_plugin("--rescan-interval=50ms")
    eventually(lambda: "serving a resource" in plugin.log() and plugin.get("/livez")[0] == 200, "it runs")
    eventually(lambda: node.calls().get("nvmlDeviceGetCount_v2", 0) > 10, "it goes on for a while")
    about = [line for line in plugin.log().splitlines() if " W " in line and str(node.kubelet_dir) in line]
    assert len(about) == 1 and "socket folder is missing" in about[0], about
    node.start_kubelet()
    node.wait_for(allocatable=1)


def test_a_folder_that_goes_or_is_none_is_told_once_and_waited_for(node):
    node.up("dgx-h100", "--gpus", "1")
    node.kubelet_dir.mkdir()
    plugin = node.start_plugin("--rescan-interval=50ms")
    eventually(lambda: "serving a resource" in plugin.log() and plugin.get("/livez")[0] == 200, "it runs")
    before = plugin.log()
    node.kubelet_dir.rename(node.dir / "gone")
    shutil.rmtree(node.dir / "gone")
    eventually(lambda: "socket folder is missing" in plugin.log(), "that is told")
    scans = node.calls()["nvmlDeviceGetCount_v2"]
    eventually(lambda: node.calls()["nvmlDeviceGetCount_v2"] > scans + 10, "it goes on for a while")
    added = plugin.log().removeprefix(before).splitlines()
    about = [line for line in added if " W " in line and str(node.kubelet_dir) in line]
    assert len(about) == 1, about
    node.start_kubelet()
    node.wait_for(allocatable=1)
    eventually(lambda: "the socket folder is there" in plugin.log(), "that is told")


def test_a_folder_in_the_kubelets_place_is_told_and_waited_out(node):
    """A pod's mount makes it, where the kubelet is not there yet."""
    node.up("dgx-h100", "--gpus", "1")
    (node.kubelet_dir / "kubelet.sock").mkdir(parents=True)
    plugin = node.start_plugin()
    eventually(lambda: "kubelet.sock: a folder, want a socket" in plugin.log(), "that is told")
    (node.kubelet_dir / "kubelet.sock").rmdir()
    node.start_kubelet()
    node.wait_for(allocatable=1)


def test_a_file_in_the_folders_place_is_told(node):
    node.up("dgx-h100", "--gpus", "1")
    node.kubelet_dir.write_text("")
    plugin = node.start_plugin()
    eventually(lambda: "socket folder is no folder" in plugin.log(), "that is told")
    node.kubelet_dir.unlink()
    node.start_kubelet()
    node.wait_for(allocatable=1)


def test_a_folder_that_cannot_be_written_to_is_told_and_not_the_end(node):
    """/proc is read-only to everybody, root included."""
    node.up("dgx-h100", "--gpus", "1")
    plugin = node.start_plugin("--kubelet-socket=/proc/kubelet.sock", "--rescan-interval=50ms")
    why = eventually(lambda: plugin.status()["resources"][0]["registration"]["lastError"], "the error is told")
    assert "/proc/" in why
    eventually(lambda: node.calls().get("nvmlDeviceGetCount_v2", 0) > 10, "it goes on for a while")
    assert plugin.get("/livez")[0] == 200 and plugin.get("/readyz")[0] == 503
    warnings = [line for line in plugin.log().splitlines() if " W " in line and "register" in line]
    assert 1 <= len(warnings) <= 3, warnings
    assert plugin.stop() == 0
