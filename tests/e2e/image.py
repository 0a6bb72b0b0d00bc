"""The container image of the tests, made from what Debian has: busybox and a small C program.

No registry is asked. The image also plays the sandbox ("pause") container.
"""

import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile

NAME = "ndp.test/e2e:latest"
APPLETS = ["sh", "sleep", "cat", "ls", "mknod", "id", "true"]

# Loads libraries by name, as a CUDA program does, and says where each came from.
LOADER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    struct link_map* map;
    void* library = dlopen(argv[i], RTLD_NOW);
    if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
      printf("%s: %s\n", argv[i], dlerror());
      return 1;
    }
    printf("%s\n", map->l_name);
  }
  return 0;
}
"""


def _loader(folder: pathlib.Path) -> dict[str, bytes]:
    """The program and the C library it needs, by their paths in the image."""
    source, program = folder / "load.c", folder / "load"
    source.write_text(LOADER)
    subprocess.run(["cc", "-o", str(program), str(source), "-ldl"], check=True)
    needed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    files = {"bin/load": program.read_bytes()}
    for path in re.findall(r"(/\S+) \(0x", needed):
        files[path.lstrip("/")] = pathlib.Path(path).read_bytes()
    return files


def _layer(folder: pathlib.Path) -> bytes:
    files = _loader(folder) | {"bin/busybox": pathlib.Path("/bin/busybox").read_bytes(),
                               "etc/passwd": b"root:x:0:0:root:/:/bin/sh\n"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ["tmp", "etc", "usr/lib"]:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = 0o755, len(content)
            tar.addfile(entry, io.BytesIO(content))
        for applet in APPLETS:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    return out.getvalue()


def make(folder: pathlib.Path) -> pathlib.Path:
    """Writes the image as `docker save` would; returns the file."""
    layer = _layer(folder)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    config = json.dumps({
        "architecture": machine, "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sleep", "1000000"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]).encode()
    path = folder / "image.tar"
    with tarfile.open(path, mode="w") as tar:
        for name, content in {"config.json": config, "layer.tar": layer, "manifest.json": manifest}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path
