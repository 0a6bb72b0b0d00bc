"""Nothing grows: no thread, descriptor or memory, over many restarts and reloads.

NDP_SOAK_ROUNDS sets the number of kubelet restarts and of reloads (500), NDP_SOAK_DRIVERS of driver
sessions (20).
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))

from simnode import GPU, Plugin, eventually, node  # noqa: E402, F401

ROUNDS = int(os.environ.get("NDP_SOAK_ROUNDS", "500"))
DRIVERS = int(os.environ.get("NDP_SOAK_DRIVERS", "20"))
WARM_UP = 20
# The allocator keeps some of what it has had; a leak of one snapshot a round would be far more.
MEMORY_KIB = 1024
# gRPC and the driver workers start and end threads of their own; a leak would be one a round.
THREADS = 3
DESCRIPTORS = 6


class Footprint:
    def __init__(self, plugin: Plugin) -> None:
        proc = pathlib.Path(f"/proc/{plugin.process.pid}")
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        self.threads = int(status["Threads"])
        self.anonymous_kib = int(status["RssAnon"].split()[0])
        self.descriptors = sorted(os.readlink(fd) for fd in (proc / "fd").iterdir())

    def __repr__(self) -> str:
        return f"{self.threads} threads, {len(self.descriptors)} descriptors, {self.anonymous_kib} KiB"


def settled(plugin: Plugin, before: Footprint) -> Footprint:
    """The footprint once what was in flight has ended."""

    def calm():
        now = Footprint(plugin)
        threads_ok = now.threads <= before.threads + THREADS
        return now if threads_ok and len(now.descriptors) <= len(before.descriptors) + DESCRIPTORS else None

    try:
        return eventually(calm, "threads and descriptors are back")
    except BaseException:
        print(f"before: {before}\n  {before.descriptors}\nnow: {Footprint(plugin)}\n  {Footprint(plugin).descriptors}")
        raise


def check(plugin: Plugin, before: Footprint, what: str) -> None:
    after = settled(plugin, before)
    print(f"{what}: {before} -> {after}")
    assert after.anonymous_kib <= before.anonymous_kib + MEMORY_KIB, f"{before} -> {after}"


def restart_kubelet(node) -> None:  # noqa: F811
    node.do("restart")
    node.wait_for(allocatable=8, endpoints=1)


def test_kubelet_restarts(node):  # noqa: F811
    plugin = node.serve()
    for _ in range(WARM_UP):
        restart_kubelet(node)
    before = Footprint(plugin)
    for _ in range(ROUNDS):
        restart_kubelet(node)
    check(plugin, before, f"{ROUNDS} kubelet restarts")
    assert node.resources()[GPU]["allocatable"] == 8


def reload_config(node, plugin: Plugin, i: int) -> None:  # noqa: F811
    node.write_config({"rescanInterval": f"{20 + i % 2}s"})
    wanted = f"{20 + i % 2}s"
    eventually(lambda: plugin.status()["settings"]["rescan-interval"]["value"] == wanted, "the reload is in force")


def test_reloads(node):  # noqa: F811
    plugin = node.serve(config={"rescanInterval": "20s"})
    for i in range(WARM_UP):
        reload_config(node, plugin, i + 1)
    before = Footprint(plugin)
    for i in range(ROUNDS):
        reload_config(node, plugin, i + 1)
    check(plugin, before, f"{ROUNDS} reloads")
    assert node.resources()[GPU]["allocatable"] == 8


def test_driver_sessions(node):  # noqa: F811
    plugin = node.serve()

    def renew(i: int) -> None:
        opened = plugin.log().count("driver session opened")
        plugin.signal(1)  # SIGHUP: a fresh session
        eventually(lambda: plugin.log().count("driver session opened") > opened, f"session {i}", limit_s=30)

    for i in range(2):
        renew(i)
    before = Footprint(plugin)
    for i in range(DRIVERS):
        renew(i)
    check(plugin, before, f"{DRIVERS} driver sessions")
    assert node.resources()[GPU]["allocatable"] == 8
