"""The driver goes, comes back, or is another one: said plainly, never offered as if it were there."""

import json
import os

import pytest
from simnode import GPU, eventually, quick


def calls_to_init(node):
    return sum(count for name, count in node.calls().items() if name.startswith("nvmlInit"))


def until_heard(node, gpu):
    """Its events are watched again. What comes while a session is opened anew is lost, as on real nodes."""

    def heard():
        node.xid(gpu, 79)
        return node.unhealthy() == {node.uuid(gpu)}

    eventually(heard, f"an XID of GPU {gpu} is heard")


@pytest.mark.parametrize("status", [1, 9])
def test_a_driver_that_is_gone_takes_every_device_with_it(node, status):
    plugin = node.serve(config=quick())
    node.await_events()
    node.sim("driver gone", "--status", str(status))
    node.wait_for(capacity=8, allocatable=0)
    assert len(node.unhealthy()) == 8
    assert plugin.get("/livez")[0] == 200 and plugin.get("/readyz")[0] == 200
    told = plugin.status()
    assert told["health"]["driver"]["available"] is False and told["health"]["driver"]["graceOver"] is True
    assert told["health"]["driver"]["reason"] and told["driver"]["error"]
    assert all(v["class"] == "driver" and "driver cannot be reached" in v["reason"]
               for v in told["health"]["devices"])
    assert plugin.metric("ndp_driver_available") == 0 and plugin.metric("ndp_driver_up") == 0
    assert plugin.metric("ndp_devices", resource=GPU) == 8
    assert plugin.metric("ndp_devices_healthy", resource=GPU) == 0
    assert "the driver cannot be reached" in plugin.log()
    node.sim("driver back")
    node.wait_for(capacity=8, allocatable=8)
    eventually(lambda: plugin.metric("ndp_driver_available") == 1, "the metric follows")
    assert plugin.status()["health"]["driver"] == {"available": True}
    assert plugin.process.poll() is None
    until_heard(node, 2)


def test_a_dead_session_that_is_slow_to_close_is_told_of_all_the_same(node):
    plugin = node.serve(config=quick())
    node.await_events()
    node.sim("function", "--function", "nvmlShutdown", "--hang")
    node.sim("driver gone", "--status", "9")
    node.wait_for(capacity=8, allocatable=0)
    told = plugin.status()["driver"]
    assert told["open"] is False and told["error"]
    assert plugin.metric("ndp_driver_up") == 0
    node.sim("function", "--function", "nvmlShutdown", "--ok")
    node.sim("driver back")
    node.wait_for(capacity=8, allocatable=8)
    eventually(lambda: "error" not in plugin.status()["driver"], "nothing is wrong any more")


def test_within_the_grace_period_the_lists_stay(node):
    plugin = node.serve(config=quick(grace="1h"))
    node.await_events()
    node.sim("driver gone")
    eventually(lambda: plugin.status()["health"]["driver"]["available"] is False, "seen")
    assert plugin.status()["health"]["driver"]["graceOver"] is False
    assert node.resources()[GPU]["allocatable"] == 8
    node.sim("driver back")
    eventually(lambda: plugin.status()["health"]["driver"]["available"], "forgiven")
    assert len(node.lists()) == 1, "the kubelet has not heard of it"


def test_init_that_fails_afterwards_is_tried_again(node):
    plugin = node.serve(config=quick())
    node.await_events()
    node.sim("init", "--error", "unknown")
    node.sim("driver gone")
    node.sim("driver back")  # the old session stays dead, a new one is refused
    node.wait_for(capacity=8, allocatable=0)
    tries = calls_to_init(node)
    eventually(lambda: calls_to_init(node) > tries, "tried again")
    assert plugin.get("/livez")[0] == 200 and plugin.get("/readyz")[0] == 200
    node.sim("init", "--ok")
    node.wait_for(capacity=8, allocatable=8)


