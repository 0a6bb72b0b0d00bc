"""A node with a real kubelet and a real containerd on a simulated machine.

What the plugin's side needs (the simulator, starting and stopping plugins) is the integration
tests' own; what differs is that the kubelet and the containers are real.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import urllib.request
from typing import Any

import container
import image
import yaml
from driver import DriverRoot
from simnode import GPU, Node, Plugin, eventually

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "build/e2e/bin"
LOGS = ROOT / "build/e2e/logs"
KUBELET_ROOT = pathlib.Path("/var/lib/kubelet")
CONTAINERD = "/run/containerd/containerd.sock"
# Ports of the tests' own network namespace: nobody else can have taken them.
READ_ONLY_PORT = 10255
# A container start takes two seconds here; a machine that is busy, more.
POD_LIMIT_S = 60.0


class Pod:
    """A static pod: a file in the kubelet's folder."""

    def __init__(self, node: RealNode, name: str, spec: dict[str, Any]) -> None:
        self.node = node
        self.name = name
        self.full_name = f"{name}-{node.name}"
        self.path = node.manifests / f"{name}.yaml"
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
        # The kubelet reads the folder on every event; it skips names that start with a dot.
        hidden = node.manifests / f".{name}"
        hidden.write_text(yaml.safe_dump(manifest))
        hidden.rename(self.path)

    def object(self) -> dict[str, Any]:
        """The pod as the kubelet has it."""
        for pod in self.node.kubelet_pods():
            if pod["metadata"]["name"] == self.full_name:
                return pod
        raise LookupError(f"the kubelet does not know pod {self.full_name}")

    def status(self) -> dict[str, Any]:
        return self.object()["status"]

    def container_status(self, name: str = "main") -> dict[str, Any]:
        status = self.status()
        for entry in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
            if entry["name"] == name:
                return entry
        raise LookupError(f"{self.full_name} has no status of container {name}")

    def running(self) -> Pod:
        """Waits until every container runs."""

        def all_run() -> bool:
            status = self.status()
            assert status.get("phase") != "Failed", status
            containers = status.get("containerStatuses", [])
            return bool(containers) and all("running" in entry.get("state", {}) for entry in containers)

        eventually(all_run, f"pod {self.name} runs", POD_LIMIT_S)
        return self

    def restarted(self, count: int) -> None:
        """Waits until the container runs for the (count + 1)th time."""

        def again() -> bool:
            status = self.container_status()
            return status["restartCount"] == count and "running" in status["state"]

        eventually(again, f"pod {self.name} restarts", POD_LIMIT_S)

    def resource_health(self, resource: str, name: str = "main") -> dict[str, str]:
        """Device id to health, as `allocatedResourcesStatus` has it."""
        for entry in self.container_status(name).get("allocatedResourcesStatus", []):
            if entry["name"] == resource:
                return {device["resourceID"]: device.get("health", "") for device in entry["resources"]}
        raise LookupError(f"{self.full_name} has no status of {resource}")

    def view(self, name: str = "main") -> container.View:
        id = self.container_status(name)["containerID"].removeprefix("containerd://")
        state = pathlib.Path("/run/containerd/io.containerd.runtime.v2.task/k8s.io") / id
        pid = int((state / "init.pid").read_text())
        # "Running" is said a moment before the runtime's process becomes the container's.
        comm = pathlib.Path(f"/proc/{pid}/comm")
        eventually(lambda: not comm.read_text().startswith("runc"), f"pod {self.name} runs its own program")
        return container.View(id, pid)

    def remove(self, wait: bool = True) -> None:
        self.path.unlink(missing_ok=True)
        if wait:
            self.gone()

    def gone(self) -> None:
        """Waits until the kubelet has let go of the pod and its devices."""

        def is_gone() -> bool:
            return all(pod["metadata"]["name"] != self.full_name for pod in self.node.kubelet_pods())

        eventually(is_gone, f"pod {self.name} is gone", POD_LIMIT_S)


