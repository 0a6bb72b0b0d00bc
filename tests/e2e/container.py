"""What a running container sees, read from outside, and the difference to one without GPUs."""

from __future__ import annotations

import functools
import os
import pathlib
import re
import stat
import subprocess


class View:
    """A container's environment, device nodes, mounts, links and loader cache."""

    def __init__(self, id: str, pid: int) -> None:
        self.id = id
        self.pid = pid
        self.proc = pathlib.Path(f"/proc/{pid}")
        self.root = self.proc / "root"

    @functools.cached_property
    def env(self) -> dict[str, str]:
        pairs = (self.proc / "environ").read_text().split("\0")
        return dict(pair.split("=", 1) for pair in pairs if pair)

    @functools.cached_property
    def mounts(self) -> dict[str, str]:
        """Mount point to the place in the mounted file system (a bind mount's source)."""
        found = {}
        for line in (self.proc / "mountinfo").read_text().splitlines():
            fields = line.split()
            found[fields[4]] = fields[3]
        return found

    @functools.cached_property
    def mount_options(self) -> dict[str, set[str]]:
        lines = (self.proc / "mountinfo").read_text().splitlines()
        return {line.split()[4]: set(line.split()[5].split(",")) for line in lines}

    @functools.cached_property
    def _tree(self) -> dict[str, os.stat_result]:
        """Everything in the container's root and its /dev, by path."""
        found: dict[str, os.stat_result] = {}

        def walk(folder: str) -> None:
            for entry in os.scandir(f"{self.root}{folder}"):
                path = f"{folder}/{entry.name}"
                if path in ("/proc", "/sys", "/dev/pts", "/dev/shm", "/dev/mqueue"):
                    continue
                found[path] = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    walk(path)

        walk("")
        return found

    @functools.cached_property
    def links(self) -> dict[str, str]:
        return {path: os.readlink(f"{self.root}{path}") for path, it in self._tree.items() if stat.S_ISLNK(it.st_mode)}

    @functools.cached_property
    def nodes(self) -> dict[str, tuple[int, int]]:
        """Device nodes: path to major and minor number."""
        return {path: (os.major(it.st_rdev), os.minor(it.st_rdev)) for path, it in self._tree.items()
                if stat.S_ISCHR(it.st_mode) or stat.S_ISBLK(it.st_mode)}

    @functools.cached_property
    def files(self) -> set[str]:
        return {path for path, it in self._tree.items() if stat.S_ISREG(it.st_mode) or stat.S_ISSOCK(it.st_mode)}

    @functools.cached_property
    def library_cache(self) -> dict[str, str]:
        """/etc/ld.so.cache: name to path."""
        cache = self.root / "etc/ld.so.cache"
        if not cache.exists():
            return {}
        out = subprocess.run(["ldconfig", "-p", "-C", str(cache)], capture_output=True, text=True, check=True).stdout
        return dict(re.findall(r"^\s+(\S+) \(.*\) => (\S+)$", out, re.MULTILINE))

    @functools.cached_property
    def groups(self) -> set[int]:
        line = re.search(r"^Groups:(.*)$", (self.proc / "status").read_text(), re.MULTILINE)
        return {int(gid) for gid in line[1].split()} if line else set()


class Added:
    """What a container has that one without GPUs has not."""

    def __init__(self, view: View, plain: View) -> None:
        def new(kind: str) -> dict:
            return {key: value for key, value in getattr(view, kind).items() if key not in getattr(plain, kind)
                    or (kind != "mounts" and getattr(plain, kind)[key] != value)}

        self.env = new("env")
        self.mounts = new("mounts")
        self.nodes = {path: numbers for path, numbers in new("nodes").items() if path not in self.mounts}
        self.links = new("links")
        self.files = view.files - plain.files - set(self.mounts)
        self.groups = view.groups - plain.groups