def test_an_upgraded_driver_is_loaded_anew(node):
    plugin = node.serve(config=quick())
    node.await_events()
    before = os.readlink(next(
        p for p in (node.dir / "root/usr/lib/x86_64-linux-gnu").glob("libnvidia-ml.so.1")))
    node.sim("driver upgrade", "--version", "575.57.08")
    eventually(lambda: plugin.status()["driver"].get("version") == "575.57.08", "the new library is in use")
    node.wait_for(capacity=8, allocatable=8)
    mapped = open(f"/proc/{plugin.process.pid}/maps").read()
    assert "libnvidia-ml.so.575.57.08" in mapped and os.path.basename(before) not in mapped
    until_heard(node, 0)


def test_a_library_replaced_under_the_same_name_is_loaded_anew(node):
    plugin = node.serve(config=quick())
    node.await_events()
    opened = plugin.log().count("driver session opened")
    folder = node.dir / "root/usr/lib/x86_64-linux-gnu"
    library = folder / os.readlink(folder / "libnvidia-ml.so.1")
    copy = folder / "new"
    copy.write_bytes(library.read_bytes())
    copy.rename(library)
    eventually(lambda: plugin.log().count("driver session opened") > opened, "a new session")
    inode = library.stat().st_ino
    eventually(lambda: any(line.split()[4] == str(inode)
                           for line in open(f"/proc/{plugin.process.pid}/maps") if "libnvidia-ml" in line),
               "on the new file")
    node.wait_for(capacity=8, allocatable=8)


def pod_like(node):
    """What a container that a runtime injected the driver into looks like: an overlay as its root,
    libraries found by the loader, a /dev of its own."""
    proc = node.dir / "root/proc/self"
    proc.mkdir(parents=True)
    (proc / "mountinfo").write_text(
        "36 35 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/a\n"
        "37 36 0:51 / /dev rw,nosuid - tmpfs tmpfs rw\n")
    return ["--driver-root-ctr-path=/"], {
        "LD_LIBRARY_PATH": str(node.dir / "root/usr/lib/x86_64-linux-gnu"), "NVIDIA_VISIBLE_DEVICES": "all"}


def test_stale_injected_libraries_end_the_program_with_the_reason(node):
    node.up()
    node.start_kubelet()
    args, env = pod_like(node)
    plugin = node.start_plugin(*args, config=quick(), env=env)
    eventually(lambda: plugin.status()["driver"]["open"], "the injected library is in use")
    node.sim("driver gone")
    assert plugin.process.wait(20) == 1
    last = [line for line in plugin.log().splitlines() if " E " in line][-1]
    assert "gone stale" in last and "libnvidia-ml" in last and "why=" in last.replace('"why":', "why=")


def test_the_exit_can_be_turned_off(node):
    node.up()
    node.start_kubelet()
    args, env = pod_like(node)
    plugin = node.start_plugin(*args, "--exit-on-stale-injection=false", config=quick(), env=env)
    eventually(lambda: plugin.status()["driver"]["open"], "the injected library is in use")
    node.sim("driver gone")
    eventually(lambda: plugin.status()["health"]["driver"].get("graceOver"), "the grace period is over")
    assert plugin.get("/livez")[0] == 200
    node.sim("driver back")
    eventually(lambda: plugin.status()["health"]["driver"]["available"], "and it recovers in place")


def test_a_host_mount_never_ends_it(node):
    plugin = node.serve(config=quick())
    node.await_events()
    (node.dir / "root/proc/self").mkdir(parents=True)
    (node.dir / "root/proc/self/mountinfo").write_text("36 35 0:50 / / rw - overlay overlay rw\n")
    node.sim("driver gone")
    node.wait_for(allocatable=0)
    node.sim("driver back")
    node.wait_for(allocatable=8)
    assert plugin.process.poll() is None


def test_a_driver_that_comes_late_is_waited_for(node):
    node.up()
    node.sim("driver gone", "--files")
    node.start_kubelet()
    plugin = node.start_plugin("--fail-on-init-error=false", config=quick())
    eventually(lambda: plugin.get("/readyz")[0] == 200, "ready although there is nothing to offer")
    node.sim("driver back")
    node.wait_for(capacity=8, allocatable=8)
    assert json.loads(node.ndp("health", "--json"))["driver"]["available"] is True