class RealNode(Node):
    name = "e2e"

    def __init__(self, folder: pathlib.Path, cgroup: str) -> None:
        super().__init__(folder)
        self.kubelet_dir = KUBELET_ROOT / "device-plugins"
        self.manifests = folder / "manifests"
        self.manifests.mkdir()
        self.cgroup = cgroup
        self.containerd: subprocess.Popen | None = None
        self.pods: list[Pod] = []
        self.made = 0

    # -- programs ---------------------------------------------------------------------------------
    def _spawn(self, name: str, *args: str) -> subprocess.Popen:
        env = dict(os.environ) | {"PATH": f"{PROGRAMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                  "NVIDIA_CTK_CONFIG_FILE_PATH": str(self.dir / "nvidia.toml")}
        with (self.dir / f"{name}.log").open("ab") as log:
            return subprocess.Popen([str(PROGRAMS / name), *args], stdout=log, stderr=log,
                                    stdin=subprocess.DEVNULL, env=env)

    def ctr(self, *args: str) -> str:
        done = subprocess.run([str(PROGRAMS / "ctr"), "--address", CONTAINERD, "-n", "k8s.io", *args],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"ctr {args}: {done.stderr}"
        return done.stdout

    def start_containerd(self, runtime: str = "runc") -> None:
        """With `runtime` for every container: runc, or NVIDIA's (nvidia-container-runtime)."""
        config = self.dir / "containerd.toml"
        config.write_text(f"""version = 3
root = "{self.dir}/containerd"
state = "/run/containerd"
[grpc]
address = "{CONTAINERD}"
[plugins.'io.containerd.cri.v1.images']
snapshotter = "native"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{image.NAME}"
[plugins.'io.containerd.cri.v1.runtime']
# Without CAP_SYS_RESOURCE runc cannot lower a score.
restrict_oom_score_adj = true
# Its profile would be loaded into the host's kernel, and stay there.
disable_apparmor = true
enable_cdi = true
cdi_spec_dirs = ["{self.dir}/cdi"]
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = "{runtime}"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
BinaryName = "{PROGRAMS}/nvidia-container-runtime"
""")
        (self.dir / "nvidia.toml").write_text(f"""
accept-nvidia-visible-devices-envvar-when-unprivileged = true
accept-nvidia-visible-devices-as-volume-mounts = true
[nvidia-container-cli]
root = "{self.dir}/root"
[nvidia-container-runtime]
mode = "auto"
runtimes = ["runc"]
debug = "{self.dir}/nvidia-container-runtime.log"
[nvidia-ctk]
path = "{PROGRAMS}/nvidia-cdi-hook"
""")
        self.containerd = self._spawn("containerd", "--config", str(config))
        eventually(lambda: self.ctr_ready(), "containerd answers")
        if not self.ctr("images", "ls", "-q"):
            self.ctr("images", "import", "--local", "--snapshotter", "native", str(image.make(self.dir)))


    def stop_containerd(self) -> None:
        """Containers live on."""
        assert self.containerd is not None
        self.containerd.terminate()
        self.containerd.wait(30)

    def ctr_ready(self) -> bool:
        assert self.containerd is not None and self.containerd.poll() is None, "containerd ended"
        done = subprocess.run([str(PROGRAMS / "ctr"), "--address", CONTAINERD, "version"], capture_output=True, check=False)
        return done.returncode == 0

    def start_kubelet(self, like: str = "", *args: str) -> None:
        config = self.dir / "kubelet.yaml"
        config.write_text(yaml.safe_dump({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "failCgroupV1": False, "failSwapOn": False,
            "cgroupDriver": "cgroupfs", "cgroupRoot": self.cgroup, "enforceNodeAllocatable": [],
            "staticPodPath": str(self.manifests), "readOnlyPort": READ_ONLY_PORT,
            "containerRuntimeEndpoint": f"unix://{CONTAINERD}",
            "volumePluginDir": str(self.dir / "volume-plugins"),
            "resolvConf": "", "localStorageCapacityIsolation": False,
            # A container that ends a second time is otherwise made anew only after 10 s.
            "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {f"{what}.{how}": "0%" for what, how in [
                ("memory", "available"), ("nodefs", "available"), ("nodefs", "inodesFree"),
                ("imagefs", "available"), ("imagefs", "inodesFree")]},
        }))  # fmt: skip
        self.kubelet = self._spawn("kubelet", "--config", str(config), f"--hostname-override={self.name}", "--v=2", *args)
        eventually(lambda: self.kubelet_pods() is not None, "the kubelet answers")

    def stop_kubelet(self) -> None:
        assert self.kubelet is not None
        self.kubelet.terminate()
        self.kubelet.wait(30)

    def kubelet_pods(self) -> list[dict[str, Any]]:
        assert self.kubelet is not None and self.kubelet.poll() is None, "the kubelet ended"
        with urllib.request.urlopen(f"http://127.0.0.1:{READ_ONLY_PORT}/pods", timeout=10) as answer:
            return json.load(answer)["items"] or []

    def up(self, profile: str = "dgx-h100", *args: str) -> None:
        super().up(profile, *args)
        self.driver = DriverRoot(self.dir / "root")

    def gpus(self) -> list[dict[str, Any]]:
        """The machine's GPUs with their MIG devices, as the simulator has them."""
        return json.loads(self.sim("status", "--json"))["gpus"]

    def held(self, pod: Pod, resource: str = GPU) -> list[dict[str, Any]]:
        """The GPUs that the kubelet gave a pod, by index."""
        ids = {id.split("::")[0] for id in pod.resource_health(resource)}
        return [gpu for gpu in self.gpus() if gpu["uuid"] in ids]

    def held_mig(self, pod: Pod, resource: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The MIG devices that the kubelet gave a pod, each with its parent."""
        ids = {id.split("::")[0] for id in pod.resource_health(resource)}
        return [(gpu, mig) for gpu in self.gpus() for mig in gpu.get("mig", []) if mig["uuid"] in ids]

    def partition(self, gpu: int, profiles: str) -> None:
        self.sim("mig", "--gpu", str(gpu), "--mode", "on")
        self.sim("mig", "--gpu", str(gpu), "--profiles", profiles)

    def advertised(self) -> dict[str, list[str]]:
        """What the kubelet last wrote down of each resource's healthy devices."""
        data = json.loads((self.kubelet_dir / "kubelet_internal_checkpoint").read_text())["Data"]
        return {name: sorted(ids) for name, ids in (data["RegisteredDevices"] or {}).items()}

    # -- what tests do ----------------------------------------------------------------------------
    def machine_args(self, roots: list[str] | None = None) -> list[str]:
        """What a plugin must be told of this machine."""
        return [f"--nvidia-cdi-hook-path={PROGRAMS / 'nvidia-cdi-hook'}",
                *(roots or [f"--driver-root={self.dir / 'root'}"])]

    def plugin(self, *args: str, roots: list[str] | None = None, **more: Any) -> Plugin:
        """Starts the plugin and waits for its registrations."""
        started = self.start_plugin(*self.machine_args(roots), *args, **more)
        eventually(lambda: self.settled(started), "the plugin is registered")
        return started

    def settled(self, plugin: Plugin) -> bool:
        """Whether every resource of the plugin is registered and the kubelet has its list."""
        assert plugin.process.poll() is None, plugin.log()[-2000:]
        resources = plugin.status()["resources"]
        advertised = self.advertised()
        return bool(resources) and all(
            entry["registration"]["registered"] and entry["registration"]["streams"] > 0 and advertised.get(entry["name"])
            == sorted(device["id"] for device in entry["devices"] if device["health"] == "Healthy")
            for entry in resources)

    def pod(self, name: str, limits: dict[str, int] | None = None, **spec: Any) -> Pod:
        """A static pod whose container `main` asks for `limits` and then sleeps."""
        # A static pod's uid follows from its file: the same one twice would be the same pod.
        self.made += 1
        pod = Pod(self, f"{name}-{self.made}", {
            "hostNetwork": True, "terminationGracePeriodSeconds": 1,
            "containers": [main_container(limits or {})], **spec,
        })
        self.pods.append(pod)
        return pod

    def run_in(self, pod: Pod, *command: str) -> str:
        """Runs a command in the pod's container, under its limits, and returns what it printed."""
        self.made += 1
        return self.ctr("task", "exec", "--exec-id", f"exec-{self.made}", pod.view().id, *command)

    def kill(self, pod: Pod) -> None:
        """Ends the container's process, as a crash would."""
        os.kill(pod.view().pid, signal.SIGKILL)

    def clean(self) -> None:
        """Between tests: no pods, no plugins."""
        for pod in self.pods:
            pod.remove(wait=False)
        for pod in self.pods:
            pod.gone()
        self.pods.clear()
        for plugin in self.plugins:
            plugin.stop()
        self.plugins.clear()

    def close(self) -> None:
        super().close()
        if self.containerd is not None:
            self.containerd.kill()
            self.containerd.wait()
        shutil.rmtree(LOGS, ignore_errors=True)
        LOGS.mkdir(parents=True)
        for log in self.dir.glob("*.log"):
            shutil.copy(log, LOGS)
        shutil.copytree("/var/log/pods", LOGS / "pods", dirs_exist_ok=True)


def main_container(limits: dict[str, int], name: str = "main", **more: Any) -> dict[str, Any]:
    return {
        "name": name, "image": image.NAME, "imagePullPolicy": "Never",
        # As the first process, a plain sleep would ignore SIGTERM.
        "command": ["/bin/sh", "-c", "trap exit TERM; while :; do sleep 1000 & wait; done"],
        "resources": {"limits": limits}, **more,
    }


__all__ = ["PROGRAMS", "Pod", "RealNode", "main_container"]
