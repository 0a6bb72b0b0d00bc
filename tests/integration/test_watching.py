"""Folders are watched: what happens in them counts at once, whatever the rescan interval; and where
they cannot be watched, polls see it."""

import shutil
import subprocess

import pytest
from simnode import GPU, eventually

SELDOM = "--rescan-interval=1h"


def mirror_nodes(node):
    """The folder /dev as the machine has it, also where nodes can only be listed in dev.list."""
    listed = {line.split()[0] for line in (node.dir / "root/dev.list").read_text().splitlines()}
    for number in range(8):
        file = node.dir / f"root/dev/nvidia{number}"
        if f"/dev/nvidia{number}" in listed:
            file.touch()
        else:
            file.unlink(missing_ok=True)


class TestDeviceNodes:
    def test_a_new_node_is_a_rescan(self, node):
        node.up("dgx-h100", "--gpus", "3")
        node.sim("gpu", "--gpu", "1", "--remove")
        mirror_nodes(node)
        node.start_kubelet()
        node.start_plugin(SELDOM)
        node.wait_for(capacity=2, allocatable=2)
        node.sim("gpu", "--gpu", "1", "--add")
        mirror_nodes(node)
        node.wait_for(capacity=3, allocatable=3)
        assert len(node.events("register")) == 1

    def test_a_node_that_vanishes_is_a_rescan(self, node):
        node.up("dgx-h100", "--gpus", "3")
        mirror_nodes(node)
        node.start_kubelet()
        # Without health checks nobody else would notice.
        node.start_plugin(SELDOM, env={"DP_DISABLE_HEALTHCHECKS": "all"})
        node.wait_for(capacity=3, allocatable=3)
        node.sim("gpu", "--gpu", "1", "--remove")
        mirror_nodes(node)
        node.wait_for(capacity=3, allocatable=2)
        assert node.unhealthy() == {node.uuid(1)}


@pytest.fixture
def no_inotify(node, monkeypatch):
    """Plugins of this test run where no inotify instance can be had, until `lift()`."""
    shell = shutil.which("unshare")
    room = [shell, "--user", "--map-root-user", "sh", "-c",
            'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"', "sh"]  # fmt: skip
    if subprocess.run([*room, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("user namespaces cannot be made here")
    popen = subprocess.Popen

    def inside(command, **options):
        return popen([*room, *command] if "device-plugin" in command else command, **options)

    def lift(plugin):
        subprocess.run(
            ["nsenter", "--user", f"--target={plugin.process.pid}", "sh", "-c",
             "echo 100 > /proc/sys/user/max_inotify_instances"], check=True)  # fmt: skip

    monkeypatch.setattr(subprocess, "Popen", inside)
    return lift


def warnings(plugin):
    return [line for line in plugin.log().splitlines() if "cannot be watched" in line]


@pytest.mark.parametrize("like", ["1.34", "1.37"])
def test_without_inotify_a_kubelet_restart_is_noticed(node, no_inotify, like):
    node.up("dgx-h100", "--gpus", "2")
    node.start_kubelet(like)
    plugin = node.start_plugin()
    node.wait_for(capacity=2, allocatable=2)
    (line,) = warnings(plugin)
    assert str(node.kubelet_dir) in line and f"{node.dir}/root/dev" in line
    assert "max_user_instances" in line and "every=20s" in line
    assert plugin.metric("ndp_unwatched_folders") >= 4  # sockets, and three of devices
    for _ in range(2):
        before = len(node.events("register"))
        node.do("restart")
        eventually(lambda: len(node.events("register")) > before, "it registers with the new kubelet")
        node.wait_for(capacity=2, allocatable=2)
        node.allocate(1, pod=f"pod-{before}")
    assert len(warnings(plugin)) == 1


@pytest.mark.long
def test_what_inotify_did_not_tell_is_found_by_the_poll_that_makes_it_work_again(node, no_inotify):
    node.up("dgx-h100", "--gpus", "3")
    node.sim("gpu", "--gpu", "1", "--remove")
    node.start_kubelet()
    plugin = node.start_plugin(SELDOM, config={})
    node.wait_for(capacity=2, allocatable=2)
    assert plugin.metric("ndp_unwatched_folders") >= 5  # the configuration's, too
    node.sim("gpu", "--gpu", "1", "--add")
    mirror_nodes(node)
    node.write_config({"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}})
    no_inotify(plugin)
    node.wait_for(capacity=6, allocatable=6)
    eventually(lambda: plugin.metric("ndp_unwatched_folders") == 0, "they are watched again")
    eventually(lambda: "all folders are watched again" in plugin.log(), "that is told")
    assert len(warnings(plugin)) == 1
