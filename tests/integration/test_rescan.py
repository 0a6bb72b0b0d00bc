"""Drivers and GPUs that come and go while the plugin runs, and what pods hold meanwhile."""

import json

import pytest
from simnode import GPU, QUICK_RECOVERY, eventually

QUICK = "--rescan-interval=100ms"


def start(node, *args, gpus=4):
    node.up("dgx-h100", "--gpus", str(gpus))
    node.start_kubelet()
    plugin = node.start_plugin(QUICK, *args, config=QUICK_RECOVERY)
    node.wait_for(capacity=gpus, allocatable=gpus)
    return plugin


def test_a_driver_that_comes_late_is_found(node):
    node.up("dgx-h100", "--gpus", "2")
    node.sim("driver gone")
    node.start_kubelet()
    plugin = node.start_plugin("--fail-on-init-error=false")
    eventually(lambda: "no usable NVIDIA driver" in plugin.log(), "it waits")
    assert plugin.get("/livez")[0] == 200 and plugin.get("/readyz")[0] == 200
    assert GPU not in node.resources()
    node.sim("driver back")
    node.wait_for(capacity=2, allocatable=2)


def test_a_driver_whose_files_come_late_is_found(node):
    """An operator's driver container fills the driver root after the plugin has started."""
    node.up("dgx-h100", "--gpus", "2")
    library = next((node.dir / "root/usr/lib").glob("*-linux-gnu"))
    away = node.dir / "away"
    library.rename(away)
    node.start_kubelet()
    plugin = node.start_plugin("--fail-on-init-error=false")
    eventually(lambda: "libnvidia-ml.so.1" in plugin.log(), "the paths tried are told")
    away.rename(library)
    node.wait_for(capacity=2, allocatable=2)


def test_without_a_driver_the_end_names_every_path_and_the_loaders_words(node):
    node.up("none")
    plugin = node.start_plugin()
    assert plugin.process.wait(20) == 1
    line = next(line for line in plugin.log().splitlines() if " E " in line)
    for folder in ("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib64",
                   "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"):
        assert f"{node.dir}/root/{folder}/libnvidia-ml.so.1" in line
    assert "libnvidia-ml.so.1: cannot open shared object file" in line
    assert "fail-on-init-error" in line


def test_a_library_that_cannot_be_read_is_told_with_the_loaders_words(node):
    node.up("dgx-h100", "--gpus", "1")
    for library in (node.dir / "root").rglob("libnvidia-ml.so*"):
        if not library.is_symlink():
            library.write_bytes(b"no library at all\n" * 100)
    plugin = node.start_plugin()
    assert plugin.process.wait(20) == 1
    assert "invalid ELF header" in plugin.log() and f"{node.dir}/root" in plugin.log()


def test_a_gpu_that_goes_stays_listed_as_lost_and_comes_back(node):
    plugin = start(node)
    node.sim("gpu", "--gpu", "2", "--remove")
    node.wait_for(capacity=4, allocatable=3)
    device = plugin.device(node.gpus()[2]["uuid"])
    assert device["health"] == "Unhealthy"
    # The wait for events or the next look, whichever comes first.
    assert any(words in device["reason"] for words in ("lost", "does not list")), device["reason"]
    node.sim("gpu", "--gpu", "2", "--add")
    node.wait_for(capacity=4, allocatable=4)


def test_a_gpu_that_is_new_comes_in(node):
    node.up("dgx-h100", "--gpus", "3")
    node.sim("gpu", "--gpu", "1", "--remove")
    node.start_kubelet()
    node.start_plugin(QUICK)
    node.wait_for(capacity=2, allocatable=2)
    node.sim("gpu", "--gpu", "1", "--add")
    node.wait_for(capacity=3, allocatable=3)
    assert len(node.events("register")) == 1


def test_gpus_that_move_up_while_one_is_slow_are_not_mixed_up(node):
    """Another GPU gets the place of one that is slow: neither is listed twice, nor under the other's name."""
    plugin = start(node)
    uuids = [gpu["uuid"] for gpu in node.gpus()]
    node.sim("function", "--gpu", "3", "--function", "nvmlDeviceGetUUID", "--latency", "3s")
    node.sim("gpu", "--gpu", "0", "--remove")
    node.wait_for(capacity=4, allocatable=3)
    eventually(lambda: [g["index"] for g in plugin.status()["gpus"] if g["uuid"] == uuids[2]] == [1], "read anew")
    node.sim("function", "--gpu", "3", "--function", "nvmlDeviceGetUUID", "--ok")
    eventually(lambda: [g["index"] for g in plugin.status()["gpus"] if g["uuid"] == uuids[3]] == [2], "all read")
    node.wait_for(capacity=4, allocatable=3)
    for event in node.events("list"):
        assert sorted(d["id"] for d in event["devices"]) == sorted(uuids)


def test_what_a_pod_holds_is_listed_from_the_first_list_on_though_it_is_gone(node):
    """After a restart of everything: the kubelet would crash at a list without it."""
    plugin = start(node)
    held = node.allocate(4, pod="all")["devices"]
    plugin.stop()
    node.do("stop")
    node.sim("gpu", "--gpu", "1", "--remove")
    node.do("start")
    lists = len(node.events("list"))
    node.start_plugin(QUICK)
    node.wait_for(capacity=4, allocatable=3)
    first = node.events("list")[lists]["devices"]
    assert sorted(d["id"] for d in first) == sorted(held)
    assert [d["health"] for d in first if d["id"] == node.gpus()[1]["uuid"]] == ["Unhealthy"]


def test_without_a_driver_what_pods_hold_is_listed_unhealthy(node):
    plugin = start(node, gpus=2)
    held = node.allocate(1, pod="one")["devices"][0]
    plugin.stop()
    node.sim("driver gone")
    node.start_plugin(QUICK, "--fail-on-init-error=false")
    node.wait_for(capacity=1, allocatable=0)
    assert node.resources()[GPU]["devices"][0]["id"] == held
    node.sim("driver back")
    node.wait_for(capacity=2, allocatable=2)


@pytest.mark.parametrize("text", ["", "not json", '{"Data": 3}', '{"Data": {"PodDeviceEntries": [{}]}}'])
def test_a_checkpoint_that_cannot_be_read_is_told_and_harms_nothing(node, text):
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet()
    node.do("stop")
    (node.kubelet_dir / "kubelet_internal_checkpoint").write_text(text)
    plugin = node.start_plugin()
    eventually(lambda: "heldDevicesError" in plugin.status(), "the file's error is told")
    assert "kubelet_internal_checkpoint" in plugin.log()
    eventually(lambda: plugin.status()["resources"][0]["healthy"] == 2, "the GPUs are served")
    (node.kubelet_dir / "kubelet_internal_checkpoint").write_text(json.dumps({"Data": {"PodDeviceEntries": None}}))
    eventually(lambda: "heldDevicesError" not in plugin.status(), "a good file ends it")
