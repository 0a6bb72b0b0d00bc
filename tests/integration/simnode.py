"""A simulated node for tests: the driver, the kubelet stand-in and the plugin, each a real process.

    def test_offers_every_gpu(node):
        node.up("dgx-h100")
        node.start_kubelet()
        node.start_plugin()
        node.wait_for("nvidia.com/gpu", capacity=8, allocatable=8)

Programs come from NDP_BIN_DIR. Every wait is for a state, with a generous limit; nothing sleeps for
a fixed time to "be sure".
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

BIN = pathlib.Path(os.environ.get("NDP_BIN_DIR", pathlib.Path(__file__).parents[2] / "build/dev/bin"))
GPU = "nvidia.com/gpu"
# Sanitized builds on a busy machine are slow; a state that never comes costs this once.
LIMIT_S = 60.0


def eventually(condition: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
    """The first true result of `condition`; fails the test after `limit_s` seconds."""
    end = time.monotonic() + limit_s
    pause = 0.01
    while True:
        try:
            result = condition()
        except (OSError, http.client.HTTPException, json.JSONDecodeError, LookupError) as error:
            result = None
            last = error
        else:
            last = result
        if result:
            return result
        if time.monotonic() > end:
            pytest.fail(f"did not happen within {limit_s} s: {what} (last: {last!r})")
        time.sleep(pause)
        pause = min(pause * 1.4, 0.1)  # most conditions start a process, and others wait for the processor


class UnixHttp(http.client.HTTPConnection):
    def __init__(self, path: pathlib.Path) -> None:
        super().__init__("ndp", timeout=10)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(str(self.path))


class Plugin:
    """One running `ndp device-plugin`."""

    def __init__(self, node: "Node", args: list[str], env: dict[str, str], name: str, listen: bool,
                 driver_root: str) -> None:
        self.web = node.dir / f"{name}.web"
        self.log_path = node.dir / f"{name}.log"
        command = [
            str(BIN / "ndp"), "device-plugin",
            f"--driver-root-ctr-path={node.dir / 'root' / driver_root}", f"--host-root={node.dir / 'root'}",
            f"--kubelet-socket={node.kubelet_dir / 'kubelet.sock'}",
            *([f"--listen-address={self.web}"] if listen else []), f"--cdi-spec-dir={node.dir / 'cdi'}", *args,
        ]  # fmt: skip
        self.command = command
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=dict(os.environ) | env
            )

    def get(self, path: str) -> tuple[int, str]:
        connection = UnixHttp(self.web)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def status(self) -> dict[str, Any]:
        code, text = self.get("/status.json")
        assert code == 200, text
        return json.loads(text)

    def verdicts(self) -> dict[str, dict[str, Any]]:
        """What health says of every GPU and MIG device, by UUID."""
        return {entry["device"]: entry for entry in self.status()["health"]["devices"]}

    def verdict(self, uuid: str) -> dict[str, Any]:
        return self.verdicts()[uuid]

    def until_healthy(self, uuid: str, limit_s: float = LIMIT_S) -> dict[str, Any]:
        return eventually(lambda: self._when(uuid, "Healthy"), f"{uuid} is Healthy", limit_s)

    def until_unhealthy(self, uuid: str, *words: str) -> dict[str, Any]:
        """Waits until it is Unhealthy for a reason with these words."""
        return eventually(lambda: self._when(uuid, "Unhealthy", *words), f"{uuid} is Unhealthy: {words}")

    def _when(self, uuid: str, verdict: str, *words: str) -> dict[str, Any] | None:
        now = self.verdict(uuid)
        return now if now["verdict"] == verdict and all(w in now.get("reason", "") for w in words) else None

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name with those labels."""
        total, found = 0.0, False
        for line in self.get("/metrics")[1].splitlines():
            matched = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if not matched or matched[1] != name:
                continue
            given = dict(re.findall(r'(\w+)="([^"]*)"', matched[2] or ""))
            if all(given.get(key) == value for key, value in labels.items()):
                total, found = total + float(matched[3]), True
        if not found:
            raise LookupError(f"no sample {name} {labels}")
        return total

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def device(self, id_part: str, resource: str = GPU) -> dict[str, Any]:
        """The listed device whose id contains `id_part`, as /status.json has it."""
        for entry in self.status()["resources"]:
            if entry["name"] == resource:
                for device in entry["devices"]:
                    if id_part in device["id"]:
                        return device
        raise AssertionError(f"{resource} has no device {id_part}")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, limit_s: float = LIMIT_S) -> int:
        """SIGTERM; returns the exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(limit_s)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def open_files(plugin: Plugin) -> list[str]:
    """What its descriptors are of; one that is closed meanwhile is passed over."""
    found = []
    for fd in os.listdir(f"/proc/{plugin.process.pid}/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/{plugin.process.pid}/fd/{fd}"))
    return found


class Node:
    def __init__(self, folder: pathlib.Path) -> None:
        self.dir = folder
        self.kubelet_dir = folder / "kubelet"
        self.kubelet: subprocess.Popen | None = None
        self.plugins: list[Plugin] = []
        self.uuids: list[str] = []

    # -- the machine ------------------------------------------------------------------------------
    def sim(self, command: str, *args: str, ok: bool = True) -> str:
        done = subprocess.run(
            [str(BIN / "ndp-sim"), *command.split(), "--dir", str(self.dir), *args],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if ok:
            assert done.returncode == 0, f"ndp-sim {command} {args}: {done.stderr}{done.stdout}"
        return done.stdout + done.stderr

    def up(self, profile: str = "dgx-h100", *args: str) -> None:
        self.sim("up", "--profile", profile, *args)
        self.uuids = []

    def gpus(self) -> list[dict[str, Any]]:
        """The machine's GPUs by their number at the start, each with its MIG devices."""
        return json.loads(self.sim("status", "--json"))["gpus"]

    def partition(self, gpu: int, profiles: str) -> None:
        """MIG mode and a layout, before any client has the GPU open."""
        self.sim("mig", "--gpu", str(gpu), "--mode", "on", "--profiles", profiles)

    def add_device(self, path: str, major: int, minor: int) -> None:
        """One more device node, where nodes cannot be made in dev.list alone."""
        with (self.dir / "root/dev.list").open("a") as devices:
            devices.write(f"{path} c {major} {minor} 0666 0\n")
        node = self.dir / f"root{path}"
        node.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(major, minor))

    def remove_device(self, path: str) -> None:
        listed = self.dir / "root/dev.list"
        listed.write_text("".join(
            line for line in listed.read_text().splitlines(True) if line.split()[0] != path))
        (self.dir / f"root{path}").unlink(missing_ok=True)

    def cdi(self, device_class: str = "gpu") -> dict[str, Any] | None:
        """A CDI file that the plugin has written, if it has."""
        file = self.cdi_file(device_class)
        return json.loads(file.read_text()) if file.exists() else None

    def cdi_file(self, device_class: str = "gpu") -> pathlib.Path:
        return self.dir / "cdi" / f"k8s.device-plugin.nvidia.com-{device_class}.json"

    def calls(self) -> dict[str, int]:
        """How often each NVML function was called, by all clients."""
        totals: dict[str, int] = {}
        for client in json.loads(self.sim("calls", "--json"))["clients"]:
            for name, count in client["calls"].items():
                totals[name] = totals.get(name, 0) + count
        return totals

    def uuid(self, gpu: int) -> str:
        """Of the GPU with that number at the start; it keeps its number."""
        if gpu >= len(self.uuids):
            self.uuids = [entry["uuid"] for entry in self.gpus()]
        return self.uuids[gpu]

    def xid(self, gpu: int | str, xid: int, *args: str) -> None:
        """Several GPUs, "0,1", have it at one stroke."""
        self.sim("fault", "--gpu", str(gpu), "--xid", str(xid), *args)

    def ndp(self, *args: str, ok: bool = True) -> str:
        """A command to the running instances."""
        done = subprocess.run(
            [str(BIN / "ndp"), *args, f"--kubelet-socket={self.kubelet_dir / 'kubelet.sock'}"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if ok:
            assert done.returncode == 0, f"ndp {args}: {done.stderr}{done.stdout}"
        return done.stdout + done.stderr

    # -- the kubelet ------------------------------------------------------------------------------
    def start_kubelet(self, like: str = "1.37", *args: str) -> None:
        log = (self.dir / "kubelet.log").open("ab")
        self.kubelet = subprocess.Popen(
            [str(BIN / "ndp-sim"), "kubelet", "--dir", str(self.dir), "--like", like, *args],
            stdin=subprocess.PIPE, stdout=log, stderr=log,
        )  # fmt: skip
        eventually(lambda: self.ask("status"), "the kubelet stand-in answers")

    def ask(self, command: str, **fields: Any) -> dict[str, Any]:
        """One command to the stand-in; its answer, whether ok or not."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(LIMIT_S + 30)
            connection.connect(str(self.kubelet_dir / "control.sock"))
            connection.sendall((json.dumps({"command": command, **fields}) + "\n").encode())
            text = connection.makefile("r").readline()
        return json.loads(text)

    def do(self, command: str, **fields: Any) -> dict[str, Any]:
        answer = self.ask(command, **fields)
        assert answer["ok"], answer
        return answer

    def resources(self) -> dict[str, Any]:
        return self.do("status")["resources"]

    def events(self, event: str, **wanted: Any) -> list[dict[str, Any]]:
        """What the stand-in has reported of this kind, oldest first."""
        found = []
        for line in (self.dir / "kubelet.log").read_text().splitlines():
            entry = json.loads(line) if line.startswith("{") else {}
            if entry.get("event") == event and all(entry.get(k) == v for k, v in wanted.items()):
                found.append(entry)
        return found

    def unhealthy(self, resource: str = GPU) -> set[str]:
        """The ids that the kubelet has as Unhealthy."""
        return {d["id"] for d in self.resources()[resource]["devices"] if d["health"] == "Unhealthy"}

    def lists(self, resource: str = GPU) -> list[dict[str, Any]]:
        """Every list that the kubelet has got."""
        return self.events("list", resource=resource)

    @staticmethod
    def seconds(event: dict[str, Any]) -> float:
        """When the kubelet had it, by the clock of time.monotonic()."""
        return event["us"] / 1e6

    def wait_for(self, resource: str = GPU, **wanted: int) -> dict[str, Any]:
        """Waits until the kubelet counts so: capacity=, allocatable=, endpoints=."""
        return self.do("wait", resource=resource, timeout_ms=int(LIMIT_S * 1000), **wanted)

    def allocate(self, count: int, resource: str = GPU, **fields: Any) -> dict[str, Any]:
        return self.do("allocate", resource=resource, count=count, **fields)

    # -- the plugin -------------------------------------------------------------------------------
    def start_plugin(self, *args: str, config: dict[str, Any] | None = None, env: dict[str, str] | None = None,
                     name: str = "", listen: bool = True, driver_root: str = "") -> Plugin:
        extra = list(args)
        if config is not None:
            extra.append(f"--config-file={self.write_config(config)}")
        plugin = Plugin(self, extra, env or {}, name or f"plugin{len(self.plugins)}", listen, driver_root)
        self.plugins.append(plugin)
        return plugin

    def write_config(self, config: dict[str, Any] | str) -> pathlib.Path:
        """By rename, as editors and kubelets do."""
        path = self.dir / "config.yaml"
        text = config if isinstance(config, str) else yaml.safe_dump({"version": "v1"} | config)
        (self.dir / "config.new").write_text(text)
        (self.dir / "config.new").rename(path)
        return path

    def serve(self, profile: str = "dgx-h100", capacity: int = 8, **plugin: Any) -> Plugin:
        """The whole node, with the plugin registered."""
        self.up(profile)
        self.start_kubelet()
        started = self.start_plugin(**plugin)
        self.wait_for(capacity=capacity, allocatable=capacity)
        return started

    def waits(self) -> int:
        """How often events have been waited for."""
        return self.calls().get("nvmlEventSetWait_v2", 0)

    def await_events(self, more_than: int = 0) -> None:
        """Until the driver's events are waited for (again): earlier ones are lost, as on real nodes."""
        eventually(lambda: self.waits() > more_than, "events are waited for")

    def close(self) -> None:
        for plugin in self.plugins:
            if plugin.process.poll() is None:
                plugin.kill()
        if self.kubelet is not None and self.kubelet.poll() is None:
            self.kubelet.kill()
            self.kubelet.wait()


def quick(**health: Any) -> dict[str, Any]:
    """A configuration in which health is quick: all of it settings that users have, too."""
    settings = {
        "grace": "300ms",
        "watchdog": "1s",
        "polling": {"interval": "100ms"},
        "recovery": {"holdOff": "200ms", "probeInterval": "50ms"},
    }
    for key, value in health.items():
        settings[key] = settings[key] | value if isinstance(value, dict) and key in settings else value
    return {"rescanInterval": "500ms", "health": settings}


# Health settings that make recovery quick: by configuration, as everywhere.
QUICK_RECOVERY = {"health": {"recovery": {"holdOff": "200ms", "probeInterval": "50ms"}}}


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Node]:
    # Unix socket paths are short: pytest's folders are not.
    import tempfile

    folder = pathlib.Path(tempfile.mkdtemp(prefix="ndp-"))
    made = Node(folder)
    yield made
    made.close()
    failed = getattr(request.node, "failed", False)
    if failed:
        for log in sorted(folder.glob("*.log")):
            print(f"---- {log.name}\n{log.read_text(errors='replace')[-6000:]}")
    for plugin in made.plugins:
        for line in plugin.log().splitlines():
            assert "ERROR: AddressSanitizer" not in line and "runtime error:" not in line, line
    subprocess.run(["rm", "-rf", str(folder)], check=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    if outcome.get_result().failed:
        item.failed = True


__all__ = ["BIN", "GPU", "LIMIT_S", "QUICK_RECOVERY", "Node", "Plugin", "eventually", "open_files", "quick", "signal"]
