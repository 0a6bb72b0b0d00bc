"""The plugin on the real driver with the kubelet stand-in: every size allocated and preferred.

Usage: device.py OUTPUT_FOLDER (see device.sh). Needs no package: machines with GPUs may have none.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["NDP_BIN_DIR"])
GPU = "nvidia.com/gpu"


def ask(control: pathlib.Path, **fields):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(control))
        connection.sendall((json.dumps(fields) + "\n").encode())
        answer = json.loads(connection.makefile().readline())
    if not answer["ok"]:
        raise SystemExit(f"{fields}: {answer['error']}")
    return answer


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ndp-"))
    control = folder / "kubelet/control.sock"
    kubelet = subprocess.Popen([str(BIN / "ndp-sim"), "kubelet", "--no-machine", "--dir", str(folder)],
                               stdin=subprocess.PIPE,
                               stdout=(out / "kubelet.log").open("w"), stderr=subprocess.STDOUT)
    while not control.exists():
        time.sleep(0.01)
    plugin = subprocess.Popen(
        [str(BIN / "ndp"), "device-plugin", "--driver-root-ctr-path=/", f"--kubelet-socket={folder}/kubelet/kubelet.sock",
         f"--cdi-spec-dir={folder}/cdi", "--pass-device-specs", "--device-list-strategy=envvar,cdi-cri",
         f"--listen-address={folder}/web"],
        stdout=(out / "plugin.log").open("w"), stderr=subprocess.STDOUT)  # fmt: skip
    try:
        inventory = json.loads((out / "inventory.json").read_text())
        count = len(inventory["gpus"])
        ask(control, command="wait", resource=GPU, allocatable=count, timeout_ms=20000)
        for size in range(1, count + 1):
            preferred = ask(control, command="preferred", resource=GPU, count=size)
            assert len(set(preferred["devices"])) == size, preferred
            answer = ask(control, command="allocate", resource=GPU, count=size, pod=f"pod{size}")
            assert len(answer["devices"]) == size, answer
            ask(control, command="release", pod=f"pod{size}")
            print(f"size {size}: preferred {preferred.get('devices')}, answer {json.dumps(answer['response'])}")
        plugin.terminate()
        assert plugin.wait(10) == 0
        print(f"device.py: {count} GPUs, every size allocated: passed")
    finally:
        for process in (plugin, kubelet):
            if process.poll() is None:
                process.kill()


if __name__ == "__main__":
    main()
