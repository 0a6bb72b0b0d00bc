"""What a container with GPUs must see, worked out from the simulated machine, not from our files."""

from __future__ import annotations

import os
import pathlib
import re
import stat
from collections.abc import Iterable
from typing import Any

from container import Added

CONTROL = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"]
# Files of the host in the driver root that no container may see; {lib} is the libraries' folder.
DECOYS = ["etc/shadow", "usr/bin/bash", "usr/bin/nvidia-installer", "{lib}/libm.so.6", "{lib}/libcuda.so.535.1.1",
          "lib/firmware/nvidia/535.1.1/gsp_ga10x.bin", "run/secret"]

# What NVIDIA's hooks write: the loader's search path and cache, and the display driver's profile.
HOOKS_FILES = {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d/00-nvcr-N.conf", "/etc/ld.so.conf.d/zz-nvcr-N.conf",
               "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"}

Nodes = dict[str, tuple[int, int]]


class DriverRoot:
    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.libraries = next((root / "usr/lib").glob("*-linux-gnu"))
        self.decoys = [root / decoy.format(lib=self.libraries.relative_to(root)) for decoy in DECOYS]
        for decoy in self.decoys:
            decoy.parent.mkdir(parents=True, exist_ok=True)
            decoy.write_text("not the driver's")

    def inside(self, path: pathlib.Path) -> str:
        return f"/{path.relative_to(self.root)}"

    # -- device nodes -----------------------------------------------------------------------------
    def nodes(self, paths: Iterable[str]) -> Nodes:
        found = {}
        for path in paths:
            status = os.lstat(self.root / path.lstrip("/"))
            assert stat.S_ISCHR(status.st_mode), path
            found[path] = os.major(status.st_rdev), os.minor(status.st_rdev)
        return found

    def control_nodes(self) -> Nodes:
        return self.nodes(f"/dev/{name}" for name in CONTROL)

    def gpu_nodes(self, gpu: dict[str, Any]) -> Nodes:
        drm = self.root / f"sys/bus/pci/devices/{gpu['pci']}/drm"
        return self.nodes([f"/dev/nvidia{gpu['minor']}", *(f"/dev/dri/{path.name}" for path in drm.iterdir())])

    def mig_nodes(self, gpu: dict[str, Any], mig: dict[str, Any]) -> Nodes:
        """The parent's node, and the two that stand for the right to use this instance."""
        minors = dict(line.split() for line in (self.root / "proc/driver/nvidia-caps/mig-minors").read_text().splitlines())
        instance = f"gpu{gpu['minor']}/gi{mig['gi']}"
        caps = [minors[f"{instance}/access"], minors[f"{instance}/ci{mig['ci']}/access"]]
        return self.nodes([f"/dev/nvidia{gpu['minor']}", *(f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in caps)])

    def groups(self, nodes: Nodes) -> set[int]:
        """Groups without which a process that is not root could not open the nodes."""
        status = [os.lstat(self.root / path.lstrip("/")) for path in nodes]
        return {it.st_gid for it in status if it.st_mode & 0o006 != 0o006 and it.st_gid != 0}

    # -- files ------------------------------------------------------------------------------------
    def mounts(self) -> dict[str, str]:
        """Where each file of the driver is in a container, and where below the driver root."""
        found = {}
        for folder in ["usr", "lib/firmware", "etc", "run"]:
            for path in sorted((self.root / folder).rglob("*")):
                if path.is_symlink() or path.is_dir() or path in self.decoys:
                    continue
                # Vulkan's loader looks in /etc, wherever the driver keeps these.
                found[self.inside(path).replace("/usr/share/vulkan/", "/etc/vulkan/")] = self.inside(path)
        return found

    def links(self, gpus: list[dict[str, Any]]) -> dict[str, str]:
        """The links that a driver's installer makes, and those of the GPUs' display nodes."""
        found = {}
        for gpu in gpus:
            for path in (self.root / "dev/dri/by-path").glob(f"pci-{gpu['pci']}-*"):
                found[self.inside(path)] = os.readlink(path)
        for path in self.libraries.rglob("*.so*"):
            if path.is_symlink():
                found[self.inside(path)] = os.readlink(path)
        # GLVND's name for the vendor's library when a server renders.
        (vendor,) = self.libraries.glob("libGLX_nvidia.so.*.*")
        found[f"{self.inside(self.libraries)}/libGLX_indirect.so.0"] = vendor.name
        return found


# Mounts that name devices to NVIDIA's runtime.
LIST_FOLDER = "/var/run/nvidia-container-devices/"


def check_driver(root: DriverRoot, added: Added, nodes: Nodes, gpus: list[dict[str, Any]],
                 more: Iterable[str] = ()) -> None:
    """That CDI brought these device nodes, the whole driver and the mounts `more`, and nothing else."""
    mounts = {path for path in added.mounts if not path.startswith(LIST_FOLDER)}
    same("mounts", dict.fromkeys(mounts), dict.fromkeys([*root.mounts(), *more]))
    same("device nodes", added.nodes, root.control_nodes() | nodes)
    assert added.groups == root.groups(nodes)
    same("links", added.links, root.links(gpus))
    files = {re.sub(r"-nvcr-\d+", "-nvcr-N", path) for path in added.files
             if not any(path.startswith(f"{folder}/") for folder in more)}
    same("files", dict.fromkeys(files), dict.fromkeys(HOOKS_FILES))


def same(what: str, seen: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Equality that says what is different, of dictionaries with hundreds of entries."""
    extra = {key: value for key, value in seen.items() if key not in wanted or wanted[key] != value}
    lacking = {key: value for key, value in wanted.items() if key not in seen or seen[key] != value}
    assert not extra and not lacking, f"{what} of the container: not asked for: {extra}; missing: {lacking}"
