"""Nothing grows over many restarts and reloads: no thread, descriptor, mapping, driver session or
memory.

NDP_SOAK_ROUNDS sets the number of kubelet restarts and of reloads (500), NDP_SOAK_DRIVERS of driver
reloads (20).
"""

import collections
import json
import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))

from simnode import GPU, Plugin, eventually, node, quick  # noqa: E402, F401

ROUNDS = int(os.environ.get("NDP_SOAK_ROUNDS", "500"))
DRIVERS = int(os.environ.get("NDP_SOAK_DRIVERS", "20"))
# gRPC makes its threads with the first calls of each kind: the baseline is taken after rounds of the
# very work that is then repeated, and from there the numbers must be the same again.
WARM_UP = 20
DRIVER_WARM_UP = 4
# The allocator keeps some of what it has had: over 500 rounds this is 2 KiB a round, and one leaked
# snapshot, list or connection is more than that.
MEMORY_KIB = 1024


class Footprint:
    """What the process has, by kind, so that a difference says what grew."""

    def __init__(self, node, plugin: Plugin) -> None:  # noqa: F811
        proc = pathlib.Path(f"/proc/{plugin.process.pid}")
        self.threads = collections.Counter((task / "comm").read_text().strip() for task in (proc / "task").iterdir())
        self.descriptors = collections.Counter(
            os.readlink(fd).split(":")[0].removeprefix(str(node.dir)) for fd in (proc / "fd").iterdir())
        self.libraries = sum("libnvidia-ml" in line for line in (proc / "maps").read_text().splitlines())
        sessions = json.loads(node.sim("sessions", "--json"))
        self.driver = sorted((s["references"], s["eventSets"]) for s in sessions)

    def grown(self, before: "Footprint") -> dict:
        """Empty where nothing is more than it was."""
        more = {
            "threads": self.threads - before.threads,
            "descriptors": self.descriptors - before.descriptors,
            "libraries": max(0, self.libraries - before.libraries),
        }
        if self.driver != [(1, 1)]:
            more["driver sessions (references, event sets)"] = self.driver
        return {kind: what for kind, what in more.items() if what}

    def __repr__(self) -> str:
        return f"{self.threads.total()} threads, {self.descriptors.total()} descriptors, {self.libraries} mappings"


def anonymous_kib(plugin: Plugin) -> int:
    status = pathlib.Path(f"/proc/{plugin.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))


def calm(node, plugin: Plugin) -> Footprint:  # noqa: F811
    """The footprint between two polls: workers end when they have nothing to do."""
    seen = []

    def twice_the_same():
        seen.append(Footprint(node, plugin))
        return len(seen) > 1 and seen[-1].driver == [(1, 1)] and not seen[-1].grown(seen[-2]) and \
            not seen[-2].grown(seen[-1])

    eventually(twice_the_same, "calm")
    return seen[-1]


class Watched:
    """A plugin that must not grow."""

    def __init__(self, node, plugin: Plugin) -> None:  # noqa: F811
        self.node, self.plugin = node, plugin
        self.before, self.memory = calm(node, plugin), anonymous_kib(plugin)

    def check(self, what: str) -> None:
        try:
            eventually(lambda: not Footprint(self.node, self.plugin).grown(self.before), "nothing has grown")
        except BaseException:
            print(f"{what}: {Footprint(self.node, self.plugin).grown(self.before)} more than {self.before}")
            raise
        memory = anonymous_kib(self.plugin)
        print(f"{what}: {self.before}, as before; {self.memory} -> {memory} KiB")
        assert memory <= self.memory + MEMORY_KIB
        assert self.node.resources()[GPU]["allocatable"] == 8


def restart_kubelet(node) -> None:  # noqa: F811
    node.do("restart")
    node.wait_for(allocatable=8, endpoints=1)


def test_kubelet_restarts(node):  # noqa: F811
    plugin = node.serve()
    for _ in range(WARM_UP):
        restart_kubelet(node)
    watched = Watched(node, plugin)
    for _ in range(ROUNDS):
        restart_kubelet(node)
    watched.check(f"{ROUNDS} kubelet restarts")


def reload_config(node, plugin: Plugin, i: int) -> None:  # noqa: F811
    """Other settings of health, of the scan and of what containers get; now and then a new session."""
    wanted = f"{20 + i % 2}s"
    node.write_config({
        "rescanInterval": wanted,
        "flags": {"plugin": {"deviceListStrategy": ["envvar", "cdi-cri"] if i % 2 else ["envvar"]}},
        "health": {"recovery": {"holdOff": f"{60 + i % 2}s"}},
    })
    eventually(lambda: plugin.status()["settings"]["rescan-interval"]["value"] == wanted, "the reload is in force")
    if i % 10 == 0:
        opened = plugin.log().count("driver session opened")
        plugin.signal(signal.SIGHUP)
        eventually(lambda: plugin.log().count("driver session opened") > opened, "the driver is opened anew")


def test_reloads(node):  # noqa: F811
    plugin = node.serve(config={"rescanInterval": "20s"})
    for i in range(WARM_UP):
        reload_config(node, plugin, i + 1)
    watched = Watched(node, plugin)
    for i in range(ROUNDS):
        reload_config(node, plugin, i + 1)
    watched.check(f"{ROUNDS} reloads")


def gone_and_back(node, plugin: Plugin, _: int) -> None:  # noqa: F811
    node.sim("driver gone")
    node.wait_for(allocatable=0)
    node.sim("driver back")
    node.wait_for(allocatable=8)


def upgraded(node, plugin: Plugin, i: int) -> None:  # noqa: F811
    version = f"575.57.{10 + i % 2}"
    node.sim("driver upgrade", "--version", version)
    eventually(lambda: plugin.status()["driver"].get("version") == version, version, limit_s=30)
    node.wait_for(allocatable=8)


def replaced(node, plugin: Plugin, _: int) -> None:  # noqa: F811
    """Another file under the same name, as a driver container that starts anew leaves it."""
    folder = node.dir / "root/usr/lib/x86_64-linux-gnu"
    library = folder / os.readlink(folder / "libnvidia-ml.so.1")
    (folder / "new").write_bytes(library.read_bytes())
    (folder / "new").rename(library)
    inode = str(library.stat().st_ino)
    maps = pathlib.Path(f"/proc/{plugin.process.pid}/maps")

    def in_use():
        used = {line.split()[4] for line in maps.read_text().splitlines() if "libnvidia-ml" in line}
        return used == {inode} and plugin.status()["driver"]["open"]

    eventually(in_use, "the new file, and it alone, is in use", limit_s=30)
    node.wait_for(allocatable=8)


@pytest.mark.parametrize("how", [gone_and_back, upgraded, replaced])
def test_driver_reloads(node, how):  # noqa: F811
    plugin = node.serve(config=quick(polling={"interval": "1s"}))
    for i in range(DRIVER_WARM_UP):
        how(node, plugin, i)
    watched = Watched(node, plugin)
    for i in range(DRIVERS):
        how(node, plugin, i)
    watched.check(f"{DRIVERS} drivers {how.__name__}")
